"""Functions of a user that are wrong: an error or a warning, and never a model trained in silence."""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Averaged, BlockFrankWolfe, BrokenOracle, Pairwise, StructuredSVC, Subgradient, solve
from maxmargin.problems import Custom, Multiclass, SignConstrained, Sizes, Weighted
from maxmargin.runtime import limits
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.spot_check import Doubtful, check_oracle, doubtful_prediction
from maxmargin.structures.problem import as_problem
from support.catalogue import chain_case, multiclass_case
from support.naive import Array
from support.own_functions import custom

RNG = np.random.default_rng(0)
X = list(RNG.normal(size=(12, 3)))
Y = [int(x.argmax()) for x in X]
PLACE = {x.tobytes(): y for x, y in zip(X, Y, strict=True)}


def features(x: Array, y: int) -> Array:
    return np.kron(np.eye(3)[y], x)


def loss(y_true: int, y: int) -> float:
    return float(y_true != y)


def value(x: Array, w: Array, y_true: int | None, y: int) -> float:
    return float(w @ features(x, y)) + (0.0 if y_true is None else loss(y_true, y))


def best(x: Array, w: Array, y_true: int | None = None) -> int:
    return max(range(3), key=lambda y: value(x, w, y_true, y))


def worst(x: Array, w: Array, y_true: int | None = None) -> int:
    return min(range(3), key=lambda y: value(x, w, y_true, y))


def truth(x: Array, w: Array, y_true: int | None = None) -> int:
    return best(x, w) if y_true is None else y_true


def model(**changes: Any) -> StructuredSVC:
    functions = {"features": features, "loss": loss, "argmax": best}
    return StructuredSVC(**(functions | {"verbose": 0, "random_state": 0} | changes))


def best_of(chosen: Callable[[Array, int], Array]) -> "Function":
    """Return the oracle for these features."""

    def argmax(x: Array, w: Array, y_true: int | None = None) -> int:
        return max(range(3), key=lambda y: w @ chosen(x, y) + (0.0 if y_true is None else loss(y_true, y)))

    return argmax


Function = Callable[..., Any]
NOTHING = (
    r"^{}: all weights are zero after training \(gap 0\), as argmax never returned an output of loss above 0"
)
WRONG: dict[str, tuple[dict[str, Function], str]] = {
    "argmin by mistake": ({"argmax": worst}, "example 0 it returned the truth, an output that a prediction"),
    "the truth": ({"argmax": truth}, "example 0 it returned the truth, an output that a prediction exceeds"),
    "the truth, looked up": (
        {"argmax": lambda x, w, y_true=None: PLACE[x.tobytes()]},
        "at zero weights the answers of argmax for all 12 examples have loss 0",
    ),
    "the loss forgotten": (
        {"argmax": lambda x, w, y_true=None: best(x, w)},
        "another of its answers exceeds",
    ),
    "the second best": (
        {"argmax": lambda x, w, y_true=None: sorted(range(3), key=lambda y: value(x, w, y_true, y))[1]},
        "exceeds by",
    ),
    "a prediction of the worst": (
        {"argmax": lambda x, w, y_true=None: worst(x, w) if y_true is None else best(x, w, y_true)},
        "argmax without the truth must return an output of largest score, but for example 0",
    ),
    "always the same": ({"argmax": lambda x, w, y_true=None: 1}, "has a negative or undefined block gap"),
    "a loss that is never positive": (
        {
            "loss": lambda y_true, y: 0.0,
            "argmax": lambda x, w, y_true=None: best(x, w),
        },
        "loss must be above 0 for wrong outputs",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_no_wrong_oracle_is_trained_on(name: str) -> None:
    functions, expected = WRONG[name]
    with pytest.raises(BrokenOracle) as caught:
        model(**functions).fit(X, Y)
    said = str(caught.value)
    assert said.startswith("StructuredSVC: ")
    assert expected in said
    assert "check_problem(model, X, y)" in said
    assert "exact=False" in said
    assert "\n" not in said


def test_predictions_may_be_of_fewer_outputs() -> None:
    def bounded(x: Array, w: Array, y_true: int | None = None) -> int:
        return max((0, 1), key=lambda y: value(x, w, None, y)) if y_true is None else best(x, w, y_true)

    assert set(model(argmax=bounded).fit(X, Y).predict(X)) <= {0, 1}


def test_slow_oracles_are_asked_for_fewer_examples() -> None:
    asked = []

    def slow(x: Array, w: Array, y_true: int | None = None) -> int:
        asked.append(x)
        return best(x, w, y_true)

    check_oracle(model(argmax=slow).problem(X, Y), "advice", seconds=-1.0)
    assert len(asked) == 5
    assert all(x is X[0] for x in asked)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_counts_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=0.0)
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: clock.time))

    def slow(x: Array, w: Array, y_true: int | None = None) -> int:
        clock.time += 1.0
        return best(x, w, y_true)

    fitted = model(argmax=slow, tol=0.0, C=10.0, time_limit=60.0, max_iter=10**6)
    fitted.fit(X, Y)
    assert 50.0 < clock.time <= 66.0  # within a tenth
    assert fitted.time_limit == 60.0


@pytest.mark.parametrize("argmax", [worst, truth])
def test_an_approximate_oracle_that_returns_the_truth_is_noticed(argmax: Function) -> None:
    """It may be beaten, so that only the answer shows that something is wrong."""
    with pytest.warns(UserWarning, match=NOTHING.format("StructuredSVC")) as c:
        fitted = model(argmax=argmax, exact=False).fit(X, Y)
    (warning,) = c
    assert not fitted.coef_.any()
    assert "check_problem" in str(warning.message)
    assert warning.filename == __file__


def test_a_loss_that_is_never_positive_is_reported_for_an_approximate_oracle() -> None:
    with pytest.warns(UserWarning, match=NOTHING.format("StructuredSVC")) as caught:
        model(loss=lambda y_true, y: 0.0, exact=False).fit(X, Y)
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_zero_weights_that_predict_wrongly_are_reported() -> None:
    with pytest.warns(UserWarning, match=r"^StructuredSVC: all weights are zero after training \(gap") as c:
        fitted = model(method="bcfw", C=1e3, max_iter=1).fit([X[0]] * 12, [0, 1] * 6)
    assert not fitted.coef_.any()
    said = str(c[-1].message)
    assert "the prediction for example 1 has loss 1" in said  # at zero weights, all predictions are 0
    assert "check_problem(model, X, y)" in said
    assert c[-1].filename == __file__


def test_zero_weights_that_predict_rightly_are_no_cause_to_warn() -> None:
    problem, zero = model().problem(X, [0] * 12), np.zeros(9)
    assert doubtful_prediction(problem, zero, 1.0) is None
    assert doubtful_prediction(model().problem(X, [0] * 11 + [1]), zero, 10.0) == Doubtful(11, 1.0)


METHODS = {
    "pairwise": Pairwise(lam=0.1),
    "bcfw": BlockFrankWolfe(lam=0.1),
    "averaged": Averaged(BlockFrankWolfe(lam=0.1)),
    "subgradient": Subgradient(lam=0.1),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("argmax", [truth, lambda x, w, y_true: y_true])
def test_solve_reports_an_oracle_that_returns_the_truth(argmax: Function, method: str) -> None:
    """It is not called without the truth: `solve` makes no predictions."""
    problem = Custom(features, loss, argmax, X, Y)
    for wrapped in (problem, Weighted(problem, np.arange(1.0, 13.0)), SignConstrained(problem, [0])):
        with pytest.warns(UserWarning, match=NOTHING.format("Custom")) as caught:
            result = solve(wrapped, METHODS[method], random_state=0)
        (warning,) = caught
        said = str(warning.message)
        assert result.gap == 0.0
        assert not result.weights.any()
        assert said.endswith("run check_problem to find out whether a function is wrong.")
        assert "\n" not in said
        assert warning.filename == __file__


def test_solve_reports_features_that_do_not_depend_on_the_output() -> None:
    problem = Custom(lambda x, y: x, loss, best_of(lambda x, y: x), X, Y)
    with pytest.warns(
        UserWarning, match=r"^Custom: all weights .* features do not tell the truths from"
    ) as caught:
        result = solve(problem, BlockFrankWolfe(lam=0.1), random_state=0)
    assert len(caught) == 1
    assert result.primal == result.dual == 1.0


def test_solve_reports_an_own_object_that_returns_the_truth() -> None:
    class Lazy(Own):
        def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
            y[0] = i % 2

    with pytest.warns(UserWarning, match=NOTHING.format("Lazy")):
        solve(Lazy(""), BlockFrankWolfe(lam=0.1), random_state=0)


def test_the_models_of_the_package_may_have_nothing_to_learn() -> None:
    blank = Multiclass.from_arrays(np.zeros((12, 3)), Y)
    result = solve(blank, BlockFrankWolfe(lam=0.1), random_state=0)
    assert not result.weights.any()
    assert result.gap == 0.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_oracle_wrong_on_one_example_is_found() -> None:
    """It is not among the few that are compared before training; afterwards, there is time for all."""
    labels = [(y + (i == 4)) % 3 for i, y in enumerate(Y)]

    def lax(x: Array, w: Array, y_true: int | None = None) -> int:
        return labels[4] if x is X[4] and y_true is not None else best(x, w, y_true)

    run = {"method": "bcfw", "C": 10.0, "max_iter": 50, "tol": 0.0}
    with pytest.warns(UserWarning, match=r"^StructuredSVC: the certificate does not hold: argmax must") as c:
        model(argmax=lax, **run).fit(X, labels)
    assert "for example 4 it returned the truth, an output that the prediction exceeds" in str(c[-1].message)
    model(**run).fit(X, labels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_oracle_that_fails_at_the_last_weights_is_found() -> None:
    labels = [(y + (i % 3 == 0)) % 3 for i, y in enumerate(Y)]  # noise, so that some hinges are positive
    # The dual is far below the objective, so that no bound gives the oracle away.
    one_pass = {"method": "bcfw", "max_iter": 1, "check_every": 1, "C": 1.0}
    last = model(**one_pass).fit(X, labels).coef_

    def tired(x: Array, w: Array, y_true: int | None = None) -> int:
        is_last = y_true is not None and x is X[0] and np.array_equal(w, last)
        return y_true if is_last else best(x, w, y_true)  # type: ignore[return-value]

    with pytest.warns(UserWarning, match=r"^StructuredSVC: the certificate does not hold: argmax must") as c:
        model(argmax=tired, **one_pass).fit(X, labels)
    assert "for example 0 it returned the truth, an output that the prediction exceeds" in str(c[-1].message)
    assert "exact=False" in str(c[-1].message)


def test_nothing_is_checked_after_an_interrupt() -> None:
    calls, last = [], 5 * 5 + 3 * len(X)

    def interrupted(x: Array, w: Array, y_true: int | None = None) -> int:
        calls.append(y_true)
        if len(calls) == last:
            raise KeyboardInterrupt
        return best(x, w, y_true)

    fitted = model(argmax=interrupted, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, Y)
    assert fitted.certified_
    assert None not in calls[last:]  # no prediction


def test_right_functions_are_called_a_few_times_more() -> None:
    calls = []

    def counted(x: Array, w: Array, y_true: int | None = None) -> int:
        calls.append(y_true)
        return best(x, w, y_true)

    problem = model(argmax=counted).problem(X, Y)
    check_oracle(problem, "advice")
    assert len(calls) == 5 * 5


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]), st.booleans())
def test_right_oracles_raise_no_alarm(seed: int, scale: float, chain: bool) -> None:
    case = chain_case(seed % 1000, (1, 2, 2), 2, loss="hamming") if chain else multiclass_case(seed % 1000)
    case = case._replace(data=case.data._replace(psi=[scale * psi for psi in case.data.psi]))
    problem = custom(case)
    check_oracle(problem, "advice")
    check_oracle(SignConstrained(problem, [0, 1]), "advice")


def test_an_oracle_for_weights_with_signs_sees_no_others() -> None:
    def guarded(x: Array, w: Array, y_true: int | None = None) -> int:
        assert (w[:2] >= 0.0).all()
        return best(x, w, y_true)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(argmax=guarded, nonnegative=[0, 1], C=1.0).fit(X, Y).score(X, Y) > 0.9


FAILING: dict[str, Function] = {
    "features": lambda x, y: features(x, y) if x is not X[7] else 1 / 0,
    "loss": lambda y_true, y: loss(y_true, y) if y_true is not MARKED else 1 / 0,
    "argmax": lambda x, w, y_true=None: best(x, w, y_true) if x is not X[7] else 1 / 0,
}
MARKED = np.int64(Y[7])  # equal to the truth of example 7, and another object


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_functions_name_the_example(name: str) -> None:
    truths = [MARKED if name == "loss" and i == 7 else y for i, y in enumerate(Y)]
    with pytest.raises(ZeroDivisionError) as caught:
        model(**{name: FAILING[name]}).fit(X, truths)
    assert caught.value.__notes__ == [f"StructuredSVC: raised by {name} for example 7"]
    fitted = model().fit(X, Y)
    setattr(fitted, name, FAILING[name])
    if name != "features":  # which predictions do not call
        with pytest.raises(ZeroDivisionError) as caught:
            fitted.score(X, truths)
        assert caught.value.__notes__ == [f"StructuredSVC: raised by {name} for example 7"]


@pytest.mark.parametrize("bad", [None, "much", np.ones(2), np.nan, -1.0])
def test_losses_must_be_numbers(bad: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^StructuredSVC: loss must be a finite number >= 0, got .* for exam"
    ) as caught:
        model(loss=lambda y_true, y: 0.0 if y_true == y else bad).fit(X, Y)
    assert not hasattr(caught.value, "__notes__")  # the message names the example
    fitted = model().fit(X, Y)
    fitted.loss = lambda y_true, y: bad
    with pytest.raises(
        ValueError, match=r"^StructuredSVC: loss must be a finite number >= 0, got .*example 0"
    ):
        fitted.score(X, Y)


class Own:
    """A problem in one object, of which one method fails for example 2."""

    def __init__(self, failing: str) -> None:
        self.failing = failing

    def _may_fail(self, name: str, i: int) -> None:
        if name == self.failing and i == 2:
            raise ZeroDivisionError(name)

    def sizes(self) -> Sizes:
        return Sizes(4, 2, 2, 1, 2)

    def score(self, i: int, w: Array, theta: Array) -> None:
        self._may_fail("score", i)
        theta[:] = w

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        self._may_fail("argmax", i)
        y[0] = np.argmax(theta + np.array([i % 2, 1 - i % 2]))

    def decode(self, i: int, theta: Array, y: Array, work: Any) -> None:
        self._may_fail("decode", i)
        y[0] = np.argmax(theta)

    def loss(self, i: int, y: Array) -> float:
        self._may_fail("loss", i)
        return float(y[0] != i % 2)

    def psi(self, i: int, y: Array, index: Array, value: Array) -> int:
        self._may_fail("psi", i)
        index[:], value[:] = (i % 2, y[0]), (1.0, -1.0)
        return 2

    def gram(self, i: int, move: Any, image: Array, work: Any) -> None:
        self._may_fail("gram", i)
        image[:] = move.delta

    def push(self, i: int, move: Any, scale: float, w: Array, work: Any) -> None:
        self._may_fail("push", i)
        w += scale * move.delta


@pytest.mark.parametrize("name", ["score", "argmax", "loss", "psi", "gram", "push"])
def test_errors_of_an_own_problem_name_the_example(name: str) -> None:
    with pytest.raises(ZeroDivisionError, match=name) as caught:
        solve(Own(name), BlockFrankWolfe(lam=0.1), random_state=0)
    assert caught.value.__notes__ == [f"Own: raised by {name} for example 2"]


def test_errors_of_an_own_prediction_name_the_example() -> None:
    with pytest.raises(ZeroDivisionError, match="decode") as caught:
        decode_all(as_problem(Own("decode")), np.zeros(2))
    assert caught.value.__notes__ == ["Own: raised by decode for example 2"]

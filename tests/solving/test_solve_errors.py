"""What the driver refuses, and what it says: one line each."""

from typing import NamedTuple

import numpy as np
import pytest

from maxmargin import (
    BMRM,
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    BrokenOracle,
    Cached,
    CuttingPlane,
    Divided,
    FrankWolfe,
    LineSearch,
    NSlackCuttingPlane,
    Pairwise,
    Subgradient,
    solve,
)
from maxmargin.problems import Chain, Multiclass, Sizes
from maxmargin.structures.feature_map import MAP_REQUIRED
from maxmargin.structures.oracle import ORACLE_REQUIRED, loss
from maxmargin.structures.problem import sizes
from support.plain import NEEDED, asked, both_workspaces

REQUIRED = (*MAP_REQUIRED, *ORACLE_REQUIRED)
X = np.array([[1.0, 0.5], [0.2, 1.5], [2.0, -1.0], [-0.3, 0.8], [1.2, 1.1], [-1.0, 0.4]])
Y = np.array([0, 1, 2, 1, 2, 0])
PROBLEM = Multiclass.from_arrays(X, Y)
METHODS = {
    "bcfw": BlockFrankWolfe(0.1),
    "wavg": Averaged(BlockFrankWolfe(0.1)),
    "fw": FrankWolfe(0.1),
    "pairwise": Pairwise(0.1),
    "away": Away(0.1),
    "accelerated": Accelerated(Pairwise(0.1)),
    "accelerated bcfw": Accelerated(BlockFrankWolfe(0.1)),
    "ssg": Subgradient(0.1),
    "ssg-wavg": Averaged(Subgradient(0.1)),
    "1-slack": CuttingPlane(0.1),
    "n-slack": NSlackCuttingPlane(0.1),
    "bmrm": BMRM(0.1, mu=1.0),  # by smaller steps it does not get to where the wrong answer can be told
}


class Plain:
    """A multiclass problem as a plain Python object."""

    def __init__(self):
        self.problem = PROBLEM

    def sizes(self):
        return sizes(self.problem)

    def workspace(self):
        return both_workspaces(self.problem)


for _name in NEEDED:
    setattr(Plain, _name, lambda self, *args, name=_name: asked(self.problem, name, *args))


def message_of(kind, *args, **options):
    with pytest.raises(kind) as caught:
        solve(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("solve: ")
    return message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tol": -1.0}, "solve: tol must be a number >= 0, got -1.0."),
        ({"tol": np.nan}, "solve: tol must be a number >= 0, got nan."),
        ({"tol": "small"}, "solve: tol must be a number >= 0, got 'small'."),
        ({"tol": None}, "solve: tol must be a number >= 0, got None."),
        ({"max_passes": 0}, "solve: max_passes must be an int >= 1, got 0."),
        ({"max_passes": 2.5}, "solve: max_passes must be an int >= 1, got 2.5."),
        ({"check_every": 0}, "solve: check_every must be an int >= 1, got 0."),
        ({"time_limit": 0}, "solve: time_limit must be a number > 0 or None, got 0."),
        ({"time_limit": np.inf}, "solve: time_limit must be a number > 0 or None, got inf."),
        (
            {"sampling": "random"},
            "solve: sampling must be one of 'permutation', 'uniform', 'gap', got 'random'.",
        ),
        (
            {"sampling": ["uniform"]},
            "solve: sampling must be one of 'permutation', 'uniform', 'gap', got a list.",
        ),
        (
            {"callbacks": print},
            "solve: callbacks must be a list of functions, got a builtin_function_or_method.",
        ),
        ({"callbacks": [print, 3]}, "solve: each item of callbacks must be a function, got 3."),
        (
            {"random_state": -1},
            "solve: random_state must be an int >= 0, a Generator, a RandomState or None, got -1.",
        ),
        (
            {"random_state": "seed"},
            "solve: random_state must be an int >= 0, a Generator, a RandomState or None, got 'seed'.",
        ),
    ],
)
def test_wrong_options_are_refused(options, expected):
    assert message_of(ValueError, PROBLEM, METHODS["bcfw"], **options) == expected


@pytest.mark.parametrize("lam", [0, -0.5, np.inf, np.nan, "0.1", None, [0.1]])
@pytest.mark.parametrize(
    "make",
    [
        BlockFrankWolfe,
        FrankWolfe,
        Pairwise,
        lambda lam: Averaged(BlockFrankWolfe(lam)),
        lambda lam: Accelerated(Away(lam)),
    ],
)
def test_wrong_lam_is_refused(make, lam):
    assert message_of(ValueError, PROBLEM, make(lam)).startswith(
        "solve: the method's lam must be a number > 0, got "
    )


@pytest.mark.parametrize("steps", [0, -3, 2.5, None, "many"])
@pytest.mark.parametrize("make", [Pairwise, Away, lambda *args: Accelerated(Pairwise(*args))])
def test_inner_steps(make, steps):
    expected = f"solve: the method's inner_steps must be an int >= 1, got {steps!r}."
    assert message_of(ValueError, PROBLEM, make(0.1, steps)) == expected


@pytest.mark.parametrize("bytes_", [0, -1, 2.5, None])
@pytest.mark.parametrize("make", [Pairwise, Away, lambda *args: Accelerated(Pairwise(*args))])
def test_wrong_budgets_are_refused(make, bytes_):
    expected = f"solve: the method's budget must be an int >= 1, got {bytes_!r}."
    assert message_of(ValueError, PROBLEM, make(0.1, 3, bytes_)) == expected


@pytest.mark.parametrize(
    ("method", "got"),
    [
        ("bcfw", "'bcfw'"),
        (None, "None"),
        (BlockFrankWolfe, "the class BlockFrankWolfe"),
        (0.1, "0.1"),
        (LineSearch(), "an empty LineSearch"),
        (np.zeros((2, 2)), "an ndarray of shape (2, 2)"),
    ],
)
def test_what_is_no_method_is_refused(method, got):
    expected = "solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), got "
    assert message_of(TypeError, PROBLEM, method) == f"{expected}{got}."


@pytest.mark.parametrize(
    ("inner", "got"),
    [("bcfw", "'bcfw'"), (None, "None"), (BlockFrankWolfe, "the class BlockFrankWolfe"), (0.1, "0.1")],
)
@pytest.mark.parametrize("wrapper", [Averaged, Accelerated, Cached, Divided])
def test_methods_that_cannot_be_wrapped_are_refused(wrapper, inner, got):
    with pytest.raises(ValueError, match=f"^{wrapper.__name__}: inner must be ") as caught:
        wrapper(inner)
    assert str(caught.value).endswith(f", got {got}.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("step", "got"),
    [(None, "None"), ("line", "'line'"), (LineSearch, "the class LineSearch"), (0.5, "0.5")],
)
def test_step_rules(step, got):
    expected = f"solve: the method's step must be LineSearch() or Predefined(), got {got}."
    assert message_of(ValueError, PROBLEM, BlockFrankWolfe(0.1, step)) == expected


@pytest.mark.parametrize(
    ("problem", "got"),
    [
        ((), "an empty tuple"),
        (None, "None"),
        ([X, Y], "a list"),
        ((X, Y), "a tuple"),
        (Multiclass, "the class Multiclass"),
        (object(), "an object"),
    ],
)
def test_problems_that_are_none(problem, got):
    names = "sizes, score, gram, push, argmax, decode, loss, psi"
    names = names if not isinstance(problem, tuple) else ", ".join(f.__name__ for f in REQUIRED)
    expected = f"solve: problem must be made by maxmargin.problems or define {names}, got {got}."
    assert message_of(ValueError, problem, METHODS["bcfw"]) == expected


def test_an_array_is_no_problem():
    message = message_of(ValueError, X, METHODS["bcfw"])  # though it has one of the methods
    assert "or define sizes, " in message
    assert message.endswith("got an ndarray of shape (6, 2).")


def test_a_problem_that_lacks_functions_is_refused():
    class Partial(Plain):
        argmax = None
        push = None

    expected = "solve: problem must be made by maxmargin.problems or define push, argmax, got a Partial."
    assert message_of(ValueError, Partial(), METHODS["bcfw"]) == expected


class Registered(NamedTuple):
    """A problem that registers its loss only, and has its oracle as a method."""

    labels: np.ndarray

    def argmax(self, i, theta, y, work):
        y[0] = 0


@loss.register(Registered)
def registered_loss(problem, i, y):
    return 0.0


def test_a_named_tuple_that_lacks_functions_is_refused():
    names = ", ".join(function.__name__ for function in REQUIRED if function is not loss)
    expected = f"solve: problem must be of a class for which {names} are registered, got a Registered."
    assert message_of(ValueError, Registered(Y), METHODS["bcfw"]) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (Sizes(0, 8, 4, 1, 2), "solve: problem must be of one example or more, got 0."),
        ((6, 8, 4, 1, 2), "solve: sizes(problem) must be a maxmargin.problems.Sizes, got a tuple."),
    ],
)
def test_wrong_sizes_are_refused(size, expected):
    class Sized(Plain):
        def sizes(self):
            return size

    assert message_of(ValueError, Sized(), METHODS["bcfw"]) == expected


def test_a_problem_without_unpack_returns_its_own_layout():
    result = solve(Plain(), METHODS["bcfw"], tol=0.0, max_passes=2, random_state=0)
    np.testing.assert_array_equal(result.weights, result.w)
    expected = solve(PROBLEM, METHODS["bcfw"], tol=0.0, max_passes=2, random_state=0)
    np.testing.assert_allclose(result.w, expected.w, rtol=1e-12)


class WrongAnswer(Plain):
    """From the 20th call on the oracle of example 3 returns the worst of the wrong outputs, not the best."""

    calls = 0

    def argmax(self, i, theta, y, work):
        oracle = self.problem.oracle
        values = (theta + oracle.cost[oracle.labels[i]])[: oracle.n_labels]
        self.calls += 1
        y[0] = values.argmax()
        if i == 3 and self.calls > 20:
            values[oracle.labels[i]] = np.inf
            y[0] = values.argmin()


class WorstAnswer(WrongAnswer):
    """The same with the worst of all outputs, which may be the truth."""

    def argmax(self, i, theta, y, work):
        oracle = self.problem.oracle
        super().argmax(i, theta, y, work)
        if i == 3 and self.calls > 20:
            y[0] = (theta + oracle.cost[oracle.labels[i]])[: oracle.n_labels].argmin()


class NegativeLoss(Plain):
    def loss(self, i, y):
        return -1.0 if i == 3 else loss(self.problem.oracle, i, y)


class UndefinedScores(Plain):
    def score(self, i, w, theta):
        super_score(self, i, w, theta)
        if i == 3:
            theta[:] = np.nan


super_score = Plain.score


@pytest.mark.parametrize("problem", [WrongAnswer, NegativeLoss, UndefinedScores])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_broken_oracles_are_named(method, problem):
    message = message_of(BrokenOracle, problem(), method, tol=0.0, max_passes=20, random_state=0)
    assert message.startswith("solve: example 3 ")
    assert "check argmax, loss and the data" in message


def test_a_dual_above_the_objective_tells_of_a_broken_oracle():
    # Short steps come to no point where the gap of a single block is negative.
    message = message_of(BrokenOracle, WorstAnswer(), BMRM(0.1), tol=0.0, max_passes=200, check_every=1)
    assert message.startswith("solve: the dual must be at most the objective, got ")
    assert "some argmax returned an output that is not the best" in message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_features_that_are_not_finite(method, value):
    features = X.copy()
    features[3, 1] = value
    problem = Multiclass.from_encoded(features, Y, 3)
    for seed in range(5):
        message = message_of(BrokenOracle, problem, method, tol=0.0, random_state=seed)
        assert message.startswith("solve: example 3 ")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_builders_name_what_is_not_finite(value):
    sequence = X.copy()
    sequence[3, 1] = value
    with pytest.raises(
        ValueError, match=f"^Chain: feature 1 of token 3 of sequence 1 of X is {value}"
    ) as caught:
        Chain.from_sequences([X, sequence], [Y, Y])
    assert "\n" not in str(caught.value)


def test_errors_of_callbacks_and_oracles_pass_through():
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(PROBLEM, METHODS["bcfw"], callbacks=[fail])

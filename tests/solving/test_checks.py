"""The diagnosis of problems: silent about those that are right, and right about each defect."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from maxmargin import StructuredSVC, check_problem
from maxmargin.problems import SignConstrained, Sizes
from maxmargin.structures.feature_map import norm2
from support.catalogue import Case, chain_case, multiclass_case
from support.counting import Counting
from support.naive import Array
from support.own_functions import custom

CASES = {"chain": chain_case(3, (1, 2, 2), 2, loss="hamming"), "multiclass": multiclass_case(4)}
N_CLASSES = 3


class Classes:
    """A multiclass problem, without a defect."""

    def __init__(self) -> None:
        rng = np.random.default_rng(60)
        self.X, self.y = rng.normal(size=(5, 2)), rng.integers(N_CLASSES, size=5)
        self.cost = rng.uniform(0.5, 1.5, (N_CLASSES, N_CLASSES)) * (1 - np.eye(N_CLASSES))
        self.calls = count()

    def sizes(self) -> Sizes:
        return Sizes(len(self.X), 2 * N_CLASSES, N_CLASSES, 1, 2)

    def workspace(self) -> None:
        return None

    def output_size(self, i: int) -> int:
        return 1

    def score(self, i: int, w: Array, theta: Array) -> None:
        theta[:] = w.reshape(N_CLASSES, 2) @ self.X[i]

    def argmax(self, i: int, theta: Array, y: Array, work: None) -> None:
        y[0] = np.argmax(theta + self.cost[self.y[i]])

    def decode(self, i: int, theta: Array, y: Array, work: None) -> None:
        y[0] = np.argmax(theta)

    def loss(self, i: int, y: Array) -> float:
        return float(self.cost[self.y[i], y[0]])

    def psi(self, i: int, y: Array, index: Array, value: Array) -> int:
        index[:], value[:] = (self.y[i], y[0]), (1.0, -1.0)
        return 2

    def gram(self, i: int, move: Any, image: Array, work: None) -> None:
        image[:] = (self.X[i] @ self.X[i]) * move.delta

    def push(self, i: int, move: Any, scale: float, w: Array, work: None) -> None:
        w += scale * np.outer(move.delta, self.X[i]).ravel()


def without_loss(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    y[0] = np.argmax(theta)


def with_too_much_loss(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    y[0] = np.argmax(theta + 3 * self.cost[self.y[i]])


def never_the_last(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    y[0] = np.argmax(theta[:-1])


def in_turn(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    y[0] = next(self.calls) % N_CLASSES


def in_place(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    theta += self.cost[self.y[i]]
    y[0] = np.argmax(theta)


def failing(self: Classes, i: int, theta: Array, y: Array, work: None) -> None:
    raise IndexError("list index\nout of range")


def affine(self: Classes, i: int, w: Array, theta: Array) -> None:
    theta[:] = w.reshape(N_CLASSES, 2) @ self.X[i] + 1.0


def of_its_own(self: Classes, i: int, w: Array, theta: Array) -> None:
    theta[:] = w.reshape(N_CLASSES, 2) @ self.X[i]
    w[0] = 1.0


def many(self: Classes, i: int, y: Array, index: Array, value: Array) -> int:
    index[:], value[:] = (self.y[i], y[0]), (1.0, -1.0)
    return 3


def outside(self: Classes, i: int, y: Array, index: Array, value: Array) -> int:
    index[:], value[:] = (self.y[i], N_CLASSES + y[0]), (1.0, -1.0)
    return 2


def the_other_way(self: Classes, i: int, move: Any, scale: float, w: Array, work: None) -> None:
    w -= scale * np.outer(move.delta, self.X[i]).ravel()


def once(self: Classes, i: int, move: Any, image: Array, work: None) -> None:
    image[:] = np.abs(self.X[i]).sum() * move.delta


Function = Callable[..., Any]
# A function that is wrong; the checks that see it, and what is said of it.
MUTANTS: dict[str, tuple[str, Function, set[str], str]] = {
    "oracle without the loss": (
        "argmax",
        without_loss,
        {"argmax"},
        "argmax returns the prediction: add the loss",
    ),
    "oracle of the worst": (
        "argmax",
        lambda self, i, theta, y, work: y.__setitem__(0, np.argmin(theta + self.cost[self.y[i]])),
        {"argmax"},
        "argmax returns the smallest value: take the largest",
    ),
    "oracle with another loss": (
        "argmax",
        with_too_much_loss,
        {"argmax"},
        "must return the best of all outputs",
    ),
    "oracle that overlooks": ("decode", never_the_last, {"decode"}, "without the loss"),
    "oracle of chance": ("argmax", in_turn, {"twice"}, "two answers of argmax at the same weights"),
    "oracle that writes": ("argmax", in_place, {"arguments"}, "argmax changes the scores it is given"),
    "oracle that fails": ("argmax", failing, {"functions"}, "raise IndexError: list index out of range"),
    "negative loss": (
        "loss",
        lambda self, i, y: -1.0,
        {"loss"},
        "loss -1.0; losses are finite and at least 0",
    ),
    "loss of the truth": (
        "loss",
        lambda self, i, y: float(self.cost[self.y[i], y[0]]) + 0.25,
        {"truth"},
        "loss 0.25 for an output whose features are those of the truth",
    ),
    "loss of chance": ("loss", lambda self, i, y: next(self.calls), {"twice"}, "two values of loss or psi"),
    "scores that are not linear": ("score", affine, {"score", "gram"}, "not linear in the weights"),
    "scores that write": ("score", of_its_own, {"arguments"}, "score changes the weights"),
    "too many entries": ("psi", many, {"psi"}, "has 3 entries of psi, expected at most sizes().parts, 2"),
    "entries outside": ("psi", outside, {"psi"}, "outside sizes().statistics"),
    "another push": ("push", the_other_way, {"push", "gram"}, "push adds scale * Phi_i delta"),
    "another gram": ("gram", once, {"gram"}, "it is Phi_i' Phi_i delta"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_defect_is_found(name: str) -> None:
    function, wrong, checks, expected = MUTANTS[name]
    report = check_problem(type("Mutant", (Classes,), {function: wrong})())
    assert {finding.check for finding in report.findings} == checks
    assert expected in str(report)
    assert all("\n" not in finding.message for finding in report.findings)
    assert all(finding.message.startswith(f"{finding.check}: ") for finding in report.findings)
    assert all(f"example {finding.example} " in finding.message for finding in report.findings)
    assert not report.ok
    with pytest.raises(ValueError, match=r"^check_problem: "):
        report.raise_if_any()


def test_norm2_is_held_against_push(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mutant(Classes):
        pass

    norm2.register(Mutant)(lambda problem, i, move, image, work: 1.0)
    (finding,) = check_problem(Mutant()).findings
    assert "has norm2 1, expected that of the weights pushed" in finding.message


def all_right() -> dict[str, Any]:
    problems = {"object": Classes()}
    for name, case in CASES.items():
        problems[name] = case.problem
        problems[f"{name} of functions"] = custom(case)
        problems[f"{name}, counted"] = Counting(case.problem)
    return problems


@pytest.mark.parametrize("name", all_right())
def test_nothing_is_found_where_nothing_is_wrong(name: str) -> None:
    report = check_problem(all_right()[name], n_examples=3)
    assert report.ok, str(report)
    assert str(report) == "check_problem: nothing wrong with the 3 examples checked"
    report.raise_if_any()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_signs_of_weights_are_no_defect(case: Case) -> None:
    # The map with signs keeps a projection, which is not linear in what is pushed: the map within is checked.
    assert check_problem(SignConstrained(case.problem, [0, 1]), n_examples=2).ok
    assert not check_problem(SignConstrained(type("Mutant", (Classes,), {"gram": lambda *a: None})(), [0])).ok


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_given_outputs_are_compared(case: Case) -> None:
    assert check_problem(case.problem, outputs=case.data.outputs).ok
    own = custom(case)
    everything = [[(i, k) for k in range(len(losses))] for i, losses in enumerate(case.data.losses)]
    assert check_problem(own, outputs=everything).ok


def test_an_output_that_the_oracle_never_returns_is_found_if_given() -> None:
    class Mutant(Classes):
        def argmax(self, i: int, theta: Array, y: Array, work: None) -> None:
            y[0] = np.argmax((theta + self.cost[self.y[i]])[:-1])

        decode = never_the_last

    shy = Mutant()
    shy.y[:] = 0
    assert check_problem(shy).ok
    found = check_problem(shy, outputs=[[[k] for k in range(N_CLASSES)]] * 5).findings
    assert {finding.check for finding in found} == {"argmax", "decode"}


def features(x: Any, y: int) -> Any:
    return np.eye(2)[y] * x


def loss(y_true: int, y: int) -> float:
    return float(y != y_true)


def argmax(x: Any, w: Any, y_true: int | None = None) -> int:
    return int(np.argmax([w @ features(x, y) + (0 if y_true is None else loss(y_true, y)) for y in (0, 1)]))


def features_of_chance() -> Any:
    rng = np.random.default_rng(0)
    return lambda x, y: rng.random(2)


DATA = [1.0, -2.0, 3.0], [0, 1, 1]
FUNCTIONS = {"features": features, "loss": loss, "argmax": argmax}
OWN_MUTANTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "none": ({}, "", "nothing wrong with the 3 examples"),
    "oracle without the loss": (
        {"argmax": lambda x, w, y_true=None: argmax(x, w)},
        "argmax",
        "add the loss to the scores",
    ),
    "prediction with the sign turned": (
        {"argmax": lambda x, w, y_true=None: argmax(x, w if y_true is not None else -w, y_true)},
        "decode",
        "but the prediction scores",
    ),
    "features that are not those of the scores": (
        {"features": lambda x, y: np.eye(2)[y] * x**2},
        "argmax",
        "by the features and the loss of the other functions",
    ),
    "features of chance": (
        {"features": features_of_chance()},
        "twice",
        "two values of loss or psi",
    ),
    "a loss of the truth": (
        {"loss": lambda y_true, y: 1.0},
        "functions",
        "StructuredSVC: loss of the truth must be 0, got 1.0 for example 0",
    ),
    "a loss that is never positive": (
        {"loss": lambda y_true, y: 0.0, "argmax": lambda x, w, y_true=None: argmax(x, w)},
        "loss",
        "no output seen of 3 examples has a loss above 0",
    ),
    "the worst output": (
        {"argmax": lambda x, w, y_true=None: argmax(x, -w, y_true)},
        "argmax",
        "it must return the best of all outputs",
    ),
    "the truth": (
        {"argmax": lambda x, w, y_true=None: argmax(x, w) if y_true is None else y_true},
        "argmax",
        "but argmax returns one with 0",
    ),
    "an oracle that fails": (
        {"argmax": lambda x, w, y_true=None: 1 / 0},
        "functions",
        "raise ZeroDivisionError",
    ),
    "features that fail": (
        {"features": lambda x, y: {}["weight"]},
        "functions",
        "functions: KeyError: 'weight' (StructuredSVC: raised by features for example 0).",
    ),
    "a loss that is negative": (
        {"loss": lambda y_true, y: -float(y != y_true)},
        "functions",
        "raise ValueError: StructuredSVC: loss must be a finite number >= 0, got -1.0 for example 0.",
    ),
    "an oracle that writes": (
        {"argmax": lambda x, w, y_true=None: w.__setitem__(0, 1.0)},
        "functions",
        "read-only",
    ),
}


@pytest.mark.parametrize("name", OWN_MUTANTS)
def test_functions_of_an_estimator_are_diagnosed(name: str) -> None:
    wrong, check, expected = OWN_MUTANTS[name]
    report = check_problem(StructuredSVC(**(FUNCTIONS | wrong)), *DATA)
    assert expected in str(report)
    assert ".." not in str(report)
    assert (report.findings[0].check if report.findings else "") == check


def test_what_is_no_problem_is_refused() -> None:
    (finding,) = check_problem(object()).findings
    assert finding.check == "functions"
    assert "define sizes, score" in finding.message

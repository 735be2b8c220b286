"""The structured perceptron, plain and averaged, against dense vectors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Averaged, BrokenOracle, Divided, Perceptron, solve
from maxmargin.methods.protocol import point, start, with_lam
from maxmargin.methods.sweep import advance
from maxmargin.problems import Chain, Multiclass
from maxmargin.solving import objective
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.problem import as_problem, sizes
from support import naive, naive_primal
from support.catalogue import chain_case, flat, multiclass_case
from support.growing import growing
from support.naive import Array
from support.runs import SCHEMES, block_states, random_order
from support.warm_starts import Counted

METHOD = Perceptron(0.1)
CASES = {
    "chain": lambda seed: chain_case(seed, (2, 3, 1, 2)),
    "multiclass": lambda seed: multiclass_case(seed),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_iterate_and_average_is_that_of_the_naive_method(kind: str, seed: int) -> None:
    case = CASES[kind](seed)
    order = random_order(case.problem, 37, seed)
    expected = np.array([visit.w for visit in naive_primal.perceptron(case.data, order)])
    for state, w in zip(block_states(case.problem, METHOD, order), expected, strict=True):
        assert flat(case.problem, state.w) == pytest.approx(w, abs=1e-10)
    for scheme in SCHEMES:
        method = Averaged(METHOD, scheme)
        for k, state in enumerate(block_states(case.problem, method, order), start=1):
            w = naive_primal.weights_of_iterates(scheme, k) @ expected[:k]
            found = point(method, state, case.problem)
            assert flat(case.problem, found.w) == pytest.approx(w, abs=1e-10)
            assert (found.ell, found.norm2) == (0.0, 0.0)


@pytest.mark.parametrize("kind", CASES)
def test_steps_do_not_depend_on_lam(kind: str) -> None:
    """It is that of the objective alone, whose lower bound is zero."""
    case = CASES[kind](2)
    options: dict[str, Any] = {"tol": 0.0, "max_passes": 4, "check_every": 4, "random_state": 0}
    one, other = (solve(case.problem, with_lam(METHOD, lam), **options) for lam in (0.1, 2.0))
    assert (one.w == other.w).all()
    for result, lam in ((one, 0.1), (other, 2.0)):
        assert result.primal == pytest.approx(naive.primal(case.data, result.weights, lam), abs=1e-12)
        assert result.dual == 0.0
        assert result.gap == result.primal


def separable(kind: str) -> tuple[Any, Array]:
    """Return a problem whose labels are the best ones at some weights, and the labels."""
    rng = np.random.default_rng(6)
    X, W = rng.normal(size=(30, 4)), rng.normal(size=(4, 3))
    if kind == "multiclass":
        y = np.argmax(X @ W, axis=1)
        return Multiclass.from_encoded(X, y, 3), y
    offsets = np.arange(0, 31, 3)
    blank = Chain.from_encoded(X, offsets, np.zeros(30, dtype=np.int64), 3)
    w = rng.normal(size=sizes(blank).weights)
    y = decode_all(blank, w)
    return Chain.from_encoded(X, offsets, y, 3), y


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
def test_a_separable_problem_is_separated(kind: str) -> None:
    """And nothing moves from then on; its average separates it too, in the end."""
    problem, y = separable(kind)
    n = sizes(problem).examples
    passes = np.tile(np.arange(n), 200)
    state = advance(METHOD, start(METHOD, problem), problem, passes)
    before = state.w.copy()
    assert len(np.unique(y)) == 3
    assert (decode_all(problem, state.w) == y).all()
    assert (advance(METHOD, state, problem, np.arange(n)).w == before).all()
    average = Averaged(METHOD, "uniform")
    found = point(average, advance(average, start(average, problem), problem, np.tile(passes, 5)), problem)
    assert (decode_all(problem, found.w) == y).all()


class Pushes(Counted):
    """A problem that counts steps, and knows no max oracle."""

    def __init__(self, problem: Any) -> None:
        super().__init__(problem)
        self.pushes = 0

    def push(self, *args: Any) -> None:
        super().push(*args)  # type: ignore[misc]
        self.pushes += 1

    def argmax(self, *args: Any) -> None:
        raise AssertionError("the perceptron decodes without the loss")


@pytest.mark.parametrize("kind", CASES)
def test_only_mistakes_move_the_weights(kind: str) -> None:
    case = CASES[kind](8)
    problem, order = Pushes(case.problem), random_order(case.problem, 60, seed=1)
    state = start(METHOD, as_problem(problem))
    mistakes = 0
    for i, visit in zip(order, naive_primal.perceptron(case.data, order), strict=True):
        state = advance(METHOD, state, as_problem(problem), np.array([i]))
        mistakes += visit.answer != case.data.truths[i]
        assert problem.pushes == mistakes
    assert 0 < mistakes < 60


def test_a_margin_below_zero_is_no_broken_oracle() -> None:
    """A prediction without the loss need not be the most violated output."""
    case = multiclass_case(3, n=8)
    result = solve(case.problem, METHOD, tol=0.0, max_passes=50, check_every=50, random_state=0)
    assert result.primal == objective.primal(case.problem, result.w, 0.1)


class Worst(Counted):
    """A problem whose predictions are the worst ones."""

    def decode(self, i: int, theta: Array, y: Array, work: Any) -> None:
        super().decode(i, -theta, y, work)  # type: ignore[misc]


def test_a_broken_decoder_is_named() -> None:
    with pytest.raises(BrokenOracle, match=r"^solve: example \d+ "):
        solve(Worst(multiclass_case(3, n=8).problem), METHOD, random_state=0)


def test_going_on_keeps_the_weights() -> None:
    """Weights stay as they are at another lam and with more examples."""
    examples = growing("chain", 4)
    few, many = examples.first(4), examples.first(7)
    before = solve(few.problem, METHOD, tol=0.0, max_passes=3, random_state=0)
    known = before.stopped.state.w.copy()
    after = solve(many.problem, Perceptron(0.9), tol=1e9, start=before)
    assert (after.stopped.state.w == known).all()
    assert after.primal == pytest.approx(naive.primal(many.data, flat(many.problem, known), 0.9), abs=1e-12)
    solve(many.problem, Perceptron(0.9), tol=0.0, max_passes=3, random_state=0, start=before)
    assert (before.stopped.state.w == known).all()


def test_wrappers_that_need_dual_variables() -> None:
    with pytest.raises(ValueError, match=r"^Divided: inner must be .* got Perceptron"):
        Divided(METHOD)

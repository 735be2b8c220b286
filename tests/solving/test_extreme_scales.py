"""Features and lam of any size: bounds that hold, or one line that says that the scale is the reason."""

import math
from collections.abc import Callable
from typing import Any

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
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    NSlackCuttingPlane,
    Pairwise,
    Perceptron,
    Result,
    ScaleError,
    Subgradient,
    WarmStart,
    solve,
)
from maxmargin.problems import Multiclass
from maxmargin.solving import objective
from maxmargin.structures.problem import as_problem, sizes
from support.naive import Array
from support.plain import Plain, asked

pytestmark = pytest.mark.long

METHODS: dict[str, Callable[[float], Any]] = {
    "bcfw": BlockFrankWolfe,
    "pairwise": Pairwise,
    "away": Away,
    "accelerated": lambda lam: Accelerated(Pairwise(lam)),
    "fw": FrankWolfe,
    "averaged": lambda lam: Averaged(BlockFrankWolfe(lam)),
    "cached": lambda lam: Cached(Pairwise(lam), 4.0),
    "divided": lambda lam: Divided(Pairwise(lam)),
    "ssg": Subgradient,
    "ssg-wavg": lambda lam: Averaged(Subgradient(lam)),
    "1-slack": CuttingPlane,
    "n-slack": NSlackCuttingPlane,
    "bmrm": BMRM,
    "eg": ExponentiatedGradient,
    "extragradient": Extragradient,
    "excessive gap": ExcessiveGap,
    "perceptron": Perceptron,
}
FEATURES = [1e-160, 1e-100, 1e-8, 1.0, 1e8, 1e50, 1e150, 1e155]
LAMS = [1e-300, 1e-100, 1e-12, 1.0, 1e12, 1e100, 1e300]
X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.arange(6) % 3
TOL = 1e-6


class Multiclasses(Plain):
    """A multiclass problem as a plain object: it runs interpreted, with or without the compiler."""

    def __init__(self, X: Array) -> None:
        super().__init__(Multiclass.from_arrays(X, Y))

    def expectation(self, *args: Any) -> Any:
        return asked(self.problem, "expectation", *args)


def solved(X: Array, method: Any, **options: Any) -> Result:
    with np.errstate(all="ignore"):
        return solve(Multiclasses(X), method, tol=TOL, max_passes=6, check_every=3, random_state=0, **options)


def primal(X: Array, w: Array, lam: float) -> np.longdouble:
    """The objective, in numbers of a wider range."""
    W, wide = w.reshape(3, 2).astype(np.longdouble), X.astype(np.longdouble)
    scores = wide @ W.T
    hinges = (scores + (np.arange(3) != Y[:, None])).max(axis=1) - scores[np.arange(6), Y]
    return np.longdouble(lam) / 2 * (W**2).sum() + hinges.mean()


def assert_holds(X: Array, lam: float, result: Result) -> None:
    expected = primal(X, result.weights, lam)
    assert np.isfinite(result.weights).all()
    assert math.isfinite(result.gap)
    assert abs(expected - result.primal) <= 1e-9 * expected
    assert result.primal <= 1.0 + TOL  # the objective of zero weights is one
    assert -1e-9 <= result.dual <= float(expected) * (1 + 1e-9)


def outcome(X: Array, method: Any, **options: Any) -> Result | str:
    """Return the result, or what the error says."""
    try:
        return solved(X, method, **options)
    except ScaleError as error:
        return str(error)


# Their line searches keep scores as large as losses.
BEAR_EVERY_SCALE = {"bcfw", "pairwise", "away", "averaged", "cached", "divided", "n-slack"}


# Scores of the tiniest features are zero beside the losses, and so are the best weights.
@pytest.mark.filterwarnings("ignore:Multiclasses. all weights are zero:UserWarning")
@pytest.mark.parametrize("size", FEATURES)
@pytest.mark.parametrize("name", METHODS)
def test_bounds_hold_or_the_scale_is_named(name: str, size: float) -> None:
    for lam in LAMS:
        found = outcome(size * X, METHODS[name](lam))
        if isinstance(found, Result):
            assert_holds(size * X, lam, found)
        else:
            assert name not in BEAR_EVERY_SCALE
            assert max(size, 1.0 / size, lam, 1.0 / lam) >= 1e12
            assert "the scale of the features, of the losses or of C (lam) is too extreme" in found
            assert "\n" not in found


# The steps of the perceptron know no lam: its weights grow with the features.
EXACT = [name for name in METHODS if name != "perceptron"]


@pytest.mark.parametrize("k", [-12, 7])
@pytest.mark.parametrize("name", EXACT)
def test_powers_of_two_change_no_bit(name: str, k: int) -> None:
    """Weights times 2^-k for features times 2^k, and lam times 4^k: scores and objective stay."""
    expected = solved(X, METHODS[name](0.25))
    found = solved(2.0**k * X, METHODS[name](0.25 * 4.0**k))
    assert len(expected.history) > 1 or expected.gap <= TOL
    for a, b in zip(found.history.rows, expected.history.rows, strict=True):
        assert (a.primal, a.dual, a.gap) == (b.primal, b.dual, b.gap)
    assert (found.primal, found.dual, found.gap) == (expected.primal, expected.dual, expected.gap)
    assert (found.weights * 2.0**k == expected.weights).all()


@pytest.mark.parametrize("lam", [5e-324, 1e-306, 1e306])
def test_lam_out_of_range_is_refused_at_once(lam: float) -> None:
    with pytest.raises(ScaleError, match=r"^solve: lam = .* for 6 examples, and its inverse, must be within"):
        solved(X, BlockFrankWolfe(lam))


def test_a_start_at_another_end_of_the_range_is_refused() -> None:
    start = solved(X, BlockFrankWolfe(1e300))
    with pytest.raises(ScaleError, match="the ratio of lam to that of start, 1e-300 to 1e"):
        solved(X, BlockFrankWolfe(1e-300), start=WarmStart(start))


@pytest.mark.parametrize("name", ["eg", "excessive gap", "fw", "perceptron", "ssg", "1-slack"])
def test_a_fault_leaves_nothing_behind(name: str) -> None:
    faulty, sound = METHODS[name](1e-300), METHODS[name](0.1)
    huge, problem = 1e155 * X, Multiclasses(X)
    before = solve(problem, sound, max_passes=3, random_state=0)
    assert isinstance(outcome(huge, faulty), str)
    assert outcome(huge, faulty) == outcome(huge, faulty)
    after = solve(problem, sound, max_passes=3, random_state=0)
    assert (before.primal, before.dual) == (after.primal, after.dual)


class SecondBest(Multiclasses):
    """An oracle that always answers with class 1."""

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        y[0] = 1


def hinges_by_second_best(share: float) -> Array:
    """Return the hinges where class 0 scores 1e20, and the others less by this share."""
    problem = as_problem(SecondBest(np.ones((6, 2))))
    w = np.zeros(sizes(problem).weights)
    w.reshape(2, -1)[0, :3] = 1e20 * (1.0 - share * np.array([0.0, 1.0, 1.0]))
    return objective.hinge_losses(problem, w)


def test_rounding_of_large_scores_is_no_broken_oracle() -> None:
    """Scores whose difference is a few roundings of theirs: sums of them cannot tell which is the best."""
    hinges = hinges_by_second_best(2.0**-50)
    assert -1e6 < hinges.min() < -1e4
    with pytest.raises(BrokenOracle, match=r"^solve: example 0 has a negative"):
        hinges_by_second_best(1e-6)


def test_undefined_losses_are_the_oracles_fault() -> None:
    class Undefined(Multiclasses):
        def loss(self, i: int, y: Array) -> float:
            return math.nan

    with pytest.raises(BrokenOracle, match=r"^solve: example "):
        solve(Undefined(X), BlockFrankWolfe(0.1))


def test_weights_worse_than_zero_are_made_smaller_and_predict_the_same() -> None:
    lam, rng = 1.0, np.random.default_rng(3)
    far = np.repeat(np.eye(3), 4, axis=0) * 9.0 + rng.normal(size=(12, 3))
    problem = Multiclass.from_arrays(far, np.repeat(np.arange(3), 4))
    result = solve(problem, Perceptron(lam), max_passes=5, random_state=0)
    W = result.weights.reshape(3, 3)
    assert result.history.primal[0] > 1.0 > result.primal == result.history.primal[-1]
    assert result.primal == objective.primal(problem, result.w, lam)
    assert ((far @ W.T).argmax(axis=1) == np.repeat(np.arange(3), 4)).all()

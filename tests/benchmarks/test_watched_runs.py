"""Runs that are watched are the runs that they would be otherwise, and what is measured is what is there."""

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, solve
from maxmargin.problems import Multiclass
from maxmargin.solving import objective

N, PASSES = 40, 3


@pytest.fixture
def problem() -> Multiclass:
    X = np.random.default_rng(0).normal(size=(N, 4))
    # Labels that can be learnt: a result is never worse than zero weights, and here it is the last iterate.
    return Multiclass.from_arrays(X, X[:, :3].argmax(axis=1))


METHODS = [
    BlockFrankWolfe(lam=0.1),
    Averaged(BlockFrankWolfe(lam=0.1), "weighted"),
    FrankWolfe(lam=0.1),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_watching_changes_nothing(problem, method):
    from benchmark_utils.trajectory import Watch, Watched, checkpoints

    watch = Watch(checkpoints(N, 0.1, PASSES), lambda w: float(w @ w))
    options = {"tol": 0.0, "max_passes": PASSES, "check_every": PASSES, "random_state": 0}
    watched, plain = solve(problem, Watched(method, watch), **options), solve(problem, method, **options)
    assert np.array_equal(watched.w, plain.w)
    last, certificate = watch.rows[-1], plain.history.rows[-1]
    assert (last.primal, last.dual, last.gap) == (certificate.primal, certificate.dual, certificate.gap)
    assert (last.passes, last.oracle_calls) == (PASSES, PASSES * N)
    assert last.test_error == float(plain.w @ plain.w)
    assert 0 < last.seconds == max(row.seconds for row in watch.rows)


def test_blocks_are_measured_within_passes(problem):
    from benchmark_utils.trajectory import Watch, Watched

    stops = np.array([1, 7, 40, 41, 90])
    watch = Watch(stops, lambda w: 0.0)
    solve(problem, Watched(BlockFrankWolfe(lam=0.1), watch), tol=0.0, max_passes=PASSES, random_state=0)
    assert [row.oracle_calls for row in watch.rows] == stops.tolist()


def test_batch_methods_are_measured_after_passes(problem):
    from benchmark_utils.trajectory import Watch, Watched

    watch = Watch(np.array([1, 7, 40, 41, 90]), lambda w: 0.0)
    solve(problem, Watched(FrankWolfe(lam=0.1), watch), tol=0.0, max_passes=PASSES, random_state=0)
    assert [row.passes for row in watch.rows] == [1, 2, 3]


def test_checkpoints_grow_by_a_constant_ratio():
    from benchmark_utils.trajectory import checkpoints

    stops = checkpoints(1000, 0.1, 50)
    assert (stops[0], stops[-1]) == (100, 50_000)
    ratios = stops[1:] / stops[:-1]
    assert ratios.max() / ratios.min() < 1.02
    assert checkpoints(2, 0.1, 3).tolist() == [1, 2, 3, 4, 5, 6]


def test_hamming_error_is_the_mean_over_words():
    from benchmark_utils.data import hamming_error

    error = hamming_error([[1, 2, 3, 4], [5, 6]])
    assert error(np.array([1, 2, 3, 4, 5, 6])) == 0.0
    assert error(np.array([0, 2, 3, 4, 5, 0])) == pytest.approx((1 / 4 + 1 / 2) / 2)


def test_objective_of_weights_by_class_is_the_primal(problem):
    from benchmark_utils.rivals import primal_of_classes

    coef = np.random.default_rng(1).normal(size=(3, 4))
    result = solve(problem, BlockFrankWolfe(lam=0.1), max_passes=2, tol=0.0, random_state=0)
    found = primal_of_classes(problem, problem.unpack(result.w).unary, 0.1)
    assert found == pytest.approx(objective.primal(problem, result.w, 0.1), rel=1e-12)
    assert primal_of_classes(problem, coef, 0.1) > result.primal

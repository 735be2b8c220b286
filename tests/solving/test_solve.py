"""The driver: when it stops, what it measures, whom it tells."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Status,
    Subgradient,
    solve,
)
from maxmargin.methods.protocol import BATCH, Point, point, start, traits
from maxmargin.methods.rules import Permutation
from maxmargin.methods.sweep import advance
from maxmargin.problems import Multiclass
from maxmargin.solving import run
from support.crammer_singer import least_objective, objective

LAM, N, K = 0.05, 30, 3
METHOD = BlockFrankWolfe(LAM)
_centres = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5], [-1.0, -0.5, 0.2]])
Y = np.arange(N) % K
X = _centres[Y] + np.random.default_rng(0).normal(size=(N, 3))
PROBLEM = Multiclass.from_arrays(X, Y)


@pytest.fixture(scope="module")
def optimum():
    """The least objective, by liblinear."""
    return least_objective(X, Y, LAM)


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-4])
def test_a_run_stops_at_tol_and_brackets_the_optimum(tol, optimum):
    result = solve(PROBLEM, METHOD, tol=tol, max_passes=10**4, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.gap == result.primal - result.dual <= tol
    assert result.dual - 1e-9 <= optimum <= result.primal + 1e-9
    assert result.primal == pytest.approx(objective(result.weights, X, Y, LAM), rel=1e-12)


@pytest.mark.parametrize(
    "method",
    [METHOD, Averaged(METHOD), Averaged(METHOD, "suffix"), FrankWolfe(LAM), Averaged(FrankWolfe(LAM))],
    ids=["bcfw", "bcfw-wavg", "bcfw-tavg", "fw", "fw-wavg"],
)
def test_result_is_the_best_seen(method, optimum):
    result = solve(PROBLEM, method, tol=0.0, max_passes=12, check_every=2, random_state=0)
    assert result.primal == result.history.primal.min()
    assert result.dual == result.history.dual.max()
    assert result.gap == result.primal - result.dual
    assert result.dual <= optimum <= result.primal
    assert result.certified
    assert result.weights.shape == (K * 3,)
    np.testing.assert_array_equal(result.weights, np.ravel(PROBLEM.unpack(result.w).unary))
    np.testing.assert_array_equal(result.history.gap, result.history.primal - result.history.dual)


@pytest.mark.parametrize("method", [Accelerated(Pairwise(0.01)), BlockFrankWolfe(0.01)])
def test_a_run_without_signal_ends_at_zero_weights(method):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(3, size=200)
    problem, limits = Multiclass.from_arrays(X, y), {"tol": 1e-4, "rtol": 0.01}
    result = solve(problem, method, **limits, random_state=0)
    assert result.status is Status.CONVERGED
    # Zero weights have a row of their own, behind that of the method's.
    assert result.primal == result.history.primal[-1] <= 1.0 < result.history.primal[-2]
    assert result.history.passes[-1] == result.history.passes[-2]
    assert result.primal == pytest.approx(objective(result.weights, X, y, 0.01), rel=1e-12)
    assert result.dual - 1e-9 <= least_objective(X, y, 0.01) <= result.primal + 1e-9
    # One certificate earlier, zero weights were not good enough.
    before = result.history.dual[:-2].max(initial=0.0)
    assert 1.0 - before > 0.01


def test_no_pass_is_made_beyond_the_one_that_converged():
    result = solve(PROBLEM, METHOD, tol=0.05, max_passes=1000, check_every=1, random_state=0)
    assert (result.history.gap[:-1] > 0.05).all()
    assert result.gap <= 0.05


@pytest.mark.parametrize(
    ("check_every", "measured"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (7, [7]), (100, [7])]
)
def test_certificates_come_every_so_many_passes_and_at_the_end(check_every, measured):
    result = solve(PROBLEM, METHOD, tol=0.0, max_passes=7, check_every=check_every, random_state=0)
    assert result.status is Status.MAX_PASSES
    assert result.history.passes.tolist() == measured
    assert result.history.oracle_calls.tolist() == [N * passes for passes in measured]


def test_certificates_do_not_change_the_run():
    often = solve(PROBLEM, METHOD, tol=0.0, max_passes=6, check_every=1, random_state=0)
    rarely = solve(PROBLEM, METHOD, tol=0.0, max_passes=6, check_every=6, random_state=0)
    assert often.history.primal[-1] == rarely.history.primal[-1]


def test_callbacks_are_told_of_every_pass():
    told = []
    result = solve(
        PROBLEM, METHOD, tol=0.05, max_passes=50, check_every=2, callbacks=[told.append], random_state=0
    )
    passes = int(result.history.passes[-1])
    assert result.status is Status.CONVERGED
    assert [progress.passes for progress in told] == list(range(1, passes + 1))
    assert [progress.oracle_calls for progress in told] == [N * k for k in range(1, passes + 1)]
    assert told[0].last is None
    assert told[2].last == next(iter(result.history))
    assert told[-1].last == list(result.history)[-1]
    assert {(progress.limits.tol, progress.limits.max_passes) for progress in told} == {(0.05, 50)}
    assert np.all(np.diff([progress.seconds for progress in told]) >= 0)


def test_a_callback_can_stop_the_run(optimum):
    calls = itertools.count(1)
    told = []
    result = solve(
        PROBLEM, METHOD, tol=0.0, callbacks=[lambda _: next(calls) < 4, told.append], random_state=0
    )
    assert result.status is Status.STOPPED
    assert result.history.passes.tolist() == [4.0]
    assert len(told) == 4
    assert result.dual <= optimum <= result.primal


@pytest.mark.parametrize("answer", [None, True, 0, ""])
def test_only_false_stops(answer):
    result = solve(PROBLEM, METHOD, tol=0.0, max_passes=3, callbacks=[lambda _: answer])
    assert result.status is Status.MAX_PASSES


def run_once(random_state, **options):
    return solve(PROBLEM, METHOD, tol=0.0, max_passes=2, random_state=random_state, **options).weights


@pytest.mark.parametrize("sampling", ["permutation", "uniform", "gap"])
def test_a_seed_decides_the_run(sampling):
    first = run_once(3, sampling=sampling)
    np.testing.assert_array_equal(first, run_once(3, sampling=sampling))
    assert (first != run_once(4, sampling=sampling)).any()


def test_samplings_differ():
    assert (run_once(3, sampling="permutation") != run_once(3, sampling="uniform")).any()


def test_random_state_has_many_forms():
    np.testing.assert_array_equal(run_once(np.random.default_rng(5)), run_once(5))
    np.testing.assert_array_equal(run_once(np.random.RandomState(5)), run_once(np.random.RandomState(5)))
    one, other = np.random.RandomState(5), np.random.RandomState(6)
    assert (run_once(one) != run_once(other)).any()
    assert (run_once(one) != run_once(one)).any()  # a generator moves on
    some = [run_once(None) for _ in range(8)]  # two orders of so few examples may lead to the same weights
    assert any((other != some[0]).any() for other in some[1:])


def test_every_example_is_visited_once_in_a_permutation():
    visited, draw = [], Permutation.draw

    def note(sampler, rng):
        visited.append(draw(sampler, rng))
        return visited[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Permutation, "draw", note)
        run_once(0)
    assert [sorted(visits.order.tolist()) for visits in visited] == [list(range(N))] * 2


class Scripted(NamedTuple):
    """A method whose answer after pass k is the k-th of a list of tuples of weights."""

    lam: float
    answers: list


@start.register(Scripted)
def scripted_start(method, problem):
    return 0


@advance.register(Scripted)
def scripted_advance(method, state, problem, visits):
    return state + 1


@traits.register(Scripted)
def scripted_traits(method):
    return BATCH


@point.register(Scripted)
def scripted_point(method, state, problem):
    w, *others = method.answers[state - 1]
    return Point(w, 0.0, 0.0, tuple(others))


@pytest.fixture
def measured(monkeypatch):
    """What was measured: pairs of the objective and the weights, a list for each certificate."""
    calls, primal = [[]], run.objective.primal

    def noted(problem, w, lam):
        calls[-1].append((primal(problem, w, lam), w.copy()))
        return calls[-1][-1][0]

    monkeypatch.setattr(run.objective, "primal", noted)
    return calls


def test_other_weights_are_measured_from_time_to_time_and_while_they_are_best(measured):
    best = solve(PROBLEM, METHOD, tol=1e-3, random_state=0).w
    measured[:] = [[]]
    # How far along from zero to the best weights the answers after each pass are.
    places = [
        (0.1, 0),
        (0.1, 0),
        (0.1, 0.9),
        (0.1, 0.5),
        (0.1, 0.8),
        (0.1, 0),
        (0.1, 0),
        (0.1, 0),
        (0.1, 1.0),
    ]
    method = Scripted(LAM, [tuple(place * best for place in pair) for pair in places])
    result = solve(
        PROBLEM,
        method,
        tol=0.0,
        max_passes=9,
        check_every=1,
        callbacks=[lambda _: measured.append([])],
    )
    assert [len(certificate) for certificate in measured[:9]] == [2, 2, 1, 2, 2, 2, 1, 2, 1]
    np.testing.assert_array_equal(result.w, 0.8 * best)
    assert result.history.primal.tolist() == [min(row[0] for row in rows) for rows in measured[:9]]
    assert result.primal == pytest.approx(objective(result.weights, X, Y, LAM), rel=1e-12)


@pytest.mark.parametrize("check_every", [1, 4])
def test_the_answer_of_an_accelerated_run_is_the_best_measured(check_every, measured):
    method = Accelerated(Pairwise(LAM))
    result = solve(PROBLEM, method, tol=0.0, max_passes=24, check_every=check_every, random_state=0)
    primals = [primal for primal, _ in measured[0]]
    assert len(primals) > len(result.history)
    assert result.primal == min(primals)
    np.testing.assert_array_equal(result.w, measured[0][int(np.argmin(primals))][1])


def test_statuses_are_sentences():
    assert {status.name for status in Status} == {
        "CONVERGED",
        "MAX_PASSES",
        "TIME_LIMIT",
        "MISSED",
        "STOPPED",
        "INTERRUPTED",
    }
    assert all(" " in status.value for status in Status)


@pytest.mark.parametrize(
    "method",
    [
        *(ExponentiatedGradient(0.001), Extragradient(0.001), ExcessiveGap(0.001)),
        *(Subgradient(0.001), FrankWolfe(0.001), Perceptron(0.001), Accelerated(Pairwise(0.001))),
    ],
)
@pytest.mark.parametrize("max_passes", [1, 3, 12])
def test_the_objective_of_a_result_is_in_its_history(method, max_passes):
    """Also that of weights that were scaled, as zero weights have a lower objective than theirs."""
    rng = np.random.default_rng(1)
    X, y = 30.0 * rng.normal(size=(20, 3)), rng.integers(3, size=20)
    problem = Multiclass.from_arrays(X, y)
    result = solve(problem, method, tol=0.0, max_passes=max_passes, check_every=1, random_state=0)
    assert result.primal == result.history.primal.min()
    assert result.primal == pytest.approx(objective(result.weights, X, y, 0.001), rel=1e-9)
    assert result.gap == result.primal - result.history.dual.max()

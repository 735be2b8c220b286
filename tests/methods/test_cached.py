"""The oracle cache: against a naive one, and what must hold of it whatever it finds."""

from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    BrokenOracle,
    Cached,
    FrankWolfe,
    Pairwise,
    Predefined,
    Result,
    solve,
)
from maxmargin.methods import cached
from maxmargin.methods.blocks import SIZE, START
from maxmargin.methods.cached import CachedState, is_hit, new_cache, set_floor
from maxmargin.methods.planes import empty_planes
from maxmargin.methods.protocol import Carry, carried, oracle_calls, point, start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Multiclass
from maxmargin.solving import objective
from maxmargin.structures.problem import as_problem, sizes
from support import naive
from support.bitwise_runs import assert_same_bits, bits
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.counting import Counting
from support.naive import Array
from support.naive_cached import CachedRun
from support.runs import random_order

LAM = 0.05
COST = 8.0
INNER = {
    "bcfw": BlockFrankWolfe(LAM),
    "pairwise": Pairwise(LAM),
    "away": Away(LAM),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
}


def interpreted(case: Case) -> Case:
    """Return the case with a problem whose functions run in plain Python: nothing is to be compiled."""
    return case._replace(problem=as_problem(Counting(case.problem)))


def many_alike() -> Case:
    """Return classes that overlap, with many examples of each: the same outputs compete all the time."""
    return multiclass_case(3, n=40, n_labels=4, loss="zero_one")


def ran(problem: Any, method: Any, **options: Any) -> Result:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 12, "check_every": 2, "random_state": 3} | options
    )


def losses_and_lives(state: CachedState, i: int) -> tuple[Array, Array]:
    """Return the loss of each plane in the cache of example i, and the life left to it."""
    planes = state.working.cache.planes
    part = slice(planes.extent[i, START], planes.extent[i, START] + planes.extent[i, SIZE])
    return planes.loss[part], planes.alpha[part]


@pytest.mark.parametrize(("capacity", "life"), [(50, 10), (50, 2), (2, 10), (1, 1), (0, 10)])
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_visits_are_those_of_a_naive_cache(kind: str, capacity: int, life: int) -> None:
    # Data for which no block is found at its optimum, where several outputs are best up to rounding.
    case = interpreted(chain_case(4, (2, 3, 1, 2, 2)) if kind == "chain" else multiclass_case(6, 8, 5))
    n, rng = sizes(case.problem).examples, np.random.default_rng(1)
    orders = [rng.permutation(n) for _ in range(12)]
    method = Cached(BlockFrankWolfe(LAM), COST, capacity, life)
    state, visits = start(method, case.problem), 0
    for order, expected in zip(
        orders, CachedRun(case.data, LAM, COST, capacity, life).passes(orders), strict=True
    ):
        state, visits = advance(method, state, case.problem, order), visits + n
        found = point(method, state, case.problem)
        assert flat(case.problem.map.problem, found.w) == pytest.approx(
            naive.weights_of(case.data, expected.alpha, LAM), abs=1e-9
        )
        assert found.ell == pytest.approx(naive.dual_loss(case.data, expected.alpha), abs=1e-9)
        assert oracle_calls(method, state, visits) == expected.calls
        assert state.schedule.replays == expected.replays
        for i, known in enumerate(expected.planes):
            losses, lives = losses_and_lives(state, i)
            assert losses == pytest.approx(case.data.losses[i][list(known)])
            assert lives.tolist() == list(known.values())


@pytest.mark.parametrize(
    ("i", "gap", "hit"),
    [
        (0, 6.0, True),  # the gap that its oracle found
        (0, 5.9, False),
        (1, 0.021, True),  # little was found: a hundredth of the mean over examples, which is 2
        (1, 0.019, False),
        (2, 1e9, False),  # its oracle was never called
        (0, np.nan, False),
        (1, -np.inf, False),
    ],
)
def test_the_criterion_decides_what_is_a_hit(i: int, gap: float, hit: bool) -> None:
    cache = new_cache(empty_planes(3, 1))
    cache.gap[:2] = 6.0, 0.0
    set_floor(cache)
    assert is_hit(cache, i, gap) == hit


def test_a_hit_makes_progress() -> None:
    cache = new_cache(empty_planes(2, 1))
    cache.gap[:] = 0.0
    set_floor(cache)
    assert is_hit(cache, 0, 1e-12)
    assert not is_hit(cache, 0, 0.0)


@pytest.mark.parametrize("inner", INNER)
def test_an_empty_cache_gives_the_bits_of_the_plain_method(inner: str) -> None:
    problem, method = Counting(multiclass_case(8, n=9).problem), INNER[inner]
    expected = ran(problem, method)
    assert_same_bits(ran(problem, Cached(method, COST, capacity=0)), expected)
    assert bits(ran(problem, Cached(method, COST)).weights) != bits(expected.weights)


@pytest.mark.parametrize("inner", ["bcfw", "pairwise", "away"])
def test_an_empty_cache_gives_the_bits_of_the_accelerated_method(inner: str) -> None:
    problem, method = Counting(multiclass_case(8, n=9).problem), INNER[inner]
    expected = ran(problem, Accelerated(method))
    assert_same_bits(ran(problem, Accelerated(Cached(method, COST, capacity=0))), expected)
    assert bits(ran(problem, Accelerated(Cached(method, COST))).weights) != bits(expected.weights)


@pytest.mark.parametrize("inner", ["bcfw", "pairwise"])
def test_an_empty_cache_gives_the_bits_of_the_plain_method_in_compiled_code(inner: str) -> None:
    problem, method = multiclass_case(8, n=9).problem, INNER[inner]
    assert_same_bits(ran(problem, Cached(method, COST, capacity=0)), ran(problem, method))
    compiled, plain = ran(problem, Cached(method, COST)), ran(Counting(problem), Cached(method, COST))
    assert_same_bits(compiled, plain)


def test_an_empty_cache_is_asked_all_the_same() -> None:
    problem, method = Counting(multiclass_case(8, n=9).problem), Cached(INNER["bcfw"], COST, capacity=0)
    state = advance(method, start(method, as_problem(problem)), as_problem(problem), np.arange(9))
    assert np.isfinite(state.working.cache.gap).all()
    assert state.schedule.replays == 1  # it gained nothing
    assert oracle_calls(method, state, 9) == 9


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["permutation", "uniform", "gap"])
@pytest.mark.parametrize("inner", INNER)
def test_the_certificate_brackets_the_optimum(inner: str, sampling: str) -> None:
    case = interpreted(chain_case(9, (2, 1, 3, 2)))
    optimum = naive.optimum(case.data, LAM)
    result = ran(case.problem, Cached(INNER[inner], COST), sampling=sampling, tol=0.01, max_passes=500)
    assert result.dual <= optimum.primal + 1e-9
    assert result.primal >= optimum.dual - 1e-9
    assert result.gap <= 0.01


@pytest.mark.parametrize("inner", ["bcfw", "pairwise", "away"])
def test_the_dual_never_decreases(inner: str) -> None:
    case, method = interpreted(multiclass_case(10, n=12, n_labels=4)), Cached(INNER[inner], COST)
    state, duals = start(method, case.problem), [0.0]
    for i in random_order(case.problem, 100, seed=1):
        state = advance(method, state, case.problem, np.array([i]))
        duals.append(objective.dual(point(method, state, case.problem), LAM))
    assert np.diff(duals).min() >= -1e-12
    assert state.schedule.replays > 0


@pytest.mark.parametrize("inner", ["bcfw", "pairwise", "away"])
def test_what_the_dual_gained_is_known(inner: str) -> None:
    case, method = interpreted(multiclass_case(10, n=12, n_labels=4)), Cached(INNER[inner], COST)
    order = random_order(case.problem, 11, seed=2)  # one visit less than a pass
    for visits in (1, 5, 11):
        state = advance(method, start(method, case.problem), case.problem, order[:visits])
        dual = objective.dual(point(method, state, case.problem), LAM)
        assert state.working.cache.gain[0] == pytest.approx(12 * dual)


@pytest.mark.long
@pytest.mark.parametrize("method", [INNER["bcfw"], INNER["pairwise"]])
def test_true_calls_are_counted_and_fewer(method: Any) -> None:
    """Of data with a signal: where zero weights are the best, certificates look at them, too."""
    tol, calls, rng, y = 1e-3, [], np.random.default_rng(3), np.arange(40) % 4
    X = rng.normal(size=(4, 3))[y] + rng.normal(size=(40, 3))
    for each in (method, Cached(method, COST), Cached(method, 64.0)):
        problem = Counting(Multiclass.from_encoded(X, y, 4))
        result = ran(problem, each, tol=tol, max_passes=1000)
        assert result.gap <= tol
        assert result.history.oracle_calls[-1] + 40 * len(result.history) == problem.calls["argmax"]
        assert result.history.passes[-1] == result.history.oracle_calls[-1] / 40
        calls.append(result.history.oracle_calls[-1])
    assert calls[0] > 2 * max(calls[1:])


@pytest.mark.filterwarnings("ignore:Counting. all weights are zero after training:UserWarning")
def test_true_calls_are_counted_under_acceleration() -> None:
    problem, passes = Counting(many_alike().problem), []
    method = Accelerated(Cached(INNER["pairwise"], COST), kappa=LAM)
    result = ran(problem, method, callbacks=[lambda progress: passes.append(progress.passes)])
    compared = 1 + len(result.history)  # at least: certificates that look at two points cost two passes
    assert result.history.oracle_calls[-1] < 12 * 40
    assert problem.calls["argmax"] >= result.history.oracle_calls[-1] + 40 * compared
    assert passes == list(range(1, 11))  # the driver's passes, with calls or without, until zero is the best


def test_pieces_of_a_pass_do_not_matter() -> None:
    case, method = interpreted(multiclass_case(11, n=8)), Cached(INNER["pairwise"], COST)
    order = random_order(case.problem, 50, seed=4)
    whole = advance(method, start(method, case.problem), case.problem, order)
    pieces = start(method, case.problem)
    for part in np.split(order, [3, 8, 9, 30]):
        pieces = advance(method, pieces, case.problem, part)
    assert bits(whole.working.inner.w) == bits(pieces.working.inner.w)
    assert whole.schedule == pieces.schedule
    assert whole.schedule.visits == 2


@pytest.mark.parametrize("wrapper", [lambda method: method, Accelerated], ids=["plain", "accelerated"])
def test_a_warm_start_counts_anew_and_brackets_the_optimum(wrapper: Any) -> None:
    case = interpreted(multiclass_case(13, n=15, n_labels=4))
    before = ran(case.problem, wrapper(Cached(Pairwise(LAM), COST)))
    result = ran(
        case.problem, wrapper(Cached(Pairwise(LAM / 3), COST)), start=before, max_passes=100, tol=0.01
    )
    optimum = naive.optimum(case.data, LAM / 3)
    assert result.dual - 1e-9 <= optimum.primal <= result.dual + 0.01
    assert result.history.oracle_calls[0] == 0
    assert np.diff(result.history.oracle_calls).min() > 0


def test_a_warm_start_keeps_the_planes() -> None:
    """They are copied, not shared, and new examples have none."""
    whole = many_alike().problem
    X, y = whole.map.rows.values.reshape(40, -1), whole.oracle.labels
    part, method = Counting(Multiclass.from_encoded(X[:30], y[:30], 4)), Cached(Pairwise(LAM), COST)
    state = advance(method, start(method, as_problem(part)), as_problem(part), np.tile(np.arange(30), 4))
    known = [tuple(map(np.copy, losses_and_lives(state, i))) for i in range(30)]
    after = carried(method, state, as_problem(Counting(whole)), Carry(0.5, 0.5, LAM, 30))
    advance(method, state, as_problem(part), np.arange(30))
    for i in range(40):
        expected = known[i] if i < 30 else ([], [])
        for found, kept in zip(losses_and_lives(after, i), expected, strict=True):
            assert found.tolist() == list(kept)
    assert any(len(losses) > 1 for losses, _ in known)
    assert oracle_calls(method, after, 0) == 0


@pytest.mark.parametrize("inner", INNER)
def test_the_cache_is_off_where_the_oracle_is_cheap(inner: str) -> None:
    problem, method = Counting(many_alike().problem), Cached(INNER[inner], oracle_cost=1.9)
    assert len(start(method, as_problem(problem)).working.cache.gap) == 0
    assert_same_bits(ran(problem, method), ran(problem, method.inner))


class Slow(Counting):
    """A problem whose functions take a known time, and the clock that knows it."""

    def __init__(self, problem: Any, seconds: dict[str, float]) -> None:
        super().__init__(problem)
        self.seconds = seconds

    def perf_counter(self) -> float:
        return sum(self.calls[name] * seconds for name, seconds in self.seconds.items())


@pytest.mark.parametrize(
    ("argmax", "cost"), [(0.0, 0.0), (0.5, 0.25), (3.9, 2.0), (10.0, 4.0), (100.0, 64.0)]
)
def test_the_cost_is_measured(monkeypatch: pytest.MonkeyPatch, argmax: float, cost: float) -> None:
    problem = Slow(many_alike().problem, {"argmax": argmax, "score": 1.0, "gram": 1.0, "norm2": 1.0})
    monkeypatch.setattr(cached, "time", problem)
    state = start(Cached(INNER["bcfw"]), as_problem(problem))
    assert state.schedule.cost == cost
    assert len(state.working.cache.gap) == (40 if cost >= 2 else 0)
    assert problem.calls["argmax"] <= 9


def test_predefined_steps_converge() -> None:
    case, method = interpreted(multiclass_case(12, n=6)), Cached(BlockFrankWolfe(LAM, Predefined()), COST)
    optimum = naive.optimum(case.data, LAM)
    result = ran(case.problem, method, max_passes=60)
    assert optimum.primal - result.dual >= -1e-9
    assert result.gap <= 0.05


class Tiring(Counting):
    """An oracle that after some calls always says that the truth is best."""

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        self.call("argmax", i, theta, y, work)
        if self.calls["argmax"] > 60:
            y[0] = self.problem.oracle.labels[i]


def test_a_broken_oracle_is_reported() -> None:
    with pytest.raises(BrokenOracle, match="negative or undefined block gap"):
        ran(Tiring(many_alike().problem), Cached(INNER["bcfw"], COST), max_passes=100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (FrankWolfe(LAM),),
            r"inner must be Away, BlockFrankWolfe or Pairwise, got FrankWolfe; it must move one block .*\.",
        ),
        ((Averaged(FrankWolfe(LAM)),), r"inner must be .*, got Averaged; it must move one block at a time\."),
        ((Cached(INNER["bcfw"]),), r"inner must be .*, got Cached; it must leave the loop .*\."),
        ((Accelerated(INNER["bcfw"]),), r"inner must be .*, got Accelerated; it must leave the loop .*\."),
        ((INNER["bcfw"], -1.0), r"oracle_cost must be a number >= 0 or None, got -1\.0\."),
        ((INNER["bcfw"], np.inf), r"oracle_cost must be a number >= 0 or None, got inf\."),
        ((INNER["bcfw"], None, -1), r"capacity must be an int >= 0, got -1\."),
        ((INNER["bcfw"], None, 5, 0), r"life must be an int >= 1, got 0\."),
        ((INNER["bcfw"], None, 5, 2.5), r"life must be an int >= 1, got 2\.5\."),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^Cached: {message}$"):
        Cached(*arguments)


def test_wrappers_that_cannot_go_around_a_cache_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^Averaged: .*, got Cached; it must not run its own loop; write Cached"
    ):
        Averaged(Cached(INNER["bcfw"]))
    with pytest.raises(
        ValueError, match=r"^Accelerated: .*, got Cached; its answer must not be an average .*\.$"
    ):
        Accelerated(Cached(INNER["averaged"]))

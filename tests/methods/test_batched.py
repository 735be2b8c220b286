"""Mini-batches: against a naive pass, and what must hold whatever the size and the number of threads."""

import copy
import importlib
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    Batched,
    BlockFrankWolfe,
    BrokenOracle,
    Cached,
    FrankWolfe,
    Pairwise,
    Result,
    solve,
)
from maxmargin.methods._protocol import advance, dual_weights, oracle_calls, start
from maxmargin.methods.batched import find_corners
from maxmargin.methods.sampling import SAMPLINGS
from maxmargin.problems import Multiclass
from maxmargin.problems._protocol import sizes
from support import naive
from support.bitwise_runs import bits
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.counting import Counting
from support.dual_variables import alpha_of
from support.naive import Array
from support.naive_methods import batched_frank_wolfe
from support.runs import dual_of, random_order

LAM, SIZE = 0.05, 5
LENGTHS = (2, 3, 1, 2, 2, 3, 1, 2, 2, 1, 3, 2, 2)
CASES = {"chain": lambda: chain_case(1, LENGTHS), "multiclass": lambda: multiclass_case(2, n=13, n_labels=4)}
INNER = {
    "bcfw": BlockFrankWolfe(LAM),
    "pairwise": Pairwise(LAM),
    "away": Away(LAM),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
}
METHODS = {name: Batched(inner, SIZE) for name, inner in INNER.items()} | {
    "accelerated": Accelerated(Batched(INNER["pairwise"], SIZE))
}
driver = importlib.import_module("maxmargin.solve")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def ran(problem: Any, method: Any, **options: Any) -> Result:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 9, "check_every": 2, "random_state": 3} | options
    )


def assert_same_bits(found: Result, expected: Result) -> None:
    assert bits(found.weights) == bits(expected.weights)
    for column in ("passes", "oracle_calls", "primal", "dual", "gap"):
        assert bits(found.history[column]) == bits(expected.history[column])


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_number_of_threads_does_not_matter(case: Case, method: Any, sampling: str) -> None:
    expected = ran(case.problem, method, sampling=sampling)
    assert find_corners.mode(case.problem) != "interpreted"
    for n_jobs in (1, 2, 3):
        assert_same_bits(ran(case.problem, method, sampling=sampling, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("inner", INNER)
def test_batches_of_one_are_the_method_itself(case: Case, inner: str, sampling: str) -> None:
    found = ran(case.problem, Batched(INNER[inner], 1), sampling=sampling, n_jobs=2)
    assert_same_bits(found, ran(case.problem, INNER[inner], sampling=sampling))


def test_accelerated_batches_of_one(case: Case) -> None:
    found = ran(case.problem, Accelerated(Batched(INNER["pairwise"], 1)))
    assert_same_bits(found, ran(case.problem, Accelerated(INNER["pairwise"])))


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_clock_does_not_matter(
    case: Case, method: Any, sampling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass is cut into pieces by the time they take; batches are not."""
    expected = ran(case.problem, method, sampling=sampling)
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(driver, "_PIECE_SECONDS", seconds)
        assert_same_bits(ran(case.problem, method, sampling=sampling), expected)


def test_the_size_matters(case: Case) -> None:
    sizes_of_batches = (1, 5, 64)
    duals = {ran(case.problem, Batched(INNER["bcfw"], size)).dual for size in sizes_of_batches}
    assert len(duals) == 3


@pytest.mark.parametrize("n_steps", [1, 3, 8, 13])
def test_every_iterate_against_a_naive_pass(case: Case, n_steps: int) -> None:
    """Batches of a fixed length, with repeated examples; the first k visits of one are a batch of k."""
    method, anew = Batched(INNER["bcfw"], n_steps), 0
    order = random_order(case.problem, 8 * n_steps, seed=5).reshape(8, n_steps)
    state, alpha = start(method, case.problem), naive.truth_alpha(case.data)
    for batch in order:
        begun = state
        for k, step in enumerate(batched_frank_wolfe(case.data, LAM, alpha, batch), 1):
            state = advance(method, copy.deepcopy(begun), case.problem, batch[:k])
            alpha = step.alpha
            expected = naive.weights_of(case.data, alpha, LAM)
            assert flat(case.problem, state.inner.w) == pytest.approx(expected, abs=1e-9)
            losses = [L @ a for L, a in zip(case.data.losses, alpha, strict=True)]
            assert state.inner.ell == pytest.approx(np.array(losses), abs=1e-9)
        anew += step.anew
        assert oracle_calls(method, state, 100) == 100 + anew
    if n_steps != 3:  # in short batches few corners grow old
        assert (anew > 0) == (n_steps > 1)


@pytest.mark.parametrize("inner", ["bcfw", "pairwise", "away"])
def test_the_dual_never_decreases(case: Case, inner: str) -> None:
    method, dual = Batched(INNER[inner], SIZE), 0.0
    state = start(method, case.problem)
    for batch in random_order(case.problem, 40 * SIZE, seed=7).reshape(40, SIZE):
        state = advance(method, state, case.problem, batch)
        before, dual = dual, dual_of(case.problem, INNER[inner], state.inner)
        assert dual >= before - 1e-12
        assert min(block.min() for block in alpha_of(case, state)) >= 0.0


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS)
def test_certificates_bracket_the_optimum(method: str, sampling: str) -> None:
    case = CASES["multiclass"]()
    best = naive.optimum(case.data, LAM)
    result = ran(case.problem, METHODS[method], max_passes=200, check_every=4, sampling=sampling, n_jobs=2)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, LAM), abs=1e-9)
    assert result.gap <= (0.02 if method in ("bcfw", "averaged") else 1e-3)


@pytest.mark.parametrize("size", [1, 5, 100])
def test_oracle_calls_are_counted(case: Case, size: int) -> None:
    problem, n = Counting(case.problem), len(LENGTHS)
    result = ran(problem, Batched(INNER["bcfw"], size), max_passes=12, check_every=12, sampling="uniform")
    assert result.history.oracle_calls.tolist() == [problem.calls["argmax"] - n]
    assert (result.history.oracle_calls[0] > 12 * n) == (size > 1)


def test_interpreted_problems_get_the_same_steps(case: Case) -> None:
    for method in (METHODS["bcfw"], METHODS["accelerated"]):
        expected = ran(case.problem, method)
        for n_jobs in (None, 2):
            found = ran(Counting(case.problem), method, n_jobs=n_jobs)
            np.testing.assert_allclose(found.history.dual, expected.history.dual, rtol=1e-9)
            np.testing.assert_allclose(found.w, expected.w, atol=1e-9)


@pytest.mark.parametrize("inner", INNER)
def test_pools_that_become_full_within_a_batch(inner: str) -> None:
    """Many labels and repeated visits: what was in the pools is there when they have grown."""
    case, method = multiclass_case(8, n=30, n_labels=40, n_features=6), Batched(INNER[inner], 60)
    state = start(method, case.problem)
    before = _pool_length(state)
    for batch in random_order(case.problem, 20 * 60, seed=2).reshape(20, 60):
        state = advance(method, state, case.problem, batch)
    w = state.inner.inner.w if inner == "averaged" else state.inner.w
    rebuilt = dual_weights(method, state, case.problem) / (LAM * 30)
    assert _pool_length(state) > before
    assert np.abs(w).max() > 0.1
    assert w == pytest.approx(rebuilt, abs=1e-10)
    assert sum(block.sum() for block in alpha_of(case, state)) == pytest.approx(30.0)


def _pool_length(state: Any) -> int:
    state = state.inner.inner if hasattr(state.inner, "inner") else state.inner
    return len(state.planes.where if hasattr(state, "planes") else state.z.where)


class Tiring(Counting):
    """An oracle that after some calls always says that the truth of example 3 is best."""

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        self.call("argmax", i, theta, y, work)
        if self.calls["argmax"] > 30 and i == 3:
            y[0] = self.problem.labels[i]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_broken_oracles_are_named(method: Any) -> None:
    with pytest.raises(BrokenOracle, match=r"^solve: example 3 .*check argmax, loss and the data\.$"):
        ran(Tiring(CASES["multiclass"]().problem), method, max_passes=100)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_features_that_are_not_finite(method: Any, value: float, n_jobs: int | None) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(13, 3)), rng.integers(4, size=13)
    X[3, 1], y[3] = value, 2
    problem = Multiclass.from_encoded(X, y, 4, loss=1.0 - np.eye(4))
    for seed in range(3):
        with pytest.raises(BrokenOracle, match=r"^solve: example 3 [^\n]*check argmax") as caught:
            ran(problem, method, n_jobs=n_jobs, random_state=seed)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FrankWolfe(LAM),), "inner must be a method .*, got FrankWolfe"),
        ((Averaged(FrankWolfe(LAM)),), "inner must be a method .*, got Averaged"),
        ((Batched(INNER["bcfw"]),), "inner must be a method .*, got Batched"),
        ((Accelerated(INNER["bcfw"]),), "inner must be a method .*, got Accelerated"),
        ((Cached(INNER["bcfw"]),), "inner must be a method .*, got Cached"),
        (("bcfw",), "inner must be a method .*, got str"),
        ((INNER["bcfw"], 0), "size must be an int >= 1, got 0"),
        ((INNER["bcfw"], -4), "size must be an int >= 1, got -4"),
        ((INNER["bcfw"], 2.5), "size must be an int >= 1, got 2.5"),
        ((INNER["bcfw"], np.nan), "size must be an int >= 1, got nan"),
        ((INNER["bcfw"], "two"), "size must be an int >= 1, got 'two'"),
        ((INNER["bcfw"], None), "size must be an int >= 1, got None"),
    ],
)
def test_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Batched: {message}\.$"):
        Batched(*arguments)


def test_what_cannot_go_around_batches() -> None:
    with pytest.raises(ValueError, match=r"^Averaged: .*, got Batched; write Batched\(Averaged\(...\)\)\.$"):
        Averaged(Batched(INNER["bcfw"]))
    with pytest.raises(ValueError, match=r"^Averaged: .*not an average itself, got Batched\.$"):
        Averaged(Batched(INNER["averaged"]))
    with pytest.raises(ValueError, match=r"^Accelerated: .*, got Batched\.$"):
        Accelerated(Batched(INNER["averaged"]))
    with pytest.raises(ValueError, match=r"^Cached: .*, got Batched\.$"):
        Cached(Batched(INNER["bcfw"]))


def test_goes_on_from_a_result(case: Case) -> None:
    for method in (METHODS["pairwise"], METHODS["accelerated"]):
        first = ran(case.problem, method, n_jobs=2)
        again = ran(case.problem, method, start=first, n_jobs=2)
        assert again.history.oracle_calls[0] == 0
        assert first.dual <= again.dual <= again.primal <= first.primal
        assert sizes(case.problem).examples * 9 <= again.history.oracle_calls[-1]

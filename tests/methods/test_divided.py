"""Examples divided into parts: against a naive round, and what must hold for any number of threads."""

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
    Divided,
    FrankWolfe,
    Pairwise,
    Result,
    solve,
)
from maxmargin.methods import divided, planes
from maxmargin.methods.protocol import dual_weights, point, start
from maxmargin.methods.sweep import advance, sweep
from maxmargin.problems import Multiclass
from maxmargin.runtime import limits
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes
from support import naive
from support.bitwise_runs import assert_same_bits
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.counting import Counting
from support.dual_variables import alpha_of
from support.naive import Array
from support.naive_methods import divided_stretch, interaction
from support.runs import random_order

pytestmark = pytest.mark.long

LAM = 0.05
LENGTHS = (2, 3, 1, 2, 2, 3, 1, 2, 2, 1, 3, 2, 2)
CASES = {"chain": lambda: chain_case(1, LENGTHS), "multiclass": lambda: multiclass_case(2, n=13, n_labels=4)}
INNER = {
    "bcfw": BlockFrankWolfe(LAM),
    "pairwise": Pairwise(LAM),
    "away": Away(LAM),
}
METHODS = {name: Divided(inner) for name, inner in INNER.items()} | {
    "three parts": Divided(INNER["pairwise"], 3),
    "accelerated": Accelerated(Divided(INNER["pairwise"])),
}
SAMPLINGS = "permutation", "uniform"


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def ran(problem: Any, method: Any, **options: Any) -> Result:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 9, "check_every": 2, "random_state": 3} | options
    )


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stretches have rounds of one visit of each part, as those of thousands of examples have many."""
    monkeypatch.setattr(divided, "_FEWEST", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_number_of_threads_does_not_matter(case: Case, method: Any, sampling: str) -> None:
    expected = ran(case.problem, method, sampling=sampling)
    assert sweep.mode(case.problem) != "interpreted"
    for n_jobs in (1, 2, 3):
        assert_same_bits(ran(case.problem, method, sampling=sampling, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("inner", INNER)
def test_one_part_is_the_method_itself(case: Case, inner: str, sampling: str) -> None:
    found = ran(case.problem, Divided(INNER[inner], 1), sampling=sampling, n_jobs=2)
    assert_same_bits(found, ran(case.problem, INNER[inner], sampling=sampling))


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_clock_does_not_matter(
    case: Case, method: Any, sampling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass is cut into pieces by the time they take; rounds are not."""
    expected = ran(case.problem, method, sampling=sampling)
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(limits, "PIECE_SECONDS", seconds)
        assert_same_bits(ran(case.problem, method, sampling=sampling), expected)


def test_the_number_of_parts_matters(case: Case) -> None:
    assert len({ran(case.problem, Divided(INNER["bcfw"], parts)).dual for parts in (1, 2, 3)}) == 3


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 5, 26])
@pytest.mark.parametrize("parts", [1, 2, 5, 20])
def test_every_stretch_is_that_of_naive_rounds(
    case: Case, parts: int, length: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretches of a fixed length, with repeated examples; there may be more parts than examples."""
    monkeypatch.setattr(divided.protocol, "grain", lambda *_: length)
    monkeypatch.setattr(divided, "_TRIAL", 1)
    monkeypatch.setattr(divided, "_rounds_in_a_stretch", lambda _, __, n_parts: rounds if n_parts > 1 else 1)
    method, n_parts = Divided(INNER["bcfw"], parts), min(parts, len(LENGTHS))  # none is empty
    state, alpha, mean = start(method, case.problem), naive.truth_alpha(case.data), float(n_parts)
    for order in random_order(case.problem, 8 * length, seed=5).reshape(8, length):
        state, before = advance(method, state, case.problem, order), alpha
        visits, sigma = _rounds_of(order, n_parts, rounds), _sigma(mean, n_parts)
        last, alpha = divided_stretch(case.data, LAM, alpha, visits, n_parts, sigma)
        expected = naive.weights_of(case.data, alpha, LAM)
        assert flat(case.problem, state.w) == pytest.approx(expected, abs=1e-9)
        losses = [L @ a for L, a in zip(case.data.losses, alpha, strict=True)]
        found = np.zeros(len(losses))
        for part in state.parts:
            found[part.numbers] = part.state.ell
        assert found == pytest.approx(np.array(losses), abs=1e-9)
        mean = _mean_after(case, mean, before, last, alpha, n_parts)
        assert state.interaction == pytest.approx(mean, abs=1e-6)


def _rounds_of(order: Array, parts: int, rounds: int) -> list[Array]:
    """The visits of each round: every part makes an equal share of its visits."""
    own = [order[order % parts == p] for p in range(parts)]
    ends = [[r * len(some) // rounds for r in range(rounds + 1)] for some in own]
    return [
        np.concatenate([some[end[r] : end[r + 1]] for some, end in zip(own, ends, strict=True)])
        for r in range(rounds)
    ]


def _sigma(mean: float, parts: int) -> float:
    return min(1.0 + (parts - 1.0) * max(mean - 1.0, 0.0), parts)


def _mean_after(
    case: Case, mean: float, before: list[Array], last: list[Array], after: list[Array], parts: int
) -> float:
    """The running mean of rho after a stretch whose last round began at ``last``, by the dual variables."""
    rho = interaction(case.data, last, after, parts)
    if np.isnan(rho):
        return mean
    mean = rho if mean == parts else mean
    if naive.dual(case.data, after, LAM) < naive.dual(case.data, before, LAM) - 1e-12:
        return min(1.0 + 2.0 * max(rho - 1.0, mean - 1.0, 0.05), parts)
    return mean + 0.2 * (rho - mean)


@pytest.mark.parametrize("parts", [2, 7])
@pytest.mark.parametrize("inner", INNER)
def test_the_dual_decreases_only_if_parts_interact_more_than_expected(
    case: Case, inner: str, parts: int
) -> None:
    method, dual = Divided(INNER[inner], parts), 0.0
    state = start(method, case.problem)
    alpha = naive.truth_alpha(case.data)
    for order in random_order(case.problem, 40 * 9, seed=7).reshape(40, 9):
        mean, sigma = state.interaction, _sigma(state.interaction, parts)
        state = advance(method, state, case.problem, order)
        before, dual = dual, objective.dual(point(method, state, case.problem), LAM)
        old, alpha = alpha, _all_blocks(case, state)
        assert min(block.min() for block in alpha) >= 0.0
        rho = interaction(case.data, old, alpha, parts)
        assert dual >= before - 1e-12 or (rho > sigma and state.interaction > mean)
    assert state.w == pytest.approx(dual_weights(method, state, case.problem) / (LAM * 13), abs=1e-10)


def _all_blocks(case: Case, state: Any) -> list[Array]:
    """The dual variables of all examples."""
    found: dict[int, Array] = {}
    for part in state.parts:
        found |= dict(zip(part.numbers, alpha_of(case, part.state, part.numbers), strict=True))
    return [found[i] for i in range(len(found))]


@pytest.mark.parametrize("inner", INNER)
def test_parts_that_do_not_interact_take_the_steps_of_one(inner: str) -> None:
    """Examples of a part have features of their own: rho is one, and the dual rises as if it were alone."""
    rng = np.random.default_rng(3)
    X = np.zeros((12, 8))
    X[0::2, :4], X[1::2, 4:] = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    problem = Multiclass.from_arrays(X, rng.permutation(np.arange(12) % 3))
    state, order = start(Divided(INNER[inner]), problem), np.arange(12)
    for _ in range(25):
        state = advance(Divided(INNER[inner]), state, problem, order)
    assert state.interaction == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", METHODS)
def test_certificates_bracket_the_optimum(method: str, sampling: str) -> None:
    case = CASES["multiclass"]()
    best = naive.optimum(case.data, LAM)
    result = ran(case.problem, METHODS[method], max_passes=200, check_every=4, sampling=sampling, n_jobs=2)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, LAM), abs=1e-9)
    assert result.gap <= (0.03 if method == "bcfw" else 1e-3)


def test_oracle_calls_are_counted(case: Case) -> None:
    problem, n = Counting(case.problem), len(LENGTHS)
    calls: list[int] = []  # after each pass, the last of which ends with a certificate
    result = ran(
        problem,
        METHODS["bcfw"],
        max_passes=12,
        check_every=12,
        sampling="uniform",
        callbacks=[lambda _: calls.append(problem.calls["argmax"])],
    )
    assert result.history.oracle_calls.tolist() == [calls[-1] - n] == [12 * n]


def test_interpreted_problems_get_the_same_steps(case: Case) -> None:
    for method in (METHODS["bcfw"], METHODS["accelerated"]):
        expected = ran(case.problem, method)
        for n_jobs in (None, 2):
            found = ran(Counting(case.problem), method, n_jobs=n_jobs)
            np.testing.assert_allclose(found.history.dual, expected.history.dual, rtol=1e-9)
            np.testing.assert_allclose(found.w, expected.w, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("inner", INNER)
def test_pools_may_become_full_within_a_round(inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many labels and repeated visits: what was in the pools is there when they have grown."""
    monkeypatch.setattr(planes, "_FEW_PLANES", 0)  # pools of few examples begin with much space
    case, method = multiclass_case(8, n=30, n_labels=60, n_features=12), Divided(INNER[inner])
    state = start(method, case.problem)
    before = _pool_length(state)
    for order in random_order(case.problem, 60 * 60, seed=2).reshape(60, 60):
        state = advance(method, state, case.problem, order)
    rebuilt = dual_weights(method, state, case.problem) / (LAM * 30)
    assert _pool_length(state) > before
    assert np.abs(state.w).max() > 0.1
    assert state.w == pytest.approx(rebuilt, abs=1e-10)


def _pool_length(state: Any) -> int:
    pools = (part.state.planes if hasattr(part.state, "planes") else part.state.z for part in state.parts)
    return sum(len(pool.where) for pool in pools)


class Tiring(Counting):
    """An oracle that after some calls answers example 3 by the label of lowest score.

    The truth would not do: where it has all dual weight, its gap is zero, as that of the best answer may be.
    """

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        self.call("argmax", i, theta, y, work)
        if self.calls["argmax"] > 50 and i == 3:
            y[0] = np.argmin(theta[: self.problem.oracle.n_labels])


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_broken_oracles_are_named(method: Any) -> None:
    with pytest.raises(BrokenOracle, match=r"^solve: example 3 .*check argmax, loss and the data\.$"):
        ran(Tiring(CASES["multiclass"]().problem), method, max_passes=100)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_features_must_be_finite(method: Any, value: float, n_jobs: int | None) -> None:
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
        ((FrankWolfe(LAM),), "inner must be .*, got FrankWolfe; it .*"),
        ((Averaged(INNER["bcfw"]),), "inner must be .*, got Averaged; it .*"),
        ((Divided(INNER["bcfw"]),), "inner must be .*, got Divided; it .*"),
        ((Accelerated(INNER["bcfw"]),), "inner must be .*, got Accelerated; it .*"),
        ((Cached(INNER["bcfw"]),), "inner must be .*, got Cached; it .*"),
        (("bcfw",), "inner must be .*, got 'bcfw'"),
        ((INNER["bcfw"], 0), "parts must be an int >= 1, got 0"),
        ((INNER["bcfw"], 2.5), "parts must be an int >= 1, got 2.5"),
        ((INNER["bcfw"], "two"), "parts must be an int >= 1, got 'two'"),
        ((INNER["bcfw"], None), "parts must be an int >= 1, got None"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Divided: {message}\.$"):
        Divided(*arguments)


def test_wrappers_that_cannot_go_around_parts_are_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^Averaged: .*, got Divided; it must not run its own loop; write Divided\(Averaged",
    ):
        Averaged(Divided(INNER["bcfw"]))
    with pytest.raises(
        ValueError, match=r"^Cached: .*, got Divided; it must leave the loop over examples to its wrapper\.$"
    ):
        Cached(Divided(INNER["bcfw"]))
    with pytest.raises(ValueError, match=r"^solve: sampling must be .* for Accelerated, .*, got 'gap'\.$"):
        solve(CASES["multiclass"]().problem, METHODS["accelerated"], sampling="gap")


def test_a_run_goes_on_from_a_result_and_loses_nothing(case: Case) -> None:
    for method in (METHODS["pairwise"], METHODS["accelerated"]):
        first = ran(case.problem, method, n_jobs=2)
        again = ran(case.problem, method, start=first, n_jobs=2)
        assert again.history.oracle_calls[0] == 0
        assert first.dual <= again.dual <= again.primal <= first.primal
        assert sizes(case.problem).examples * 9 <= again.history.oracle_calls[-1]

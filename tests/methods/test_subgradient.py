"""Stochastic subgradient steps against dense vectors, dual variables written out and the optimum of a QP."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    Cached,
    Divided,
    Status,
    Subgradient,
    WarmStart,
    solve,
)
from maxmargin.methods.protocol import factor, point, start, weights, with_lam
from maxmargin.methods.sweep import advance
from maxmargin.solving import objective
from maxmargin.structures.feature_map import statistics_size
from maxmargin.structures.problem import sizes
from support import naive, naive_primal
from support.catalogue import Case, chain_case, flat, layout, multiclass_case
from support.growing import KINDS, growing
from support.naive import Array
from support.runs import SCHEMES, block_states, random_order

LAM = 0.2
METHOD = Subgradient(LAM)
CASES = {
    "chain": lambda seed: chain_case(seed, (2, 3, 1, 2)),
    "multiclass": lambda seed: multiclass_case(seed),
}


def averages(visits: list[Array], scheme: str) -> list[Array]:
    """Return the average of the iterates after each step."""
    return [
        naive_primal.weights_of_iterates(scheme, k) @ np.array(visits[:k]) for k in range(1, len(visits) + 1)
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), lam=st.sampled_from([0.01, 0.2, 3.0]))
def test_every_iterate_and_average_is_that_of_the_naive_method(kind: str, seed: int, lam: float) -> None:
    case = CASES[kind](seed)
    order = random_order(case.problem, 37, seed)
    expected = [visit.w for visit in naive_primal.subgradient(case.data, lam, order)]
    plain, tolerance = Subgradient(lam), {"rel": 1e-9, "abs": 1e-10 / lam}
    for state, w in zip(block_states(case.problem, plain, order), expected, strict=True):
        assert flat(case.problem, point(plain, state, case.problem).w) == pytest.approx(w, **tolerance)
    for scheme in SCHEMES:
        method = Averaged(plain, scheme)
        states = block_states(case.problem, method, order)
        for state, w in zip(states, averages(expected, scheme), strict=True):
            assert flat(case.problem, point(method, state, case.problem).w) == pytest.approx(w, **tolerance)


def alpha_of_visits(data: naive.Enumerated, order: Array, answers: list[int], share: float) -> list[Array]:
    """Return dual variables share n / k times how often an output was the answer, the rest on the truth."""
    n, k = len(data.losses), len(answers)
    alpha = [np.zeros(len(losses)) for losses in data.losses]
    for i, answer in zip(order, answers, strict=True):
        alpha[i][answer] += share * n / k
    for block, truth in zip(alpha, data.truths, strict=True):
        block[truth] += 1.0 - block.sum()
    return alpha


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), lam=st.sampled_from([0.02, 0.2, 2.0]))
def test_the_bound_is_that_of_feasible_dual_variables(kind: str, seed: int, lam: float) -> None:
    """The best of those that are proportional to the answers' frequencies, by a search over shares."""
    case, method = CASES[kind](seed), Subgradient(lam)
    n, order = len(case.X), random_order(case.problem, 17, seed)
    visits = list(naive_primal.subgradient(case.data, lam, order))
    for k, state in enumerate(block_states(case.problem, method, order), start=1):
        answers = [visit.answer for visit in visits[:k]]
        feasible = k / (n * np.bincount(order[:k]).max())
        found = [
            alpha_of_visits(case.data, order[:k], answers, share) for share in np.linspace(0, feasible, 101)
        ]
        assert min(block.min() for block in found[-1]) >= -1e-12
        best = max(naive.dual(case.data, alpha, lam) for alpha in found)
        bound = objective.dual(point(method, state, case.problem), lam)
        assert best - 1e-9 <= bound <= best + 2e-3 * (1.0 + best)
        assert bound <= naive.optimum(case.data, lam).primal + 1e-9


@pytest.mark.parametrize("kind", CASES)
def test_after_whole_passes_the_weights_are_those_of_the_dual_variables(kind: str) -> None:
    case = CASES[kind](3)
    n, rng = len(case.X), np.random.default_rng(0)
    order = np.concatenate([rng.permutation(n) for _ in range(200)])
    answers = [visit.answer for visit in naive_primal.subgradient(case.data, LAM, order)]
    alpha = alpha_of_visits(case.data, order, answers, 1.0)
    found = point(METHOD, advance(METHOD, start(METHOD, case.problem), case.problem, order), case.problem)
    assert flat(case.problem, found.w) == pytest.approx(naive.weights_of(case.data, alpha, LAM), abs=1e-9)
    assert found.ell == pytest.approx(naive.dual_loss(case.data, alpha), abs=1e-12)
    assert found.norm2 == pytest.approx(found.w @ found.w, rel=1e-12)


def test_the_start_is_zero_and_has_no_bound_but_zero() -> None:
    problem = multiclass_case(1).problem
    for method in (METHOD, Averaged(METHOD)):
        found = point(method, start(method, problem), problem)
        assert not found.w.any()
        assert (found.ell, found.norm2, found.others) == (0.0, 0.0, ())


@pytest.mark.parametrize("kind", CASES)
def test_no_step_is_made_without_a_violation(kind: str) -> None:
    """Where the truth wins by a margin the sum stays as it is."""
    case, method = CASES[kind](5), Subgradient(1e-6)
    state = start(method, case.problem)
    state.v[:], state.steps[0] = layout(case.problem, naive.optimum(case.data, LAM).w), 1
    before, w = state.v.copy(), 1e6 * flat(case.problem, state.v)
    best = [naive.best_output(case.data, i, w) for i in range(len(case.X))]
    won = np.flatnonzero(np.array(best) == case.data.truths)
    state = advance(method, state, case.problem, won)
    assert len(won) > 0
    assert (state.v == before).all()
    assert state.steps[0] == 1 + len(won)
    assert state.loss[0] == 0.0


@pytest.mark.parametrize("kind", CASES)
def test_the_weighted_average_ends_near_the_optimum(kind: str) -> None:
    case = CASES[kind](9)
    result = solve(
        case.problem, Averaged(METHOD, "weighted"), tol=4e-3, max_passes=3000, check_every=50, random_state=0
    )
    best = naive.optimum(case.data, LAM)
    assert result.status is Status.CONVERGED
    assert best.primal - 1e-9 <= result.primal <= 1.01 * best.primal
    assert result.dual <= best.dual + 1e-9


KEEPS = ("best", "weights", "dual")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", KEEPS)
def test_going_on_at_another_lam_with_more_examples_keeps_the_sums(kind: str, keep: str) -> None:
    """The sums stay: the weights are those that the same answers make at the new lam."""
    examples, options = growing(kind, 4), {"tol": 0.0, "max_passes": 3, "random_state": 0}
    few, many, new = examples.first(4), examples.first(7), Subgradient(0.7)
    before = solve(few.problem, METHOD, **options)
    known = before.stopped.state.v.copy()
    after = solve(many.problem, new, start=WarmStart(before, keep), **{**options, "check_every": 1})
    begun, state = after.history.rows[0], after.stopped.state
    w = known / (0.7 * 12)
    assert begun.primal == pytest.approx(naive.primal(many.data, flat(many.problem, w), 0.7), abs=1e-12)
    assert state.steps[0] == 12 + 21
    assert state.visits.tolist() == [6] * 4 + [3] * 3
    assert (before.stopped.state.v == known).all()
    best = naive.optimum(many.data, 0.7)
    assert max(after.history.dual) <= best.dual + 1e-9
    assert min(after.history.primal) >= best.primal - 1e-9


def test_going_on_is_as_if_not_stopped() -> None:
    problem = multiclass_case(12).problem
    options: dict[str, Any] = {"tol": 0.0, "check_every": 1}
    rng = np.random.default_rng(5)
    first = solve(problem, METHOD, max_passes=2, random_state=rng, **options)
    second = solve(problem, METHOD, max_passes=3, random_state=rng, start=first, **options)
    whole = solve(problem, METHOD, max_passes=5, random_state=5, **options)
    assert (second.stopped.state.v == whole.stopped.state.v).all()
    assert second.history.primal[-1] == whole.history.primal[-1]
    assert second.history.dual[-1] == whole.history.dual[-1]


def test_an_average_goes_on_from_the_iterate() -> None:
    problem, method = chain_case(13).problem, Averaged(METHOD)
    first = solve(problem, method, tol=0.0, max_passes=2, random_state=0)
    new, v = with_lam(method, 0.5), first.stopped.state.inner.v
    second = solve(problem, new, tol=1e9, start=first).stopped.state
    assert (second.inner.v == v).all()
    expected = v / (0.5 * 2 * sizes(problem).examples)
    assert point(new, second, problem).w == pytest.approx(expected, rel=1e-12)


def test_other_methods_have_the_factor_one() -> None:
    problem, block = multiclass_case(1).problem, BlockFrankWolfe(LAM)
    state = start(block, problem)
    assert factor(block, state) == 1.0
    assert weights(block, state) is state.w
    state = advance(METHOD, start(METHOD, problem), problem, np.arange(4))
    assert factor(METHOD, state) == pytest.approx(1.0 / (4 * LAM))
    assert weights(METHOD, state) is state.v


@pytest.mark.parametrize("case", [chain_case(1, (3, 1, 2)), multiclass_case(1)])
def test_the_statistics_of_an_example_end_with_its_last_token(case: Case) -> None:
    """No score of an example is read or written beyond."""
    size = sizes(case.problem).statistics
    ends = [statistics_size(case.problem.map, i) for i in range(len(case.X))]
    assert max(ends) == size
    lengths = [len(outputs[0]) for outputs in case.data.outputs]
    width = case.problem.map.width
    assert [size - end for end in ends] == [(max(lengths) - length) * width for length in lengths]


@pytest.mark.parametrize("wrapper", [Accelerated, Divided, Cached])
@pytest.mark.parametrize("inner", [METHOD, Averaged(METHOD)])
def test_wrappers_that_need_dual_variables_are_refused(wrapper: Any, inner: Any) -> None:
    with pytest.raises(ValueError, match=f"^{wrapper.__name__}: inner must be .*got {type(inner).__name__}"):
        wrapper(inner)


@pytest.mark.parametrize("method", [METHOD, Averaged(METHOD)])
def test_examples_are_not_drawn_by_gaps_that_they_do_not_have(method: Any) -> None:
    with pytest.raises(ValueError, match="gap") as caught:
        solve(multiclass_case(1).problem, method, sampling="gap")
    assert str(caught.value) == (
        f"solve: sampling must be 'permutation' or 'uniform' for {type(method).__name__}, "
        "which does not record block gaps, got 'gap'."
    )

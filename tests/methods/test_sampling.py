"""Which examples are visited: draws by gap against cumulative sums, and runs with every draw written out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from maxmargin import Averaged, Away, BlockFrankWolfe, Pairwise
from maxmargin.methods.protocol import start
from maxmargin.methods.rules import (
    SAMPLINGS,
    ByGap,
    Listed,
    as_visits,
    draw_leaf,
    expected,
    n_visits,
    new_gap_sampling,
    note_gap,
    set_leaf,
    some_visits,
    visited,
)
from maxmargin.methods.sweep import advance
from support import naive, naive_methods
from support.active_sets import dual_variables
from support.catalogue import Case, flat, multiclass_case
from support.naive import Array

LAM = 0.3
LARGEST = np.nextafter(1.0, 0.0)
uniforms = st.one_of(st.sampled_from([0.0, 0.5, LARGEST]), st.floats(0.0, 1.0, exclude_max=True))


def new_tree(n: int) -> Array:
    """Return the tree over n examples without gaps, as a run begins with."""
    return new_gap_sampling(n).tree


def tree_of(values: list[float]) -> Array:
    tree = new_tree(len(values))
    for i, value in enumerate(values):
        set_leaf(tree, i, value)
    return tree


def drawn_by_sums(values: Any, uniform: float) -> int:
    """Return the first example whose cumulative sum exceeds the number's share of the total."""
    sums = np.cumsum(values)
    return int(np.searchsorted(sums, uniform * sums[-1], side="right"))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.lists(uniforms, min_size=1, max_size=10))
@example([3], [0.0, LARGEST])
@example([0, 0, 0, 0, 2], [0.0, LARGEST])
@example([2, 0, 0, 0, 0], [0.0, LARGEST])
def test_draws_are_those_of_cumulative_sums(values: list[int], numbers: list[float]) -> None:
    """Sums of whole numbers are exact, so there is one answer."""
    tree = tree_of([float(value) for value in values])
    for uniform in numbers:
        expected = drawn_by_sums(values, uniform) if any(values) else 0
        assert draw_leaf(tree, uniform) == expected
        assert not any(values) or values[expected] > 0


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e3)), min_size=1, max_size=40).filter(any),
    st.lists(uniforms, min_size=1, max_size=10),
)
def test_rounding_never_leads_to_an_example_without_gap(values: list[float], numbers: list[float]) -> None:
    tree, sums = tree_of(values), np.cumsum([0.0, *values])
    for uniform in numbers:
        i = draw_leaf(tree, uniform)
        assert values[i] > 0.0
        slack = 1e-14 * sums[-1]
        assert sums[i] - slack <= uniform * sums[-1] <= sums[i + 1] + slack


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0.0, 1e6)), max_size=50),
)
def test_every_node_is_the_sum_of_its_children(n: int, changes: list[tuple[int, float]]) -> None:
    tree, values = new_tree(n), np.zeros(n)
    m = len(tree) // 2
    assert n <= m < 2 * n
    assert m & (m - 1) == 0
    for place, value in changes:
        values[place % n] = value
        set_leaf(tree, place % n, value)
        assert (tree[m : m + n] == values).all()
        assert not tree[m + n :].any()
        assert (tree[1:m] == tree[2::2] + tree[3::2]).all()


def test_frequencies_are_the_gaps() -> None:
    values = np.array([4.0, 0.0, 1.0, 0.5, 2.0, 0.0, 3.0, 0.1, 1.5, 0.0, 0.7])
    tree = tree_of(values.tolist())
    draws = [draw_leaf(tree, u) for u in np.random.default_rng(1).random(20000)]
    counts = np.bincount(draws, minlength=len(values))
    assert not counts[values == 0.0].any()
    expected = 20000 * values / values.sum()
    assert chisquare(counts[values > 0.0], expected[values > 0.0]).pvalue > 0.01


def test_no_gap_is_noted_below_zero() -> None:
    tree = tree_of([1.0, 2.0, 3.0])
    visits = ByGap(np.zeros(1, dtype=np.int64), np.zeros(1), tree)
    note_gap(visits, 1, -1e-17)
    note_gap(visits, 2, 0.25)
    assert tree[4:7].tolist() == [1.0, 0.0, 0.25]


def test_the_first_pass_is_a_permutation_and_a_fifth_of_the_later_ones_uniform() -> None:
    n, rng = 50, np.random.default_rng(2)
    sampler = new_gap_sampling(n)
    first, *later = (sampler.draw(rng) for _ in range(201))
    assert sorted(first.order.tolist()) == list(range(n))
    assert all(visits.tree is first.tree for visits in later)
    orders = np.concatenate([visits.order for visits in later])
    drawn = orders[orders >= 0]
    assert set(orders.tolist()) == set(range(-1, n))
    assert chisquare([len(drawn), len(orders) - len(drawn)], [2000, 8000]).pvalue > 0.01
    assert chisquare(np.bincount(drawn)).pvalue > 0.01
    numbers = np.concatenate([visits.uniform for visits in later])
    assert 0.0 <= numbers.min() <= numbers.max() < 1.0
    assert chisquare(np.histogram(numbers[orders < 0], bins=20, range=(0, 1))[0]).pvalue > 0.01


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_pass_has_n_visits_and_can_be_cut(sampling: str) -> None:
    rng, sampler = np.random.default_rng(3), SAMPLINGS[sampling](11)
    assert n_visits(sampler.none()) == 0
    for visits in (sampler.draw(rng), sampler.draw(rng)):
        assert n_visits(visits) == 11
        parts = [some_visits(visits, 0, 4), some_visits(visits, 4, 20)]
        assert [n_visits(part) for part in parts] == [4, 7]
        whole = [visited(visits, t) for t in range(11)]
        assert [visited(part, t) for part in parts for t in range(n_visits(part))] == whole
        assert [visited(some_visits(visits, 9), t) for t in range(2)] == whole[9:]


def test_visits_are_known_beforehand_unless_they_are_drawn() -> None:
    listed = as_visits(np.array([4, 0, 2]))
    assert [expected(listed, t) for t in range(4)] == [4, 0, 2, -1]
    drawn = ByGap(np.array([1, -1, 0]), np.full(3, 0.5), np.ones(4))
    assert [expected(drawn, t) for t in range(4)] == [1, -1, 0, -1]


def test_an_array_stands_for_its_order() -> None:
    order = np.array([3, 1, 2])
    assert n_visits(order) == 3
    some = some_visits(order, 1)
    assert isinstance(some, Listed)
    assert some.order.tolist() == [1, 2]


def block_gap(case: Case, alpha: list[Array], i: int) -> float:
    """Return n times the block gap: the largest margin, less the mean margin under alpha."""
    margins = naive.margins(case.data, i, naive.weights_of(case.data, alpha, LAM))
    return float(margins.max() - margins @ alpha[i])


@pytest.mark.parametrize("method", [Pairwise(LAM), Away(LAM)])
def test_gaps_are_noted_as_they_are_found(method: Any) -> None:
    case = multiclass_case(1, n=6, n_labels=5)
    n, rng, state = len(case.X), np.random.default_rng(4), start(method, case.problem)
    sampler, noted = new_gap_sampling(n), np.zeros(n)
    for visits in (sampler.draw(rng) for _ in range(5)):
        for t in range(n):
            i = int(visited(visits, t))
            noted[i] = block_gap(case, dual_variables(case, state.planes), i)
            state = advance(method, state, case.problem, some_visits(visits, t, t + 1))
            assert visits.tree[8 : 8 + n] == pytest.approx(noted, abs=1e-12)
    assert noted.max() > 0.0


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_run_by_gap_is_that_written_out(wrapped: bool) -> None:
    """Frank-Wolfe on the dual variables, with each example drawn by cumulative sums of the gaps noted."""
    case = multiclass_case(1, n=6, n_labels=5)
    block = BlockFrankWolfe(LAM)
    method = Averaged(block) if wrapped else block
    state, noted, order, repeats = start(method, case.problem), np.zeros(6), [], 0
    ours, theirs = ((new_gap_sampling(6), np.random.default_rng(5)) for _ in range(2))
    for _ in range(8):
        drawn = theirs[0].draw(theirs[1])
        for i, uniform in zip(drawn.order, drawn.uniform, strict=True):
            order.append(int(i) if i >= 0 else drawn_by_sums(noted, uniform))
            alpha = alpha_before_last(case, order)
            noted[order[-1]] = block_gap(case, alpha, order[-1])
        repeats += len(set(order[-6:])) < 6
        state = advance(method, state, case.problem, ours[0].draw(ours[1]))
        inner = state.inner if wrapped else state
        *_, alpha = naive_methods.block_frank_wolfe(case.data, LAM, np.array(order), line_search=True)
        assert flat(case.problem, inner.w) == pytest.approx(
            naive.weights_of(case.data, alpha, LAM), abs=1e-10
        )
    assert repeats >= 5


def alpha_before_last(case: Case, order: list[int]) -> list[Array]:
    """Return the dual variables after all visits but the last."""
    alpha = naive.truth_alpha(case.data)
    for after in naive_methods.block_frank_wolfe(case.data, LAM, np.array(order[:-1], dtype=int), True):
        alpha = after
    return alpha

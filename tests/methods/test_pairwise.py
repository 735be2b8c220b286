"""Steps within active sets, against the same steps on the dual variables themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Away, BlockFrankWolfe, Pairwise
from maxmargin.methods.blocks import SIZE
from maxmargin.methods.pairwise import ActiveState, _move_alpha
from maxmargin.methods.planes import truth_planes
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from support import naive
from support.active_sets import dual_variables, planes_of, with_room
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.naive import Array
from support.naive_methods import ActiveSets
from support.runs import block_states, dual_of, gap_of, random_order

LAM = 0.3
N_STEPS = 40
METHODS = {"pairwise": Pairwise, "away": Away}
CASES = {
    "chain": lambda: chain_case(1),
    "chain, Hamming loss": lambda: chain_case(2, loss="normalized_hamming"),
    "chain of two labels": lambda: chain_case(3, (2, 4, 1), 2, loss="hamming"),
    "multiclass": lambda: multiclass_case(1, n=6, n_labels=5),
    "multiclass, zero-one loss": lambda: multiclass_case(2, n=6, loss="zero_one"),
}
# Whole numbers make ties.
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense", "whole")),
    multiclass_cases(rows=("dense", "whole")),
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def nearest(blocks: list[Array], found: Array) -> Array:
    return min(blocks, key=lambda block: np.abs(block - found).max())


def assert_same_point(case: Case, state: ActiveState, alpha: list[Array], lam: float, abs: float) -> None:
    """Weights and dual losses are those of the dual variables."""
    assert flat(case.problem, state.w) == pytest.approx(naive.weights_of(case.data, alpha, lam), abs=abs)
    losses = [L @ a for L, a in zip(case.data.losses, alpha, strict=True)]
    assert state.ell == pytest.approx(np.array(losses), abs=abs)


@pytest.mark.parametrize("inner_steps", [1, 3, 10])
@pytest.mark.parametrize("kind", METHODS)
def test_every_iterate_is_that_of_the_naive_method(case: Case, kind: str, inner_steps: int) -> None:
    """Each visit ends where it does on the dual variables, with the same outputs in the active set."""
    order, method = random_order(case.problem, N_STEPS, seed=5), METHODS[kind](LAM, inner_steps)
    steps, alpha = ActiveSets(kind == "away", inner_steps), naive.truth_alpha(case.data)
    for i, state in zip(order, block_states(case.problem, method, order), strict=True):
        found = dual_variables(case, state.planes)
        alpha[i] = nearest(steps.visit(case.data, LAM, alpha, i), found[i])
        assert np.concatenate(found) == pytest.approx(np.concatenate(alpha), abs=1e-9)
        assert ((found[i] > 0.0) == (alpha[i] > 0.0)).all()
        assert_same_point(case, state, alpha, LAM, 1e-9)


@pytest.mark.parametrize("kind", METHODS)
def test_what_loses_its_weight_leaves_the_set(kind: str) -> None:
    """A step that ends where a variable is zero makes it exactly zero: no rest of rounding stays behind."""
    dropped = 0
    for seed in range(10):
        case, method = multiclass_case(seed, n=6, n_labels=6), METHODS[kind](LAM)
        before = naive.truth_alpha(case.data)
        for state in block_states(case.problem, method, random_order(case.problem, N_STEPS, seed)):
            alpha = dual_variables(case, state.planes)
            held = [plane.alpha for i in range(6) for plane in planes_of(state.planes, i)]
            assert min(held) > 1e-12
            assert len(held) == sum(np.count_nonzero(block) for block in alpha)
            lost = [(old > 0.0) & (new == 0.0) for old, new in zip(before, alpha, strict=True)]
            dropped, before = dropped + int(np.sum(lost)), alpha
    assert dropped >= 50


def test_no_rounding_is_left_of_a_weight_that_is_lost() -> None:
    """An away step as far as it goes, by ``a / (1 - a)`` in the direction ``a - 1``."""
    planes, rest = truth_planes(1, 4), 0
    planes.extent[0, SIZE] = 2
    for a in np.random.default_rng(0).random(1000):
        planes.alpha[:2], planes.work.change[:2] = (a, 1.0 - a), (a - 1.0, 1.0 - a)
        assert _move_alpha(planes, 0, 1e9, 1.0) == (a / (1.0 - a), True)
        assert planes.alpha[0] == 0.0
        assert planes.alpha[1] == pytest.approx(1.0, abs=1e-15)
        rest += a - a / (1.0 - a) * (1.0 - a) > 0.0
    assert rest > 50  # where a sum would have left some


def test_no_step_takes_more_weight_than_there_is() -> None:
    """The best step is taken if alpha allows it, and none where all weight is on one plane."""
    planes = truth_planes(1, 4)
    planes.extent[0, SIZE] = 2
    for slope, expected in ((0.1, 0.1), (0.29, 0.29), (0.3, 0.3), (0.5, 0.3)):
        planes.alpha[:2], planes.work.change[:2] = (0.7, 0.3), (1.0, -1.0)
        assert _move_alpha(planes, 0, slope, 1.0) == (expected, slope >= 0.3)
        assert planes.alpha[:2] == pytest.approx([0.7 + expected, 0.3 - expected], abs=1e-15)
    planes.alpha[:2], planes.work.change[:2] = (1.0, 0.0), 0.0
    assert _move_alpha(planes, 0, 0.0, 0.0) == (0.0, False)
    assert planes.alpha[:2].tolist() == [1.0, 0.0]


@settings(max_examples=30)
@given(small_cases, st.integers(0, 1000), st.sampled_from(list(METHODS)), st.sampled_from([0.01, 0.3, 5.0]))
def test_no_visit_lowers_the_dual_or_leaves_the_simplex(case: Case, seed: int, kind: str, lam: float) -> None:
    """The dual does not decrease, no gap is negative, and the point is that of variables in the simplex."""
    method, dual = METHODS[kind](lam), 0.0
    for state in block_states(case.problem, method, random_order(case.problem, 25, seed)):
        before, dual = dual, dual_of(case.problem, method, state)
        assert dual >= before - 1e-12
        assert gap_of(case.problem, method, state) >= -1e-12
        alpha = dual_variables(case, state.planes)
        assert min(block.min() for block in alpha) >= 0.0
        assert [block.sum() for block in alpha] == pytest.approx([1.0] * len(alpha), abs=1e-14)
        assert_same_point(case, state, alpha, lam, 1e-12 / lam)


def test_one_inner_step_towards_the_corner_is_frank_wolfes() -> None:
    """The first away step of a block, all of whose weight is on the truth, is that of Frank-Wolfe."""
    case = multiclass_case(1, n=6, n_labels=5)
    order = np.arange(6)
    away = advance(Away(LAM, 1), start(Away(LAM, 1), case.problem), case.problem, order)
    block = BlockFrankWolfe(LAM)
    expected = advance(block, start(block, case.problem), case.problem, order)
    assert away.w == pytest.approx(expected.w, abs=1e-14)
    assert away.ell == pytest.approx(expected.ell, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("kind", METHODS)
def test_a_million_steps_do_not_drift(kind: str) -> None:
    """Weights and dual variables stay together while lam goes to and fro, so that no optimum is reached."""
    case = multiclass_case(30, n=20, n_labels=5, n_features=6)
    methods = METHODS[kind](0.05), METHODS[kind](0.2)
    order = random_order(case.problem, 10**6, seed=0).reshape(1000, 1000)
    state, moved = start(methods[0], case.problem), 0
    for k, some in enumerate(order):
        before = state.ell.copy()
        state = advance(methods[k % 2], state, case.problem, some)
        state.w[:] *= 4.0 if k % 2 else 0.25  # w = A alpha at the other lam, exactly
        moved += int(np.abs(state.ell - before).max() > 0.1)
    alpha = dual_variables(case, state.planes)
    assert moved == 1000
    assert min(block.min() for block in alpha) >= 0.0
    assert [block.sum() for block in alpha] == pytest.approx([1.0] * 20, abs=1e-12)
    assert_same_point(case, state, alpha, 0.05, 1e-9)


def test_pools_grow_under_way() -> None:
    """Enlarging the pools in the middle of a sweep changes no number."""
    case, method = chain_case(31, (4, 4, 4), 4), Pairwise(0.05)
    order = random_order(case.problem, 400, seed=1)
    small, large = start(method, case.problem), start(method, case.problem)
    grown = advance(method, small, case.problem, order)
    roomy = large._replace(planes=with_room(large.planes))
    assert advance(method, roomy, case.problem, order) is roomy
    assert len(small.planes.alpha) < len(grown.planes.alpha)
    assert len(small.planes.where) < len(grown.planes.where)
    assert (grown.w == roomy.w).all()
    assert (grown.ell == roomy.ell).all()
    for i in range(3):
        assert planes_of(grown.planes, i) == planes_of(roomy.planes, i)

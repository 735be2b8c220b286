"""The paper's bounds, with every constant in them computed by enumeration.

Notation of the paper: f = -dual, h = f - f*, g the duality gap, C_f the curvature of f and C_f^(x) the
sum of its curvatures over blocks. Expectations are means over many runs; the bounds are loose enough for
the error of a mean not to matter.
"""

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.solving import objective
from support import naive
from support.catalogue import Case, chain_case, multiclass_case
from support.naive import Array
from support.runs import RULES, batch_states, block_states, dual_of, gap_of, random_order

LAM = 0.1
N_STEPS = 60
N_RUNS = 100


class Setting(NamedTuple):
    """A problem with its optimal dual value and its curvatures."""

    case: Case
    optimum: float
    curvature: float
    product_curvature: float


@cache
def setting(name: str) -> Setting:
    """Return a small problem with n = 3, all of whose outputs can be paired."""
    case = chain_case(20, (1, 2, 2), 2) if name == "chain" else multiclass_case(20, n=3, n_labels=4)
    best = naive.optimum(case.data, LAM)
    assert best.primal - best.dual < 1e-9
    per_block = naive.block_curvatures(case.data, LAM)
    return Setting(case, best.dual, batch_curvature(case), float(per_block.sum()))


def batch_curvature(case: Case) -> float:
    """Return C_f = lam max ||A (x - y)||^2, over all pairs of corners of the product of simplices."""
    moves = [np.unique((psi - psi[:, None]).reshape(-1, psi.shape[1]), axis=0) for psi in case.data.psi]
    longest = max(float(np.sum(np.sum(pick, axis=0) ** 2)) for pick in product(*moves))
    return longest / (LAM * len(moves) ** 2)


@pytest.fixture(params=["chain", "multiclass"])
def given_setting(request: pytest.FixtureRequest) -> Setting:
    return setting(request.param)


def test_curvatures_are_bounded_by_the_longest_feature_difference(given_setting: Setting) -> None:
    """Lemmas A.1 and A.2: C_f <= 4 R^2 / lam, C_f^(x) <= 4 R^2 / (lam n)."""
    R, n = naive.radius(given_setting.case.data), len(given_setting.case.X)
    assert given_setting.curvature <= 4 * R**2 / LAM
    assert given_setting.product_curvature <= 4 * R**2 / (LAM * n)
    assert given_setting.product_curvature <= given_setting.curvature


@pytest.mark.parametrize("rule", RULES)
def test_batch_frank_wolfe_converges_as_theorem_1_says(given_setting: Setting, rule: str) -> None:
    """Theorem 1: h_k <= 2 C_f / (k + 2), and among K >= 1 iterates one has g <= 6 C_f / (K + 1)."""
    case, method = given_setting.case, FrankWolfe(LAM, RULES[rule])
    gaps: list[float] = []
    for k, state in enumerate(batch_states(case.problem, method, N_STEPS), start=1):
        h = given_setting.optimum - dual_of(case.problem, method, state)
        gaps.append(gap_of(case.problem, method, state))
        assert -1e-9 <= h <= 2 * given_setting.curvature / (k + 2)
        assert h <= gaps[-1] + 1e-9
        assert min(gaps) <= 6 * given_setting.curvature / (k + 1)


def block_runs(case: Case, rule: str) -> tuple[Array, Array]:
    """Return the dual and the gap of every iterate, the start included, of many runs."""
    method, duals, gaps = BlockFrankWolfe(LAM, RULES[rule]), [], []
    for seed in range(N_RUNS):
        order = random_order(case.problem, N_STEPS, seed)
        states = [start(method, case.problem)], block_states(case.problem, method, order)
        pairs = [
            (dual_of(case.problem, method, s), gap_of(case.problem, method, s)) for run in states for s in run
        ]
        duals.append([pair[0] for pair in pairs])
        gaps.append([pair[1] for pair in pairs])
    return np.array(duals), np.array(gaps)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_block_frank_wolfe_converges_as_theorem_2_says(given_setting: Setting, rule: str) -> None:
    """Theorem 2: E h_k <= 2n/(k + 2n) (C + h_0), and some iterate has E g <= 6n/(K + 1) (C + h_0)."""
    n, k = len(given_setting.case.X), np.arange(N_STEPS + 1)
    duals, gaps = block_runs(given_setting.case, rule)
    errors = given_setting.optimum - duals
    constant = given_setting.product_curvature + errors[0, 0]
    assert errors.min() >= -1e-9
    assert errors[0, 0] <= max(losses.max() for losses in given_setting.case.data.losses)
    assert (errors <= gaps + 1e-9).all()
    assert (errors.mean(axis=0) <= 2 * n / (k + 2 * n) * constant).all()
    assert (np.minimum.accumulate(gaps.mean(axis=0)) <= 6 * n / (k + 1) * constant).all()


@pytest.mark.slow
def test_line_search_forgets_its_start(given_setting: Setting) -> None:
    """Theorem C.4: after k_0 steps the bound of line search no longer holds h_0."""
    n, C = len(given_setting.case.X), given_setting.product_curvature
    errors = given_setting.optimum - block_runs(given_setting.case, "line_search")[0]
    warm = max(0, int(np.ceil(np.log(2 * errors[0, 0] / C) / -np.log(1 - 1 / n))))
    k = np.arange(warm, N_STEPS + 1)
    assert warm < N_STEPS
    assert (errors.mean(axis=0)[warm:] <= 2 * n * C / (k - warm + 2 * n)).all()


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_weighted_averages_converge_as_theorem_C_3_says(given_setting: Setting, rule: str) -> None:
    """Theorem C.3: the gap of the weighted average after K steps has E g <= 6n/(K + 1) (C + h_0)."""
    case, n = given_setting.case, len(given_setting.case.X)
    method = Averaged(BlockFrankWolfe(LAM, RULES[rule]))
    constant = given_setting.product_curvature + given_setting.optimum
    for n_steps in (1, 5, 20, N_STEPS):
        gaps = [averaged_gap(case, method, random_order(case.problem, n_steps, seed)) for seed in range(50)]
        assert np.mean(gaps) <= 6 * n / (n_steps + 1) * constant


def averaged_gap(case: Case, method: Averaged, order: Array) -> float:
    state = advance(method, start(method, case.problem), case.problem, order)
    answer = point(method, state, case.problem)
    return objective.primal(case.problem, answer.w, LAM) - objective.dual(answer, LAM)


@pytest.mark.parametrize("rule", RULES)
def test_one_step_improves_by_what_lemma_C_2_promises(given_setting: Setting, rule: str) -> None:
    """Lemma C.2, exactly: over the choice of the block, E f' <= f - gamma/n g + gamma^2/(2n) C_f^(x)."""
    case, n = given_setting.case, len(given_setting.case.X)
    method, order = BlockFrankWolfe(LAM, RULES[rule]), random_order(given_setting.case.problem, 12, seed=3)
    for k, state in enumerate(block_states(case.problem, method, order), start=1):
        dual, gap = dual_of(case.problem, method, state), gap_of(case.problem, method, state)
        after = [_dual_after(case, method, order[:k], i) for i in range(n)]
        gammas = [2 * n / (k + 2 * n)] if rule == "predefined" else np.linspace(0.0, 1.0, 11)
        for gamma in gammas:
            promised = gamma / n * gap - gamma**2 / (2 * n) * given_setting.product_curvature
            assert np.mean(after) >= dual + promised - 1e-12


def _dual_after(case: Case, method: Any, order: Array, i: int) -> float:
    *_, state = block_states(case.problem, method, [*order, i])
    return dual_of(case.problem, method, state)

"""Active sets with a budget of memory: planes are merged, and every bound stays true."""

import warnings
from typing import Any

import pytest

from maxmargin import Accelerated, Averaged, Away, Cached, Divided, Pairwise, solve
from maxmargin.methods.blocks import SIZE
from maxmargin.methods.planes import ENTRY_BYTES
from maxmargin.methods.protocol import dual_weights, point, start
from maxmargin.methods.sweep import advance
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes
from support import naive
from support.bitwise_runs import assert_same_bits
from support.catalogue import Case, chain_case
from support.runs import random_order

LAM, BUDGET = 0.3, 20 * ENTRY_BYTES
_PAIRWISE = Pairwise(LAM, budget=BUDGET)
KINDS = {"pairwise": Pairwise, "away": Away}


@pytest.fixture
def case() -> Case:
    return chain_case(1, (6, 1, 5, 6, 4), 2, loss="hamming")


def ran(problem: Any, method: Any, passes: int = 30) -> Any:
    return solve(problem, method, tol=0.0, max_passes=passes, check_every=5, random_state=0)


@pytest.mark.filterwarnings("ignore:.*budget")
@pytest.mark.parametrize("kind", KINDS)
def test_sets_stay_within_their_budget_and_the_dual_point_is_theirs(case: Case, kind: str) -> None:
    method, dual = KINDS[kind](LAM, budget=BUDGET), 0.0
    state, size = start(method, case.problem), sizes(case.problem)
    n, most = size.examples, max(BUDGET // ENTRY_BYTES, size.statistics) + size.parts
    for seed in range(30):
        state = advance(method, state, case.problem, random_order(case.problem, n, seed))
        before, dual = dual, objective.dual(point(method, state, case.problem), LAM)
        assert dual >= before - 1e-12
        assert state.planes.entries[:, SIZE].max() <= most
        rebuilt = dual_weights(method, state, case.problem) / (LAM * n)
        assert state.w == pytest.approx(rebuilt, abs=1e-12)
    assert state.planes.merges[0] > 10


@pytest.mark.filterwarnings("ignore:.*budget")
@pytest.mark.parametrize(
    "method",
    [
        _PAIRWISE,
        Away(LAM, budget=BUDGET),
        Accelerated(_PAIRWISE),
        Accelerated(Divided(_PAIRWISE)),
        Cached(_PAIRWISE),
        Averaged(_PAIRWISE),
    ],
    ids=str,
)
def test_certificates_bracket_the_optimum(case: Case, method: Any) -> None:
    best, result = naive.optimum(case.data, LAM), ran(case.problem, method)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, LAM), abs=1e-9)
    assert result.gap <= 0.1 * result.primal


def test_a_budget_that_is_not_reached_changes_nothing(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, large = (ran(case.problem, Pairwise(LAM, budget=b), 10) for b in (1 << 22, 1 << 40))
    assert_same_bits(plain, large)


def test_one_warning_says_what_happened(case: Case) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ran(case.problem, Accelerated(Pairwise(LAM, budget=BUDGET)))
    (said,) = [str(warning.message) for warning in found]
    assert said.startswith(f"Pairwise: an active set took more than budget={BUDGET} bytes, so ")

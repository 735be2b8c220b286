"""The n-slack method: what its working sets hold, and how well the program over them is solved."""

import numpy as np
import pytest

from maxmargin import CuttingPlane, NSlackCuttingPlane, solve
from maxmargin.methods.n_slack import _SHARE
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from support import naive
from support.active_sets import dual_variables, planes_of
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.naive import Array, Enumerated
from support.runs import batch_states, gap_of

LAM = 0.05
CASES = {"chain": lambda: chain_case(1), "multiclass": lambda: multiclass_case(1, n=6, n_labels=5)}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def held(case: Case, state: object) -> list[Array]:
    """Return which outputs are in the working set of each example."""
    planes = state.inner.planes._replace(alpha=np.ones_like(state.inner.planes.alpha))
    return [block > 0.0 for block in dual_variables(case, planes)]


def restricted(data: Enumerated, sets: list[Array]) -> Enumerated:
    """Return the problem of which only the outputs in the working sets are left."""
    outputs = [
        [y for y, is_in in zip(ys, s, strict=True) if is_in] for ys, s in zip(data.outputs, sets, strict=True)
    ]
    truths = [int(s[:t].sum()) for t, s in zip(data.truths, sets, strict=True)]
    losses = [L[s] for L, s in zip(data.losses, sets, strict=True)]
    return Enumerated(outputs, truths, losses, [psi[s] for psi, s in zip(data.psi, sets, strict=True)])


def test_violated_planes_are_added_and_none_is_dropped(case: Case) -> None:
    """At the weights of before, by more than a share of the duality gap of the pass before that."""
    method, before, gap, added = NSlackCuttingPlane(LAM), naive.truth_alpha(case.data), 0.0, 0
    w, sets = naive.weights_of(case.data, before, LAM), [block > 0.0 for block in before]
    for state in batch_states(case.problem, method, 12):
        found = held(case, state)
        for i, (now, was) in enumerate(zip(found, sets, strict=True)):
            margins = naive.margins(case.data, i, w)
            violation = margins.max() - margins[was].max()
            new = np.flatnonzero(now & ~was)
            assert not (was & ~now).any()
            assert len(new) == (violation > _SHARE * gap)
            assert margins[new] == pytest.approx(margins.max(), abs=1e-12)
            added += len(new)
        w_now, gap = flat(case.problem, state.inner.w), state.gap
        best = [naive.margins(case.data, i, w).max() for i in range(len(before))]
        means = [a @ naive.margins(case.data, i, w) for i, a in enumerate(before)]
        assert gap == pytest.approx(np.mean(best) - np.mean(means), abs=1e-12)
        w, sets, before = w_now, found, dual_variables(case, state.inner.planes)
    assert added > len(case.X)


def test_the_program_is_solved_to_a_share_of_the_gap(case: Case) -> None:
    """What a pass leaves of the program over its working sets is at most what the next sweep would find."""
    method, last = NSlackCuttingPlane(LAM), np.inf
    for state in batch_states(case.problem, method, 12):
        data = restricted(case.data, held(case, state))
        best = naive.optimum(data, LAM)
        answer = point(method, state, case.problem)
        dual = answer.ell - 0.5 * LAM * answer.norm2
        assert dual <= best.primal + 1e-9
        assert best.dual - dual <= _SHARE * state.gap + 1e-9
        last = best.dual - dual
    assert last < 1e-4


def test_weights_belong_to_the_dual_variables(case: Case) -> None:
    method = NSlackCuttingPlane(LAM)
    for state in batch_states(case.problem, method, 6):
        alpha = dual_variables(case, state.inner.planes)
        assert min(block.min() for block in alpha) >= 0.0
        assert [block.sum() for block in alpha] == pytest.approx([1.0] * len(alpha), abs=1e-13)
        assert flat(case.problem, state.inner.w) == pytest.approx(
            naive.weights_of(case.data, alpha, LAM), abs=1e-9
        )
        assert state.inner.ell.mean() == pytest.approx(naive.dual_loss(case.data, alpha), abs=1e-12)


def test_it_needs_fewer_passes_than_one_slack(case: Case) -> None:
    """One plane for each example instead of one for all: fewer passes, to the same optimum."""
    n_slack, one_slack = (
        solve(case.problem, method(0.01), tol=1e-6, check_every=1)
        for method in (NSlackCuttingPlane, CuttingPlane)
    )
    assert n_slack.history.passes[-1] < one_slack.history.passes[-1]
    assert n_slack.primal == pytest.approx(one_slack.primal, abs=2e-6)


def test_pools_grow_under_way() -> None:
    """More planes than the pools have room for at first."""
    case, method = chain_case(31, (4, 4, 4), 4), NSlackCuttingPlane(0.003)
    state = start(method, case.problem)
    room = len(state.inner.planes.alpha), len(state.inner.planes.where)
    for _ in range(20):
        state = advance(method, state, case.problem, np.arange(3))
    assert len(state.inner.planes.alpha) > room[0]
    assert len(state.inner.planes.where) > room[1]
    assert max(len(planes_of(state.inner.planes, i)) for i in range(3)) > 4
    assert gap_of(case.problem, method, state) >= -1e-12

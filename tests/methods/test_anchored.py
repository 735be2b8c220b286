"""Long sequences in blocks that grow: certificates of the whole problem, and what joining must not change."""

from typing import Any

import numpy as np
import pytest

from maxmargin import Accelerated, Anchored, BlockFrankWolfe, Pairwise, solve
from maxmargin.methods.protocol import dual_weights, point, start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Kernelised, SignConstrained, SlackRescaled, Weighted, take
from maxmargin.runtime import limits
from maxmargin.solving import objective
from maxmargin.structures.kernel_functions import LinearKernel
from maxmargin.structures.problem import sizes
from support import naive
from support.bitwise_runs import assert_same_bits
from support.catalogue import Case, chain_case, multiclass_case
from support.runs import random_order

LAM = 0.05
LENGTHS = (6, 1, 5, 7, 4)
METHOD = Anchored(BlockFrankWolfe(LAM), 1)
FACTORS = np.array([1.0, 2.0, 0.5, 1.5, 3.0])


@pytest.fixture(params=[1, 2])
def case(request: pytest.FixtureRequest) -> Case:
    return chain_case(1, LENGTHS, 2, loss="hamming", order=request.param)


def ran(problem: Any, method: Any = METHOD, **options: Any) -> Any:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 12, "check_every": 2, "random_state": 3} | options
    )


@pytest.mark.long
def test_certificates_bracket_the_optimum_of_the_whole_problem(case: Case) -> None:
    best = naive.optimum(case.data, LAM)
    result = ran(case.problem, max_passes=80, check_every=4)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, LAM), abs=1e-9)
    assert len(result.stopped.state.anchors.examples) == len(LENGTHS)
    assert result.gap <= 0.15 * result.primal


def test_the_dual_never_decreases_and_joining_changes_nothing(case: Case) -> None:
    state, dual, joins, n = start(METHOD, case.problem), 0.0, 0, len(LENGTHS)
    for _ in range(10):
        blocks = len(state.anchors.examples)
        state = advance(METHOD, state, case.problem, random_order(case.problem, n, seed=blocks))
        before, dual = dual, objective.dual(point(METHOD, state, case.problem), LAM)
        assert dual >= before - 1e-12
        if len(state.anchors.examples) < blocks:
            joins += 1
            rebuilt = dual_weights(METHOD, state, case.problem) / (LAM * n)
            assert state.inner.w == pytest.approx(rebuilt, abs=1e-12)
    assert joins >= 2


def test_one_block_for_each_sequence_is_the_inner_method(case: Case) -> None:
    found = ran(case.problem, Anchored(BlockFrankWolfe(LAM), 100))
    assert_same_bits(found, ran(case.problem, BlockFrankWolfe(LAM)))


@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_the_clock_does_not_matter(case: Case, sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ran(case.problem, sampling=sampling)
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(limits, "PIECE_SECONDS", seconds)
        assert_same_bits(ran(case.problem, sampling=sampling), expected)


def test_weights_and_signs_can_wrap_blocks(case: Case) -> None:
    problem = SignConstrained(Weighted(case.problem, FACTORS), np.arange(4))
    plain = ran(problem, BlockFrankWolfe(LAM), max_passes=60, check_every=6)
    found = ran(problem, max_passes=60, check_every=6)
    assert found.dual <= plain.primal + 1e-9
    assert plain.dual <= found.primal + 1e-9
    assert found.gap <= 0.3 * found.primal
    assert found.weights[:4].min() >= 0.0


def test_a_run_goes_on_at_another_lam_and_with_more_sequences(case: Case) -> None:
    first = ran(take(case.problem, [0, 1, 2, 3]))
    best = naive.optimum(case.data, 2.0 * LAM)
    more = ran(case.problem, Anchored(BlockFrankWolfe(2.0 * LAM), 1), start=first, max_passes=40)
    assert (more.history.dual <= best.primal + 1e-9).all()
    assert (more.history.primal >= best.dual - 1e-9).all()
    assert more.history.dual[0] > 0.0
    assert more.gap <= 0.3 * more.primal


@pytest.mark.long
def test_acceleration_goes_around_it(case: Case) -> None:
    best = naive.optimum(case.data, LAM)
    result = ran(case.problem, Accelerated(METHOD), max_passes=30)
    assert result.dual <= best.primal + 1e-9
    assert result.primal >= best.dual - 1e-9


def test_passes_are_those_of_sequences(case: Case) -> None:
    result = ran(case.problem, max_passes=1)
    assert set(result.history.oracle_calls.tolist()) == {len(LENGTHS)}
    assert sizes(result.stopped.state.problem).examples > len(LENGTHS)


def test_blocks_are_joined_after_every_other_pass(case: Case) -> None:
    numbers, state = [], start(METHOD, case.problem)
    for _ in range(8):
        state = advance(METHOD, state, case.problem, np.arange(len(LENGTHS)))
        numbers.append(len(state.anchors.examples))
    assert numbers[0] > numbers[1] == numbers[2] > numbers[3]
    assert numbers[-1] == len(LENGTHS)


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (lambda: multiclass_case(0).problem, "MulticlassMap"),
        (lambda: SlackRescaled(chain_case(0, loss="hamming").problem), "SlackRescaledOracle"),
        (lambda: _kernelised(chain_case(0)), "KernelisedMap"),
    ],
)
def test_problems_without_blocks_are_refused(problem: Any, named: str) -> None:
    with pytest.raises(TypeError, match=rf"^Anchored: problem must be [^\n]* got one with a {named}\.$"):
        solve(problem(), METHOD)


def _kernelised(case: Case) -> Any:
    return Kernelised(case.problem, np.concatenate(case.X), LinearKernel())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Pairwise(LAM),), "inner must be BlockFrankWolfe, got Pairwise; its states .*"),
        ((METHOD,), "inner must be .*, got Anchored; it .*"),
        ((BlockFrankWolfe(LAM), 0), "length must be an int >= 1, got 0"),
        ((BlockFrankWolfe(LAM), 2.5), "length must be an int >= 1, got 2.5"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Anchored: {message}\.$"):
        Anchored(*arguments)

"""Ctrl-C while several threads move parts: the run ends with bounds that hold."""

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from maxmargin import Accelerated, BlockFrankWolfe, Divided, Pairwise, Status, solve
from maxmargin.methods import divided
from maxmargin.runtime.threads import n_threads
from support import naive
from support.catalogue import Case, multiclass_case

LAM = 0.05
METHODS = {
    "plain": BlockFrankWolfe(LAM),
    "divided": Divided(BlockFrankWolfe(LAM)),
    "accelerated": Accelerated(Divided(Pairwise(LAM))),
}


def assert_brackets(case: Case, result: Any) -> None:
    """Assert that the primal belongs to the weights, and that no weights have a primal below the dual."""
    assert result.status is Status.INTERRUPTED
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, LAM), abs=1e-9)
    better = solve(case.problem, Pairwise(LAM), max_passes=60, tol=0.0, random_state=0)
    assert result.dual <= naive.primal(case.data, better.weights, LAM) + 1e-12
    assert result.gap == result.primal - result.dual
    assert n_threads() == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_interrupt_with_two_threads_keeps_the_bounds(method: Any) -> None:
    case = multiclass_case(4, n=613, n_labels=4)

    def third(progress: Any) -> None:
        if progress.passes == 3:
            signal.raise_signal(signal.SIGINT)

    result = solve(case.problem, method, tol=0.0, callbacks=[third], random_state=0, n_jobs=2)
    assert_brackets(case, result)
    assert len(result.history) == 1
    assert result.dual > 0


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_an_interrupt_while_parts_synchronise_keeps_the_bounds(
    presses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One Ctrl-C stops the run after the current piece; two stop it at once, with the last certificate."""
    case, calls = multiclass_case(4, n=613, n_labels=4), SimpleNamespace(count=0)
    add_up = divided._add_up

    def press_and_sum(*args: Any) -> Any:
        calls.count += 1
        if calls.count == 60:
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        return add_up(*args)

    monkeypatch.setattr(divided, "_add_up", press_and_sum)
    result = solve(case.problem, METHODS["divided"], tol=0.0, check_every=1, random_state=0, n_jobs=2)
    assert_brackets(case, result)
    assert result.dual > 0
    assert calls.count < 10_000

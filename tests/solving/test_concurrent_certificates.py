"""Certificates that free threads make beside the next pass: same results, one pass later."""

import itertools
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    BrokenOracle,
    Checkpoint,
    Divided,
    FrankWolfe,
    Pairwise,
    Status,
    solve,
)
from maxmargin.problems import Multiclass
from maxmargin.runtime.limits import OutOfTime
from maxmargin.runtime.threads import Shared, n_threads, run_all, threads
from maxmargin.solving import objective
from support.catalogue import Case, chain_case, multiclass_case
from support.counting import Counting

LAM = 0.05
METHODS = {
    "accelerated": Accelerated(Pairwise(LAM)),
    "averaged": Averaged(BlockFrankWolfe(LAM), "weighted"),
    "divided": Divided(Pairwise(LAM), 2),
    "batch": FrankWolfe(LAM),
}
SECONDS = 2  # the place of these in a row of the history


@pytest.fixture(scope="module")
def case() -> Case:
    return chain_case(3, tuple(np.random.default_rng(0).integers(1, 4, 40).tolist()), 3)


def table(result: Any) -> list[tuple[float, ...]]:
    """Return the history without seconds."""
    return [(*row[:SECONDS], *row[SECONDS + 1 :]) for row in result.history.rows]


def assert_same(found: Any, expected: Any) -> None:
    assert table(found) == table(expected)
    assert (found.w == expected.w).all()
    assert (found.primal, found.dual, found.status) == (expected.primal, expected.dual, expected.status)


@pytest.mark.parametrize("limits", [{"tol": 0.05}, {"tol": 0.0, "max_passes": 5}], ids=["tol", "passes"])
@pytest.mark.parametrize("check_every", [1, 2])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_results_do_not_depend_on_free_threads(
    case: Case, method: Any, check_every: int, limits: dict[str, float]
) -> None:
    def ran(n_jobs: int) -> Any:
        settings = {"max_passes": 20, "check_every": check_every, "random_state": 0} | limits
        return solve(case.problem, method, n_jobs=n_jobs, **settings)

    expected = ran(1)
    assert len(expected.history) > 1
    assert_same(ran(3), expected)


def passes_and_certificates(case: Case, n_jobs: int, **limits: Any) -> list[tuple[float, float | None]]:
    """Return the passes at each call of a callback, and those of the last certificate that it was shown."""
    rows = list[tuple[float, float | None]]()

    def note(progress: Any) -> None:
        rows.append((progress.passes, None if progress.last is None else progress.last.passes))

    settings: dict[str, Any] = {"check_every": 1, "callbacks": [note], "random_state": 0}
    solve(case.problem, METHODS["accelerated"], n_jobs=n_jobs, **settings, **limits)
    return rows


def test_a_certificate_arrives_one_pass_later(case: Case) -> None:
    limits = {"tol": 0.0, "max_passes": 5}
    assert passes_and_certificates(case, 1, **limits) == [(k, k) for k in range(1, 6)]
    assert passes_and_certificates(case, 2, **limits) == [(1, None), (2, 1), (3, 2), (4, 3), (5, 4)]


def test_a_run_waits_for_the_certificate_with_which_it_may_end(case: Case) -> None:
    """It makes no pass beside a certificate that is the last if the gap falls by the same factor again."""
    settings: dict[str, Any] = {"tol": 0.0, "max_passes": 20, "check_every": 1, "random_state": 0}
    gaps = [row.gap for row in solve(case.problem, METHODS["accelerated"], **settings).history.rows]
    falls = [k for k in range(3, len(gaps)) if gaps[k] < min(gaps[:k])]
    foreseen = [k for k in falls if gaps[k - 1] * min(gaps[k - 1] / gaps[k - 2], 1.0) <= 1.1 * gaps[k]]
    surprises = sorted(set(falls) - set(foreseen))
    assert foreseen
    assert surprises
    assert passes_and_certificates(case, 2, tol=gaps[foreseen[0]])[-1] == (foreseen[0] + 1, foreseen[0] + 1)
    assert passes_and_certificates(case, 2, tol=gaps[surprises[0]])[-1] == (
        surprises[0] + 2,
        surprises[0] + 1,
    )


def test_no_thread_is_free_beside_parts_or_users_objects(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts need two threads, and users' objects are called from one."""
    monkeypatch.setattr(objective, "ConcurrentCertificate", None)
    settings: dict[str, Any] = {"tol": 0.0, "max_passes": 2, "check_every": 1, "n_jobs": 2}
    solve(case.problem, METHODS["divided"], **settings)
    solve(Counting(case.problem), METHODS["accelerated"], **settings)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_checkpoints_hold_all_certificates(case: Case, stop_after: int, tmp_path: Path) -> None:
    file, method = tmp_path / "run", METHODS["accelerated"]
    settings: dict[str, Any] = {"tol": 0.0, "check_every": 1, "random_state": 0}
    expected = solve(case.problem, method, max_passes=4, **settings)
    kept = Checkpoint(file, every=0.0)
    solve(case.problem, method, max_passes=stop_after, n_jobs=2, checkpoint=kept, **settings)
    assert_same(solve(case.problem, method, max_passes=4, start=file, **settings), expected)
    assert_same(solve(case.problem, method, max_passes=4, start=file, n_jobs=2, **settings), expected)


def test_a_broken_oracle_is_named() -> None:
    """An example whose hinge is not a number is found in another thread, too."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(4, size=30)
    X[7, 1] = np.nan
    problem = Multiclass.from_encoded(X, y, 4, loss=1.0 - np.eye(4))
    with threads(2):
        beside = objective.ConcurrentCertificate(BlockFrankWolfe(LAM), *_started(problem), False, 1)
        with pytest.raises(BrokenOracle, match=r"^solve: example 7 has"):
            beside.finish()


def _started(problem: Any) -> tuple[Any, Any]:
    """Return a state with weights, and the problem."""
    finite = multiclass_case(1, n=30, n_labels=4)
    state = solve(finite.problem, BlockFrankWolfe(LAM), max_passes=1, tol=0.0).stopped.state
    return state._replace(w=np.ones(12)), problem


def test_an_interrupt_leaves_no_thread(case: Case) -> None:
    def third(progress: Any) -> None:
        if progress.passes == 3:
            signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    settings: dict[str, Any] = {"tol": 0.0, "check_every": 1, "random_state": 0, "callbacks": [third]}
    result = solve(case.problem, METHODS["accelerated"], n_jobs=2, **settings)
    assert result.status is Status.INTERRUPTED
    assert [row.passes for row in result.history.rows] == [1, 2, 3]
    assert (threading.active_count(), n_threads()) == (before, 1)


def test_an_error_leaves_no_thread(case: Case) -> None:
    def fail(progress: Any) -> None:
        raise ZeroDivisionError("in a callback")

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match=r"^in a callback$"):
        solve(case.problem, METHODS["accelerated"], check_every=1, callbacks=[fail], n_jobs=2)
    assert (threading.active_count(), n_threads()) == (before, 1)


def test_a_certificate_out_of_time_is_left_out(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that cannot be finished is left out; those before it count."""
    finish, count = objective.ConcurrentCertificate.finish, itertools.count()

    def third_is_late(self: Any) -> Any:
        if next(count) == 2:
            self.abandon()
            raise OutOfTime
        return finish(self)

    monkeypatch.setattr(objective.ConcurrentCertificate, "finish", third_is_late)
    settings: dict[str, Any] = {"tol": 0.0, "check_every": 1, "random_state": 0, "max_passes": 5}
    found = solve(case.problem, METHODS["accelerated"], n_jobs=2, **settings)
    expected = solve(case.problem, METHODS["accelerated"], **settings)
    assert [row.passes for row in found.history.rows] == [1, 2, 4, 5]
    assert (found.history.rows[-1].dual, found.gap) == (expected.history.rows[-1].dual, expected.gap)


def test_work_for_which_no_thread_is_free_does_not_wait_for_one() -> None:
    """Work for which no thread is free does not wait for one."""
    go_on = threading.Event()
    with threads(2):
        beside = Shared(lambda part: (go_on.wait(10), part)[1], [7])
        beside.start(1)
        assert run_all(abs, [-1, -2, -3]) == [1, 2, 3]
        go_on.set()
        assert beside.finish() == [7]


def test_nothing_is_begun_after_an_error() -> None:
    taken = list[int]()

    def fail_at_two(part: int) -> None:
        taken.append(part)
        if part == 2:
            raise ZeroDivisionError(part)

    with pytest.raises(ZeroDivisionError, match=r"^2$"):
        Shared(fail_at_two, range(9)).finish()
    assert taken == [0, 1, 2]

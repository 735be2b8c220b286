"""Short versions of the long runs and of the sweeps of faults."""

from pathlib import Path

import pytest

import endurance
import fault_sweeps
import memory_limits
import process_sweeps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_weights_do_not_drift() -> None:
    assert endurance.drift(900, n=30) <= 1e-12


def test_sixteen_threads_at_once_agree() -> None:
    assert endurance.threads(16, max_iter=2)


def test_many_partial_fits() -> None:
    gap, kept = endurance.partial(8)
    assert gap < 1.0
    assert 0.0 < kept < 10**4


@pytest.mark.parametrize("fault", [*fault_sweeps.FAULTS, "terminate"])
def test_faults_leave_nothing_behind(fault: str, tmp_path: Path) -> None:
    """The first cases of each fault, of one stage each."""
    numbers = [k for k in range(60) if fault_sweeps.drawn(k)[1] == fault][:3]
    cases = [fault_sweeps.one_case(number, tmp_path) for number in numbers]
    assert [case.get("wrong") for case in cases] == [None] * 3


@pytest.mark.long
def test_each_allocation_may_fail(tmp_path: Path) -> None:
    found = fault_sweeps.at_each_allocation("certificates", tmp_path)
    assert 0 < found["failed"] <= found["allocations"]


def test_sweeps_go_on_where_they_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def one_case(number: int, folder: Path) -> dict[str, object]:
        seen.append(number)
        return {"number": number, "came": "an answer"}

    monkeypatch.setattr(fault_sweeps, "one_case", one_case)
    assert fault_sweeps.main([str(tmp_path), "--cases", "3", "--seed", "7"]) == 0
    assert fault_sweeps.main([str(tmp_path), "--cases", "5", "--seed", "7"]) == 0
    assert seen == [7, 8, 9, 10, 11]


@pytest.mark.long
def test_memory_that_runs_out_for_real() -> None:
    """Of one stage without kernels, at few limits."""
    assert memory_limits.main(["encode", "--step", str(4 << 20)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", process_sweeps.FAULTS)
def test_faults_around_a_process_do_no_harm(fault: str, tmp_path: Path) -> None:
    assert "wrong" not in process_sweeps.one_case(0, tmp_path, fault)

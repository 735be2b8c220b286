"""A few cases of each fuzzer; ``tests/fuzz/run.py`` has the long runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import run
from fuzz.calls import calls
from fuzz.compiled import of_one_type
from fuzz.files import files
from fuzz.garbage import Draw
from fuzz.solves import solves

# No shrinking: a long run of the same fuzzer finds and shrinks more.
SHORT = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


@pytest.mark.parametrize(("fuzzer", "examples"), [(solves, 40), (calls, 50), (files, 60)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Custom. all weights are zero:UserWarning")
def test_a_few_cases_find_no_fault(
    fuzzer: Callable[[Draw], int], examples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Certificates hold; calls and files give an answer, or one line."""

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    count = 0

    @settings(SHORT, max_examples=examples)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        nonlocal count
        count += fuzzer(data.draw)

    check()
    assert count >= examples // 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 9])
def test_a_few_compiled_cases_find_no_fault(number: int) -> None:
    """Compiled runs of one type have valid certificates, and the bits of interpreted ones."""
    assert run.piece(of_one_type(number), number) >= 25


def test_long_runs_count_their_cases_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def even(draw: Draw) -> int:
        drawn.append(draw(st.integers(0, 10**6)))
        return 2

    monkeypatch.setitem(run.FUZZERS, "solves", even)
    state = tmp_path / "state"
    arguments = ["solves", "--state", str(state), "--cases"]
    assert run.main([*arguments, "150"]) == 0
    first = len(drawn)
    assert run.main([*arguments, "150"]) == 0
    assert len(drawn) == first >= 75
    assert run.main([*arguments, "250"]) == 0
    assert len(set(drawn)) > 75


def test_long_runs_note_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def odd(draw: Draw) -> int:
        value = draw(st.integers(0, 100))
        assert value < 50, f"{value} is too large"
        return 1

    monkeypatch.setitem(run.FUZZERS, "files", odd)
    state = tmp_path / "state"
    assert run.main(["files", "--state", str(state), "--cases", "1", "--minutes", "0.002"]) == 1
    assert "50 is too large" in state.read_text()  # the smallest
    assert "0 cases in " in capsys.readouterr().out

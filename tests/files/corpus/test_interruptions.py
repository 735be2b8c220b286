"""An encoding that is interrupted anywhere goes on and ends with the same files; no half of one opens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kill_encodings
from maxmargin import FileError, encode_files, open_corpus
from maxmargin.files import corpus
from maxmargin.files.corpus import reading, writing
from maxmargin.files.corpus import writing as finishing

TEXT = "".join(f"A\tw={k}\tcommon\nB\tv={k % 4}:0.5\n\n" for k in range(12))


class Stopped(BaseException):
    """Stands for Ctrl-C."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_BYTES", 60)
    monkeypatch.setattr(writing, "_PATIENCE", 0.0)


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def stopping_after(calls: int, module: Any, name: str) -> Iterator[None]:
    """Stop at a call of a function, before or in the middle of what it does."""
    with pytest.MonkeyPatch.context() as patch:
        function, left = getattr(module, name), [calls]

        def stop(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return function(*arguments, **options)

        patch.setattr(module, name, stop)
        yield


STAGES = [
    (writing.CorpusWriter, "append"),
    (writing.CorpusWriter, "note"),
    (writing.CorpusWriter, "_append_values"),
    (finishing.Growing, "append"),
    (finishing.Growing, "sync"),
    (writing, "write_atomically"),
    (finishing, "_number_labels"),
    (finishing, "_digests"),
    (corpus, "write_atomically"),
    (writing.CorpusWriter, "_remove"),
]


@pytest.mark.parametrize("min_count", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize(("module", "name"), STAGES, ids=lambda stage: getattr(stage, "__name__", stage))
def test_interruptions_at_every_stage_leave_the_same_files(
    tmp_path: Path, module: Any, name: str, min_count: int
) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_text(TEXT)
    expected = contents(Path(encode_files(files, tmp_path / "whole", min_count=min_count).path))
    for calls in (0, 1, 2, *range(3, 60, 3)):
        out, is_stopped = tmp_path / f"out{calls}", False
        for _ in stopping_after(calls, module, name):
            try:
                encode_files(files, out, min_count=min_count)
            except Stopped:
                is_stopped = True
        if not is_stopped:
            break
        if not (out / "manifest.json").exists():
            with pytest.raises(FileError, match="an encoding that was interrupted"):
                open_corpus(out)
        found = encode_files(files, out, min_count=min_count)
        assert contents(out) == expected
        assert len(found.X) == 24
    assert calls


def test_reading_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text(TEXT)
    for _ in stopping_after(3, writing.CorpusWriter, "append"):
        with pytest.raises(Stopped):
            encode_files(tmp_path / "data", tmp_path / "out")
    seen = []
    append = writing.CorpusWriter.append
    monkeypatch.setattr(
        writing.CorpusWriter, "append", lambda self, X, y: (seen.append(X), append(self, X, y))[1]
    )
    encode_files(tmp_path / "data", tmp_path / "out")
    assert 0 < len(seen) < 5


def test_other_files_begin_again(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    for _ in stopping_after(3, writing.CorpusWriter, "append"):
        with pytest.raises(Stopped):
            encode_files(tmp_path / "data", tmp_path / "out")
    (tmp_path / "data").write_text("A\tx=1\nB\ty=2\n")
    assert encode_files(tmp_path / "data", tmp_path / "out").X[:] == [[["x=1"], ["y=2"]]]


def test_a_file_that_was_cut_begins_again(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    expected = contents(Path(encode_files(tmp_path / "data", tmp_path / "whole").path))
    for _ in stopping_after(3, writing.CorpusWriter, "append"):
        with pytest.raises(Stopped):
            encode_files(tmp_path / "data", tmp_path / "out")
    (tmp_path / "out" / "columns").write_bytes(b"")
    encode_files(tmp_path / "data", tmp_path / "out")
    assert contents(tmp_path / "out") == expected


def test_a_file_must_not_change_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_text(TEXT)
    append = writing.CorpusWriter.append

    def change(self: Any, X: Any, y: Any) -> None:
        append(self, X, y)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(writing.CorpusWriter, "append", change)
    with pytest.raises(ValueError, match="data has changed while it was read; encode again"):
        encode_files(path, tmp_path / "out")


def test_two_processes_do_not_write_the_same_directory(tmp_path: Path) -> None:
    recipe = corpus.Recipe("attributes", {})
    message = "out is being written by another process"
    with writing.CorpusWriter(tmp_path / "out", recipe), pytest.raises(ValueError, match=message):
        writing.CorpusWriter(tmp_path / "out", recipe)


KILLED = """
import sys, time
from maxmargin import encode_files
from maxmargin.files.corpus import reading, writing
reading._BYTES, writing._PATIENCE = 60, 0.0
append = writing.CorpusWriter.append
def slow(self, X, y):
    append(self, X, y)
    time.sleep(0.02)
writing.CorpusWriter.append = slow
print("begun", flush=True)
encode_files(sys.argv[1], sys.argv[2], verbose=0)
"""


def test_a_killed_encoding_goes_on(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    expected = contents(Path(encode_files(tmp_path / "data", tmp_path / "whole").path))
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "data"), str(tmp_path / "out")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 60
        while not (tmp_path / "out" / "journal.json").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    with pytest.raises(FileError, match="an encoding that was interrupted"):
        open_corpus(tmp_path / "out")
    encode_files(tmp_path / "data", tmp_path / "out")
    assert contents(tmp_path / "out") == expected


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_kills_at_random_moments_leave_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few of those of ``tests/kill_encodings.py``, which sets the sizes of blocks itself."""
    monkeypatch.setattr(reading, "_TOKENS", reading._TOKENS)
    done, faults = kill_encodings.faults(tmp_path, kills=3, seed=5)
    assert done >= 3
    assert not faults

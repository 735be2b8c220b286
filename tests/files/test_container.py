"""Files of arrays and a header: what is written is read back, and what is not such a file gets one line."""

import json
import os
import signal
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from maxmargin.files import container
from maxmargin.files.atomic import write_atomically
from maxmargin.files.container import CHECKPOINT, MODEL, FileError, read, write
from support.damaged_files import parts, whole

ARRAYS = {"w": np.arange(6.0).reshape(2, 3), "names": np.frombuffer(b"abc", dtype=np.uint8)}
HEADER = {"a": [1, 2.5, None, True, "é"]}
TYPES = [bool, *(np.dtype(f"{k}{b}") for k in "iu" for b in (1, 2, 4, 8)), np.float32, np.float64]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FLOAT = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
EIGHT = bytes(8)


def envelope(**changes):
    return json.dumps({"kind": "model", "version": 1, "header": {}} | changes)


def raw(path, header, body=b"", length=None):
    """Write a safetensors file by the words of its specification: length, JSON, bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body)
    return path


def described(text=None, **arrays):
    return {"__metadata__": {"maxmargin": envelope() if text is None else text}} | arrays


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.dictionaries(
        st.text(max_size=5).filter(lambda n: n != "__metadata__"),
        st.sampled_from(TYPES).flatmap(
            lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
        ),
        max_size=3,
    ),
    st.dictionaries(st.text(), PLAIN, max_size=3),
)
def test_what_is_written_is_read(tmp_path, arrays, header):
    path = tmp_path / "file"
    write(path, MODEL, arrays, header)
    found = read(path, MODEL)
    assert found.header == header
    assert found.version == 1
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes()


def test_any_reader_of_safetensors_reads_the_arrays(tmp_path):
    write(tmp_path / "file", MODEL, ARRAYS | {"t": ARRAYS["w"].T}, HEADER)
    found = load_file(tmp_path / "file")
    np.testing.assert_array_equal(found["w"], ARRAYS["w"])
    np.testing.assert_array_equal(found["t"], ARRAYS["w"].T)  # not contiguous
    assert found["names"].tobytes() == b"abc"


@pytest.mark.parametrize(
    ("said", "header", "body"),
    [
        ("another program", {}, b""),
        ("another program", {"__metadata__": {"format": "pt"}}, b""),
        ("one of kind 'checkpoint'", described(envelope(kind="checkpoint")), b""),
        ("a later version of maxmargin; install", described(envelope(version=2)), b""),
        ("got 0", described(envelope(version=0)), b""),
        ("got True", described(envelope(version=True)), b""),
        ("got '1'", described(envelope(version="1")), b""),
        ("got ['kind', 'version', 'header', 'mor", described(envelope(more=1)), b""),
        ("got ['kind', 'version', 'header']", described(envelope(header=[])), b""),
        ("expected JSON", described("{"), b""),
        ("got [1]", described("[1]"), b""),
        ("occurs twice", described('{"kind": 1, "kind": 1}'), b""),
        ("the number 'NaN'", described(envelope(version=float("nan"))), b""),
        ("the number '1e999'", described('{"version": 1e999}'), b""),
        ("expected JSON", described('{"version": ' + "9" * 5000 + "}"), b""),
        ("recursion", described("[" * 100_000), b""),
        ("whole safetensors", b"[" * 1000, b""),
        ("whole safetensors", described(a=FLOAT, b=FLOAT), EIGHT),  # overlap
        ("whole safetensors", described(a=FLOAT), EIGHT[:-1]),
        ("whole safetensors", described(a=FLOAT), EIGHT + b"x"),
        ("whole safetensors", described(a=FLOAT | {"shape": [2**62, 4]}), EIGHT),
        ("whole safetensors", described(a=FLOAT | {"shape": [-1]}), EIGHT),
        (
            "got [0, 9223372036854775807]",
            described(a=FLOAT | {"shape": [0, 2**63 - 1], "data_offsets": [0, 0]}),
            b"",
        ),
        ("got [1, 1, 1", described(a=FLOAT | {"shape": [1] * 100}), EIGHT),
        ("got 'BF16'", described(a=FLOAT | {"dtype": "BF16", "shape": [4]}), EIGHT),
        ("got others", described(a=FLOAT | {"dtype": "BOOL", "shape": [8]}), b"\2" * 8),
        ("1048577 bytes", b" " * (2**20 + 1), b""),
    ],
)
def test_other_files_get_one_line(tmp_path, said, header, body):
    path = raw(tmp_path / "file", header, body)
    with pytest.raises(FileError) as error:
        read(path, MODEL)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{path}: expected ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**40, 2**63, 2**64 - 1])
def test_lengths_that_are_not_those_of_the_file(tmp_path, length):
    with pytest.raises(FileError, match="expected a whole safetensors file"):
        read(raw(tmp_path / "file", described(a=FLOAT), EIGHT, length), MODEL)


def test_every_other_byte_is_refused(tmp_path):
    path = tmp_path / "file"
    write(path, CHECKPOINT, ARRAYS, HEADER)
    content = path.read_bytes()
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        with pytest.raises(FileError):
            read(path, CHECKPOINT)


def test_a_file_of_an_earlier_version_has_no_checksum(tmp_path):
    path = tmp_path / "file"
    write(path, CHECKPOINT, ARRAYS, HEADER)
    path.write_bytes(whole(*parts(path.read_bytes())))
    assert b"crc32" not in path.read_bytes()
    assert read(path, CHECKPOINT).header == HEADER


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "file"
    write(path, CHECKPOINT, ARRAYS, HEADER)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FileError, match="expected a whole safetensors file"):
            read(path, CHECKPOINT)


def test_no_file_is_opened_that_is_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", MODEL)
    with pytest.raises(FileError, match="got a directory"):
        read(tmp_path, MODEL)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="got a directory or a device"):
        read(tmp_path / "pipe", MODEL)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(TypeError, match="'o' has dtype object"):
        write(path, MODEL, {"o": np.array([None])}, {})
    with pytest.raises(ValueError, match="JSON"):
        write(path, MODEL, {}, {"a": float("inf")})
    with pytest.raises(ValueError, match="at most 1048576 bytes"):
        write(path, MODEL, {}, {"a": "x" * 2**20})
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_without_room_for_its_copies_a_file_is_not_begun(tmp_path, monkeypatch):
    """safetensors ends the process where it runs out of memory."""
    path = tmp_path / "file"
    write(path, MODEL, ARRAYS, HEADER)
    monkeypatch.setattr(container, "_COPIES", 1 << 50)
    with pytest.raises(MemoryError):
        write(path, MODEL, {}, {})
    assert read(path, MODEL).header == HEADER
    assert os.listdir(tmp_path) == ["file"]


def test_replacing_keeps_links_and_gives_the_permissions_of_new_files(tmp_path):
    (tmp_path / "plain").touch()
    target, link = tmp_path / "target", tmp_path / "link"
    write_atomically(target, b"old")
    link.symlink_to(target)
    write_atomically(os.fspath(link), b"new")
    assert target.read_bytes() == b"new"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path, monkeypatch):
    target, left = tmp_path / "file", tmp_path / ".file.0123456789abcdef.part"
    left.write_bytes(b"unfinished")
    other = tmp_path / ".other.0123456789abcdef.part"
    other.write_bytes(b"of another file")

    def write_meanwhile(stream):
        """Another process writes and ends while this one syncs its file."""
        sync(stream)
        if not written:
            written.append(True)
            write_atomically(target, b"meanwhile")

    written, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", write_meanwhile)
    write_atomically(target, b"content")
    assert target.read_bytes() == b"content"
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "file"]


KILLED = """
import os, signal, sys
from maxmargin.files.atomic import write_atomically

os.fsync = lambda stream: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], b"new")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_process_that_is_killed_while_it_saves_leaves_the_old_file_until_the_next_save(tmp_path):
    target = tmp_path / "file"
    write(target, MODEL, ARRAYS, HEADER)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(target)], timeout=60)
        assert done.returncode == -signal.SIGKILL
    assert read(target, MODEL).header == HEADER
    assert len(list(tmp_path.glob(".file.*.part"))) == 2
    write(target, MODEL, ARRAYS, {})
    assert read(target, MODEL).header == {}
    assert os.listdir(tmp_path) == ["file"]

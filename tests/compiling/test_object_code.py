"""Compiled code that runs without Numba and NumPy."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba import types

import maxmargin
import maxmargin.cli
from maxmargin.compiling.interpreting import interpreted
from maxmargin.compiling.object_code import (
    Array,
    Buffer,
    ObjectCode,
    Store,
    _unpacked,
    _version_of_numba,
    loaded,
)
from maxmargin.tagging.loops import ARGUMENTS, Loops, ready_loops
from maxmargin.tagging.making import KERNELS, NotAlone, emitted, interpreted_loops, made_code
from maxmargin.tagging.tagger import Tagger, read_chain

# The sum of the ints in an array and an int, in LLVM's language, with the arguments that Numba would make.
SUM = """
define i32 @_ZN1fE(ptr %retptr, ptr %excinfo, ptr %a, ptr %b, i64 %c, i64 %d, ptr %e, i64 %f, i64 %g, i64 %h)
{
  %x = load i64, ptr %e
  %place = getelementptr i64, ptr %e, i64 1
  %y = load i64, ptr %place
  %z = add i64 %x, %y
  %s = add i64 %z, %h
  store i64 %s, ptr %retptr
  ret i32 0
}
""".replace("\n{", " {")
WRAPPER = """
define ptr @_ZN7cpython1fE(ptr %self) {
  %x = call ptr @PyNumber_Long(ptr %self)
  ret ptr %x
}
declare ptr @PyNumber_Long(ptr)
"""
SIGNATURE = (types.Array(types.int64, 1, "C"), types.int64)


def test_code_is_called_with_arrays_and_ints():
    symbol, content = emitted(SUM + WRAPPER, SIGNATURE)
    functions = loaded(ObjectCode({"f": symbol}, [content]), {"f": (Array("i8"), None)})
    assert functions["f"](Buffer((ctypes.c_int64 * 2)(3, 4), (2,)), 5) == 12


def test_code_that_needs_others_is_refused():
    outside = (
        SUM.replace("  ret i32 0", "  %o = call i64 @outside(i64 %z)\n  ret i32 0")
        + "declare i64 @outside(i64)\n"
    )
    with pytest.raises(NotAlone, match="outside"):
        emitted(outside, SIGNATURE)
    with pytest.raises(NotAlone, match="words"):
        emitted(SUM, (types.int64,))
    with pytest.raises(NotAlone, match="one function"):
        emitted(WRAPPER, SIGNATURE)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return Store("some")


CODE = ObjectCode({"f": "g"}, [b"one\n", b"", b"two"])


def test_code_is_kept_on_disk(store):
    assert store.read() is None
    store.write(CODE)
    assert store.read() == CODE


def test_code_of_other_sources_or_of_another_compiler_is_not_read(store, monkeypatch):
    store.write(CODE)
    for changed in (
        ("maxmargin.compiling.object_code.sources", lambda: [("loops.py", b"")]),
        ("maxmargin.compiling.object_code._version_of_numba", lambda: "0.61.3"),
        ("llvmlite.__version__", "0.44.1"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*changed)
            assert Store("some").read() is None
    for setting in ("NUMBA_OPT", "NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME"):
        with monkeypatch.context() as patched:
            patched.setenv(setting, "1")
            assert Store("some").read() is None
    assert Store("some").read() == CODE


def test_the_version_of_numba_is_known_without_importing_it(monkeypatch):
    assert _version_of_numba() == numba.__version__
    monkeypatch.setattr("maxmargin.compiling.object_code.find_spec", lambda name: None)
    assert _version_of_numba() == numba.__version__


def damaged(content: bytes) -> Iterator[bytes]:
    """Files that are cut anywhere, have another byte anywhere, or have only zeros from some byte on."""
    for k in range(len(content)):
        yield content[:k]
        yield content[:k] + bytes(len(content) - k)
        yield bytes(k)
        for other in range(1, 256):
            yield content[:k] + bytes([content[k] ^ other]) + content[k + 1 :]
    yield content + b"\0"


def test_every_damaged_file_is_found_and_written_anew(store):
    store.write(CODE)
    file = store.directory() / store.file
    content = file.read_bytes()
    assert _unpacked(content) == CODE
    assert all(_unpacked(changed) is None for changed in damaged(content) if changed != content)
    for changed in (b"", b"\0\0\0\0", content[:-1]):
        file.write_bytes(changed)
        assert store.read() is None
        store.write(CODE)
        assert store.read() == CODE


def test_loops_of_a_damaged_file_are_compiled_anew(model, tmp_path, monkeypatch):
    """The loops are interpreted here: what is compiled and loaded is counted."""
    made = []

    def make() -> ObjectCode:
        made.append(CODE)
        return CODE

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("maxmargin.tagging.loops.SWITCH", SimpleNamespace(on=False))
    monkeypatch.setattr("maxmargin.tagging.making.made_code", make)
    monkeypatch.setattr("maxmargin.tagging.loops.loaded", lambda code, arguments: interpreted_loops())
    for _ in range(2):
        assert ready_loops() is not None
    assert len(made) == 1
    (file,) = (tmp_path / "cache" / "maxmargin").glob("tagger-*")
    file.write_bytes(b"\0\0\0\0")
    for _ in range(2):
        assert ready_loops() is not None
    assert len(made) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_code_that_others_could_have_written_is_not_loaded(store):
    store.write(ObjectCode({"f": "g"}, [b"code"]))
    (store.directory() / store.file).chmod(0o666)
    assert store.read() is None


def test_old_code_is_removed(store):
    for number in range(6):
        old = store.directory() / f"some-{number}"
        old.write_bytes(b"")
        os.utime(old, (number, number))
    store.write(ObjectCode({}, []))
    assert sorted(path.name for path in store.directory().iterdir()) == sorted(
        ["some-3", "some-4", "some-5", store.file]
    )


def test_every_loop_has_a_type():
    assert KERNELS.keys() == ARGUMENTS.keys()


DATA = "A\tw=a\tw=b\n\tw\\:c\n\n" + "B\tw=b\tw=b\tlonger than eight\n" * 3


def saved_model(path: Path) -> None:
    names = ["w=a", "w=b", "w:c", "longer than eight", *map(str, range(20))]
    X, y = [[[name] for name in names]], [["A", "B", "C"] * (len(names) // 3)]
    model = maxmargin.ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0).fit(X, y)
    rng = np.random.default_rng(1)
    grid = model._w.reshape(-1, 4)
    grid[:4, :3], grid[-5:, :3] = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    model.save(path, notes={"task": "Attributes", "settings": {}})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    saved_model(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_compiled_loops_tag_like_interpreted_ones(tmp_path, monkeypatch):
    with interpreted():
        saved_model(tmp_path / "model")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    code, chain = made_code(), read_chain(str(tmp_path / "model"))
    assert code is not None
    assert chain is not None
    found = Tagger(chain, Loops(**loaded(code, ARGUMENTS))).tag(DATA.encode())
    with interpreted():
        assert found == Tagger(chain, Loops(**interpreted_loops())).tag(DATA.encode())
    Store("tagger").write(code)
    (tmp_path / "data").write_text(DATA)
    # Neither NumPy nor Numba can be imported there.
    program = (
        "import sys; sys.modules.update(numpy=None, numba=None); from maxmargin.cli import main; "
        f"sys.exit(main(['tag', {str(tmp_path / 'model')!r}, {str(tmp_path / 'data')!r}, '--quiet']))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found is not None
    assert said.stdout == found.text


def test_without_code_the_estimator_tags(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("maxmargin.tagging.tagger.ready_loops", lambda: None)
    (tmp_path / "data").write_text(DATA)
    assert maxmargin.cli.main(["tag", str(model), str(tmp_path / "data"), "--quiet"]) == 0
    found = Tagger(read_chain(str(model)), Loops(**interpreted_loops())).tag(DATA.encode())
    assert capsys.readouterr().out == found.text

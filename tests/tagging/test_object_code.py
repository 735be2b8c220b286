"""Compiled code that runs without Numba and NumPy."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types

import maxmargin
import maxmargin.cli
from maxmargin.compiling.ahead import NotAlone, emitted
from maxmargin.compiling.interpreting import interpreted
from maxmargin.compiling.object_code import Array, Buffer, ObjectCode, Store, loaded
from maxmargin.tagging.arguments import ARGUMENTS, SOURCES
from maxmargin.tagging.interpreted import interpreted_loops
from maxmargin.tagging.kernels import KERNELS
from maxmargin.tagging.loops import Loops
from maxmargin.tagging.making import made_code
from maxmargin.tagging.model import read_chain
from maxmargin.tagging.tagger import Tagger

ROOT = Path(maxmargin.__file__).parent
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
    return Store("some", ["loops.py"])


def test_code_is_kept_on_disk(store):
    assert store.read() is None
    code = ObjectCode({"f": "g"}, [b"one\n", b"", b"two"])
    store.write(code)
    assert store.read() == code
    assert Store("some", ["loops.py", "arrays.py"]).read() is None  # of other sources


def test_damaged_code_is_not_loaded(store):
    store.write(ObjectCode({"f": "g"}, [b"code"]))
    file = store.directory() / store.file
    content = file.read_bytes()
    for changed in (content[:-1], content[:3], b"", content[:-1] + b"x"):
        file.write_bytes(changed)
        assert store.read() is None
    file.write_bytes(content)
    assert store.read() is not None


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


def test_sources_are_all_that_loops_are_compiled_from():
    assert KERNELS.keys() == ARGUMENTS.keys()
    needed = {"tagging/table.py", "tagging/lines.py"}
    program = "import sys; from maxmargin.tagging import kernels; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    compiled = {
        f"{name.partition('.')[2].replace('.', '/')}.py"
        for name in said.stdout.split()
        if name.startswith("maxmargin.") and ".compiling import helper" in source_of(name)
    }
    assert needed <= compiled <= set(SOURCES)


def source_of(module: str) -> str:
    path = ROOT.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()


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
    Store("tagger", SOURCES).write(code)
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

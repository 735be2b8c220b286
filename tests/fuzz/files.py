"""Files from strangers, and command lines: an answer, or one line; nothing is run, little memory taken."""

import contextlib
import gzip
import io
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fuzz.garbage import Draw
from fuzz.outcomes import Refused, outcome
from fuzz.tagging import tagging
from fuzz.texts import COMMANDS, FORMATS, PIECES, TEXTS
from maxmargin import Accelerated, Checkpoint, Pairwise, cli, solve
from maxmargin.files.attributes import read_attributes
from maxmargin.files.columns import read_columns, read_links
from maxmargin.files.conllu import read_conllu
from maxmargin.files.detection import detect
from maxmargin.files.sources import Source
from maxmargin.files.svmlight import read_queries, read_svmlight
from maxmargin.files.templates import parse_template
from maxmargin.problems import Multiclass
from maxmargin.structures.problem import AnyProblem
from support.damaged_files import FILES, SAMPLES, parts, whole

# Times the size of the file, and what any call takes: headers of JSON, buffers, modules that are imported.
_TIMES, _BASE = 60, 24 << 20
_EDITS = [-1, 0, 2, 2**31, 2**63 - 1, 2**64, 10**400, None, True, 0.5, 1e308, "", "x" * 300, [], {}, [[1]]]


@contextlib.contextmanager
def little_memory(size: int) -> Iterator[None]:
    """Raise if the block allocates much more than a file of this size."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= _BASE + _TIMES * size, f"{peak} bytes for a file of {size}"


def damaged(draw: Draw, content: bytes) -> bytes:
    """Draw some damage of bytes: flipped, cut, repeated, swapped, replaced."""
    what = draw(st.sampled_from(["flip", "cut", "repeat", "swap", "fill", "insert"]))
    a, b = sorted(draw(st.integers(0, len(content))) for _ in range(2))
    if what == "flip" and content:
        at = min(a, len(content) - 1)
        return content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
    if what == "fill":
        return content[:a] + draw(st.sampled_from([b"\0", b"\xff", b"9", b" "])) * (b - a) + content[b:]
    inserted = draw(st.sampled_from(PIECES))
    return {
        "flip": content,
        "cut": content[:a],
        "repeat": content[:b] + content[a:],
        "swap": content[:a] + content[b:] + content[a:b],
        "insert": content[:a] + inserted + content[a:],
    }[what]


def _shapes(value: Any) -> list[Any]:
    """Return other shapes of as many entries, for a shape."""
    if not isinstance(value, list) or not all(type(side) is int for side in value):
        return []
    return [[1, *value], [*value, 1], [-1, *(-side for side in value)], value[::-1], value[1:]] * 3


def edited(draw: Draw, content: bytes) -> bytes:
    """Draw another value somewhere in the header of a model or a checkpoint."""
    outer, inner, body = parts(content)
    place = draw(st.sampled_from([outer, inner]))
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 3)) == 0:
            place[key] = draw(st.sampled_from([*_EDITS, *_shapes(place[key])]))
            break
        place = place[key]
    return whole(outer, inner, body)


def _model(draw: Draw, folder: Path) -> None:
    """A damaged model predicts, or there is one line."""
    from maxmargin import load

    name = draw(st.sampled_from(sorted(FILES)))
    change = draw(st.sampled_from([damaged, edited]))
    file, sample = folder / "model", SAMPLES[name]
    file.write_bytes(change(draw, FILES[name]))
    with little_memory(file.stat().st_size):
        found = outcome(load, file, **sample.functions)
    if not isinstance(found, Refused):
        outcome(found.predict, sample.X)


_METHOD = Accelerated(Pairwise(0.1))
_OPTIONS = {"tol": 0.0, "check_every": 1, "random_state": 0}


@cache
def _stored() -> tuple[AnyProblem, bytes]:
    """Return a problem, and the checkpoint of two passes."""
    problem = Multiclass.from_arrays([[0.0, 1.0], [1.0, 0.5], [2.0, 1.0], [-1.0, 1.0]], [0, 1, 2, 0])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run"
        solve(problem, _METHOD, max_passes=2, checkpoint=Checkpoint(file), **_OPTIONS)
        return problem, file.read_bytes()


def _checkpoint(draw: Draw, folder: Path) -> None:
    """A checkpoint that is cut, or of another header, is refused or continued.

    The arrays of a checkpoint are one's own: kernels follow the indices in them.
    """
    problem, content = _stored()
    if draw(st.booleans()):
        changed = content[: draw(st.integers(0, len(content) - 1))]
    else:
        changed = edited(draw, content)
    file = folder / "run"
    file.write_bytes(changed)
    with little_memory(len(changed)):
        outcome(solve, problem, _METHOD, max_passes=3, start=file, **_OPTIONS)


def _read_all(reader: Callable[[Source], Iterator[Any]], file: Path) -> int:
    with Source(file) as source:
        return sum(1 for _ in reader(source))


_READERS: dict[str, Callable[[Source], Any]] = {
    "columns": read_columns,
    "attributes": read_attributes,
    "svmlight": read_svmlight,
    "svmhmm": read_queries,
    "conllu": read_conllu,
    "links": read_links,
    "detect": lambda source: iter([detect(source)]),
}


def _text(draw: Draw) -> bytes:
    """Draw a text of a format, damaged; or pieces of all; compressed or not."""
    if draw(st.integers(0, 3)):
        content = draw(st.sampled_from(sorted(TEXTS.values())))
        for _ in range(draw(st.integers(1, 3))):
            content = damaged(draw, content)
    else:
        content = b"".join(draw(st.lists(st.sampled_from(PIECES), max_size=14)))
    if draw(st.integers(0, 9)) == 0:
        content = gzip.compress(content)
        content = damaged(draw, content) if draw(st.booleans()) else content
    return content


def _data(draw: Draw, folder: Path) -> None:
    """A data file is read, or there is one line."""
    reader = _READERS[draw(st.sampled_from(sorted(_READERS)))]
    file = folder / "data"
    file.write_bytes(_text(draw))
    with little_memory(file.stat().st_size):
        outcome(_read_all, reader, file)


def _template(draw: Draw, folder: Path) -> None:
    """A template is read and used, or there is one line."""
    content = _text(draw) if draw(st.booleans()) else damaged(draw, TEXTS["template"])
    text = content.decode("utf-8", errors="replace")
    with little_memory(len(content)):
        found = outcome(parse_template, text)
        if not isinstance(found, Refused) and found.n_columns <= 2:  # callers compare it with their data
            outcome(found.features, [["the", "DT"], ["dog", "NN"]])
            outcome(found.pair_features, [["the", "DT"], ["dog", "NN"]])


def _command(draw: Draw, folder: Path) -> None:
    """A command line ends with exit code 0, or with one line and exit code 1 or 2."""
    (folder / "data").write_bytes(_text(draw))
    (folder / "good").write_bytes(TEXTS[draw(st.sampled_from(FORMATS))])
    pairs = b"U%x[0,0]\nB\nB:%x[-1,0]%x[0,0]\n"
    templates = [TEXTS["template"], pairs, b"U%x[9999999999,0]\n", b"B\n", b""]
    (folder / "template").write_bytes(draw(st.sampled_from(templates)))
    (folder / "stored").write_bytes(draw(st.sampled_from(sorted(FILES.values()))))
    given = draw(st.sampled_from(COMMANDS)).split()
    if draw(st.booleans()):
        more = draw(st.sampled_from(["--json", "-q", "", "--set", "é", "-1", "data"]))
        given.insert(draw(st.integers(0, len(given))), more)
    code, out, err = run_command(given, folder)
    assert code in (0, 1, 2), f"exit code {code}"
    assert "Traceback" not in err, err
    if code:
        last = err.rstrip("\n").splitlines()[-1:]
        assert last, f"no word: {given}"
        assert last[0].startswith("maxmargin"), err
    elif "--json" in given and out and not {"--help", "--version"} & set(given):
        json.loads(out)


def run_command(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """Run a command in a folder, in this process."""
    out, err, before = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = outcome(cli.main, arguments)
            except SystemExit as left:
                code = left.code or 0
    finally:
        os.chdir(before)
    out.flush()
    assert isinstance(code, int), code
    return code, out.buffer.getvalue().decode("utf-8"), err.getvalue()  # type: ignore[attr-defined]


_KINDS = (
    (_model,) * 4 + (_checkpoint,) * 2 + (_data,) * 6 + (_template,) * 2 + (_command,) * 3 + (tagging,) * 3
)


def files(draw: Draw) -> int:
    """Read a file; return one."""
    with tempfile.TemporaryDirectory() as folder:
        draw(st.sampled_from(_KINDS))(draw, Path(folder))
    return 1

"""Tagging without the estimator: the same labels as `ChainSVC` and as enumeration, interpreted."""

import gzip
import io
import itertools
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxmargin import ChainSVC, cli, load
from maxmargin.files.attributes import read_attributes
from maxmargin.files.sealed import FileError
from maxmargin.files.sources import Source
from maxmargin.tagging import tagger as tagging
from maxmargin.tagging.lines import _sort, _sort_few
from maxmargin.tagging.tagger import Tagger, open_tagger, read_chain
from support.damaged_files import parts, resealed, whole

NOTES = {"task": "Attributes", "settings": {}}
NAMES = ["w=a", "w=bc", "t:x", "back\\slash", "fünf", "eightchr", "eightchr+more", "sixteen=letters!"]
LABELS = ["A", "B", "Ü"]


def escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(":", "\\:")


def model_with(weights: NDArray[np.float64], **parameters: object) -> ChainSVC:
    """A model whose weights are set by hand, of many features that have none."""
    names = [*NAMES, *(f"no{k}" for k in range(20))]
    model = ChainSVC(random_state=0, max_iter=1, verbose=0, **parameters)
    with pytest.warns(UserWarning, match=".*"):
        model.fit([[[name] for name in names]], [[LABELS[k % 3] for k in range(len(names))]])
    # Features, of which the last have no weights, then the first label, the last one and pairs; one column
    # of four is a pad.
    grid = np.zeros((len(names) + 2 + 3, 4))
    grid[: len(NAMES), :3], grid[len(names) :, :3] = weights[:-5], weights[-5:]
    model._w = grid.ravel()
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with many ties: its weights are small integers."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("models") / "model"
    model_with(rng.integers(-2, 3, (len(NAMES) + 5, 3)).astype(np.float64)).save(path, notes=NOTES)
    return path


def opened(path: Path) -> Tagger:
    found = open_tagger(str(path), ["Attributes"])
    assert found is not None
    return found.tagger


estimator = cache(load)  # of paths whose files do not change


@pytest.fixture(scope="module")
def tagger(saved: Path) -> Tagger:
    """One tagger for many files: none leaves anything behind."""
    return opened(saved)


def by_estimator(path: Path, file: Path) -> str:
    model: object = estimator(path)
    with Source(file) as source:
        found = [labels for X, _, _ in read_attributes(source, labelled=False) for labels in model.predict(X)]  # type: ignore[attr-defined]
    return "".join("".join(f"{label}\n" for label in labels) + "\n" for labels in found)


TOKENS = st.lists(st.sampled_from([*NAMES, "no3", "unknown", "eightch", "", "w=a"]), max_size=6)
FILES = st.lists(
    st.lists(st.tuples(st.sampled_from(["A", "", "x:y"]), TOKENS), min_size=1, max_size=5), max_size=4
)


def text_of(sequences: list[list[tuple[str, list[str]]]], end: str) -> str:
    """Sequences as an attribute file, without the end of its last line."""
    blocks = [
        end.join("\t".join([label, *map(escaped, names)]) or "A" for label, names in tokens)
        for tokens in sequences
    ]
    return (2 * end).join(blocks)


@settings(max_examples=15)
@given(sequences=FILES, end=st.sampled_from(["\n", "\r\n"]), extra=st.sampled_from(["", "\n", "\n\n"]))
def test_labels_are_those_of_the_estimator(saved, tagger, tmp_path_factory, sequences, end, extra):
    file = tmp_path_factory.mktemp("data") / "file"
    text = text_of(sequences, end) + extra
    file.write_bytes(text.encode())
    found = tagger.tag(text.encode())
    assert found is not None
    assert found.text == by_estimator(saved, file)
    assert found.sequences == len(sequences)
    assert found.tokens == sum(map(len, sequences))


@settings(max_examples=12)
@given(sequence=st.lists(TOKENS, min_size=1, max_size=4))
def test_labellings_have_the_largest_score(saved, tagger, sequence):
    model = estimator(saved)
    names, weights = {n: k for k, n in enumerate(model.feature_names_)}, model.coef_
    unary = np.zeros((len(sequence), 3))
    for t, token in enumerate(sequence):
        unary[t] = sum((weights[:, names[n]] for n in token if n in names), np.zeros(3))
    unary[0] += model.start_
    unary[-1] += model.end_

    def score(y: tuple[int, ...]) -> float:
        pairs = sum(model.transitions_[a, b] for a, b in itertools.pairwise(y))
        return float(sum(unary[t, k] for t, k in enumerate(y)) + pairs)

    text = "".join("\t".join(["A", *map(escaped, token)]) + "\n" for token in sequence)
    found = tagger.tag(text.encode())
    assert found is not None
    y = tuple(model.classes_.tolist().index(label) for label in found.text.split())
    best = max(map(score, itertools.product(range(3), repeat=len(sequence))))
    assert score(y) == best  # sums of small integers are exact


def test_real_weights_give_the_same_labels_to_the_last_bit(tmp_path):
    # Sums of these depend on their order: 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1.
    weights = np.zeros((len(NAMES) + 5, 3))
    weights[:3, 0], weights[3, 1] = (0.1, 0.2, 0.3), (0.1 + 0.2) + 0.3
    assert weights[3, 1] != (0.3 + 0.2) + 0.1
    model_with(weights).save(tmp_path / "model", notes=NOTES)
    (tmp_path / "data").write_text("A\tt\\:x\tw=bc\tback\\\\slash\tw=a\n")
    found = opened(tmp_path / "model").tag((tmp_path / "data").read_bytes())
    assert found is not None
    assert found.text == by_estimator(tmp_path / "model", tmp_path / "data") == "A\n\n"


def test_work_space_grows(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(tagging, "_LINE", 8)
    monkeypatch.setattr(tagging, "_TOKENS", 1)
    text = ("A\tw=bc\tw=a\tw=a\tsixteen=letters!\teightchr\n" * 5 + "\n") * 2
    (tmp_path / "data").write_text(text)
    found = opened(saved).tag(text.encode())
    assert found is not None
    assert found.text == by_estimator(saved, tmp_path / "data")
    monkeypatch.setattr(tagging, "_LONGEST_LINE", 16)
    assert opened(saved).tag(text.encode()) is None


@pytest.mark.parametrize(
    "line", [b"A\tw:2", b"@weight:2\ta", b"A\tw\0", b"A\1\tw", b"A\t\xff", b"A\\\\\t\\\\:", b"A\tw\xc3"]
)
def test_what_is_not_simple_is_left_to_the_estimator(tagger, line):
    assert tagger.tag(line + b"\n") is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 19, 64, 65, 200, 1000])
def test_numbers_are_sorted(count):
    numbers = np.random.default_rng(count).permutation(5 * count)[:count]
    if count <= 64:
        few = np.zeros(count, dtype=np.int64)
        _sort_few(numbers.copy(), count, few)
        assert few.tolist() == sorted(numbers)
    _sort(numbers, count)
    assert numbers.tolist() == sorted(numbers)


@pytest.mark.parametrize(
    "parameters", [{"order": 2}, {"forbidden": [(a, a) for a in "ABC"]}, {"kernel": "rbf"}]
)
def test_other_models_are_left_to_the_estimator(tmp_path, parameters):
    X, y = [[["a"], ["b"], ["c"]]] * 2, [["A", "C", "B"]] * 2
    model = ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0, **parameters).fit(X, y)
    model.save(tmp_path / "model", notes=NOTES)
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None


def test_models_of_other_data_are_left_to_the_estimator(saved, tmp_path):
    model = load(saved)
    for notes in (None, {"task": "Columns", "settings": {"template": None, "columns": 2}}, [1]):
        model.save(tmp_path / "model", notes=notes)
        assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None
    assert open_tagger(str(tmp_path), ["Attributes"]) is None
    with pytest.raises(FileNotFoundError):
        open_tagger(str(tmp_path / "none"), ["Attributes"])


def test_the_command_says_the_same_with_and_without_the_estimator(saved, tmp_path, capsys):
    file = tmp_path / "data"
    file.write_text("A\tw=a\tfünf\n\tw=bc\n\nB\tt\\:x\n")
    assert cli.main(["tag", str(saved), str(file)]) == 0
    fast = capsys.readouterr()
    assert cli.main(["tag", str(saved), str(file), "--jobs", "1"]) == 0
    slow = capsys.readouterr()
    assert fast.out == slow.out
    assert (
        fast.err.partition(" in ")[0] == slow.err.partition(" in ")[0] == "maxmargin: 2 sequences, 3 tokens"
    )


TEXT = "A\tw=a\tfünf\n\tw=bc\n\nB\tt\\:x\n"


@pytest.mark.parametrize(
    "stream",
    [
        lambda: io.TextIOWrapper(io.BytesIO(TEXT.encode())),
        lambda: io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode()))),
        lambda: io.StringIO(TEXT),
    ],
    ids=["without peek", "compressed", "text"],
)
def test_standard_input_may_be_any_stream(saved, tmp_path, capsys, monkeypatch, stream):
    (tmp_path / "data").write_text(TEXT, encoding="utf-8")
    given = stream()
    monkeypatch.setattr("sys.stdin", given)
    assert cli.main(["tag", str(saved), "-", "--quiet"]) == 0
    assert capsys.readouterr().out == by_estimator(saved, tmp_path / "data")
    assert not given.closed


def test_standard_input_that_is_closed_gets_one_line(saved, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert cli.main(["tag", str(saved), "-", "--quiet"]) == 1
    assert capsys.readouterr().err == "maxmargin: standard input: expected data, got a closed stream\n"


def test_blocks_that_are_not_simple_keep_their_line_numbers(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("maxmargin.cli.tag._BLOCK", 16)
    file = tmp_path / "data"
    file.write_text("A\tw=a\tw=bc\n\nB\tw=a:2\tw=bc\n\nB\tw=a\n\nB\tw:zwei\n")
    assert cli.main(["tag", str(saved), str(file), "--output", str(tmp_path / "out")]) == 1
    assert f"{file}:7: expected a finite number" in capsys.readouterr().err
    file.write_text(file.read_text().replace("w:zwei", "w:2"))
    assert cli.main(["tag", str(saved), str(file), "--output", str(tmp_path / "out"), "--quiet"]) == 0
    assert (tmp_path / "out").read_text() == by_estimator(saved, file)


def damaged(data: st.DataObject, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    del changed[data.draw(st.sampled_from([len(changed)] * 3 + [0, 7, 100, len(changed) - 1])) :]
    return bytes(changed)


@settings(max_examples=60)
@given(st.data())
def test_no_damaged_file_is_read_that_load_refuses(saved, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "model"
    path.write_bytes(damaged(data, saved.read_bytes()))
    if open_tagger(str(path), ["Attributes"]) is not None:
        load(path)


def test_a_file_with_another_byte_is_left_to_the_estimator(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "model"
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        assert read_chain(str(path)) is None
    path.write_bytes(content)
    assert read_chain(str(path)) is not None


def test_a_file_without_a_seal_is_left_to_the_estimator(saved, tmp_path, capsys):
    """Earlier versions wrote such files: they tag, but not at once."""
    (tmp_path / "model").write_bytes(whole(*parts(saved.read_bytes())))
    (tmp_path / "data").write_text("A\tw=a\n")
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None
    assert cli.main(["tag", str(tmp_path / "model"), str(tmp_path / "data"), "--quiet"]) == 0
    assert capsys.readouterr().out == by_estimator(saved, tmp_path / "data")


@settings(max_examples=60)
@given(st.data())
def test_damaged_files_that_are_sealed_again_are_refused_or_tag(saved, tmp_path_factory, data):
    """Interpreted, an index outside of an array would raise."""
    path = tmp_path_factory.mktemp("damaged") / "model"
    path.write_bytes(resealed(damaged(data, saved.read_bytes())))
    opened = open_tagger(str(path), ["Attributes"])
    if opened is not None:
        found = opened.tagger.tag(b"A\tw=a\tw=bc\nB\tt\\:x\tsixteen=letters!\n")
        assert found is not None
        assert found.tokens == 2


def changed(path: Path, **headers: object) -> bytes:
    """The file with other values in its header of arrays, sealed again."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    arrays = json.loads(content[8 : 8 + length])
    for name, value in headers.items():
        arrays[name.replace("__", ".")] |= value
    text = json.dumps(arrays).encode()
    return resealed(len(text).to_bytes(8, "little") + text + content[8 + length :])


@pytest.mark.parametrize(
    "headers",
    [
        {"weights__unary__counts": {"shape": [7]}},
        {"weights__unary__values": {"dtype": "F32"}},
        {"weights__unary__values": {"data_offsets": [0, 1 << 40]}},
        {"weights__unary__columns": {"data_offsets": [-8, 0]}},
        {"_encoder": {"shape": ["x"]}},
    ],
)
def test_arrays_that_are_elsewhere_are_refused(saved, tmp_path, headers):
    (tmp_path / "model").write_bytes(changed(saved, **headers))
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None


@pytest.mark.parametrize("name", ["_encoder", "classes_", "notes", "weights.unary.values"])
@pytest.mark.parametrize("sign", [1, -1])
def test_vectors_of_two_axes_are_refused(saved, tmp_path, name, sign):
    """Compiled code would take the second axis for another argument, and read anywhere."""
    content = saved.read_bytes()
    arrays = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    (length,) = arrays[name]["shape"]
    shape = [sign, sign * length]
    (tmp_path / "model").write_bytes(changed(saved, **{name.replace(".", "__"): {"shape": shape}}))
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None


def test_changed_headers_are_refused_for_their_change(saved, tmp_path):
    (tmp_path / "model").write_bytes(changed(saved))
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda outer, inner: inner.update(version=True),
        lambda outer, inner: inner.update(more=1),
        lambda outer, inner: inner["header"].update(extra=float("nan")),
        lambda outer, inner: outer["_encoder"].update(data_offsets=[0, outer["_encoder"]["shape"][0]]),
        lambda outer, inner: outer.update(more={"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}),
    ],
)
def test_headers_that_load_refuses_are_refused_by_both(saved, tmp_path, change):
    outer, inner, body = parts(saved.read_bytes())
    change(outer, inner)
    (tmp_path / "model").write_bytes(resealed(whole(outer, inner, body)))
    with pytest.raises(FileError):
        load(tmp_path / "model")
    assert open_tagger(str(tmp_path / "model"), ["Attributes"]) is None


def test_tagging_does_not_import_numpy():
    program = "import sys, maxmargin.cli.tag; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

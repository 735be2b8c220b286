"""Directories that are damaged in any file: one line of error, and no index is out of range."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maxmargin import FileError, encode_files, open_corpus
from maxmargin.files.corpus import DTYPES, opening, read_manifest, write_manifest


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "data").write_text("".join(f"A\tw={k}\tcommon\nB\tv={k % 4}:0.5\n\n" for k in range(9)))
    return Path(encode_files(folder / "data", folder / "out").path)


@pytest.fixture
def corpus(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "corpus"))


def refusal(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        open_corpus(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", [*DTYPES, "manifest.json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content + b"\0",
        lambda content: content[:9] + bytes([content[9] ^ 16]) + content[10:],
        lambda content: content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
        lambda content: content[::-1],
        None,
    ],
    ids=["cut", "half", "empty", "longer", "flipped", "flipped end", "reversed", "missing"],
)
def test_damage_of_each_file_is_refused(
    corpus: Path, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    content = (corpus / name).read_bytes()
    if damage is None:
        (corpus / name).unlink()
    else:
        (corpus / name).write_bytes(damage(content))
    assert refusal(corpus).startswith(str(corpus))


def test_swapped_files_are_refused(corpus: Path) -> None:
    for first in DTYPES:
        for second in DTYPES:
            if first < second:
                a, b = (corpus / first).read_bytes(), (corpus / second).read_bytes()
                (corpus / first).write_bytes(b)
                (corpus / second).write_bytes(a)
                assert refusal(corpus)
                (corpus / first).write_bytes(a)
                (corpus / second).write_bytes(b)
    assert len(open_corpus(corpus).X) == 9


def test_a_directory_in_the_place_of_a_file_is_refused(corpus: Path) -> None:
    (corpus / "columns").unlink()
    (corpus / "columns").mkdir()
    assert "columns: expected a file of 108 bytes, got none" in refusal(corpus)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.sampled_from([name for name in DTYPES if name != "names"]),
    place=st.integers(0, 10**6),
    byte=st.integers(0, 255),
)
def test_indices_of_large_files_are_checked_without_digests(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, name: str, place: int, byte: int
) -> None:
    corpus = Path(shutil.copytree(whole, tmp_path_factory.mktemp("damaged") / "corpus"))
    content = bytearray((corpus / name).read_bytes())
    content[place % len(content)] = byte
    (corpus / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "_SMALL", 0)
        patch.setattr(opening, "_CHUNK", 7)
        try:
            found = open_corpus(corpus)
        except FileError:
            return
        if bytes(content) != (whole / name).read_bytes():
            with pytest.raises(FileError, match="expected the bytes that were written"):
                open_corpus(corpus, verify=True)
    (rows, offsets), codes = found.X.tokens, found.y.codes
    assert 0 <= rows.indices.min() <= rows.indices.max() < rows.shape[1]
    assert np.isfinite(rows.data).all()
    assert rows.indptr[0] == offsets[0] == 0
    assert (rows.indptr[-1], offsets[-1]) == (len(rows.indices), len(codes))
    assert (np.diff(rows.indptr) >= 0).all()
    assert (np.diff(offsets) >= 0).all()
    assert 0 <= codes.min() <= codes.max() < len(found.y.classes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["B", "A"]}, "expected labels in order"),
        ({"classes": ["A", 1]}, "expected labels in order"),
        ({"classes": ["A"]}, "expected numbers of labels from 0 to 0"),
        ({"n_columns": 3}, "expected columns below 3"),
        ({"n_columns": 2**31}, "expected 1 to 2147483647 columns"),
        ({"n_columns": 99}, "expected 99 distinct names, got 14"),
    ],
)
def test_a_manifest_must_fit_the_arrays(corpus: Path, change: dict[str, object], message: str) -> None:
    write_manifest(corpus, read_manifest(corpus)._replace(**change))
    assert message in refusal(corpus)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected the manifest of a corpus, got []"),
        ('{"kind": "corpus", "version": 2}', "expected version 1 of the format, got 2"),
        ('{"kind": "corpus", "version": 1, "header": {}}', "expected a header with its digest"),
        ("{", "expected JSON"),
        ("\xff", "expected JSON"),
    ],
)
def test_other_manifests_are_refused(corpus: Path, text: str, message: str) -> None:
    (corpus / "manifest.json").write_text(text)
    assert message in refusal(corpus)


def test_an_array_of_a_later_version_is_refused(corpus: Path) -> None:
    found = read_manifest(corpus)
    write_manifest(corpus, found._replace(arrays=found.arrays | {"more": found.arrays["columns"]}))
    assert "expected the arrays columns, starts" in refusal(corpus)
    text = json.loads((corpus / "manifest.json").read_text())
    assert text["kind"] == "corpus"


def test_other_places_are_refused(tmp_path: Path) -> None:
    assert "nowhere: expected a directory with manifest.json" in refusal(tmp_path / "nowhere")
    assert "got an encoding that was interrupted" in refusal(tmp_path)

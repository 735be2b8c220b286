"""The OCR letters: both file formats, the folds, damaged files, and the real counts."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maxmargin.datasets import load_ocr

URL = "http://ai.stanford.edu/~btaskar/ocr/letter.data.gz"
WORDS = [("ab", 0), ("zebra", 1), ("a", 0), ("no", 9)]
N_LETTERS = sum(len(word) for word, _ in WORDS)
PIXELS = np.random.default_rng(0).integers(0, 2, size=(N_LETTERS, 128), dtype=np.uint8)


def official_lines() -> list[str]:
    """Write WORDS as the official file has them: a tab also after the last pixel."""
    lines: list[str] = []
    for number, (word, fold) in enumerate(WORDS, start=1):
        for position, letter in enumerate(word, start=1):
            row = len(lines)
            next_id = -1 if position == len(word) else row + 2
            head = [row + 1, letter, next_id, number, position, fold]
            lines.append("\t".join(map(str, [*head, *PIXELS[row]])) + "\t\n")
    return lines


def official(lines: list[str]) -> bytes:
    return gzip.compress("".join(lines).encode())


def write_npz(path: Path, **changes: Any) -> None:
    arrays: dict[str, Any] = {
        "pixels": PIXELS,
        "labels": np.array([ord(c) - ord("a") for w, _ in WORDS for c in w], dtype=np.uint8),
        "offsets": np.array([0, 2, 7, 8, 10]),
        "fold": np.array([fold for _, fold in WORDS], dtype=np.int8),
    }
    np.savez_compressed(path, **{k: v for k, v in (arrays | changes).items() if v is not None})


def read_words(labels: list[NDArray[np.int64]]) -> list[str]:
    return ["".join(chr(ord("a") + code) for code in word) for word in labels]


def test_words_of_the_official_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "letter.data.gz").write_bytes(official(official_lines()))
    X_train, y_train, X_test, y_test = load_ocr(data_home=tmp_path)
    assert read_words(y_train) == ["zebra", "no"]
    assert read_words(y_test) == ["ab", "a"]
    assert [x.shape for x in X_train + X_test] == [(5, 129), (2, 129), (2, 129), (1, 129)]
    np.testing.assert_array_equal(np.vstack(X_train)[:, :128], PIXELS[[2, 3, 4, 5, 6, 8, 9]])
    np.testing.assert_array_equal(np.vstack(X_test)[:, :128], PIXELS[[0, 1, 7]])
    assert all((x[:, 128] == 1).all() for x in X_train + X_test)


@pytest.mark.parametrize("fold", [0, 1, 9])
def test_both_formats_give_the_same_words(tmp_path: Path, fold: int) -> None:
    for name in ("official", "npz"):
        (tmp_path / name).mkdir()
    (tmp_path / "official" / "letter.data.gz").write_bytes(official(official_lines()))
    write_npz(tmp_path / "npz" / "ocr.npz")
    text, npz = (load_ocr(data_home=tmp_path / name, fold=fold) for name in ("official", "npz"))
    for words, same in ((text[0], npz[0]), (text[2], npz[2])):
        assert [x.dtype for x in words] == [x.dtype for x in same]
        assert all(np.array_equal(x, z) for x, z in zip(words, same, strict=True))
    assert read_words(text[1]) == read_words(npz[1])
    assert read_words(text[3]) == read_words(npz[3])


def test_words_are_contiguous_views_of_one_array(tmp_path: Path) -> None:
    write_npz(tmp_path / "ocr.npz")
    X_train, y_train, X_test, y_test = load_ocr(data_home=tmp_path)
    assert all(x.flags.c_contiguous and x.dtype == np.float64 for x in X_train + X_test)
    assert all(y.dtype == np.int64 for y in y_train + y_test)
    assert len({id(x.base) for x in X_train + X_test}) == 1


@pytest.mark.parametrize("fold", [5, -1, "0"])
def test_a_fold_that_is_not_there_is_refused(tmp_path: Path, fold: int) -> None:
    write_npz(tmp_path / "ocr.npz")
    with pytest.raises(ValueError, match=r"^load_ocr: fold must be one of \[0, 1, 9\]; got "):
        load_ocr(data_home=tmp_path, fold=fold)


def assert_damaged(path: Path, reason: str) -> None:
    with pytest.raises(OSError, match=reason) as caught:
        load_ocr(data_home=path.parent)
    message = str(caught.value)
    assert message.startswith(f"load_ocr: {path} is damaged or not the expected file (")
    assert "\n" not in message


def test_a_truncated_official_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.data.gz"
    path.write_bytes(official(official_lines())[:-20])
    assert_damaged(path, "ended before")


@pytest.mark.parametrize(
    ("line", "change", "reason"),
    [
        (3, lambda text: text.replace("\t0\t", "\t0\t0\t", 1), "line 4 is not 6 fields and 128"),
        (2, lambda text: "3\tb\n", "line 3 is not 6 fields and 128"),
        (1, lambda text: text.replace("-1", "last"), "invalid literal"),
        (0, lambda text: text.replace("a", "A"), "not a letter from a to z"),
        (0, lambda text: text[:-2] + "7\t\n", "line 1 is not 6 fields"),
        (0, lambda text: text[:-3] + "7\t\n", "rows of 128 0/1 pixels"),
        (9, lambda text: text.replace("-1", "11"), "does not end with the file"),
    ],
)
def test_a_malformed_official_file_is_refused(
    tmp_path: Path, line: int, change: Callable[[str], str], reason: str
) -> None:
    lines = official_lines()
    lines[line] = change(lines[line])
    path = tmp_path / "letter.data.gz"
    path.write_bytes(official(lines))
    assert_damaged(path, reason)


def test_an_empty_official_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.data.gz"
    path.write_bytes(gzip.compress(b""))
    assert_damaged(path, "it is empty")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fold": None}, "fold"),
        ({"offsets": np.array([0, 2, 7, 10])}, "does not end with the file"),
        ({"offsets": np.array([0, 7, 2, 8, 10])}, "does not end with the file"),
        ({"pixels": PIXELS[:, :64]}, "expected 10 rows of 128"),
        ({"labels": np.full(10, 26)}, "not a letter"),
    ],
)
def test_a_malformed_npz_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    write_npz(tmp_path / "ocr.npz", **changes)
    assert_damaged(tmp_path / "ocr.npz", reason)


@pytest.mark.parametrize("keep", [10, 300])
def test_a_truncated_npz_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "ocr.npz"
    write_npz(path)
    path.write_bytes(path.read_bytes()[:keep])
    assert_damaged(path, "zip")


def test_npz_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "ocr.npz"
    with path.open("wb") as stream:
        np.save(stream, PIXELS)
    assert_damaged(path, "context manager")
    path.write_bytes(b"<html>")
    assert_damaged(path, "pickle")


def test_without_a_file_the_error_says_where_to_get_it() -> None:
    with pytest.raises(FileNotFoundError, match=f"take it from {URL}, put it there"):
        load_ocr()


def test_real_letters_are_read(real_data: Path) -> None:
    X_train, y_train, X_test, y_test = load_ocr(data_home=real_data)
    assert (len(X_train), len(y_train), len(X_test), len(y_test)) == (6251, 6251, 626, 626)
    letters = np.concatenate(y_train + y_test)
    assert len(letters) == 52152 == sum(map(len, X_train)) + sum(map(len, X_test))
    assert set(letters) == set(range(26))
    pixels = np.vstack(X_train + X_test)
    assert set(np.unique(pixels)) == {0.0, 1.0}
    assert (pixels[:, 128] == 1).all()
    assert read_words(y_test)[0] == "ommanding"


def test_real_folds_are_each_tested_once(real_data: Path) -> None:
    sizes = [len(load_ocr(data_home=real_data, fold=fold)[2]) for fold in range(10)]
    assert sizes[0] == 626
    assert sum(sizes) == 6877

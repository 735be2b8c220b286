"""Files of SVM^light against scikit-learn's loader, and their faults."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from maxmargin.files.columns import read_links
from maxmargin.files.sources import Malformed, Source
from maxmargin.files.svmlight import Examples, one_label, read_queries, read_svmlight, sequences, with_columns

TEXT = "# a comment\n1 qid:1 1:0.5 3:1e-1 # the\n2 qid:1 2:-1\n\n1 qid:2 1:1\n3 qid:2 1:2\n2 qid:5 4:.5\n"


def read(path: Path, text: str, size: int | None = None) -> list[Examples]:
    path.write_text(text)
    with Source(path) as source:
        return list(read_svmlight(source, size=size))


def test_examples_are_those_of_scikit_learn(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", TEXT)
    X, y, queries = load_svmlight_file(BytesIO(TEXT.encode()), zero_based=True, query_id=True)
    assert np.array_equal(found.X.toarray(), X.toarray())
    assert [labels[0] for labels in found.y] == y.tolist()
    assert found.queries.tolist() == queries.tolist()


@pytest.mark.parametrize("size", [1, 40, None])
def test_queries_are_sequences_however_they_are_read(tmp_path: Path, size: int | None) -> None:
    (tmp_path / "data").write_text(TEXT)
    X, y = [], []
    with Source(tmp_path / "data") as source:
        for examples in read_queries(source, size=size):
            rows = with_columns(examples.X, 5)
            more, labels = sequences(rows, one_label(source, examples), examples.queries)
            X += [part.toarray().tolist() for part in more]
            y += labels
    assert y == [[1, 2], [1, 3], [2]]
    assert X[0] == [[0, 0.5, 0, 0.1, 0], [0, 0, -1.0, 0, 0]]
    assert X[2] == [[0, 0, 0, 0, 0.5]]


def test_sets_of_labels(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "1,3 1:1\n2 1:1\n 2:1\n")
    assert found.y == [(1.0, 3.0), (2.0,), ()]
    with (
        Source(tmp_path / "data") as source,
        pytest.raises(Malformed, match="one label of example 1, got 2; if"),
    ):
        one_label(source, found)


def test_unknown_columns_are_left_out(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "1 1:1 7:1\n")
    assert with_columns(found.X, 3).toarray().tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\nB-NP 1:1\n", "data:2: expected a label that is a whole number, got 'B-NP'"),
        ("1.5 1:1\n", "data:1: expected a label that is a whole number, got '1.5'"),
        ("1 1:1\n1 a:1\n", "data:2: expected number:value, got 'a:1'"),
        ("1 1:one\n", "data:1: expected number:value, got '1:one'"),
        ("1 1:1\n\n1 1:nan\n", "data:3: expected number:value, got '1:nan'"),
        ("1 1:1e999\n", "data:1: expected number:value, got '1:1e999'"),
        ("1 2:1 1:1\n", "data:1: expected feature numbers that increase"),
        ("1 99999999999:1\n", "data:1: expected feature numbers that increase, up to"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path / "data", text)
    assert message in str(caught.value)


def test_links_are_sure_or_possible(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("0-0 1-2 2?3\n\n3p1\n")
    with Source(tmp_path / "data") as source:
        found = list(read_links(source))
    assert [links.sure for links in found] == [{(0, 0), (1, 2)}, set(), set()]
    assert [links.possible for links in found] == [{(0, 0), (1, 2), (2, 3)}, set(), {(3, 1)}]
    (tmp_path / "data").write_text("0-0\n0:1\n")
    with (
        Source(tmp_path / "data") as source,
        pytest.raises(Malformed, match="data:2: expected links such as"),
    ):
        list(read_links(source))

"""Attribute files against the rules of CRFsuite's manual, and against a plain reader."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.encoding.table import number_fields
from maxmargin.files.attributes import Sequences, read_attributes
from maxmargin.files.parts import as_texts
from maxmargin.files.sources import Malformed, Source


def read(path: Path, content: str | bytes, **options: object) -> list[Sequences]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with Source(path) as source:
        return list(read_attributes(source, **options))  # type: ignore[arg-type]


def test_labels_and_attributes_are_read_between_blank_lines(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "\nB-NP\tw=An\t__BOS__\nI-NP\tw=A.P.\n\n\nO\n")
    assert found.y == [["B-NP", "I-NP"], ["O"]]
    assert found.X.listed() == [[["w=An", "__BOS__"], ["w=A.P."]], [[]]]


def test_values_and_escapes_are_read(tmp_path: Path) -> None:
    text = "A\tx:2.5\ty\ta\\:b\\\\:-1e-1\tx\nB\\:C\tx:1\ta\\:b\\\\\t\\n\n"
    (found,) = read(tmp_path / "data", text)
    assert found.y == [["A", "B:C"]]
    assert found.X.listed() == [[{"x": 3.5, "y": 1.0, "a:b\\": -0.1}, {"x": 1.0, "a:b\\": 1.0, "\\n": 1.0}]]
    rows = SequenceEncoder().fit_transform(found.X).rows.toarray()
    assert rows.tolist() == [[3.5, 1.0, -0.1, 0.0], [1.0, 0.0, 1.0, 1.0]]


def test_names_without_values_have_none(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "A\tw\\:1\tw\r\n\r\nB\tw\t\tw\t\r\n")
    assert found.X.values is None
    assert found.X.listed() == [[["w:1", "w"]], [["w", "w"]]]


def test_a_name_can_have_two_texts(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "A\t\\n\t\\\\n\tn\nB\t\\\\n\n")
    assert found.X.names == ["\\n", "n"]
    assert found.X.listed() == [[["\\n", "\\n", "n"], ["\\n"]]]


def test_blocks_end_where_sequences_do(tmp_path: Path) -> None:
    text = "A\tx\nB\ty\n\nA\tz\n\nB\tx:2\n"
    parts = read(tmp_path / "data", text, size=1)
    assert [part.y for part in parts] == [[["A", "B"]], [["A"]], [["B"]]]
    assert [part.X.listed() for part in parts] == [[[["x"], ["y"]]], [[["z"]]], [[{"x": 2.0}]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A\tx\n\nB\ty\n\tz\n", "data:4: expected a label before the first tab, got none"),
        (
            "A\tx\nB\tt=12:30h\n",
            "data:2: expected a finite number behind ':' (write '\\:' for a colon in a name), got",
        ),
        ("A\tx:\n", "data:1: expected a finite number behind ':'"),
        ("A\tx:nan\n", "data:1: expected a finite number behind ':'"),
        ("@weight:2\nA\tx\n", "data:1: expected a label: declarations such as @weight are not supported"),
        (b"A\tx\n\nA\t\xe9t\xe9\n", "data:3: expected text in UTF-8, got byte 0xe9"),
        ("A\tx\nA\t\0\n", "data:2: expected text, got a zero byte"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path / "data", content)
    assert message in str(caught.value)


def test_faults_of_later_blocks_have_their_line(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="data:5: expected a finite"):
        read(tmp_path / "data", "A\tx\n\nA\ty\n\nA\tz:z\n", size=1)


def test_labels_may_be_missing_where_they_are_not_needed(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "data", "\tx\n\ty\n", labelled=False)
    assert found.X.listed() == [[["x"], ["y"]]]


@given(
    st.lists(st.lists(st.text("ab", max_size=3), min_size=1, max_size=9), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
)
def test_fields_are_numbered_as_a_dict_does(lines: list[list[str]], end: str) -> None:
    fields = number_fields("".join("\t".join(line) + end for line in lines).encode())
    numbers: dict[str, int] = {}
    expected = [numbers.setdefault(field, len(numbers)) for line in lines for field in line]
    assert fields.codes.tolist() == expected
    assert fields.counts.tolist() == list(map(len, lines))
    assert as_texts(fields.names) == list(numbers)


def test_the_table_of_fields_grows() -> None:
    names = [f"{k:x}" for k in range(3000)]
    fields = number_fields(("\t".join(names) + "\n" + "\t".join(names) + "\n").encode())
    assert fields.codes.tolist() == 2 * list(range(3000))


@pytest.mark.parametrize("n", [63, 64, 65, 128])
def test_fields_fill_batches(n: int) -> None:
    text = "\t".join(f"{k % 50}\r" for k in range(n)) + "x\n"
    fields = number_fields(text.encode())
    assert fields.codes.tolist() == [*(k % 50 for k in range(n - 1)), 50]
    assert fields.counts.tolist() == [n]


def test_the_last_line_must_end() -> None:
    with pytest.raises(ValueError, match="must end with a line end"):
        number_fields(b"a\tb")

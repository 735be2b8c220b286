"""JSON lines: a sequence per line, and faults with file and line."""

from pathlib import Path

import pytest

from maxmargin.files.detection import detect
from maxmargin.files.json_lines import JsonSequence, read_json_lines
from maxmargin.files.sources import Malformed, Source


def read(path: Path, text: str, **options: bool) -> list[JsonSequence]:
    path.write_text(text)
    with Source(path) as source:
        return list(read_json_lines(source, **options))


def test_strings_and_values_are_read(tmp_path: Path) -> None:
    text = '\n{"tokens": [["a", "b"], []], "labels": ["X", "Y"], "id": 7}\n{"tokens": [], "labels": []}\n'
    assert read(tmp_path / "data", text) == [([["a", "b"], []], ["X", "Y"], 2), ([], [], 3)]
    text = '{"tokens": [{"a": 0.5, "b": "c", "d": true}], "labels": [3]}'
    assert read(tmp_path / "data", text) == [([{"a": 0.5, "b": "c", "d": True}], [3], 1)]
    text = '{"tokens": [{"a": {"b": {"c": 1, "d": ["e", "f"]}}, "g": []}], "labels": [3]}'
    assert read(tmp_path / "data", text) == [([{"a": {"b": {"c": 1, "d": ["e", "f"]}}, "g": []}], [3], 1)]


def test_labels_may_be_absent_where_they_are_predicted(tmp_path: Path) -> None:
    assert read(tmp_path / "data", '{"tokens": [["a"]]}', labelled=False) == [([["a"]], [], 1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected a JSON object, got Expecting property name"),
        ("[" * 100_000, "expected a JSON object"),
        ("[]", "expected an object with a list of \"tokens\", got '[]'"),
        ('{"tokens": [["a"]]}', 'expected "labels", a list of 1, one for each token, got None'),
        ('{"tokens": [["a"]], "labels": []}', 'expected "labels", a list of 1, one for each token, got []'),
        (
            '{"tokens": [["a"]], "labels": [1.5]}',
            "expected labels that are strings or whole numbers, got 1.5",
        ),
        ('{"tokens": [["a"]], "labels": [1]}', "expected labels that are strings, as those before, got 1"),
        ('{"tokens": [[1]], "labels": ["X"]}', "expected names that are strings, got 1"),
        (
            '{"tokens": [{"a": 1}], "labels": ["X"]}',
            "expected each token to be a list of strings, got {'a': 1}",
        ),
        ('{"tokens": ["a"], "labels": ["X"]}', "expected each token to be a list of strings, got 'a'"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path / "data", '{"tokens": [["a"]], "labels": ["X"]}\n' + line)
    text = str(caught.value)
    assert f"data:2: {message}" in text
    assert "\n" not in text


@pytest.mark.parametrize("value", ["null", "NaN", "1e999", "1" + "0" * 400])
@pytest.mark.parametrize("around", ["%s", '{"b": {"c": 1, "d": %s}}'])
def test_values_are_finite_numbers_or_strings(tmp_path: Path, value: str, around: str) -> None:
    with pytest.raises(Malformed, match="data:1: expected finite numbers or strings, got"):
        read(tmp_path / "data", f'{{"tokens": [{{"a": {around % value}}}], "labels": ["X"]}}')


@pytest.mark.parametrize("value", ["[1]", '["b", ["c"]]', '{"b": ["c", null]}'])
def test_lists_have_names_that_are_strings(tmp_path: Path, value: str) -> None:
    with pytest.raises(Malformed, match="data:1: expected names that are strings, got"):
        read(tmp_path / "data", f'{{"tokens": [{{"a": {value}}}], "labels": ["X"]}}')


def test_the_format_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "data").write_text('{"tokens": [["a"]], "labels": ["X"]}\n')
    with Source(tmp_path / "data") as source:
        assert detect(source).name == "json"

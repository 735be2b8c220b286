"""``maxmargin encode``, and ``train`` on what it writes, interpreted on tiny data."""

import json
from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin import cli

COLUMNS = "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\na DT B-NP\ncat NN I-NP\nsleeps VBZ B-VP\n\n"
JSON = (
    '{"tokens": [["the"], ["dog"]], "labels": ["D", "N"]}\n'
    '{"tokens": [["a"], ["cat"]], "labels": ["D", "N"]}\n'
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(COLUMNS)
    (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[0,1]\nB\n")
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--search",)])
def test_an_encoded_corpus_trains_the_model_of_its_files(
    files: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    assert cli.main(["encode", "data", "data", "-t", "template", "-o", "corpus", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sequences"], found["tokens"], found["features"], found["format"]) == (4, 12, 9, "columns")
    assert found["labels"] == ["B-NP", "B-VP", "I-NP"]
    assert cli.main(["train", "corpus", "-m", "model", "--quiet", *options]) == 0
    (files / "twice").write_text(COLUMNS * 2)
    assert cli.main(["train", "twice", "-m", "other", "-t", "template", "--quiet", *options]) == 0
    models = [maxmargin.load(files / name) for name in ("model", "other")]
    assert np.array_equal(models[0]._w, models[1]._w)
    capsys.readouterr()
    assert cli.main(["tag", "model", "data"]) == 0
    assert capsys.readouterr().out.startswith("the DT B-NP B-NP\n")


def test_json_lines_are_encoded_and_trained_on(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "lines").write_text(JSON)
    assert cli.main(["encode", "lines", "-o", "corpus"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("corpus: 2 sequences, 4 tokens, 4 features, 2 labels; ")
    for data in ("lines", "corpus"):
        assert cli.main(["train", data, "-m", "model", "-q", "-C", "10"]) == 0
        capsys.readouterr()
        assert cli.main(["tag", "model", "lines"]) == 0
        assert capsys.readouterr().out == "D\nN\n\nD\nN\n\n"
    assert cli.main(["evaluate", "model", "lines"]) == 0
    assert cli.main(["tag", "model", "lines", "-o", "tagged"]) == 0
    assert cli.main(["evaluate", "lines", "tagged"]) == 0
    assert "100.00% of 4 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("encode - -o out", "encode: files must be files, which can be read again", 1),
        ("encode bad -o out", "bad:2: expected 3 columns", 1),
        ("encode data -o template", "File exists", 1),
        ("encode data -o out --hash-bits 40", "hash_bits must be an int from 1 to 30, got 40", 1),
        ("encode data", "the following arguments are required: --output/-o", 2),
        ("train empty -m model", "expected a directory with manifest.json", 1),
        ("train corpus -m model --min-count 2", "corpus: expected no --template or --min-count", 1),
        ("train corpus -m model --estimator dependency", "--estimator: expected chain or segments", 1),
    ],
)
def test_faults_are_one_line_and_have_a_code(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str, code: int
) -> None:
    (files / "bad").write_text("the DT B-NP\ndog NN\n")
    (files / "empty").mkdir()
    assert cli.main(["encode", "data", "-o", "corpus", "--quiet"]) == 0
    capsys.readouterr()
    try:
        found = cli.main(arguments.split())
    except SystemExit as stop:
        found = int(stop.code or 0)
    error = capsys.readouterr().err
    assert message in error
    assert found == code
    assert len([line for line in error.splitlines() if not line.startswith("maxmargin: data")]) == 1

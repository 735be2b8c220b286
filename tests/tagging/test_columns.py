"""Tagging column files without the estimator, interpreted."""

from pathlib import Path

import pytest

from maxmargin import cli
from maxmargin.tagging.tagger import open_tagger

WORDS = ["the", "dog", "a:b", "back\\slash", "Ü", ".", *(f"word{k}" for k in range(20))]
LABELS = ["B-NP", "I-NP", "B-VP", "O"]
TRAIN = "-DOCSTART- X O\n\n" + "".join(
    f"{word} T{k % 3} {LABELS[k % 4]}\n" + "\n" * (k % 3 == 2) for k, word in enumerate(WORDS)
)
TEST = "-DOCSTART- X\n\nthe T0\na:b T9\nnew T1\n\n-DOCSTART- X\n\nback\\slash T1\n\nÜ T2\ndog T0\n"


@pytest.fixture(params=[None, "U00:%x[0,0]\nU01:%x[-1,1]/%x[0,1]\nB\n", "U00:%x[0,0]\tx\n"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "train").write_text(TRAIN)
    options = []
    if request.param is not None:
        (tmp_path / "template").write_text(request.param)
        options = ["--template", str(tmp_path / "template")]
    path = tmp_path / "model"
    assert cli.main(["train", str(tmp_path / "train"), "--model", str(path), "--quiet", *options]) == 0
    return path


def test_columns_are_tagged_as_by_the_estimator(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("maxmargin.cli.tag._TOKENS", 3)
    assert open_tagger(str(model), ["Columns"]) is not None
    (tmp_path / "test").write_text(TEST)
    capsys.readouterr()
    assert cli.main(["tag", str(model), str(tmp_path / "test")]) == 0
    fast = capsys.readouterr()
    assert cli.main(["tag", str(model), str(tmp_path / "test"), "--jobs", "1"]) == 0
    slow = capsys.readouterr()
    assert fast.out == slow.out
    assert fast.out.count("\n") == TEST.count("\n") + 1  # the last sentence gets its blank line
    assert (
        fast.err.partition(" in ")[0] == slow.err.partition(" in ")[0] == "maxmargin: 5 sentences, 6 tokens"
    )


def test_faults_name_file_and_line(model, tmp_path, capsys):
    (tmp_path / "test").write_text("the T0\n\ndog\n")
    assert cli.main(["tag", str(model), str(tmp_path / "test")]) == 1
    assert f"{tmp_path / 'test'}:3: expected 2 columns" in capsys.readouterr().err

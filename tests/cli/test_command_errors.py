"""Faults of files and arguments: one line, exit code 1 or 2, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import maxmargin
from maxmargin import cli

BYTES = (
    b"a|B-NP|1|2|0|_|:|\\|qid:1|1:1| |\t|\n|\n\n|\r\n|#|\0|\xff|\xc3\xa9|-DOCSTART-|1-2|,|\x1f\x8b|9999999999"
)
PIECES = st.sampled_from(BYTES.split(b"|"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("the DT B-NP\ndog NN I-NP\n\n")
    (tmp_path / "template").write_text("U00:%x[0,0]\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train nowhere -m model", "No such file or directory: 'nowhere'"),
        ("train data -m model -t nowhere", "No such file or directory: 'nowhere'"),
        ("train data -m model -t bad", "bad:2: expected %x[row,column] after each %"),
        ("train data -m model -t wide", "wide: expected columns below 2, as the data have 3"),
        ("train empty -m model", "empty: expected data, got no line that is not blank"),
        ("train one -m model", "template: expected columns below 0, as the data have 1"),
        (
            "train data -m model --estimator dependency",
            "--estimator: expected chain or segments for the format columns",
        ),
        ("train data -m model --format conllu", "data:1: expected 10 columns separated by tabs, got 1"),
        (
            "train data -m model --format svmlight",
            "data:1: expected a label that is a whole number, got 'the'",
        ),
        ("train rows -m model -t template", "--template: expected a column file, got the format svmlight"),
        ("train data -m model --loss zero", "The 'loss' parameter of ChainSVC must be"),
        ("train data -m model --set zzz=1", "maxmargin: ChainSVC: got the parameter 'zzz', expected one of"),
        ("train data -m model --set ordr=2", "ChainSVC: got the parameter 'ordr', expected order, perhaps"),
        ("train picture -m model", "picture:1: expected text, got a zero byte: the file is binary"),
        ("train latin -m model", "latin:1: expected text in UTF-8, got byte 0xe9; give the encoding of the "),
        ("train rows -m model --min-count 2", "maxmargin: MulticlassSVC: got the parameter 'min_count', exp"),
        ("tag data data", "data: expected"),
        ("evaluate data data2", "data2: expected 2 labels in sentence 1, got 1"),
        ("evaluate one", "one: expected two columns or more, the last two truth and prediction"),
        (
            "evaluate data",
            "data: expected truth and prediction in the last two columns, got 'B-NP' in the last",
        ),
        (
            "evaluate data2",
            "data2: expected truth and prediction in the last two columns, got 'O' in the las",
        ),
        ("evaluate attributes", "attributes:2: expected 3 columns as in the lines before, got 2"),
        (
            "evaluate trees",
            "trees: expected columns, the last two truth and prediction, got the format conllu",
        ),
        (
            "evaluate rows",
            "rows: expected columns, the last two truth and prediction, got the format svmlight",
        ),
        ("evaluate python", "evaluate: expected two files, got a model alone: python; give the other, too"),
        ("evaluate --links data", "evaluate: expected two files, got a file of links alone: data; give the"),
        ("evaluate --links data data", "data:1: expected links such as"),
        ("tag python data", "python: expected a model that 'maxmargin train' wrote, got one without"),
    ],
)
def test_faults_are_one_line(
    files: Path, arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "bad").write_text("U00:%x[0,0]\nU01:%y[0,0]\n")
    (files / "wide").write_text("U00:%x[0,2]\n")
    (files / "empty").write_text("\n")
    (files / "one").write_text("the\n")
    (files / "rows").write_text("1 1:1\n")
    (files / "data2").write_text("x O\n")
    (files / "attributes").write_text("A\tw=1\tx=1\nB\tw=2\n")
    (files / "trees").write_text("1\tw\t_\tX\tX\t_\t0\t_\t_\t_\n")
    (files / "picture").write_bytes(b"\x89PNG\0")
    (files / "latin").write_bytes("\xe9t\xe9 NN B-NP\n".encode("latin-1"))
    maxmargin.MulticlassSVC(random_state=0).fit([[0.0], [1.0]], [0, 1]).save("python")
    assert cli.main(arguments.split()) == 1
    (*notes, line) = capsys.readouterr().err.splitlines()
    assert line.startswith("maxmargin: ")
    assert message in line
    assert all(note.startswith("maxmargin: ") for note in notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train data", "the following arguments are required: --model/-m"),
        ("train data -m nowhere/model", "must be a file in a directory that exists, got 'nowhere/model'"),
        ("train data -m model -C 0", "must be a number > 0, got '0'"),
        ("train data -m model -C x", "must be a number > 0, got 'x'"),
        ("train data -m model --jobs 0", "must be an int >= 1, got '0'"),
        ("train data -m model --set order", "must be NAME=VALUE, got 'order'"),
        ("train data -m model --format xml", "invalid choice: 'xml'"),
        ("tag model data --encoding latin1x", "must be an encoding that Python knows, got 'latin1x'"),
        ("evaluate a b c", "expected one or two files, got 3"),
    ],
)
def test_misuse_exits_with_code_2(
    files: Path, arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments.split())
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "notes", [None, {"task": "Columns", "settings": {}}, {"task": "Trees", "settings": {"tags": 1}}]
)
def test_models_with_other_notes_load_but_do_not_tag(
    files: Path, notes: object, capsys: pytest.CaptureFixture[str]
) -> None:
    maxmargin.MulticlassSVC(random_state=0).fit([[0.0], [1.0]], [0, 1]).save("model", notes=notes)
    assert maxmargin.load("model").notes_ == notes
    assert cli.main(["tag", "model", "data"]) == 1
    assert capsys.readouterr().err.startswith("maxmargin: model: expected ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    st.lists(PIECES, max_size=12),
    st.sampled_from(["auto", "columns", "attributes", "svmhmm", "svmlight", "conllu"]),
)
def test_garbage_is_refused_in_one_line(
    files: Path, capsys: pytest.CaptureFixture[str], pieces: list[bytes], form: str
) -> None:
    """Whatever a file holds, training on it ends well, or with one line and exit code 1."""
    (files / "garbage").write_bytes(b"".join(pieces))
    code = cli.main(["train", "garbage", "-m", "model", "--format", form, "-q", "--json", "--max-iter", "1"])
    out, err = capsys.readouterr()
    if code == 0:
        assert json.loads(out)["model"] == "model"
    else:
        assert (code, out) == (1, "")
        assert err.splitlines()[-1].startswith("maxmargin: ")
    assert "Traceback" not in err


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(PIECES, max_size=12))
def test_garbage_is_evaluated_or_refused(
    files: Path, capsys: pytest.CaptureFixture[str], pieces: list[bytes]
) -> None:
    (files / "garbage").write_bytes(b"".join(pieces))
    for arguments in (
        ["garbage"],
        ["garbage", "data"],
        ["data", "garbage"],
        ["--links", "garbage", "garbage"],
    ):
        code = cli.main(["evaluate", *arguments])
        out, err = capsys.readouterr()
        assert (code, err.count("\n"), bool(out)) in ((0, 0, True), (1, 1, False))


def test_an_error_while_modules_are_imported_is_one_line(tmp_path: Path) -> None:
    """`train` imports scikit-learn in a thread; a process that ended meanwhile would say more."""
    (tmp_path / "data").write_text("A\tw\n\nB\tw:x\n")
    command = [sys.executable, "-m", "maxmargin", "train", "data", "--model", "model", "--quiet"]
    command += ["--format", "attributes"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode == 1
    assert said.stderr.startswith("maxmargin: data:3: expected a finite number")
    assert said.stderr.count("\n") == 1

"""The commands from files to files, interpreted on tiny data."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import cli
from maxmargin.cli import tag, tasks
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.files.columns import column_features
from maxmargin.files.sources import Source

COLUMNS = (
    "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n. . O\n\na DT B-NP\ncat NN I-NP\nsleeps VBZ B-VP\n. . O\n\n"
)
ATTRIBUTES = "D\tw=the\tt\\:x\nN\tw=dog\n\nD\tw=a\tt\\:x:2\nN\tw=cat\tlong\n\n"
HMM = "1 qid:1 1:1 2:0.5\n2 qid:1 3:1\n1 qid:2 1:1\n2 qid:2 3:1 4:1\n"
CLASSES = "1 1:1\n2 2:1\n3 3:1\n1 1:2\n2 2:2\n3 3:2\n"
SETS = "1,2 1:1\n2 2:1\n3 3:1\n1,2 1:2\n2 2:2\n3 3:2\n"
TEMPLATE = "U00:%x[0,0]\nU01:%x[0,1]\nB\n"


def word(number: int, form: str, tag: str, head: int) -> str:
    return f"{number}\t{form}\t_\t{tag}\t{tag}\t_\t{head}\t_\t_\t_\n"


TREES = (
    "# text\n" + word(1, "the", "DET", 2) + word(2, "dog", "NOUN", 3) + word(3, "barks", "VERB", 0) + "\n"
    + word(1, "cats", "NOUN", 2) + word(2, "sleep", "VERB", 0) + "\n"
)  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "template").write_text(TEMPLATE)
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(arguments)


def train(folder: Path, text: str | bytes, *options: str) -> dict[str, Any]:
    """Train on a text, and return what the command says as JSON."""
    (folder / "data").write_bytes(text.encode() if isinstance(text, str) else text)
    stream, out = io.StringIO(), sys.stdout
    sys.stdout = stream
    try:
        assert run("train", "data", "--model", "model", "--json", "--quiet", *options) == 0
    finally:
        sys.stdout = out
    (line,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_columns_are_trained_with_a_template(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, COLUMNS, "--template", "template", "-C", "10")
    assert (said["format"], said["estimator"], said["sentences"], said["tokens"]) == (
        "columns",
        "ChainSVC",
        2,
        8,
    )
    assert said["features"] == 11
    assert said["labels"] == ["B-NP", "B-VP", "I-NP", "O"]
    assert said["gap"] <= said["tol"] * said["objective"] + 1e-2
    assert run("tag", "model", "data", "--quiet") == 0
    lines = [line.split() for line in COLUMNS.split("\n")]
    expected = "\n".join(" ".join([*row, row[-1]]) if row else "" for row in lines)
    assert capsys.readouterr().out == expected
    assert run("evaluate", "model", "data", "--json") == 0
    assert json.loads(capsys.readouterr().out)["f1"] == 1.0


def test_a_model_of_the_command_is_the_estimators(files: Path) -> None:
    train(files, COLUMNS, "--template", "template", "-C", "10", "--tol", "0.01")
    X = [[[f"U00:{w}", f"U01:{t}"] for w, t, _ in s] for s in sentences()]
    y = [[label for *_, label in s] for s in sentences()]
    model = maxmargin.ChainSVC(C=10, tol=0.01, random_state=0).fit(X, y)
    loaded = maxmargin.load("model")
    assert loaded.feature_names_ == model.feature_names_  # type: ignore[attr-defined]
    assert (loaded.coef_ == model.coef_).all()  # type: ignore[attr-defined]


def sentences() -> list[list[tuple[str, str, str]]]:
    return [[tuple(row.split()) for row in s.split("\n")] for s in COLUMNS.strip().split("\n\n")]  # type: ignore[misc]


@pytest.mark.parametrize("template", [None, "template"])
@pytest.mark.parametrize("block", [1, 5, 1000])
def test_columns_are_numbered_block_by_block_as_the_estimator_numbers_them(
    files: Path, template: str | None, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "TOKENS", block)
    (files / "data").write_text("-DOCSTART- -X- O\n\n" + COLUMNS)
    with Source("data") as source:
        features = column_features(source, template)
        found = tasks.column_task(features).training(source)
    rows = [[line.split() for line in text.split("\n")] for text in COLUMNS.strip().split("\n\n")]
    encoder, expected = SequenceEncoder(), SequenceEncoder()
    tokens = encoder.fit_transform(found.X)
    same = expected.fit_transform([[], *map(features.of, rows)])
    assert encoder.feature_names_ == expected.feature_names_
    assert (tokens.rows != same.rows).nnz == 0
    assert tokens.offsets.tolist() == same.offsets.tolist() == [0, 0, 4, 8]
    assert found.y == [[], *([row[-1] for row in some] for some in rows)]
    assert (found.n, found.size) == (3, 8)


def test_columns_without_labels_are_tagged_from_standard_input(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(files, gzip.compress(COLUMNS.encode()), "-C", "10")
    unlabelled = b"-DOCSTART-\t-X-\n\nthe\tDT\ncat\tNN\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(unlabelled))))
    assert run("tag", "model") == 0
    out, err = capsys.readouterr()
    assert out == "-DOCSTART-\t-X-\tO\n\nthe\tDT\tB-NP\ncat\tNN\tI-NP\n\n"
    assert err.startswith("maxmargin: 2 sentences, 2 tokens in ")


def test_files_in_another_encoding_train_the_same_model(
    files: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = COLUMNS.replace("the", "thé").replace("DT", "D\xc9T")
    template = TEMPLATE + "U02:é%x[0,0]\n"
    (files / "template").write_text(template, encoding="utf-8")
    train(files, text, "-t", "template")
    same: Any = maxmargin.load("model")
    (files / "template").write_text(template, encoding="latin-1")
    latin = ("--encoding", "latin-1")
    train(files, text.encode("latin-1"), "-t", "template", *latin)
    found: Any = maxmargin.load("model")
    assert found.feature_names_ == same.feature_names_
    assert found.coef_.tobytes() == same.coef_.tobytes()
    for output in ("-", "tagged"):
        assert run("tag", "model", "data", "-q", *latin, "-o", output) == 0
    written = capsysbinary.readouterr().out
    assert written == (files / "tagged").read_bytes()
    assert written.decode("latin-1").startswith("thé D\xc9T B-NP B-NP\n")
    assert run("evaluate", "tagged", *latin) == run("evaluate", "model", "data", *latin) == 0
    assert capsysbinary.readouterr().out.count(b"FB1: 100.00\n") == 2
    assert run("encode", "data", "-t", "template", "-o", "corpus", "-q", *latin) == 0
    assert run("train", "corpus", "-m", "other", "-q") == 0
    assert maxmargin.load("other").feature_names_ == same.feature_names_  # type: ignore[attr-defined]


def test_labels_that_the_encoding_of_the_output_lacks_are_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(files, COLUMNS.replace("B-NP", "B-\u0141"))
    (files / "data").write_text("the DT\n")
    for output in ("-", "tagged"):
        assert run("tag", "model", "data", "-q", "--encoding", "latin-1", "-o", output) == 1
        assert "expected one that has all characters of labels, got iso8859-1, without '\\u0141'" in (
            capsys.readouterr().err
        )
    assert not (files / "tagged").exists()


def test_margins_are_a_column(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(files, "-DOCSTART- -X- O\n\n" + COLUMNS, "-C", "10")
    assert run("tag", "model", "data", "--quiet", "--margins") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert rows[0] == ["-DOCSTART-", "-X-", "O", "O", "_"]
    model, batch = maxmargin.load("model"), sentence_features()
    margins = [m for row in model.predict_margins(batch) for m in row]  # type: ignore[attr-defined]
    assert [float(row[-1]) for row in rows[1:]] == pytest.approx(margins, rel=1e-5)


def sentence_features() -> list[list[list[str]]]:
    from maxmargin.files.columns import word_features

    return [word_features([row[:2] for row in sentence]) for sentence in sentences()]


def test_segments_are_trained_and_evaluated(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, COLUMNS, "--estimator", "segments", "-C", "10")["estimator"] == "SegmentSVC"
    assert run("evaluate", "model", "data") == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("FB1: 100.00")
    assert run("tag", "model", "data", "--margins", "-q") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert [row[-2] for row in rows] == [row[2] for row in rows]
    assert rows[0][-1] == rows[1][-1] != rows[2][-1]
    assert rows[3][-1] == "inf"


def test_attributes_are_trained_and_tagged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, ATTRIBUTES, "-C", "10")
    assert (said["format"], said["features"], said["labels"]) == ("attributes", 6, ["D", "N"])
    assert run("tag", "model", "data", "-q", "--output", "out") == 0
    assert (files / "out").read_text() == "D\nN\n\nD\nN\n\n"
    assert run("evaluate", "model", "data", "--json") == 0
    expected = {"accuracy": 1.0, "tokens": 4, "sequence_accuracy": 1.0, "sequences": 2}
    assert json.loads(capsys.readouterr().out) == expected
    assert run("evaluate", "data", "out", "--json") == 0
    assert json.loads(capsys.readouterr().out) == expected


def test_sequences_of_rows_are_trained_and_tagged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, HMM, "-C", "10")
    assert (said["format"], said["features"], said["labels"]) == ("svmhmm", 5, [1, 2])
    (files / "new").write_text("1 qid:1 1:1 9:1\n1 qid:1 3:1\n")
    assert run("tag", "model", "new", "-q") == 0
    assert capsys.readouterr().out == "1\n2\n"


def test_classes_and_sets_are_trained_and_tagged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, CLASSES, "-C", "10")["estimator"] == "MulticlassSVC"
    assert run("tag", "model", "data", "-q") == run("evaluate", "model", "data") == 0
    assert capsys.readouterr().out == "1\n2\n3\n1\n2\n3\naccuracy: 100.00% of 6 examples\n"
    said = train(files, SETS, "-C", "10")
    assert (said["estimator"], said["labels"]) == ("MultilabelSVC", [1, 2, 3])
    assert run("tag", "model", "data", "-q") == run("evaluate", "model", "data", "--json") == 0
    *labels, scores = capsys.readouterr().out.splitlines()
    assert labels == ["1,2", "2", "3", "1,2", "2", "3"]
    assert json.loads(scores)["subset_accuracy"] == 1.0


def test_trees_are_trained_and_tagged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, TREES, "-C", "1")
    assert (said["format"], said["estimator"], said["words"]) == ("conllu", "DependencySVC", 5)
    assert run("tag", "model", "data", "-q") == 0
    assert capsys.readouterr().out == TREES
    assert run("evaluate", "model", "data") == run("evaluate", "data", "data") == 0
    assert capsys.readouterr().out == 2 * "UAS: 100.00% of 5 words; without punctuation: 100.00%\n"


@pytest.mark.parametrize("options", [[], ["--jobs", "1"]])
def test_tagging_reads_no_more_than_it_needs(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Only as many sentences are read before some are written as a batch has, however long the file is."""
    train(files, COLUMNS, "-C", "10")
    monkeypatch.setattr(tag, "_TOKENS", 8)  # with the tagger
    monkeypatch.setattr(tasks, "TOKENS", 8)  # with the estimator
    n_read, n_written, behind = 0, 0, []

    class Sentences(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            nonlocal n_read, n_written
            n_written += capsys.readouterr().out.count("\n\n")
            behind.append(n_read - n_written)
            text = b"the DT\ndog NN\n\n" if n_read < 40 else b""
            n_read += 1
            buffer[: len(text)] = text
            return len(text)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Sentences(), 16)))
    assert run("tag", "model", "-q", *options) == 0
    n_written += capsys.readouterr().out.count("\n\n")
    assert n_written == 40
    assert max(behind) <= 4 + 2  # a batch of four, and what is buffered


def test_search_chooses_C(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, 2 * ATTRIBUTES, "--search")
    X = [[["w=the", "t:x"], ["w=dog"]], [{"w=a": 1, "t:x": 2}, {"w=cat": 1, "long": 1}]]
    X = [[token if isinstance(token, dict) else dict.fromkeys(token, 1) for token in tokens] for tokens in X]
    task = maxmargin.ChainSVC(C="auto", random_state=0).fit(2 * X, 4 * [["D", "N"]])
    assert said["C"] == task.C_
    assert run("train", "data", "--model", "model", "--search") == 0
    err = capsys.readouterr().err
    for C, score in zip(task.cv_results_["param_C"], task.cv_results_["mean_test_score"], strict=True):
        assert f"search: C = {C:g}: mean loss {-score:.4g}" in err
    assert f"search: C = {said['C']:g} is chosen by cross-validation" in err
    assert run("train", "data", "--model", "model", "--search", "-C", "0.4") == 1
    assert "-C: expected none with --search, which chooses it, got 0.4" in capsys.readouterr().err


def test_the_scale_of_C_is_a_number(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = train(files, CLASSES)
    assert said["C"] == maxmargin.load("model").C_ > 0.0  # type: ignore[attr-defined]
    assert run("inspect", "model") == 0
    assert f"C = {said['C']:g}, gap " in capsys.readouterr().out
    assert run("train", "data", "--model", "model", "--search") == 0
    C = float(f"{said['C']:.3g}")
    assert f"search: C = {C:g}: mean loss" in capsys.readouterr().err


def test_resume_goes_on_from_a_checkpoint(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "data").write_text(COLUMNS)
    command = ("train", "data", "--model", "model", "--resume", "--tol", "1e-2", "--json", "-C", "10")
    checkpoint = files / "model.checkpoint"
    X, y = sentence_features(), [[label for *_, label in s] for s in sentences()]
    partial = maxmargin.ChainSVC(C=10, tol=1e-2, max_iter=1, random_state=0, checkpoint=str(checkpoint))
    with pytest.warns(ConvergenceWarning, match="after 1 pass"):
        partial.fit(X, y)
    assert run(*command) == 0
    out, err = capsys.readouterr()
    assert "resuming from model.checkpoint" in err
    assert not checkpoint.exists()
    whole = maxmargin.ChainSVC(C=10, tol=1e-2, random_state=0).fit(X, y)
    assert json.loads(out)["passes"] == whole.n_iter_
    assert (maxmargin.load("model").coef_ == whole.coef_).all()  # type: ignore[attr-defined]


def test_files_are_evaluated_without_a_model(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "both").write_text("a B-X B-X\nb O B-X\n\n")
    assert run("evaluate", "both") == 0
    assert "precision:  50.00%; recall: 100.00%; FB1:  66.67" in capsys.readouterr().out
    (files / "true").write_text("0-0 1-1 2?2\n")
    (files / "found").write_text("0-0 2-2 3-3\n")
    assert run("evaluate", "--links", "true", "found", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"aer": pytest.approx(1 - 3 / 5), "pairs": 1}


def test_training_says_what_it_reads(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "data").write_text(COLUMNS)
    assert run("train", "data", "-m", "model", "-t", "template", "--max-iter", "1") == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[:2] == [
        "maxmargin: data: columns: 3 per token, the last is the label",
        "maxmargin: 2 sentences, 8 tokens; template: 2 features per token",
    ]
    assert err.splitlines()[-1].startswith("maxmargin: warning: ChainSVC: ")
    assert out.startswith("model: ChainSVC with 11 features, 4 labels; objective ")


@pytest.mark.skipif(not hasattr(maxmargin.ChainSVC, "top_features"), reason="needs top_features")
def test_inspection_lists_the_top_features_of_a_label(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(files, COLUMNS, "-t", "template", "-C", "10")
    assert run("inspect", "model", "--label", "B-VP", "-k", "2", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["label"] for row in data["top_features"]} == {"B-VP"}
    assert data["top_features"][0]["feature"] == "U01:VBZ"
    assert len(data["top_transitions"]) == 2
    assert run("inspect", "model") == 0
    assert "top features:" in capsys.readouterr().out
    assert run("inspect", "model", "--label", "X") == 1
    assert "--label: expected one of B-NP, B-VP, I-NP, O, got 'X'" in capsys.readouterr().err

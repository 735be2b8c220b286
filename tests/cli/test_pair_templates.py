"""Templates with features of pairs of labels: from files to predictions."""

import json
import operator
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import GraphSVC, cli, grid_edges
from maxmargin.cli import tasks

COLUMNS = "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n. . O\n\na DT B-NP\ncat NN I-NP\n\nYes UH O\n\n"
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,1]\nB\nB01:%x[-1,1]/%x[0,1]\n"
START = "-DOCSTART- -X- O\n\n"
TRAIN = ("train", "data", "-m", "model", "-t", "template", "-C", "10", "--tol", "1e-3")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "template").write_text(TEMPLATE)
    (tmp_path / "data").write_text(START + COLUMNS)
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(arguments)


def graphs() -> tuple[list[Any], list[list[str]]]:
    """The graphs of the file, with the features that CRF++ documents, and their labels."""
    X, y = [], []
    for text in COLUMNS.strip().split("\n\n"):
        words, tags, labels = zip(*(line.split() for line in text.split("\n")), strict=True)
        before = ["_B-1", *tags]
        nodes = [[f"U00:{word}", f"U01:{before[t]}"] for t, word in enumerate(words)]
        edges = [["B", f"B01:{tags[t - 1]}/{tags[t]}"] for t in range(1, len(tags))]
        X.append((nodes, grid_edges((1, len(words))), edges))
        y.append(list(labels))
    return X, y


def best_labels(model: Any, graph: Any) -> list[str]:
    """The labels of highest score among all, with weights by their names."""
    nodes = {(row.feature, row.label): row.weight for row in model.top_features(k=1000).itertuples()}
    edges = {
        (row.feature, row.before, row.after): row.weight for row in model.top_transitions(1000).itertuples()
    }

    def score(y: tuple[str, ...]) -> float:
        total = sum(nodes.get((name, y[t]), 0.0) for t, own in enumerate(graph[0]) for name in own)
        pairs = zip(graph[2], y, y[1:], strict=False)
        return float(total + sum(edges.get((name, a, b), 0.0) for own, a, b in pairs for name in own))

    return list(max(product(model.classes_.tolist(), repeat=len(graph[0])), key=score))


def test_a_model_of_the_command_is_the_estimators(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = graphs()
    assert run(*TRAIN, "--json") == 0
    out, err = capsys.readouterr()
    assert "4 sentences, 7 tokens; template: 2 features per token, 2 per pair of neighbours\n" in err
    said = json.loads(out)
    assert (said["format"], said["estimator"], said["features"], said["edge_features"]) == (
        "columns",
        "GraphSVC",
        11,
        4,
    )
    assert said["gap"] <= 1e-3 * said["objective"] + 1e-5
    loaded: Any = maxmargin.load("model")
    model = GraphSVC(C=10.0, tol=1e-3, random_state=0, verbose=0).fit(X, y)
    assert loaded.feature_names_ == model.feature_names_
    assert loaded.edge_feature_names_ == ["B", "B01:DT/NN", "B01:NN/VBZ", "B01:VBZ/."]
    assert (loaded.coef_ == model.coef_).all()
    assert (loaded.edge_coef_ == model.edge_coef_).all()


@pytest.mark.parametrize("options", [(), ("--jobs", "1")])
def test_tags_are_the_best_of_all(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(tasks, "TOKENS", 3)  # some sentences at a time
    assert run(*TRAIN, "-q") == 0
    capsys.readouterr()
    assert run("tag", "model", "data", "-q", *options) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert rows[0] == ["-DOCSTART-", "-X-", "O", "O"]
    model, (X, _) = maxmargin.load("model"), graphs()
    assert [row[3] for row in rows[1:]] == [label for graph in X for label in best_labels(model, graph)]


# Templates without features of tokens, and the features that each pair of neighbours has as documented.
PAIRS_ALONE: dict[str, Callable[[str, str], list[str]]] = {
    "B\n": lambda before, tag: ["B"],
    "B01:%x[-1,1]/%x[0,1]\n": lambda before, tag: [f"B01:{before}/{tag}"],
    "# tags\nB\nB02:%x[0,1]\n": lambda before, tag: ["B", f"B02:{tag}"],
    "b:%x[0,1]\n": lambda before, tag: [f"b:{tag}"],
}


def edge_weights(model: Any) -> dict[tuple[str, str, str], float]:
    return {
        (row.feature, row.before, row.after): row.weight for row in model.top_transitions(1000).itertuples()
    }


@pytest.mark.parametrize("template", PAIRS_ALONE)
def test_templates_of_pairs_alone_train_as_an_enumeration_does(
    files: Path, capsys: pytest.CaptureFixture[str], template: str
) -> None:
    """Scores, labels and the objective are those of an enumeration without weights of tokens."""
    (files / "template").write_text(template)
    assert run(*TRAIN, "--json") == 0
    out, err = capsys.readouterr()
    said, count = json.loads(out), len(PAIRS_ALONE[template]("x", "y"))
    assert f"template: 0 features per token, {count} per pair of neighbours\n" in err
    assert said["estimator"] == "GraphSVC"
    model: Any = maxmargin.load("model")
    assert not model.coef_.any()
    weights, hinges = edge_weights(model), []
    assert weights
    assert run("tag", "model", "data", "-q") == 0
    found = capsys.readouterr().out.strip().split("\n\n")[1:]  # after the line that starts a document
    for text, tagged in zip(COLUMNS.strip().split("\n\n"), found, strict=True):
        _, tags, truth = zip(*(line.split() for line in text.split("\n")), strict=True)
        names = [PAIRS_ALONE[template](*pair) for pair in pairwise(tags)]

        def score(y: tuple[str, ...], names: list[list[str]] = names) -> float:
            pairs = zip(names, pairwise(y), strict=True)
            return float(sum(weights.get((name, *pair), 0.0) for own, pair in pairs for name in own))

        outputs = list(product(model.classes_.tolist(), repeat=len(tags)))
        wrong = [score(y) + sum(map(operator.ne, y, truth)) for y in outputs]
        hinges.append(max(wrong) - score(truth))
        labels = tuple(line.split()[-1] for line in tagged.split("\n"))
        assert score(labels) == pytest.approx(max(map(score, outputs)), abs=1e-9)
    n = len(hinges)
    objective = sum(w * w for w in weights.values()) / (2.0 * 10.0 * n) + sum(hinges) / n
    assert said["objective"] == pytest.approx(objective, rel=1e-9)


def test_new_sentences_have_margins_scores_and_weights(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*TRAIN, "-q") == 0
    (files / "new").write_text("the DT\nbird NN\n\nbird NN\n")
    capsys.readouterr()
    assert run("tag", "model", "new", "-q", "--margins") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert [row[:3] for row in rows[:2]] == [["the", "DT", "B-NP"], ["bird", "NN", "I-NP"]]
    assert all(float(row[3]) >= 0.0 for row in rows)
    assert run("evaluate", "model", "data", "--json") == 0
    assert json.loads(capsys.readouterr().out)["f1"] == 1.0
    assert run("inspect", "model", "-k", "3", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert {row["kind"] for row in said["top_transitions"]} == {"edge"}
    assert all(row["feature"].startswith("B") for row in said["top_transitions"])
    assert run("inspect", "model") == 0
    assert (
        f"GraphSVC from columns: 11 features, {said['edge_features']} of edges, 4 labels, C = 10, "
        in capsys.readouterr().out
    )


def test_a_search_is_around_the_scale_and_a_resumed_run_has_the_same_weights(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C is "scale" by default: the search is around the number that it stands for."""
    (files / "data").write_text(2 * COLUMNS)
    assert run("train", "data", "-m", "model", "-t", "template", "--search", "--min-count", "2") == 0
    err = capsys.readouterr().err
    assert "is chosen by cross-validation" in err
    X, y = graphs()
    C = GraphSVC(min_count=2, verbose=0, random_state=0).fit(2 * X, 2 * y).C_
    assert f"search: C = {float(f'{C:.3g}'):g}: mean loss" in err
    partial = GraphSVC(C=10.0, tol=1e-3, max_iter=1, random_state=0, verbose=0, checkpoint="model.checkpoint")
    with pytest.warns(ConvergenceWarning, match="after 1 pass"):
        partial.fit(X, y)
    (files / "data").write_text(COLUMNS)
    assert run(*TRAIN, "--resume") == 0
    assert "resuming from model.checkpoint" in capsys.readouterr().err
    whole = GraphSVC(C=10.0, tol=1e-3, random_state=0, verbose=0).fit(X, y)
    loaded: Any = maxmargin.load("model")
    assert (loaded.edge_coef_ == whole.edge_coef_).all()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "train data -m m -t template --estimator chain",
            "--estimator: expected graph for a template with features of pairs",
        ),
        (
            "train data -m m -t plain --estimator graph",
            "--estimator: expected chain or segments for the format columns",
        ),
        ("train data -m m -t template --set order=2", "order"),
        (
            "train short -m m -t template",
            "GraphSVC: no graph of X has an edge with features; give one that has",
        ),
        (
            "train data -m m -t wide",
            "wide: expected columns below 2, as the data have 3 and the last is the label",
        ),
        (
            "encode data -o out -t template",
            "template: expected features of tokens, and 'B' alone, as encoded data have no features of pairs",
        ),
        (
            "encode data -o out -t lone",
            "lone: expected features of tokens, and 'B' alone, as encoded data have no features of pairs",
        ),
        (
            "train data -m m -t lone --estimator chain",
            "--estimator: expected graph for a template with features of pairs",
        ),
    ],
)
def test_faults_are_one_line(
    files: Path, capsys: pytest.CaptureFixture[str], command: str, message: str
) -> None:
    (files / "plain").write_text("U00:%x[0,0]\nB\n")
    (files / "lone").write_text("B\n")
    (files / "wide").write_text("U00:%x[0,0]\nB01:%x[0,2]\n")
    (files / "short").write_text("a X O\n\nb X B\n\n")
    assert run(*command.split(), "-q") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("name", ["Columns", "PairColumns"])
def test_a_template_of_another_task_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Files come from anywhere."""
    X, y = graphs()
    template = TEMPLATE if name == "Columns" else "U00:%x[0,0]\nB\n"
    model = maxmargin.ChainSVC(verbose=0, random_state=0).fit([nodes for nodes, *_ in X], y)
    model.save("model", notes={"task": name, "settings": {"template": template, "columns": 3}})
    assert run("tag", "model", "data", "-q") == 1
    assert capsys.readouterr().err == f"maxmargin: template: expected a template for {name}, got another\n"

"""The benchmark of defaults, on a few made-up sequences."""

from pathlib import Path

import numpy as np
import pytest

from maxmargin import ChainSVC
from maxmargin.datasets import alignment_error_rate, chunk_f1, intersection_over_union

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PARTS_OF_MODELS = ("grid", "choice", "losses", "returned")
TAGS = ["B-NP", "I-NP", "B-VP", "I-VP", "O"]


@pytest.fixture(autouse=True)
def _defaults(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def panel():
    """Return a panel of one task, short sequences of two labels."""
    from _panel import Data, Examples, Task
    from _scores import ACCURACY

    def load(home):
        rng = np.random.default_rng(0)
        y = list(rng.integers(2, size=(40, 3)))
        X = [labels[:, None] + rng.normal(size=(3, 2)) for labels in y]
        return Data(Examples(X[:20], y[:20], y[:20]), Examples(X[20:], y[20:], y[20:]))

    return {"toy": Task(load, ChainSVC, ACCURACY, (1e-6, 0.1), losses=("hamming",))}


def random_tags(rng, n):
    return [[TAGS[k] for k in rng.integers(len(TAGS), size=length)] for length in rng.integers(1, 9, size=n)]


def test_f1_is_computed_from_counts():
    from _scores import CHUNKS

    rng = np.random.default_rng(0)
    truth = random_tags(rng, 30)
    predicted = [[str(rng.choice([tag, "O", "B-NP"])) for tag in tags] for tags in truth]
    found = CHUNKS.value(CHUNKS.counts(truth, predicted))
    assert 0.0 < found < 1.0
    assert found == pytest.approx(chunk_f1(truth, predicted))


def test_error_rate_is_computed_from_counts():
    from _scores import LINKS

    sure, possible = [[(0, 0), (1, 2)], [(0, 1)]], [[(0, 0), (1, 2), (1, 1)], [(0, 1)]]
    predicted = [np.array([0, 1, 2]), np.array([-1, 0])]
    found = LINKS.value(LINKS.counts(list(zip(sure, possible, strict=True)), predicted))
    assert found == pytest.approx(1.0 - alignment_error_rate(sure, possible, predicted))


def test_overlap_and_accuracy_are_computed_from_counts():
    from _scores import ACCURACY, OVERLAP, SUBSETS

    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(2, size=(2, 20, 3, 2))
    overlap = OVERLAP.value(OVERLAP.counts(truth, predicted))
    assert overlap == pytest.approx(intersection_over_union(list(truth), list(predicted)))
    accuracy = ACCURACY.value(ACCURACY.counts(truth, predicted))
    assert accuracy == pytest.approx(np.mean(truth == predicted))
    predicted[:5] = truth[:5]
    whole = np.mean([(a == b).all() for a, b in zip(truth, predicted, strict=True)])
    assert SUBSETS.value(SUBSETS.counts(truth, predicted)) == pytest.approx(whole)


def test_bootstrap_intervals_are_those_of_independent_errors():
    from _scores import ACCURACY, bootstrap

    rng = np.random.default_rng(0)
    right = (rng.random((2, 4000)) < [[0.9], [0.8]]).astype(float)
    ours, theirs = (np.column_stack([column, np.ones(4000)]) for column in right)
    found = bootstrap(ACCURACY, ours, theirs)
    error = np.std(right[0] - right[1]) / np.sqrt(4000)
    assert found.value == pytest.approx(np.mean(right[0] - right[1]))
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.2 * error)
    assert bootstrap(ACCURACY, ours, ours) == (0.0, 0.0, 0.0)


def test_held_out_examples_are_not_trained_on(panel):
    from _panel import held_out, of_share

    data = panel["toy"].load(None)
    tenth = of_share(data, 0.5)
    assert len(tenth.train.X) == 10
    assert tenth.test is data.test
    splits = held_out(tenth)
    assert [len(part.X) for split in splits for part in split] == [8, 2] * 5
    assert [id(x) for split in splits for x in split.test.X] == [id(x) for x in tenth.train.X]
    for split in splits:
        assert {id(x) for part in split for x in part.X} == {id(x) for x in tenth.train.X}
    many = data._replace(train=data.train.take(np.arange(200) % 20))
    assert [len(part.X) for split in held_out(many) for part in split] == [160, 40]


def test_grid_is_chosen_on_held_out_examples(panel):
    from _panel import held_out, of_share
    from _runs import Runs
    from defaults import grid_lines

    (line,) = grid_lines(Runs(panel, None, None), "toy", 0.5)
    data = of_share(panel["toy"].load(None), 0.5)
    splits = held_out(data)
    settings = [{"C": C, "random_state": 0} for C in (1e-6, 0.1)]
    models = [[ChainSVC(**each).fit(split.train.X, split.train.y) for split in splits] for each in settings]
    scores = [
        np.mean([model.score(split.test.X, split.test.y) for model, split in zip(row, splits, strict=True)])
        for row in models
    ]
    chosen = int(np.argmax(scores))
    best = ChainSVC(**settings[chosen]).fit(data.train.X, data.train.y)
    assert line.cells[1] == f"{100 * best.score(data.test.X, data.test.y):.2f}"
    default = ChainSVC(random_state=0).fit(data.train.X, data.train.y)
    assert line.cells[0] == f"{100 * default.score(data.test.X, data.test.y):.2f}"


def test_runs_are_kept(panel, tmp_path):
    from _runs import Runs
    from defaults import PARTS

    runs, store = Runs(panel, None, tmp_path / "runs"), tmp_path / "runs"
    first = [list(PARTS[part].lines(runs, "toy", 0.2)) for part in PARTS_OF_MODELS]
    without_data = {"toy": panel["toy"]._replace(load=pytest.fail)}
    runs = Runs(without_data, None, store)
    assert [list(PARTS[part].lines(runs, "toy", 0.2)) for part in PARTS_OF_MODELS] == first


def test_named_features_are_the_entries_of_rows():
    from _rivals import named_features

    assert named_features([np.array([[0.0, 2.0], [0.5, 0.0]])]) == [[{"1": 2.0}, {"0": 0.5}]]
    assert named_features([[["a"], ["b"]]]) == [[["a"], ["b"]]]


def test_names_are_runs_of_proper_nouns():
    from _panel import _runs_of_names, word_features

    assert _runs_of_names(["PROPN", "PROPN", "VERB", "PROPN"]) == ["B-name", "I-name", "O", "B-name"]
    first, second = word_features(["Ann", "ran"])
    assert {"word=Ann", "lower=ann", "capital", "before=<s>", "after=ran", "ends=nn"} <= set(first)
    assert "before=ann" in second
    assert len(set(first)) == len(first)

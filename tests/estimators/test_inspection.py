"""The largest weights by name, compared with the weights themselves."""

import itertools
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin import ChainSVC, DependencySVC, GraphSVC, MatchingSVC, MulticlassSVC, MultilabelSVC, SegmentSVC
from maxmargin.estimators.inspection import largest_features, largest_transitions
from support.estimators import KINDS

LABELLED = ("chain", "segments", "graph", "multiclass", "multilabel")
JOINT = ("chain", "segments", "graph", "multilabel")


@cache
def fitted(name: str, **parameters: Any) -> Any:
    kind = KINDS[name]
    return kind.new(**parameters).fit(kind.X, kind.y)


def entries(kind: str, weights: Any, features: Any, labels: Any) -> dict[tuple[Any, ...], float]:
    """All nonzero entries of a matrix, by kind, feature and label."""
    found = {}
    for (f, feature), (k, label) in itertools.product(enumerate(features), enumerate(labels)):
        if weights[f][k] != 0.0:
            found[kind, feature, label] = weights[f][k]
    return found


def all_features(name: str, model: Any) -> dict[tuple[Any, ...], float]:
    columns = range(model.n_features_in_) if hasattr(model, "n_features_in_") else None
    if name in ("chain", "graph"):
        return entries({"chain": "token", "graph": "node"}[name], model.coef_.T, columns, model.classes_)
    if name == "segments":
        labels = [*model.classes_, "O"]
        parts = {"tokens": model.coef_, "first": model.first_coef_, "last": model.last_coef_}
        found = [entries(kind, part.T, columns, labels) for kind, part in parts.items()]
        found.append(entries("length", model.lengths_.T, [1, 2], labels))
        return {key: weight for part in found for key, weight in part.items()}
    if name in ("multiclass", "multilabel"):
        constant = entries("intercept", [model.intercept_], [None], model.classes_)
        return entries("example", model.coef_.T, columns, model.classes_) | constant
    if name == "structured":
        return entries("output", model.coef_[:, None], model.feature_names_, [None])
    if name == "dependency":
        return entries("arc", model.coef_[:, None], columns, [None])
    constant = {("intercept", None, None): model.intercept_}
    return entries("link", model.coef_[:, None], columns, [None]) | constant


def all_transitions(name: str, model: Any) -> dict[tuple[Any, ...], float]:
    labels = [*model.classes_] + ["O"] * (name == "segments")
    if name == "graph":
        parts = [entries("edge", table, labels, labels) for table in model.edge_coef_]
        return {("edge", f, *key[1:]): w for f, part in enumerate(parts) for key, w in part.items()}
    if name == "multilabel":
        states = {(0, 0): "neither", (0, 1): "second", (1, 0): "first", (1, 1): "both"}
        return {
            ("pair", text, *edge.tolist()): table[state]
            for edge, table in zip(model.edges_, model.edge_coef_, strict=True)
            for state, text in states.items()
            if table[state] != 0.0
        }
    found = entries("transition", model.transitions_, labels, labels)
    found |= entries("start", [model.start_], [None], labels)
    if name == "chain":
        found |= entries("end", model.end_[:, None], labels, [None])
    return {(kind, None, before, after): weight for (kind, before, after), weight in found.items()}


def check_frame(frame: Any, expected: dict[tuple[Any, ...], float], k: int) -> None:
    """A frame has the k largest of the expected weights, in order."""
    rows = list(frame.itertuples(index=False, name=None))
    sizes = sorted(map(abs, expected.values()), reverse=True)
    assert [abs(row[-1]) for row in rows] == sizes[:k]
    assert len({row[:-1] for row in rows}) == len(rows)
    for *key, weight in rows:
        assert expected[tuple(key)] == weight
    assert frame["weight"].dtype == np.float64


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("k", [3, 10_000])
def test_top_features_are_the_largest_of_all_weights(name: str, k: int) -> None:
    model = fitted(name)
    check_frame(model.top_features(k=k), all_features(name, model), k)


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("k", [3, 10_000])
def test_top_transitions_are_the_largest_of_all_weights(name: str, k: int) -> None:
    model = fitted(name)
    check_frame(model.top_transitions(k=k), all_transitions(name, model), k)


@pytest.mark.parametrize("name", LABELLED)
def test_features_of_one_label_are_listed(name: str) -> None:
    model = fitted(name)
    for label in model.classes_:
        expected = {key: weight for key, weight in all_features(name, model).items() if key[2] == label}
        check_frame(model.top_features(label, 4), expected, 4)


def test_names_are_those_of_the_data() -> None:
    pd = pytest.importorskip("pandas")
    X = [[["the"], ["dog"]], [["a"], ["cat"]]]
    chain = ChainSVC(C=10, verbose=0, random_state=0).fit(X, [["D", "N"]] * 2)
    assert set(chain.top_features("D")["feature"]) == {"the", "dog", "a", "cat"}
    table = pd.DataFrame({"long": [0.0, 1.0, 2.0, 0.5], "wide": [1.0, 0.0, 1.0, 0.2]})
    model = MulticlassSVC(verbose=0, random_state=0).fit(table, [0, 1, 1, 0])
    assert set(model.top_features(1, 2)["feature"]) <= {"long", "wide", None}
    sets = pd.DataFrame({"p": [0, 1, 1, 0], "q": [1, 0, 1, 0], "r": [1, 1, 0, 0]})
    multilabel = MultilabelSVC(verbose=0, random_state=0).fit(table, sets)
    assert set(multilabel.top_features("q")["label"]) == {"q"}
    assert set(multilabel.top_transitions()["before"]) <= {"p", "q"}


def test_second_order() -> None:
    model = fitted("chain", order=2)
    frame = model.top_transitions(10_000)
    rows = frame[frame["kind"] == "trigram"]
    assert len(rows) == np.count_nonzero(model.trigrams_)
    for _, _, (first, second), third, weight in rows.itertuples(index=False, name=None):
        assert weight == model.trigrams_[first, second, third]
    assert len(frame) - len(rows) == len(model.transition_features_)


def test_bonds_are_weights_of_labels_that_agree() -> None:
    kind = KINDS["graph"]
    model = GraphSVC(inference="cut", verbose=0, random_state=0).fit(kind.X, kind.y)
    rows = largest_transitions(model)
    assert {(row.before, row.after) for row in rows} == {(0, 0), (1, 1)}
    assert all(row.weight == model.edge_coef_[row.feature] for row in rows)  # type: ignore[index]


def test_places_of_matchings_are_listed() -> None:
    kind = KINDS["matching"]
    model = MatchingSVC(fertility=3, verbose=0, random_state=0)
    model.fit(kind.X, [[(0, 0), (0, 1)], [(0, 2), (1, 0), (0, 1)], [(1, 0), (1, 2)], [(0, 2)]])
    places = {row.feature: row.weight for row in largest_features(model) if row.kind == "place"}
    assert places == {s + 2: weight for s, weight in enumerate(model.places_) if weight}


def test_features_of_arcs_have_names() -> None:
    X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    model = DependencySVC(C=1.0, verbose=0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    names = set(model.top_features(10_000)["feature"])
    assert {"head tag=NOUN, modifier tag=DET, left", "head word=dog, modifier word=the, left"} <= names


@pytest.mark.parametrize("name", KINDS)
def test_errors_are_one_line(name: str) -> None:
    kind, model = KINDS[name], fitted(name)
    owner = type(model).__name__
    with pytest.raises(NotFittedError):
        kind.new().top_features()
    with pytest.raises(ValueError, match=f"^{owner}: k must be an int >= 1, got 0.$"):
        model.top_features(k=0)
    if name in LABELLED:
        with pytest.raises(ValueError, match=f"^{owner}: label must be one of .*, got 'x'.$"):
            model.top_features("x")


@pytest.mark.parametrize("name", LABELLED)
def test_kernels_have_no_weights_of_features(name: str) -> None:
    model = fitted(name, kernel="rbf")
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        model.top_features()
    if name in JOINT:  # these stay linear
        check_frame(model.top_transitions(5), all_transitions(name, model), 5)


def test_lists_need_no_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    model = fitted("segments")
    assert isinstance(model, SegmentSVC)
    assert len(largest_features(model, "A", 2)) == len(largest_transitions(model, 2)) == 2
    for method, call in (("top_features", model.top_features), ("top_transitions", model.top_transitions)):
        with pytest.raises(ImportError, match=rf"^SegmentSVC.{method} needs pandas.*maxmargin\[frame\]$"):
            call()

"""`predict_margins` against scores written out from the public attributes of fitted estimators."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    SegmentSVC,
    StructuredSVC,
)
from support.estimators import KINDS
from support.naive import Array, all_matchings, all_trees

MODELS = [name for name in KINDS if name != "structured"]
LISTS = [name for name in MODELS if name not in ("multiclass", "multilabel")]
EVERY = 10_000  # more outputs than the sequences below have


def fitted(name: str, **parameters: Any) -> Any:
    kind = KINDS[name]
    return kind.new(C=10.0, tol=0.1, **parameters).fit(kind.X, kind.y)


def without(parts: list[Any], scores: Array, part: int) -> float:
    """Return by how much the best score falls if a part has to differ; ``parts`` are those of all outputs."""
    best = int(np.argmax(scores))
    rest = [s for other, s in zip(parts, scores, strict=True) if other[part] != parts[best][part]]
    return float(scores[best] - max(rest, default=-np.inf))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"order": 2}, {"forbidden": [(0, 0), (1, 0)]}, {"kernel": "rbf"}, {"rescaling": "slack"}],
)
def test_tokens_of_a_chain_have_margins(parameters: dict[str, Any]) -> None:
    model = fitted("chain", **parameters)
    found = model.predict_margins(KINDS["chain"].X)
    for margins, (labels, behind) in zip(found, model.predict_k_best(KINDS["chain"].X, EVERY), strict=True):
        expected = [behind[labels[:, t] != labels[0, t]].min(initial=np.inf) for t in range(4)]
        assert margins == pytest.approx(expected, abs=1e-9)


def test_no_other_label_is_allowed() -> None:
    X, y = [[["a"], ["b"]], [["a"], ["c"]]], [["p", "q"], ["p", "r"]]
    model = ChainSVC(forbidden=[(None, "q"), (None, "r")], verbose=0, random_state=0).fit(X, y)
    (margins,) = model.predict_margins(X[:1])
    assert margins[0] == np.inf
    assert 0.0 <= margins[1] < np.inf


@pytest.mark.parametrize("parameters", [{}, {"max_length": 3}])
def test_predicted_segments_have_margins(parameters: dict[str, Any]) -> None:
    kind = KINDS["segments"]
    model = fitted("segments", **parameters)
    predicted = model.predict(kind.X)
    assert sum(map(len, predicted)) > 2
    every = model.predict_k_best(kind.X, EVERY)
    for segments, margins, (others, behind) in zip(
        predicted, model.predict_margins(kind.X), every, strict=True
    ):
        expected = [
            min(b for other, b in zip(others, behind, strict=True) if segment not in other)
            for segment in segments
        ]
        assert margins == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("inference", ["tree", "cut", "messages"])
def test_nodes_of_a_graph_have_margins(inference: str) -> None:
    model, outputs = fitted("graph", inference=inference), list(product(range(2), repeat=3))
    found = model.predict_margins(KINDS["graph"].X)
    for (nodes, edges, features), margins in zip(KINDS["graph"].X, found, strict=True):
        unary, pairs = nodes @ model.coef_.T, np.tensordot(features, model.edge_coef_, axes=1)
        if inference == "cut":
            pairs = np.maximum(pairs, 0.0)[:, None, None] * np.eye(2)
        scores = [
            sum(unary[v, label] for v, label in enumerate(y))
            + sum(pairs[e, y[a], y[b]] for e, (a, b) in enumerate(edges))
            for y in outputs
        ]
        assert margins == pytest.approx([without(outputs, np.array(scores), v) for v in range(3)], abs=1e-9)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_heads_of_words_have_margins(projective: bool, single_root: bool) -> None:
    model = fitted("dependency", projective=projective, single_root=single_root)
    trees = all_trees(3, single_root=single_root, projective=projective)
    for arcs, margins in zip(
        KINDS["dependency"].X, model.predict_margins(KINDS["dependency"].X), strict=True
    ):
        table = arcs @ model.coef_
        scores = np.array([sum(table[j, h] for j, h in enumerate(y)) for y in trees])
        assert margins == pytest.approx([without(trees, scores, j) for j in range(3)], abs=1e-9)


@pytest.mark.parametrize("fertility", [1, 2])
def test_links_have_margins_made_or_not(fertility: int) -> None:
    model = fitted("matching", fertility=fertility)
    bonus = np.append(0.0, model.places_)
    for x, margins in zip(KINDS["matching"].X, model.predict_margins(KINDS["matching"].X), strict=True):
        table, made, scores = x @ model.coef_ + model.intercept_, [], []
        for y in all_matchings(2 * fertility, 3):
            links = {(p // fertility, k): bonus[p % fertility] for p, k in enumerate(y) if k >= 0}
            scores.append(sum(table[link] + extra for link, extra in links.items()))
            made.append([link in links for link in product(range(2), range(3))])
        assert margins.shape == (2, 3)
        assert margins.ravel() == pytest.approx(
            [without(made, np.array(scores), link) for link in range(6)], abs=1e-9
        )


@pytest.mark.parametrize("structure", ["independent", "tree", "full"])
def test_labels_of_a_set_have_margins(structure: str) -> None:
    kind = KINDS["multilabel"]
    model = fitted("multilabel", structure=structure)
    margins, sets = model.predict_margins(kind.X), list(product(range(2), repeat=3))
    assert margins.shape == np.shape(kind.y)
    for x, found in zip(kind.X, margins, strict=True):
        scores = np.array([y @ (model.coef_ @ x + model.intercept_) for y in map(np.array, sets)])
        for (a, b), table in zip(model.edges_, model.edge_coef_, strict=True):
            scores += [table[y[a], y[b]] for y in sets]
        assert found == pytest.approx([without(sets, scores, label) for label in range(3)], abs=1e-9)


def test_one_of_two_classes_has_the_margin_of_a_label() -> None:
    X, y = KINDS["multilabel"].X, ["no", "yes", "yes", "no"]
    model = MultilabelSVC(verbose=0, random_state=0).fit(X, y)
    assert model.predict_margins(X) == pytest.approx(np.abs(X @ model.coef_[0] + model.intercept_[0]))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_margins(n_classes: int, kernel: str) -> None:
    X, y = KINDS["multiclass"].X, KINDS["multiclass"].y % n_classes
    model = MulticlassSVC(kernel=kernel, verbose=0, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    expected = np.abs(scores) if n_classes == 2 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    assert model.predict_margins(X) == pytest.approx(expected)


@pytest.mark.parametrize("name", MODELS)
def test_margins_do_not_depend_on_threads(name: str) -> None:
    model = fitted(name)
    one = model.predict_margins(KINDS[name].X)
    two = model.set_params(n_jobs=2).predict_margins(KINDS[name].X)
    assert (
        np.concatenate([np.ravel(x) for x in one]).tolist()
        == np.concatenate([np.ravel(x) for x in two]).tolist()
    )


@pytest.mark.parametrize("name", LISTS)
def test_no_examples_have_no_margins(name: str) -> None:
    assert fitted(name).predict_margins([]) == []


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("chain", np.zeros((0, 3))),
        ("segments", np.zeros((0, 3))),
        ("matching", np.zeros((0, 3, 2))),
        ("dependency", np.zeros((0, 1, 2))),
    ],
)
def test_empty_examples_have_no_margins(name: str, empty: Array) -> None:
    model, X = fitted(name), KINDS[name].X
    alone, beside = model.predict_margins([empty]), model.predict_margins([X[0], empty, X[1]])
    assert alone[0].size == beside[1].size == 0
    expected = model.predict_margins(X[:2])
    assert [beside[0].tolist(), beside[2].tolist()] == [margins.tolist() for margins in expected]


@pytest.mark.parametrize("name", MODELS)
def test_needs_a_fitted_model(name: str) -> None:
    with pytest.raises(NotFittedError):
        KINDS[name].new().predict_margins(KINDS[name].X)


def test_margins_are_given_only_where_all_outputs_are_known() -> None:
    """A user's argmax finds the best output, but not the best that differs in a part."""
    assert not hasattr(StructuredSVC, "predict_margins")
    margined = (ChainSVC, SegmentSVC, GraphSVC, DependencySVC, MatchingSVC, MultilabelSVC, MulticlassSVC)
    assert all(hasattr(cls, "predict_margins") for cls in margined)

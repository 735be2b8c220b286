"""Empty input gives empty output, and changes nothing in training; one example is predicted alone."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from maxmargin import ChainSVC, DependencySVC, GraphSVC, MatchingSVC, SegmentSVC, TokenTransformer
from support.estimators import KINDS, Kind

WORDS = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"]], [["dogs"], ["bark"]]]
TAGGED = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
HEADS = [[2, 3, 0], [2, 0]]
RNG = np.random.default_rng(0)
ROWS = [RNG.normal(size=(length, 2)) for length in (3, 2, 2)]
ARCS = [RNG.normal(size=(m, m + 1, 2)) for m in (3, 2)]
LINKS = [RNG.normal(size=(2, 3, 2)), RNG.normal(size=(1, 2, 2))]


def sparse_arcs(arcs: Any) -> Any:
    return scipy.sparse.csr_array(arcs.reshape(-1, arcs.shape[-1]))


# A class with parameters, examples, their outputs, empty examples, and what is predicted for these.
TAGS = [["D", "N", "V"], ["D", "N"], ["N", "V"]]
SEGMENTS = [[(0, 2, "NP"), (2, 3, "VP")], [(0, 2, "NP")], [(1, 2, "VP")]]
CASES: dict[str, tuple[Any, dict[str, Any], Any, Any, list[Any], list[Any]]] = {
    "strings": (ChainSVC, {}, WORDS, TAGS, [[], ()], [[], []]),
    "dicts": (ChainSVC, {}, [[{"w": t[0]} for t in x] for x in WORDS], TAGS, [[], []], [[], []]),
    "arrays": (ChainSVC, {"order": 2}, ROWS, TAGS, [[], np.zeros((0, 2))], [[], []]),
    "sparse": (
        ChainSVC,
        {"forbidden": [("V", "V")]},
        list(map(scipy.sparse.csr_array, ROWS)),
        TAGS,
        [[], scipy.sparse.csr_array((0, 2))],
        [[], []],
    ),
    "kernel": (ChainSVC, {"kernel": "rbf"}, ROWS, TAGS, [[], []], [[], []]),
    "objects": (
        ChainSVC,
        {"kernel": lambda a, b: np.array([[float(x == y) for y in b] for x in a])},
        WORDS,
        TAGS,
        [[], []],
        [[], []],
    ),
    "segments": (SegmentSVC, {}, WORDS, SEGMENTS, [[], []], [[], []]),
    "tagged": (DependencySVC, {}, TAGGED, HEADS, [[], ()], [[], []]),
    "arcs": (DependencySVC, {}, ARCS, HEADS, [[], np.zeros((0, 1, 2))], [[], []]),
    "sparse arcs": (
        DependencySVC,
        {"projective": True},
        list(map(sparse_arcs, ARCS)),
        HEADS,
        [[], scipy.sparse.csr_array((0, 2))],
        [[], []],
    ),
    "links": (
        MatchingSVC,
        {},
        LINKS,
        [[2, -1], [0]],
        [np.zeros((0, 3, 2)), np.zeros((2, 0, 2))],
        [[], [-1, -1]],
    ),
    "more links": (
        MatchingSVC,
        {"fertility": 2},
        LINKS,
        [[(0, 0), (0, 2)], [(0, 1)]],
        [np.zeros((0, 3, 2)), np.zeros((2, 0, 2))],
        [[], []],
    ),
}


def plain(outputs: Any) -> list[Any]:
    return [list(output) for output in outputs]


@pytest.mark.parametrize("name", CASES)
def test_empty_examples_have_empty_outputs(name: str) -> None:
    make, parameters, X, y, empty, nothing = CASES[name]
    options = {"verbose": 0, "random_state": 0, "C": 1.0} | parameters
    model = make(**options).fit(X, y)
    expected = plain(model.predict(X))
    assert model.predict([]) == []
    assert plain(model.predict(empty)) == nothing
    mixed = [empty[0], X[0], empty[1], *X[1:]]
    assert plain(model.predict(mixed)) == [nothing[0], expected[0], nothing[1], *expected[1:]]
    assert list(model.predict_single(empty[0])) == nothing[0]
    assert [list(model.predict_single(x)) for x in X] == expected
    outputs = [[], y[0], [], *y[1:]]
    assert model.score(mixed, outputs) == model.score(X, y)
    # Empty examples change neither the weights nor the weights of the other examples.
    weights = np.arange(1.0, len(mixed) + 1)
    again = make(**options).fit(mixed, outputs, sample_weight=weights)
    alone = make(**options).fit(X, y, sample_weight=np.delete(weights, [0, 2]))
    np.testing.assert_array_equal(again._w, alone._w)
    assert again.gap_ == alone.gap_


@pytest.mark.parametrize(("which", "n_states"), [("chain", 3), ("segments", 3), ("dependency", 1)])
def test_probabilities_of_empty_examples_have_no_rows(which: str, n_states: int) -> None:
    kind = KINDS[which]
    model = kind.new().fit(kind.X, kind.y).calibrate(kind.X, kind.y)
    alone = model.predict_marginals(kind.X[:1])[0]
    assert [p.shape for p in model.predict_marginals([[], []])] == [(0, n_states)] * 2
    nothing, first = model.predict_marginals([[], kind.X[0]])
    assert nothing.shape == (0, n_states)
    np.testing.assert_array_equal(first, alone)
    # Iterators are read once, and an empty one is an empty example.
    nothing, first, none = model.predict_marginals(iter([[], kind.X[0], iter([])]))
    assert nothing.shape == none.shape == (0, n_states)
    np.testing.assert_array_equal(first, alone)


def test_graphs_without_nodes_change_no_weights() -> None:
    empty = np.zeros((0, 2)), np.zeros((0, 2), dtype=int)
    graphs = [(x, [(j, j + 1) for j in range(len(x) - 1)]) for x in ROWS]
    model = GraphSVC(verbose=0, random_state=0).fit([empty, *graphs], [[], *TAGS])
    alone = GraphSVC(verbose=0, random_state=0).fit(graphs, TAGS)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.predict([]) == []
    assert plain(model.predict([empty])) == [[]]
    assert plain(model.predict_margins([empty])) == [[]]
    expected = plain(alone.predict(graphs))
    assert plain(model.predict([graphs[0], empty, *graphs[1:]])) == [expected[0], [], *expected[1:]]
    model.calibrate([empty, *graphs], [[], *TAGS])
    assert [p.shape for p in model.predict_marginals([empty, graphs[1]])] == [(0, 3), (2, 3)]
    assert [p.shape for p in model.predict_marginals([empty])] == [(0, 3)]


@pytest.mark.parametrize("which", ["chain", "segments"])
def test_empty_sequences_have_one_output_of_all(which: str) -> None:
    kind = KINDS[which]
    model = kind.new().fit(kind.X, kind.y)
    alone, (first, nothing, last) = (
        model.predict_k_best(kind.X[:2], 3),
        model.predict_k_best([kind.X[0], [], kind.X[1]], 3),
    )
    for one, other in ((first, alone[0]), (last, alone[1])):
        assert list(map(list, one[0])) == list(map(list, other[0]))
        np.testing.assert_array_equal(one.margins, other.margins)
    assert list(map(list, nothing[0])) == [[]]
    assert nothing.margins.tolist() == [0.0]
    assert model.predict_k_best([], 3) == []


def test_pipelines_pass_empty_sequences_on() -> None:
    for X in (ROWS, WORDS):
        scaled = TokenTransformer(MaxAbsScaler())
        model = make_pipeline(scaled, ChainSVC(verbose=0, random_state=0)).fit(X, TAGS)
        first, *others = model.predict(X)
        assert model.predict([]) == []
        assert model.predict([[]]) == [[]]
        assert model.predict([X[0], [], *X[1:]]) == [first, [], *others]


def test_tags_of_empty_sequences() -> None:
    kind = KINDS["segments"]
    model = kind.new().fit(kind.X, kind.y)
    assert model.predict_tags([]) == []
    (tags,) = model.predict_tags(kind.X[:1])
    assert model.predict_tags([[], kind.X[0], []]) == [[], tags, []]


@pytest.mark.parametrize("which", ["chain", "segments", "dependency", "matching", "graph", "structured"])
def test_one_example_is_predicted_as_in_a_list(which: str) -> None:
    kind: Kind = KINDS[which]
    model = kind.new().fit(kind.X, kind.y)
    assert model.predict([]) == []
    for x, expected in zip(kind.X, model.predict(kind.X), strict=True):
        found = model.predict_single(x)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("which", ["chain", "segments", "dependency", "matching"])
def test_a_fit_needs_an_example_that_is_not_empty(which: str) -> None:
    kind = KINDS[which]
    empty = np.zeros((0, 3, 2)) if which == "matching" else []
    with pytest.raises(ValueError, match=f"^{type(kind.new()).__name__}: .*(empty|no pair)") as caught:
        kind.new().fit([empty], [[]])
    assert "\n" not in str(caught.value)
    model = kind.new().partial_fit(kind.X, kind.y)
    with pytest.raises(ValueError, match=f"^{type(model).__name__}: .*(empty|no pair)"):
        model.partial_fit([empty], [[]])

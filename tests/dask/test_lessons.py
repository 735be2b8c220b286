"""What partitions teach, against the encoders of one machine."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainSVC, GraphSVC, MulticlassSVC
from maxmargin.dask.calls import PartitionError
from maxmargin.dask.teaching import as_examples, learnt, merged, sources
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.estimators.examples import Lesson, total_variance

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
SEQUENCE = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from("XYZ")), min_size=1)


def in_a_tree(lessons: list[Lesson]) -> Lesson:
    while len(lessons) > 1:
        lessons = [merged(*lessons[k : k + 2]) for k in range(0, len(lessons), 2)]
    return lessons[0]


@given(st.lists(st.lists(SEQUENCE, max_size=3), min_size=1, max_size=5).filter(any))
def test_names_and_labels_are_those_of_one_machine(parts: list[Any]) -> None:
    data = [([[t for t, _ in seq] for seq in part], [[k for _, k in seq] for seq in part]) for part in parts]
    found = in_a_tree([learnt(p, ChainSVC(), X, y, None) for p, (X, y) in enumerate(data)])
    X, y = ([each for part in side for each in part] for side in zip(*data, strict=True))
    encoder = SequenceEncoder()
    tokens = encoder.fit_transform(X)
    assert found.names is not None
    assert list(found.names) == encoder.feature_names_
    np.testing.assert_array_equal(list(found.names.values()), (tokens.rows != 0).sum(axis=0))
    assert found.labels.tolist() == sorted({label for labels in y for label in labels})
    assert found.numbers == {p: len(part) for p, part in enumerate(parts)}
    assert found.weight == len(X)


def test_sums_give_the_variance_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(2.0, size=(12, 3)), np.arange(12) % 3, rng.uniform(0.5, 2.0, size=12)
    parts = [slice(0, 5), slice(5, 6), slice(6, 12)]
    found = in_a_tree([learnt(p, MulticlassSVC(), X[s], y[s], weights[s]) for p, s in enumerate(parts)])
    assert found.moments is not None
    assert found.moments.variance == pytest.approx(total_variance(X, weights), rel=1e-12)
    assert found.weight == pytest.approx(weights.sum())
    assert found.labels.tolist() == [0, 1, 2]
    assert found.attributes["n_features_in_"] == 3


def test_empty_partitions_teach_nothing() -> None:
    some = learnt(1, ChainSVC(), [[["a"]]], [["X"]], None)
    for order in ([learnt(0, ChainSVC(), [], [], None), some], [some, learnt(0, ChainSVC(), [], [], None)]):
        found = merged(*order)
        assert found.numbers == {0: 0, 1: 1}
        assert found.names == {"a": 1}


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[["a"]]], [[1]], "partition 1 must have labels like those of partition 0"),
        ([[[1.0, 2.0]]], [["X"]], "partition 1 must have the features of partition 0, names, got 2 columns"),
    ],
    ids=["labels", "features"],
)
def test_partitions_must_be_alike(X: Any, y: Any, message: str) -> None:
    X = [np.array(x) if isinstance(x[0][0], float) else x for x in X]
    first, second = learnt(0, ChainSVC(), [[["b"]]], [["X"]], None), learnt(1, ChainSVC(), X, y, None)
    with pytest.raises(PartitionError, match=message):
        merged(first, second)


def test_pairs_of_any_form_become_examples() -> None:
    assert as_examples(iter([(1, "a"), (2, "b")]), None) == ([1, 2], ["a", "b"])
    assert as_examples(([1, 2], ["a", "b"]), None) == ([1, 2], ["a", "b"])
    assert as_examples((1, 2), iter("ab")) == ([1, 2], ["a", "b"])


def test_collections_must_be_divided_alike() -> None:
    import dask
    import dask.array as da
    from dask import bag

    X = bag.from_sequence([1, 2, 3], npartitions=3)
    with pytest.raises(ValueError, match=r"^y must have the 3 partitions of X, got 2"):
        sources(X, [dask.delayed(1), dask.delayed(2)], None)
    with pytest.raises(TypeError, match=r"^X must be a Dask bag.* for local data"):
        sources([[1]], None, None)
    table, y = da.ones((6, 4), chunks=(2, 3)), da.ones(6, chunks=4)
    found = [tuple(dask.compute(*part[:2])) for part in sources(table, y, None)]
    assert [(rows.shape, len(labels)) for rows, labels in found] == 3 * [((2, 4), 2)]


def test_names_of_graphs_are_not_for_clusters() -> None:
    graph = [["a"], ["b"]], [(0, 1)], [["a b"]]
    plain = np.eye(2), [(0, 1)], np.ones((1, 1))
    for x in (graph, (*plain[:2], graph[2]), (graph[0], *plain[1:])):
        with pytest.raises(
            PartitionError, match="X must have the features of nodes and edges as arrays on a"
        ):
            learnt(0, GraphSVC(), [x], [[0, 1]], None)
    assert learnt(0, GraphSVC(), [plain], [[0, 1]], None).number == 1

"""Estimators on a cluster against those on one machine: certificates overlap, predictions are the same."""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import dask as on_dask
from maxmargin.dask import PartitionError
from maxmargin.estimators import estimator

LONG = pytest.mark.long
OPTIONS: dict[str, Any] = {"tol": 1e-2, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options: dict[str, Any] = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as found:
        yield found


def segments() -> tuple[Any, Any]:
    """Words, some of them in names of one to three tokens; some tokens are in no segment."""
    y = [[(0, 1, "A")], [(0, 2, "B"), (2, 3, "A")], [(1, 4, "B")], [(0, 1, "A"), (2, 3, "A")]] * 2
    inside = [{k: label for a, b, label in each for k in range(a, b)} for each in y]
    return [[[f"in={each.get(k)}", f"k={k}"] for k in range(4)] for each in inside], y


def matchings() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = [rng.permutation(3) for _ in range(8)]
    X = [np.eye(3)[each][:, :, None] + rng.normal(scale=0.3, size=(3, 3, 2)) for each in y]
    return X, [each.tolist() for each in y]


def sentences() -> tuple[Any, Any]:
    """Arcs of sentences of three words, whose heads have a larger feature."""
    y = [[0, 1, 1], [2, 0, 2], [0, 1, 2], [3, 3, 0]] * 2
    rng, X = np.random.default_rng(0), []
    for heads in y:
        arcs = rng.normal(scale=0.3, size=(3, 4, 2))
        arcs[np.arange(3), heads, 0] += 1.0
        X.append(arcs)
    return X, y


def graphs() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = [rng.integers(3, size=4) for _ in range(8)]
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    X = [(np.eye(3)[each] + rng.normal(scale=0.3, size=(4, 3)), edges) for each in y]
    return X, y


def label_sets() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=(12, 3))
    return y + rng.normal(scale=0.3, size=(12, 3)), y


CASES = {
    "SegmentSVC": (segments, {"max_length": {"B": 3}}),
    "MatchingSVC": (matchings, {}),
    "DependencySVC": (sentences, {}),
    "GraphSVC": (graphs, {}),
    "MultilabelSVC": (label_sets, {}),
}


def delayed(X: Any, y: Any, parts: int = 3) -> list[Any]:
    """Return pairs of data in partitions of neighbours."""
    edges = np.linspace(0, len(X), parts + 1).astype(int)
    return [dask.delayed((X[a:b], y[a:b])) for a, b in pairwise(edges)]


# Two of them are enough for every run of the tests.
SOME = [name if name in ("SegmentSVC", "GraphSVC") else pytest.param(name, marks=LONG) for name in CASES]


@pytest.mark.parametrize("name", SOME)
def test_a_cluster_trains_the_model_of_one_machine(client: Client, name: str) -> None:
    make, options = CASES[name]
    X, y = make()
    expected = getattr(maxmargin, name)(**OPTIONS, **options).fit(X, y)
    found = getattr(on_dask, name)(**OPTIONS, **options).fit(delayed(X, y))
    assert pytest.approx(expected.C_) == found.C_
    assert found.history_.dual[-1] <= expected.history_.primal[-1]
    assert expected.history_.dual[-1] <= found.history_.primal[-1]
    assert found.gap_ <= 1e-2 * max(1.0, found.history_.primal[-1])
    np.testing.assert_equal(found.predict(X), expected.predict(X))
    np.testing.assert_equal(found.to_local().predict(X), expected.predict(X))
    for attribute in ("classes_", "max_length_", "inference_", "structure_", "n_features_in_"):
        np.testing.assert_equal(getattr(found, attribute, None), getattr(expected, attribute, None))


def slow_part(*of: Any) -> Any:
    time.sleep(0.1)
    return tuple(np.concatenate(each) for each in of)


def test_encoding_and_building_count_towards_the_time_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions take 0.4 seconds in all, on two threads, and labels are learnt before problems are built."""
    given = []

    def noted_solve(*args: Any, **options: Any) -> Any:
        given.append(options["time_limit"])
        return maxmargin.solve(*args, **options)

    monkeypatch.setattr(estimator, "solve", noted_solve)
    X = np.eye(2)[np.arange(8) % 2]
    parts = [dask.delayed(slow_part)([X], [np.arange(8) % 2]) for _ in range(4)]
    model = on_dask.MulticlassSVC(time_limit=100.0, **OPTIONS).fit(parts)
    assert 50.0 < given[0] < 99.8
    assert model.time_limit == 100.0
    on_dask.MulticlassSVC(**OPTIONS).fit(parts)
    assert given[1] is None
    model = on_dask.MulticlassSVC(time_limit=0.1, **OPTIONS)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model.fit(parts)
    assert given[2] == pytest.approx(1e-3)
    assert model.gap_ == np.inf


def test_what_is_for_one_machine(client: Client) -> None:
    X, y = label_sets()
    with pytest.raises(PartitionError, match="structure must be 'independent' or 'full' for 3 labels"):
        on_dask.MultilabelSVC(structure="tree").fit(delayed(X, y))
    with pytest.raises(PartitionError, match="y must have a column for each label on a cluster"):
        on_dask.MultilabelSVC().fit(delayed(X, y[:, 0]))
    tagged = [[("dogs", "NOUN"), ("bark", "VERB")]] * 3
    with pytest.raises(PartitionError, match="X must have the features of arcs as arrays"):
        on_dask.DependencySVC().fit(delayed(tagged, [[2, 0]] * 3))
    words, segmented = segments()
    with pytest.raises(PartitionError, match=r"has [23] tokens, but max_length is 1"):
        on_dask.SegmentSVC(max_length={"B": 1}).fit(delayed(words, segmented))

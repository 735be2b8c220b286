"""Inner products of tokens, tabulated or computed when needed: the same numbers, and the same runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from maxmargin import Accelerated, Pairwise, solve
from maxmargin.problems import Chain, Segments, take
from maxmargin.structures import products
from maxmargin.structures.products import compute_table, new_table_work
from maxmargin.structures.rows import as_rows
from maxmargin.structures.segments.encode import EncodedSegments

KINDS = ("indicators", "sparse", "dense")


def features(kind: str, n_rows: int, n_columns: int, seed: int):
    """Rows with common columns, some of them without any entry."""
    rng = np.random.default_rng(seed)
    is_there = rng.random((n_rows, n_columns)) < (0.9 if kind == "dense" else 0.3)
    array = is_there * (1.0 if kind == "indicators" else rng.normal(size=is_there.shape))
    return array if kind == "dense" else csr_array(array)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    n_columns=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_tables_are_products_of_rows(kind: str, lengths: list[int], n_columns: int, seed: int) -> None:
    X = features(kind, sum(lengths), n_columns, seed)
    rows, offsets = as_rows(X), np.cumsum([0, *lengths])
    tokens = np.column_stack([offsets[:-1], offsets[1:]])
    work = new_table_work(products.no_products(rows, tokens).room)
    stored = products.tabulated(rows, tokens)
    dense = X if kind == "dense" else X.toarray()
    for i in (*range(len(lengths)), 0):
        first, stop = tokens[i]
        compute_table(rows, first, stop, work)
        found = work.values[: lengths[i] ** 2]
        assert np.array_equal(found, stored.values[slice(*stored.spans[i])])
        assert np.allclose(found.reshape(lengths[i], -1), dense[first:stop] @ dense[first:stop].T)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["chain", "segments"])
def test_runs_are_the_same_with_and_without_tables(
    kind: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, offsets = features(kind, 40, 30, 0), np.array([0, 7, 12, 13, 22, 31, 40])
    codes = np.random.default_rng(1).integers(3, size=40)

    def run():
        if model == "chain":
            problem = Chain.from_encoded(X, offsets, codes, 3)
        else:
            found = EncodedSegments(2 * codes + 1, np.arange(3), 3)
            problem = Segments.from_encoded(X, offsets, found, np.array([2, 2, 2]))
        method = Accelerated(Pairwise(lam=0.02))
        return problem, solve(problem, method, tol=0.0, max_passes=3, random_state=0).w

    stored, w = run()
    monkeypatch.setattr(products, "tabulated", products.no_products)
    computed, other = run()
    assert len(stored.map.products) > len(computed.map.products) == 0
    assert np.array_equal(w, other)


def test_tables_take_no_more_memory_than_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_LITTLE", 0)
    tokens = np.array([[0, 20], [20, 40]])
    narrow, wide = (as_rows(features(kind, 40, 30, 0)) for kind in ("indicators", "dense"))
    assert len(products.tabulated(narrow, tokens).values) == 0
    assert len(products.tabulated(wide, tokens).values) == 800


@pytest.mark.parametrize("kind", KINDS)
def test_room_is_that_of_the_largest_sequence_without_a_table(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences that are too long for a table, or have one, need none; a part of a problem needs no more."""
    X, offsets = features(kind, 40, 30, 0), np.array([0, 7, 12, 13, 22, 40])
    codes = np.random.default_rng(1).integers(3, size=40)
    monkeypatch.setattr(products, "_TABULATED", 10)
    stored = Chain.from_encoded(X, offsets, codes, 3).map
    assert stored.table_room.tolist() == [0, 0]
    monkeypatch.setattr(products, "tabulated", products.no_products)
    problem = Chain.from_encoded(X, offsets, codes, 3)
    entries = 0 if kind == "dense" else max(X[a:b].nnz for a, b in [(0, 7), (7, 12), (12, 13), (13, 22)])
    assert problem.map.table_room.tolist() == [9, entries]
    assert take(problem, np.array([1, 2])).map.table_room.tolist() == [9, entries]


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    length=st.integers(1, 8),
    n_columns=st.integers(1, 20),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_streams_of_long_sequences_are_products_of_rows(
    kind: str, length: int, n_columns: int, share: float, seed: int
) -> None:
    """Moves that meet few features or all; the workspace is as new for the next one."""
    X, rng = features(kind, length + 2, n_columns, seed), np.random.default_rng(seed)
    work = products.token_map_work(as_rows(X), products._TABULATED + 1, 4, np.zeros(2, dtype=np.int64))
    own = (X if kind == "dense" else X.toarray())[1 : 1 + length]
    for _ in range(2):
        D = (rng.random((length, 4)) < share) * rng.normal(size=(length, 4))
        G = rng.normal(size=(length, 4))  # what was there before
        products.stream_products(as_rows(X), 1, D, G, work)
        assert np.allclose(G, own @ own.T @ D)
        assert not work.stream.any()
        assert not work.place.any()

"""`as_rows` is the one door of features: it refuses a matrix, or has its values."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainSVC, DependencySVC, GraphSVC, MulticlassSVC, MultilabelSVC
from maxmargin.encoding.kinds import joined
from maxmargin.encoding.matrices import checked_csr
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.problems import Chain
from maxmargin.structures import rows as rows_module
from maxmargin.structures.rows import (
    DenseRows,
    IndicatorRows,
    as_rows,
    n_rows,
    row_add,
    row_add_two,
    row_clear,
    row_dot,
    row_push,
    row_push_few,
    row_scores,
    row_wipe,
    row_wipe_two,
    shared_rows,
    squared_norms,
)

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def values_of(rows):
    """The matrix that rows stand for, by loops that check each index."""
    if isinstance(rows, DenseRows):
        return rows.values
    out = np.zeros((n_rows(rows), rows.n_columns))
    for t in range(n_rows(rows)):
        for p in range(rows.start[t], rows.start[t + 1]):
            assert 0 <= p < len(rows.columns)
            assert 0 <= rows.columns[p] < rows.n_columns
            assert out[t, rows.columns[p]] == 0.0  # no column twice
            out[t, rows.columns[p]] = 1.0 if isinstance(rows, IndicatorRows) else rows.values[p]
    return out


@st.composite
def corrupted(draw):
    """A CSR matrix, some entries of whose arrays are replaced after it was built."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    values = rng.integers(1, 3, (n, p)) * (rng.random((n, p)) < draw(st.sampled_from([0.0, 0.4, 1.0])))
    matrix = scipy.sparse.csr_array(values.astype(draw(st.sampled_from(["f8", "f4", "i4", "?"]))))
    if draw(st.booleans()):
        assert matrix.has_canonical_format  # scipy keeps the answer, whatever changes afterwards
    for _ in range(draw(st.integers(0, 3))):
        part = draw(st.sampled_from([matrix.indices, matrix.indices, matrix.indptr]))
        if len(part):
            number = st.integers(-2, 6) | st.sampled_from([-(10**6), 10**6, 2**31 - 1])
            part[draw(st.integers(0, len(part) - 1))] = draw(number)
    if draw(st.integers(0, 5)) == 0:
        matrix.data = matrix.data[: draw(st.integers(0, 3))]
    return matrix


def is_sound(matrix):
    """Whether each entry of the arrays may be read, one after another."""
    start = matrix.indptr.tolist()
    rising = start[0] == 0 and all(a <= b for a, b in pairwise(start))
    stored = start[-1] <= min(len(matrix.indices), len(matrix.data))
    return rising and stored and all(0 <= k < matrix.shape[1] for k in matrix.indices[: start[-1]].tolist())


@given(corrupted())
def test_rows_are_refused_or_those_of_scipy(matrix):
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    if not is_sound(matrix):
        with pytest.raises((ValueError, TypeError)) as caught:
            as_rows(matrix)
        assert str(caught.value).startswith("the matrix of features must ")
        assert "\n" not in str(caught.value)
        return
    rows = as_rows(matrix)
    expected = np.zeros(matrix.shape)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.add.at(expected, (row, matrix.indices[: len(row)]), matrix.data[: len(row)].astype(float))
    assert np.array_equal(values_of(rows), expected)
    assert np.array_equal(squared_norms(rows), (expected**2).sum(axis=1))
    after = (matrix.data, matrix.indices, matrix.indptr)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_all_forms_of_sparse_matrices_have_the_same_rows(form, density):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < density)
    rows = as_rows(scipy.sparse.csr_array(X).asformat(form))
    assert np.array_equal(values_of(rows), X)
    assert np.array_equal(values_of(as_rows(X)), X)
    assert squared_norms(rows) == pytest.approx((X**2).sum(axis=1))


def test_entries_behind_the_last_row_are_left_out():
    matrix = scipy.sparse.csr_array(np.ones((2, 3)))
    matrix.data, matrix.indices = np.append(matrix.data, 9.0), np.append(matrix.indices, 99)
    assert np.array_equal(values_of(as_rows(matrix)), np.ones((2, 3)))


def test_columns_beyond_int32_keep_their_numbers():
    columns = np.array([2**31 + 5, 2**32 - 1, 3])
    matrix = scipy.sparse.csr_array((np.ones(3), columns, np.array([0, 2, 3])), shape=(2, 2**32))
    assert as_rows(matrix).columns.tolist() == columns.tolist()
    rows = SequenceEncoder().fit_transform([matrix]).rows
    assert as_rows(rows).columns.tolist() == columns.tolist()


def test_what_encoders_made_is_neither_copied_nor_changed():
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(size=(4, 3)), scipy.sparse.csr_array(np.eye(4, 3) * 2.0)
    names = [["a", "b"], ["b"], ["c"], ["a"]]
    for X in (dense, sparse, names):
        tokens = SequenceEncoder().fit_transform([X, X])  # the rows of one array alone would be a view
        for rows, offsets in (tokens, joined(tokens, tokens)):
            held = Chain.for_prediction(rows, offsets, 2).map.rows
            if X is dense:
                assert np.shares_memory(held.values, rows)
                arrays = [rows]
            else:
                assert np.shares_memory(held.columns, rows.indices) or rows is not tokens.rows
                assert X is names or np.shares_memory(held.values, rows.data) or rows is not tokens.rows
                arrays = [rows.data, rows.indices, rows.indptr]
            for array in arrays:
                with pytest.raises(ValueError, match="read-only"):
                    array[:] = 0
    assert dense.flags.writeable
    assert all(part.flags.writeable for part in (sparse.data, sparse.indices, sparse.indptr))


def test_a_frozen_view_of_a_callers_array_is_copied():
    X = np.ones((3, 2))
    view = X.view()
    view.flags.writeable = False
    held = as_rows(view)
    X[:] = 5.0
    assert np.array_equal(values_of(held), np.ones((3, 2)))


def bad_matrices(shape):
    """Sparse matrices whose indices are not those of their shape, in several forms."""
    outside, negative, ends, falls = (scipy.sparse.csr_array(np.ones(shape)) for _ in range(4))
    outside.indices[1], negative.indices[1] = 10**8, -(10**6)
    ends.indptr[-1], falls.indptr[1] = 10**7, 10**7
    yield from (outside, negative, ends, falls, scipy.sparse.csr_matrix(outside))
    for axis in range(2):
        coo = scipy.sparse.coo_array(np.ones(shape))
        coo.coords[axis][1] = 10**8
        yield coo
    csc = scipy.sparse.csc_array(np.ones(shape))
    csc.indices[1] = 10**8
    yield csc


@pytest.mark.parametrize("place", range(8))
def test_estimators_refuse_matrices_with_indices_outside(place):
    bad = list(bad_matrices((6, 4)))[place]
    good = scipy.sparse.csr_array(np.eye(6, 4))
    sets = np.eye(6, 2, dtype=int)
    cases = [
        (MulticlassSVC(verbose=0), bad, np.arange(6) % 3),
        (MultilabelSVC(verbose=0), bad, sets),
        (ChainSVC(verbose=0), [good, bad], [[0, 1] * 3] * 2),
        (GraphSVC(verbose=0), [(good, [(0, 1)]), (bad, [(0, 1)])], [[0, 1] * 3] * 2),
        (DependencySVC(verbose=0), [good, bad], [[0, 1]] * 2),
    ]
    for model, X, y in cases:
        name = type(model).__name__
        with pytest.raises(ValueError, match=f"^{name}: .* must (have|be) .*; rebuild the matrix") as caught:
            model.fit(X, y)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", range(8))
def test_predictions_refuse_matrices_with_indices_outside(place):
    bad = list(bad_matrices((6, 4)))[place]
    good = np.eye(6, 4)
    fitted = MulticlassSVC(verbose=0, tol=10.0).fit(good, np.arange(6) % 3)
    with pytest.raises(ValueError, match=r"^MulticlassSVC: X must .* rebuild the matrix"):
        fitted.predict(bad)


@given(st.integers(1, 11), st.integers(1, 6), st.integers(0, 2**32), st.sampled_from(["f8", "f4"]))
def test_dense_rows_are_scored_and_moved(n_columns, n_labels, seed, dtype):
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (2, n_columns)).astype(dtype)
    rows, W, scores = (
        DenseRows(values, n_columns),
        rng.integers(-9, 9, (n_columns, n_labels)) / 4.0,
        np.ones(n_labels),
    )
    row_scores(rows, 1, W, scores)
    np.testing.assert_array_equal(scores, values[1] @ W)  # sums of few quarters are exact
    delta = rng.integers(-1, 2, n_labels).astype(float)
    moved = W.copy()
    row_push_few(rows, 0, 0.5, delta, moved, np.zeros(n_labels + 1, dtype=np.uint32))
    np.testing.assert_array_equal(moved, W + 0.5 * np.outer(values[0], delta))


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32), st.sampled_from([0.0, 0.5]))
def test_shared_rows_are_those_of_a_kronecker_product(times, n_columns, seed, zeros):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, (2, n_columns)) * (rng.random((2, n_columns)) >= zeros)
    rows = shared_rows(as_rows(X), times)
    W = rng.integers(-9, 9, (times * n_columns, 4)) / 4.0  # sums of few quarters are exact
    for t, x in enumerate(np.vstack([np.kron(np.eye(times), x) for x in X])):
        scores = np.ones(4)
        row_scores(rows, t, W, scores)
        np.testing.assert_array_equal(scores, x @ W)
        assert row_dot(rows, t, W[:, 1]) == x @ W[:, 1]
        pushed, added, both = W.copy(), W.copy(), W.copy()
        row_push(rows, t, 0.5, np.arange(4.0), pushed)
        np.testing.assert_array_equal(pushed, W + 0.5 * np.outer(x, np.arange(4.0)))
        row_add(rows, t, 2.0, added[:, 1])
        row_add_two(rows, t, 2.0, -1.0, both, 1, 3)
        np.testing.assert_array_equal(added, W + np.outer(x, [0, 2, 0, 0]))
        np.testing.assert_array_equal(both, W + np.outer(x, [0, 2, 0, -1]))
        wiped, pair, cleared = W.copy(), W.copy(), W.copy()
        wiped[x == 0] = pair[x == 0] = 0.0  # what the row did not touch may be kept or not
        assert row_wipe(rows, t, wiped[:, 1]) == (W[x != 0, 1] ** 2).sum()
        assert row_wipe_two(rows, t, pair, 1, 3) == (W[x != 0][:, [1, 3]] ** 2).sum()
        row_clear(rows, t, cleared)
        assert not wiped[:, 1].any()
        assert not pair[:, [1, 3]].any()
        assert not cleared[x != 0].any()


def test_matrices_of_encoders_are_checked_once_and_others_again(monkeypatch):
    names = SequenceEncoder().fit_transform([[["a", "b"], ["b"], ["c"], ["a"]]]).rows
    checked = []
    monkeypatch.setattr(
        rows_module, "checked_csr", lambda X, what: checked.append(what) or checked_csr(X, what)
    )
    for X in (names, SequenceEncoder().fit_transform([scipy.sparse.csr_array(np.eye(4, 3) * 2.0)]).rows):
        held = as_rows(X)
        assert not checked
        assert np.shares_memory(held.columns, X.indices)
        for other in (X.copy(), X[:2], X * 2.0, scipy.sparse.csr_array(X), pickle.loads(pickle.dumps(X))):
            as_rows(other)
            assert checked.pop()


def test_indices_that_replace_those_of_an_encoder_are_checked():
    rows = SequenceEncoder().fit_transform([[["a", "b"], ["b"]]]).rows
    rows.indices = np.array([0, 10**6, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="must have column indices from 0 to 1, got 1000000 in row 0"):
        as_rows(rows)

"""Features stay where and as they are: views of callers' arrays, maps, float32, with the bits of float64."""

import mmap
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Accelerated, BlockFrankWolfe, Pairwise, solve
from maxmargin.encoding.kinds import PIECE, first_not_finite
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.problems import Chain, Dependency, Graph, Multiclass, SecondOrderChain, Segments
from maxmargin.runtime.arrays import frozen_view, is_frozen, is_mapped, joint_view, kernel_copy
from maxmargin.structures.dependency.encode import Arcs
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.rows import (
    DenseRows,
    IndicatorRows,
    SparseRows,
    as_indicators,
    as_rows,
    squared_norms,
)
from maxmargin.structures.segments.encode import EncodedSegments
from support.bitwise_runs import assert_same_bits

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(9, 4)).astype(np.float32)
OFFSETS = np.array([0, 4, 5, 9])
LABELS = RNG.integers(3, size=9)


def mapped(path, array, mode="r"):
    """The array in a file that is mapped."""
    np.save(path, array)
    return np.load(path, mmap_mode=mode)


def read_only(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


def csr(data, indices, indptr, shape):
    """A matrix of exactly these arrays, whatever their types."""
    matrix = scipy.sparse.csr_array(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def test_only_what_nobody_can_change_is_frozen(tmp_path):
    whole = np.ones((4, 3))
    view = whole[1:]
    view.flags.writeable = False
    assert not is_frozen(whole)
    assert not is_frozen(view)  # the caller changes it through the whole array
    assert is_frozen(frozen_view(whole))
    assert is_frozen(frozen_view(whole)[1:])
    assert not is_frozen(frozen_view(whole).copy())
    read_only(whole)
    assert is_frozen(whole)
    assert is_frozen(whole[1:])
    assert frozen_view(whole) is whole
    assert is_frozen(mapped(tmp_path / "a.npy", whole))
    assert not is_frozen(mapped(tmp_path / "b.npy", whole, "r+"))
    assert not is_frozen(mapped(tmp_path / "c.npy", whole, "c"))
    assert is_frozen(np.frombuffer(bytes(16)))
    assert not is_frozen(np.frombuffer(bytearray(16)))
    memory = mmap.mmap(-1, 16)
    assert not is_frozen(np.frombuffer(memory))
    assert is_mapped(np.frombuffer(memory)[1:])
    assert not is_mapped(whole)


def test_owned_arrays_are_writeable_views_of_frozen_ones_and_copies_of_others(tmp_path):
    whole = np.arange(6.0)
    assert not np.shares_memory(kernel_copy(whole, np.float64), whole)
    for frozen in (frozen_view(whole), mapped(tmp_path / "a.npy", whole), *read_only(whole.copy())):
        held = kernel_copy(frozen, np.float64)
        assert np.shares_memory(held, frozen)
        assert held.flags.writeable  # the type that kernels are compiled for
        assert not frozen.flags.writeable
        assert not np.shares_memory(kernel_copy(frozen, np.float32), frozen)
        assert not np.shares_memory(kernel_copy(frozen[::2], np.float64), frozen)
    (columns,) = read_only(np.array([3, 1], dtype=np.int32))
    held = kernel_copy(columns, np.uint32)
    assert (held.dtype, held.tolist()) == (np.uint32, [3, 1])
    assert np.shares_memory(held, columns)


def test_memory_is_kept_for_as_long_as_it_is_used(tmp_path):
    held = kernel_copy(frozen_view(np.full(PIECE, 7.0)), np.float64)
    rows = as_rows(mapped(tmp_path / "a.npy", np.full((9, PIECE), 7.0)))
    other = [np.full(PIECE, 1.0) for _ in range(20)]  # would take the place of memory that was given back
    assert all((array == 7.0).all() for array in (held, rows.values))
    assert len(other) == 20


def blocks_of(array, sizes):
    edges = np.cumsum([0, *sizes])
    return [array[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.sampled_from([np.float32, np.float64]))
def test_consecutive_parts_of_one_array_are_one_view(sizes, dtype):
    whole = np.arange(3.0 * (sum(sizes) + 2)).reshape(-1, 3).astype(dtype)
    blocks = blocks_of(whole[1:-1], sizes)
    view = joint_view(blocks)
    assert np.array_equal(view, whole[1:-1])
    assert np.shares_memory(view, whole)
    assert not view.flags.writeable
    assert whole.flags.writeable


def test_other_arrays_are_no_view():
    whole = np.arange(24.0).reshape(8, 3)
    first, second, third = blocks_of(whole, (3, 2, 3))
    assert joint_view([first, third]) is None
    assert joint_view([second, first]) is None
    assert joint_view([first, first]) is None
    assert joint_view([first, second.copy()]) is None
    assert joint_view([first, second.view(np.int64)]) is None
    assert joint_view([whole[:, :2]]) is None
    assert joint_view([np.asfortranarray(whole)]) is None
    side_by_side = np.frombuffer(bytearray(48)), np.frombuffer(bytearray(48))
    assert joint_view([part.reshape(2, 3) for part in side_by_side]) is None


IN_PLACE = {
    "3-D": lambda a: a.reshape(3, 3, 4),
    "slices": lambda a: [a[:4], a[4:5], a[5:]],
    "slices with an empty one": lambda a: [a[:4], a[4:4], a[4:5], a[5:], []],
    "one": lambda a: [a],
}
GATHERED = {
    "copies": lambda a: [a[:4].copy(), a[4:5].copy(), a[5:].copy()],
    "disorder": lambda a: [a[4:5], a[:4]],
    "fortran": lambda a: [np.asfortranarray(a)],
    "columns": lambda a: [np.hstack([a, a])[:, :4]],
    "every other token": lambda a: np.repeat(a, 2, axis=0)[::2].reshape(3, 3, 4)[:, :2],
    "big-endian": lambda a: [a[:4].astype(">f4"), a[4:].astype(">f4")],
    "half and single": lambda a: [a[:4].astype(np.float16), a[4:]],
    "small integers and single": lambda a: [np.ones((2, 4), dtype=np.int8), a],
}


@pytest.mark.parametrize("made", IN_PLACE.values(), ids=IN_PLACE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_encoders_see_what_is_in_place(made, dtype):
    whole = FEATURES.astype(dtype)
    X = made(whole)
    rows, offsets = SequenceEncoder().fit_transform(X)
    assert np.shares_memory(rows, whole)
    assert (rows.dtype, rows.tolist()) == (dtype, whole.tolist())
    assert np.diff(offsets).tolist() == [len(x) for x in X]
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 0.0


@pytest.mark.parametrize("made", GATHERED.values(), ids=GATHERED)
def test_other_features_are_gathered_in_their_own_type(made):
    X = made(FEATURES)
    rows = SequenceEncoder().fit_transform(X).rows
    assert rows.dtype == np.float32
    assert rows.dtype.isnative
    assert np.array_equal(rows, np.concatenate([np.asarray(x) for x in X]))
    assert not any(np.shares_memory(rows, x) for x in X)


@pytest.mark.parametrize("other", [np.float64, np.int32, np.int64, np.longdouble])
def test_features_of_two_types_have_one_that_holds_both(other):
    rows = SequenceEncoder().fit_transform([FEATURES[:4], np.full((1, 4), 2**24 + 1).astype(other)]).rows
    assert rows.dtype == np.float64
    assert rows[4].tolist() == [2**24 + 1] * 4


def segments(X):
    codes = EncodedSegments(np.array([1, 0, 3, 5, 4, 5, 1, 1, 0]), np.arange(2), 3)
    return Segments.from_encoded(X, np.array([0, 5, 9]), codes, np.array([2, 1, 2]))


def graphs(X):
    ends = np.array([[0, 1], [0, 1], [1, 2]])
    return Graph.from_encoded(Graphs(X, np.array([0, 3, 9]), X[:3], np.array([0, 1, 3]), ends), LABELS, 3)


def trees(X):
    return Dependency.from_encoded(Arcs(X[:8], np.array([0, 1, 3])), np.array([0, 0, 1]))


BUILDERS = {
    "multiclass": lambda X: Multiclass.from_encoded(X, LABELS, 3),
    "chain": lambda X: Chain.from_encoded(X, OFFSETS, LABELS, 3),
    "second": lambda X: SecondOrderChain.from_encoded(X, OFFSETS, LABELS, 3),
    "segments": segments,
    "graphs": graphs,
    "trees": trees,
}
METHODS = {"BCFW": BlockFrankWolfe(0.05), "accelerated": Accelerated(Pairwise(0.05))}
FORMS = {
    "dense": lambda X: X,
    "sparse": scipy.sparse.csr_array,
    "dense with zeros": lambda X: np.where(X > 0.3, X, 0.0).astype(X.dtype),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("model", BUILDERS)
def test_single_precision_gives_the_bits_of_the_same_values_in_double(model, form, method):
    single, double = (BUILDERS[model](form(X)) for X in (FEATURES, FEATURES.astype(np.float64)))
    types = [getattr(each.map, "inner", each.map).rows.values.dtype for each in (single, double)]
    assert types == [np.float32, np.float64]
    found, expected = (
        solve(problem, method, tol=0.0, max_passes=6, check_every=2, random_state=0)
        for problem in (single, double)
    )
    assert_same_bits(found, expected)


@pytest.mark.parametrize("X", [FEATURES, scipy.sparse.csr_array(FEATURES * (FEATURES > 0))])
def test_lengths_of_rows_are_those_of_double_precision(X):
    rows, double = as_rows(X), as_rows(X.astype(np.float64))
    assert squared_norms(rows).tolist() == squared_norms(double).tolist()
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    assert squared_norms(rows) == pytest.approx((dense.astype(np.float64) ** 2).sum(axis=1), rel=1e-14)


def test_entries_of_a_column_are_summed_in_double_precision():
    values = np.array([1e8, 1.0, -1e8, 0.1], dtype=np.float32)
    columns, start = np.array([1, 1, 1, 0]), np.array([0, 4, 4])
    rows = as_rows(scipy.sparse.csr_array((values, columns, start), shape=(2, 3)))
    assert rows.values.tolist() == [float(values[3]), 1.0]
    flags = scipy.sparse.csr_array((np.ones(4, dtype=np.bool_), columns, start), shape=(2, 3))
    assert as_rows(flags).values.tolist() == [1.0, 3.0]


def test_mapped_arrays_are_used_in_place(tmp_path):
    X = mapped(tmp_path / "a.npy", FEATURES)
    problem = Chain.from_sequences([X[:4], X[4:5], X[5:]], np.split(LABELS, OFFSETS[1:-1]))
    assert np.shares_memory(problem.map.rows.values, X)
    expected = Chain.from_sequences([FEATURES], [LABELS]).map.rows.values
    assert np.array_equal(problem.map.rows.values, expected)
    few = mapped(tmp_path / "b.npy", np.eye(9, dtype=np.float32) * 2)
    assert isinstance(as_rows(few), DenseRows)  # it may be larger than memory
    assert isinstance(as_rows(np.eye(9)), IndicatorRows)


@pytest.mark.parametrize("column_type", [np.uint32, np.int32])
def test_mapped_sparse_matrices_are_used_in_place(tmp_path, column_type):
    X = scipy.sparse.csr_array(FEATURES * (FEATURES > 0))
    start = mapped(tmp_path / "start.npy", X.indptr.astype(np.int64))
    columns = mapped(tmp_path / "columns.npy", X.indices.astype(column_type))
    values = mapped(tmp_path / "values.npy", X.data)
    rows = as_rows(csr(values, columns, start, X.shape))
    assert isinstance(rows, SparseRows)
    for held, given_array in zip(rows[:3], (start, columns, values), strict=True):
        assert np.shares_memory(held, given_array)
    ones = as_indicators(start, columns, X.shape[1])
    assert isinstance(ones, IndicatorRows)
    assert np.shares_memory(ones.start, start)
    assert np.shares_memory(ones.columns, columns)


def test_mapped_indices_are_checked(tmp_path):
    start = mapped(tmp_path / "start.npy", np.array([0, 2, 3]))
    columns = mapped(tmp_path / "columns.npy", np.array([0, 7, 1], dtype=np.uint32))
    with pytest.raises(ValueError, match="column indices from 0 to 2, got 7 in row 0"):
        as_indicators(start, columns, 3)
    with pytest.raises(ValueError, match="column indices from 0 to 2, got 7 in row 0"):
        as_rows(csr(np.ones(3), columns, start, (2, 3)))
    with pytest.raises(ValueError, match="an indptr of 3 entries from 0"):
        as_indicators(start + 1, columns, 8)


def test_indices_that_callers_can_change_are_copied():
    X = scipy.sparse.csr_array(FEATURES * (FEATURES > 0))
    rows = as_rows(csr(frozen_view(X.data), X.indices, X.indptr, X.shape))
    assert np.shares_memory(rows.values, X.data)
    X.indices[:] = 10**6
    X.indptr[:] = 10**6
    assert rows.columns.max() < 4
    assert rows.start[-1] == len(rows.values)


def test_rows_do_not_follow_callers_arrays():
    whole = FEATURES.copy()
    made = [made(whole) for name, made in IN_PLACE.items() if "empty" not in name]
    problems = [Chain.from_sequences(X, [list(range(len(x))) for x in X]) for X in made]
    problems.append(Multiclass.from_arrays(whole, LABELS))
    whole[:] = 77.0
    for problem in problems:
        assert np.array_equal(problem.map.rows.values, FEATURES)


@given(st.integers(0, 5), st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(1, 3))
def test_the_first_number_that_is_not_finite_is_found_in_any_piece(seed, bad, width):
    rng = np.random.default_rng(seed)
    values = np.full((PIECE // width + 5, width), 3e38, dtype=np.float32)  # the sum overflows
    assert first_not_finite(values) is None
    place = int(rng.integers(values.size))
    values.flat[place] = bad
    values.flat[values.size - 1] = bad
    assert first_not_finite(values) == place


def test_long_arrays_are_stored_piece_by_piece():
    rng = np.random.default_rng(0)
    X = (rng.integers(1, 9, (3000, 301)) * (rng.random((3000, 301)) < 0.4)).astype(np.float32)
    assert X.size > 2 * PIECE
    rows, expected = as_rows(X), scipy.sparse.csr_array(X)
    assert np.array_equal(rows.start, expected.indptr)
    assert np.array_equal(rows.columns, expected.indices)
    assert np.array_equal(rows.values, expected.data)
    assert squared_norms(rows).tolist() == (X.astype(np.float64) ** 2).sum(axis=1).tolist()
    swapped = expected.copy()
    swapped.indices[[PIECE, PIECE + 1]] = swapped.indices[[PIECE + 1, PIECE]]
    swapped.data[[PIECE, PIECE + 1]] = swapped.data[[PIECE + 1, PIECE]]
    for given_array, held in zip(rows, as_rows(swapped), strict=True):
        assert np.array_equal(given_array, held)

"""Matrices: checks of structure, those that encoders make, which need none, and stacks of sequences."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import coo_array, csr_array

from maxmargin.encoding.kinds import (
    CHUNK,
    Offsets,
    Tokens,
    chunk_edges,
    first_not_finite,
    is_empty,
    is_numeric,
    kind_of,
    mixture,
    offsets_of,
    pieces,
    place,
)
from maxmargin.runtime.arrays import (
    CsrMatrix,
    SparseMatrix,
    ValueArray,
    csr_of,
    freeze,
    index_dtype,
    is_frozen,
    is_sparse,
    joint_view,
    value_dtype,
)
from maxmargin.runtime.wording import described

_ADVICE = "rebuild the matrix"
_Features = TypeVar("_Features")


def checked_csr(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return a sparse matrix in CSR form, uncopied if it has that form; raise if an index is out of range.

    The compiled code of scipy, like ours, does not check indices. Call this before anything else reads the
    matrix.
    """
    matrix = as_csr(X, what)
    check_entries(matrix, what)
    return matrix


def sound(X: _Features, what: str) -> _Features | CsrMatrix:
    """Return X if it is dense, and `checked_csr` of it if it is sparse."""
    return checked_csr(X, what) if is_sparse(X) else X


def as_csr(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return a sparse matrix in CSR form, with arrays of the lengths that its shape requires."""
    if len(X.shape) != 2:
        raise ValueError(f"{what} must be a sparse matrix of two dimensions, got shape {X.shape}.")
    matrix = _converted(X, what)
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n_stored = checked_length(indptr, min(len(indices), len(data)), matrix.shape[0], what)
    if n_stored == len(indices) == len(data):
        return matrix
    shortened: CsrMatrix = csr_array((data[:n_stored], indices[:n_stored], indptr), shape=matrix.shape)
    return shortened


def checked_length(indptr: NDArray[np.integer], n_values: int, n_rows: int, what: str) -> int:
    """Return the number of values that ``indptr`` refers to; raise unless it fits the values and the rows."""
    n_stored = int(indptr[-1]) if len(indptr) else -1
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or not 0 <= n_stored <= n_values:
        raise ValueError(
            f"{what} must have an indptr of {n_rows + 1} entries from 0 to the number of values, got "
            f"{len(indptr)} entries, the last {n_stored}, for {n_values} values; {_ADVICE}."
        )
    return n_stored


def _converted(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return the matrix in CSR form; scipy checks one of another form before it converts it."""
    if X.format == "csr":
        return X.tocsr()
    try:
        if X.format == "coo" and hasattr(X, "data") and hasattr(X, "coords"):
            coo_array((X.data, X.coords), shape=X.shape)  # the constructor checks all coordinates
        elif hasattr(X, "check_format"):
            X.check_format(full_check=True)
        return X.tocsr()
    except ValueError as error:
        raise ValueError(f"{what} must be a valid sparse matrix, got one whose {error}; {_ADVICE}.") from None


def check_entries(matrix: CsrMatrix, what: str) -> None:
    """Raise unless the rows of a CSR matrix are in order and all its columns are within its shape."""
    check_indices(matrix.indptr, matrix.indices, matrix.shape[1], what)


def check_indices(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], n_columns: int, what: str
) -> None:
    """Raise unless two arrays of a CSR matrix describe rows in order, with columns within its shape."""
    for piece in pieces(len(indptr) - 1):
        decreasing = indptr[1:][piece] < indptr[:-1][piece]
        if decreasing.any():
            raise ValueError(
                f"{what} must have an indptr that never decreases, got one that decreases after row "
                f"{piece.start + int(decreasing.argmax())}; {_ADVICE}."
            )
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{what} must have column indices that are ints, got {indices.dtype}; {_ADVICE}.")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise ValueError(_out_of_range(indptr, indices, n_columns, what))


def is_canonical(indptr: NDArray[np.integer], indices: NDArray[np.integer]) -> bool:
    """Return whether columns increase within each row, given arrays that `check_indices` found in order."""
    for piece in pieces(len(indices) - 1):
        increasing = indices[1:][piece] > indices[:-1][piece]
        ends = np.array([piece.start, piece.stop], dtype=indptr.dtype)
        first, last = np.searchsorted(indptr, ends, side="right")
        increasing[indptr[first:last].astype(np.int64) - (piece.start + 1)] = True  # rows begin here
        if not increasing.all():
            return False
    return True


def in_order(matrix: csr_array) -> csr_array:
    """Return a new matrix with columns that increase within rows; its arrays may change.

    The values of repeated columns are added in float64, the type of all sums.
    """
    if is_canonical(matrix.indptr, matrix.indices):
        return matrix
    matrix.has_sorted_indices = matrix.has_canonical_format = False  # its own flags may be stale
    matrix.sort_indices()
    if not is_canonical(matrix.indptr, matrix.indices):
        matrix.data = matrix.data.astype(np.float64, copy=False)
        matrix.sum_duplicates()
    return matrix


def _out_of_range(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], n_columns: int, what: str
) -> str:
    """Return the message for the first column that is out of range."""
    place = int(((indices < 0) | (indices >= n_columns)).argmax())
    row = int(np.searchsorted(indptr, place, side="right")) - 1
    return (
        f"{what} must have column indices from 0 to {n_columns - 1}, got {indices[place]} in row {row}; "
        f"{_ADVICE}."
    )


Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Values = NDArray[np.float64]


def sparse_rows(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> csr_array:
    """Return the matrix whose row t has the values of token t; values of repeated features are added.

    Parameters
    ----------
    codes : ndarray of int32
        Feature numbers of all tokens, one token after another; `n_features` for unknown features.
    counts : ndarray of int64
        How many of the codes belong to each token.
    values : ndarray of float64 or None
        One value per code; None for ones.
    n_features : int

    Returns
    -------
    csr_array
        With sorted int32 indices without duplicates, and int64 indptr.
    """
    if not len(counts):
        return encoded(np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int64), n_features)
    stops = np.cumsum(counts)
    edges = chunk_edges(counts, CHUNK).tolist()
    chunks = []
    for start, stop in pairwise(edges):
        entries = slice(stops[start] - counts[start], stops[stop - 1])
        value = None if values is None else values[entries]
        chunks.append(_canonical(codes[entries], counts[start:stop], value, n_features))
    if len(chunks) == 1:
        indices, values, lengths = chunks[0]
        values = None if values is None else values.copy()  # it may be the caller's own
    else:
        indices = np.concatenate([chunk.indices for chunk in chunks])
        values = None if all(chunk.values is None for chunk in chunks) else _joined_values(chunks)
        lengths = np.concatenate([chunk.counts for chunk in chunks])
    values = ones(len(indices)) if values is None else values
    return encoded(values, indices, np.append(0, np.cumsum(lengths)), n_features)


class EncodedMatrix(csr_array):  # type: ignore[misc]
    """A matrix in canonical form that an encoder made; the class is the proof that its indices are sound.

    It holds for as long as the arrays are frozen. Matrices that are computed from it have others.
    """


def is_encoded(X: object) -> TypeGuard[CsrMatrix]:
    """Whether an encoder made a matrix, so that kernels may read it without another check."""
    return type(X) is EncodedMatrix and all(map(is_frozen, (X.data, X.indices, X.indptr)))


def encoded(data: ValueArray, indices: Codes, indptr: Counts, n_features: int) -> EncodedMatrix:
    """Return the matrix of these arrays, as `assemble`, with the proof that its indices are sound."""
    rows = EncodedMatrix((len(indptr) - 1, n_features), dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    rows.has_sorted_indices = rows.has_canonical_format = True
    return freeze(rows)


def assemble(data: ValueArray, indices: Codes, indptr: Counts, n_features: int) -> csr_array:
    """Return a csr_array of exactly these arrays, which must be in canonical form, and freeze them."""
    rows = csr_of(data, indices, indptr, n_features)
    rows.has_sorted_indices = rows.has_canonical_format = True
    freeze(rows)
    return rows


def drop_columns(rows: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """Return the matrix of the columns where `kept` is true."""
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    inside = kept[rows.indices]
    before = np.concatenate(([0], np.cumsum(inside)))
    indices = number[rows.indices[inside]]
    make = encoded if is_encoded(rows) else assemble
    return make(rows.data[inside], indices, before[rows.indptr], int(kept.sum()))


class _Chunk(NamedTuple):
    """Some rows: their indices, values (None for ones) and lengths."""

    indices: Codes
    values: Values | None
    counts: Counts


def ones(n: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return n ones, frozen, which take no memory."""
    return np.broadcast_to(freeze(np.ones(1, dtype)), n)


def _joined_values(chunks: list[_Chunk]) -> Values:
    values = [np.ones(len(chunk.indices)) if chunk.values is None else chunk.values for chunk in chunks]
    return np.concatenate(values)


def _canonical(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> _Chunk:
    """Return the rows of some tokens, with known features only, sorted, repeated ones added up."""
    # One number for row and feature, as narrow as possible, since sorting takes most of the time. Never
    # uint64: together with int64 it makes float64, and older versions of NumPy cannot count it.
    stride = n_features + 1
    number = np.uint32 if stride * len(counts) < 1 << 32 else np.int64
    first = np.repeat((np.arange(len(counts)) * stride).astype(number), counts)
    key = first + codes.view(np.uint32)
    if values is None:
        key.sort()
    elif np.any(key[1:] < key[:-1]):
        order = np.argsort(key, kind="stable")
        key, values = key[order], values[order]
    indices = (key - first).astype(np.int32)
    kept = indices != n_features
    repeated = key[1:] == key[:-1]
    repeated &= kept[1:]
    if repeated.any():
        values = _added_up(key, values)
        kept[1:] &= ~repeated
    if not kept.all():
        counts = counts - np.bincount(first[~kept] // stride, minlength=len(counts))
        indices, values = indices[kept], None if values is None else values[kept]
    return _Chunk(indices, values, counts)


def _added_up(key: NDArray[np.integer], values: Values | None) -> Values:
    """Return the values, with the sum of each run of equal keys at the first place of the run."""
    sums = np.ones(len(key)) if values is None else values.copy()
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums[starts] = np.add.reduceat(sums, starts)
    return sums


_INT32 = np.iinfo(np.int32).max


class _Block(Protocol):
    """A dense or sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...


_Rows = TypeVar("_Rows", bound=_Block)


def stack_dense(sequences: list[object]) -> Tokens:
    """Return the rows of all arrays: a view if they are consecutive parts of one array, else new."""
    blocks, offsets = _dense_blocks(sequences)
    dtype = np.dtype(value_dtype(_common_dtype(blocks)))
    rows = joint_view(blocks) if blocks[0].dtype == dtype else None
    if rows is None:
        rows = freeze(_gathered(blocks, offsets, dtype))
    bad = first_not_finite(rows)
    if bad is not None:
        token, feature = divmod(bad, rows.shape[1])
        raise _not_finite(rows[token, feature], feature, token, offsets)
    return Tokens(rows, offsets)


def dense_rows(sequences: list[object]) -> tuple[NDArray[Any], Offsets]:
    """Return the rows of all arrays in a new one, in the dtype that holds all of theirs, and the offsets."""
    blocks, offsets = _dense_blocks(sequences)
    return _gathered(blocks, offsets, _common_dtype(blocks)), offsets


def _dense_blocks(sequences: list[object]) -> tuple[Sequence[NDArray[Any]], Offsets]:
    """Return the arrays that have rows, and the offsets of all."""
    return _checked([_dense_block(sequence, i) for i, sequence in enumerate(sequences)])


def _common_dtype(blocks: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """Return the dtype that holds all values; NumPy would inspect each of thousands of arrays."""
    return np.result_type(*{block.dtype for block in blocks})


def _gathered(blocks: Sequence[NDArray[Any]], offsets: Offsets, dtype: np.dtype[Any]) -> NDArray[Any]:
    rows = np.empty((int(offsets[-1]), blocks[0].shape[1]), dtype)
    return np.concatenate(blocks, out=rows, casting="same_kind")


def stack_sparse(sequences: list[object]) -> Tokens:
    """Return the rows of all sparse matrices, in canonical form."""
    rows, offsets = csr_rows(sequences)
    bad = first_not_finite(rows.data)
    if bad is not None:
        token = int(np.searchsorted(rows.indptr, bad, side="right")) - 1
        raise _not_finite(rows.data[bad], rows.indices[bad], token, offsets)
    n_features = rows.shape[1]
    indices = rows.indices.astype(np.int32, copy=False) if n_features <= _INT32 else rows.indices
    indptr = rows.indptr.astype(np.int64, copy=False)
    data = rows.data.astype(value_dtype(rows.dtype), copy=False)
    if (data == 1.0).all():
        data = ones(len(data), data.dtype)
    return Tokens(encoded(data, indices, indptr, n_features), offsets)


def csr_rows(sequences: list[object]) -> tuple[csr_array, Offsets]:
    """Return the rows of all sparse matrices, without duplicates, and the offsets."""
    given = [_sparse_block(sequence, i) for i, sequence in enumerate(sequences)]
    blocks, offsets = _checked(given)
    data = np.concatenate([block.data for block in blocks])
    indices = np.concatenate([block.indices for block in blocks])
    counts = np.concatenate([np.diff(block.indptr) for block in blocks])
    indptr = np.append(0, np.cumsum(counts, dtype=np.int64)).astype(index_dtype(indices, len(data)))
    rows = csr_of(data, indices.astype(indptr.dtype, copy=False), indptr, blocks[0].shape[1])
    _check_indices(rows, given)
    return in_order(rows), offsets


def _check_indices(rows: csr_array, blocks: list[CsrMatrix]) -> None:
    """Raise if an index is out of range. One check of all sequences is faster than one check of each."""
    try:
        check_entries(rows, "X")
    except (TypeError, ValueError):
        for i, block in enumerate(blocks):
            check_entries(block, f"sequence {i} of X")
        raise


def _dense_block(sequence: object, i: int) -> NDArray[np.number | np.bool_]:
    if is_sparse(sequence):
        raise mixture(i, sequence, "dense")
    try:
        block = np.asarray(sequence)
        block = block.astype(np.float64) if block.dtype == object else block
    except (TypeError, ValueError):
        raise _not_numbers(sequence, i) from None
    if not is_numeric(block.dtype):
        raise _not_numbers(sequence, i)
    if block.ndim != 2 and block.size:
        raise _not_two_dimensional(block, i)
    return block


def _not_numbers(sequence: object, i: int) -> Exception:
    if kind_of(sequence, i) not in ("dense", None):
        return mixture(i, sequence, "dense")
    return ValueError(
        f"sequence {i} of X is {described(sequence)}, which is not a 2-D array of real numbers; "
        "give every token the same number of features, each a real number."
    )


def _sparse_block(sequence: object, i: int) -> CsrMatrix:
    if not is_sparse(sequence):
        if is_empty(sequence):
            return csr_array((0, 0))
        raise mixture(i, sequence, "sparse")
    if len(sequence.shape) != 2:
        raise _not_two_dimensional(sequence, i)
    if not is_numeric(sequence.dtype):
        raise TypeError(f"sequence {i} of X has dtype {sequence.dtype}, expected real numbers.")
    return as_csr(sequence, f"sequence {i} of X")


def _checked(blocks: Sequence[_Rows]) -> tuple[Sequence[_Rows], Offsets]:
    """Return the blocks that have rows, and the offsets of all; raise if numbers of features differ."""
    lengths = np.array([block.shape[0] if block.ndim else 0 for block in blocks], np.int64)
    present = np.flatnonzero(lengths).tolist()
    kept = blocks if len(present) == len(blocks) else [blocks[i] for i in present]
    n_features = kept[0].shape[1]
    ragged = next((k for k, block in enumerate(kept) if block.shape[1] != n_features), None)
    if ragged is not None:
        raise ValueError(
            f"sequence {present[ragged]} of X has {kept[ragged].shape[1]} features, but sequence "
            f"{present[0]} has {n_features}; give all sequences the same features."
        )
    if n_features == 0:
        raise ValueError("X has 0 features, expected at least 1.")
    return kept, offsets_of(lengths)


def _not_two_dimensional(block: object, i: int) -> ValueError:
    return ValueError(
        f"sequence {i} of X is {described(block)}, expected 2-D (length, n_features); "
        "use reshape(-1, 1) for one feature, [X] if X is one sequence."
    )


def _not_finite(value: float, feature: int, token: int, offsets: Offsets) -> ValueError:
    return ValueError(
        f"feature {feature} of {place(offsets, token)} is {value}, expected a finite "
        "number; remove or impute it."
    )

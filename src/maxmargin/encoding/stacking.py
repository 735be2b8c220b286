"""Stack sequences that are arrays or sparse matrices."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import CsrMatrix, csr_of, frozen, index_dtype, is_sparse, joint_view, value_dtype
from maxmargin.encoding.kinds import is_empty, is_numeric, kind_of, mixture
from maxmargin.encoding.matrices import as_csr, check_entries, in_order
from maxmargin.encoding.sparse_rows import assemble
from maxmargin.encoding.tokens import Offsets, Tokens, first_not_finite, offsets_of, place
from maxmargin.wording import described

_INT32 = np.iinfo(np.int32).max


class _Block(Protocol):
    """A dense or sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...


_Rows = TypeVar("_Rows", bound=_Block)


def stack_dense(sequences: list[object], owner: str) -> Tokens:
    """Return the rows of all arrays: a view if they are consecutive parts of one array, else new."""
    blocks, offsets = _dense_blocks(sequences, owner)
    dtype = np.dtype(value_dtype(_common_dtype(blocks)))
    rows = joint_view(blocks) if blocks[0].dtype == dtype else None
    if rows is None:
        rows = frozen(_gathered(blocks, offsets, dtype))
    bad = first_not_finite(rows)
    if bad is not None:
        token, feature = divmod(bad, rows.shape[1])
        raise _not_finite(rows[token, feature], feature, token, offsets, owner)
    return Tokens(rows, offsets)


def dense_rows(sequences: list[object], owner: str) -> tuple[NDArray[Any], Offsets]:
    """Return the rows of all arrays in a new one, in the dtype that holds all of theirs, and the offsets."""
    blocks, offsets = _dense_blocks(sequences, owner)
    return _gathered(blocks, offsets, _common_dtype(blocks)), offsets


def _dense_blocks(sequences: list[object], owner: str) -> tuple[Sequence[NDArray[Any]], Offsets]:
    """Return the arrays that have rows, and the offsets of all."""
    return _checked([_dense_block(sequence, i, owner) for i, sequence in enumerate(sequences)], owner)


def _common_dtype(blocks: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """Return the dtype that holds all values; NumPy would inspect each of thousands of arrays."""
    return np.result_type(*{block.dtype for block in blocks})


def _gathered(blocks: Sequence[NDArray[Any]], offsets: Offsets, dtype: np.dtype[Any]) -> NDArray[Any]:
    rows = np.empty((int(offsets[-1]), blocks[0].shape[1]), dtype)
    return np.concatenate(blocks, out=rows, casting="same_kind")


def stack_sparse(sequences: list[object], owner: str) -> Tokens:
    """Return the rows of all sparse matrices, in canonical form."""
    rows, offsets = csr_rows(sequences, owner)
    bad = first_not_finite(rows.data)
    if bad is not None:
        token = int(np.searchsorted(rows.indptr, bad, side="right")) - 1
        raise _not_finite(rows.data[bad], rows.indices[bad], token, offsets, owner)
    n_features = rows.shape[1]
    indices = rows.indices.astype(np.int32, copy=False) if n_features <= _INT32 else rows.indices
    indptr = rows.indptr.astype(np.int64, copy=False)
    data = rows.data.astype(value_dtype(rows.dtype), copy=False)
    if (data == 1.0).all():
        data = np.broadcast_to(frozen(np.ones(1, data.dtype)), len(data))  # takes no memory
    return Tokens(assemble(data, indices, indptr, n_features), offsets)


def csr_rows(sequences: list[object], owner: str) -> tuple[csr_array, Offsets]:
    """Return the rows of all sparse matrices, without duplicates, and the offsets."""
    given = [_sparse_block(sequence, i, owner) for i, sequence in enumerate(sequences)]
    blocks, offsets = _checked(given, owner)
    data = np.concatenate([block.data for block in blocks])
    indices = np.concatenate([block.indices for block in blocks])
    counts = np.concatenate([np.diff(block.indptr) for block in blocks])
    indptr = np.append(0, np.cumsum(counts, dtype=np.int64)).astype(index_dtype(indices, len(data)))
    rows = csr_of(data, indices.astype(indptr.dtype, copy=False), indptr, blocks[0].shape[1])
    _check_indices(rows, given, owner)
    return in_order(rows), offsets


def _check_indices(rows: csr_array, blocks: list[CsrMatrix], owner: str) -> None:
    """Raise if an index is out of range. One check of all sequences is faster than one check of each."""
    try:
        check_entries(rows, f"{owner}: X")
    except (TypeError, ValueError):
        for i, block in enumerate(blocks):
            check_entries(block, f"{owner}: sequence {i} of X")
        raise


def _dense_block(sequence: object, i: int, owner: str) -> NDArray[np.number | np.bool_]:
    if is_sparse(sequence):
        raise mixture(i, sequence, "dense", owner)
    try:
        block = np.asarray(sequence)
        block = block.astype(np.float64) if block.dtype == object else block
    except (TypeError, ValueError):
        raise _not_numbers(sequence, i, owner) from None
    if not is_numeric(block.dtype):
        raise _not_numbers(sequence, i, owner)
    if block.ndim != 2 and block.size:
        raise _not_two_dimensional(block, i, owner)
    return block


def _not_numbers(sequence: object, i: int, owner: str) -> Exception:
    if kind_of(sequence, i, owner) not in ("dense", None):
        return mixture(i, sequence, "dense", owner)
    return ValueError(
        f"{owner}: sequence {i} of X is {described(sequence)}, which is not a 2-D array of real numbers; "
        "give every token the same number of features, each a real number."
    )


def _sparse_block(sequence: object, i: int, owner: str) -> CsrMatrix:
    if not is_sparse(sequence):
        if is_empty(sequence):
            return csr_array((0, 0))
        raise mixture(i, sequence, "sparse", owner)
    if len(sequence.shape) != 2:
        raise _not_two_dimensional(sequence, i, owner)
    if not is_numeric(sequence.dtype):
        raise TypeError(f"{owner}: sequence {i} of X has dtype {sequence.dtype}, expected real numbers.")
    return as_csr(sequence, f"{owner}: sequence {i} of X")


def _checked(blocks: Sequence[_Rows], owner: str) -> tuple[Sequence[_Rows], Offsets]:
    """Return the blocks that have rows, and the offsets of all; raise if numbers of features differ."""
    lengths = np.array([block.shape[0] if block.ndim else 0 for block in blocks], np.int64)
    present = np.flatnonzero(lengths).tolist()
    kept = blocks if len(present) == len(blocks) else [blocks[i] for i in present]
    n_features = kept[0].shape[1]
    ragged = next((k for k, block in enumerate(kept) if block.shape[1] != n_features), None)
    if ragged is not None:
        raise ValueError(
            f"{owner}: sequence {present[ragged]} of X has {kept[ragged].shape[1]} features, but sequence "
            f"{present[0]} has {n_features}; give all sequences the same features."
        )
    if n_features == 0:
        raise ValueError(f"{owner}: X has 0 features, expected at least 1.")
    return kept, offsets_of(lengths)


def _not_two_dimensional(block: object, i: int, owner: str) -> ValueError:
    return ValueError(
        f"{owner}: sequence {i} of X is {described(block)}, expected 2-D (length, n_features); "
        "use reshape(-1, 1) for one feature, [X] if X is one sequence."
    )


def _not_finite(value: float, feature: int, token: int, offsets: Offsets, owner: str) -> ValueError:
    return ValueError(
        f"{owner}: feature {feature} of {place(offsets, token)} is {value}, expected a finite "
        "number; remove or impute it."
    )

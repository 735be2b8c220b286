"""The end of an encoding: labels are numbered in order, rare names left out, and files digested.

Everything is made from the files to which sequences were appended, which stay until the manifest is written.
So an interruption at any moment costs no more than doing this again.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import UIntArray
from maxmargin.corpus.manifest import DTYPES, Recipe, StoredArray, digest, map_array
from maxmargin.display import WorkLine
from maxmargin.encoding.labels import Label, sorted_classes
from maxmargin.encoding.sparse_rows import assemble, drop_columns
from maxmargin.persistence.texts import as_bytes

# Rows and entries that are processed at a time.
_ROWS, _ENTRIES = 1 << 17, 1 << 22


class Growing:
    """A file to which entries of an array are appended.

    Parameters
    ----------
    path : Path
    dtype : dtype
    length : int
        The number of entries to keep of a file that is there.
    """

    def __init__(self, path: Path, dtype: np.dtype[np.number], length: int) -> None:
        self.dtype, self.length = dtype, length
        self._stream: IO[bytes] = open(path, "ab")  # noqa: SIM115
        self._stream.truncate(length * dtype.itemsize)

    def append(self, array: NDArray[np.number]) -> None:
        """Append entries."""
        self._stream.write(np.ascontiguousarray(array, dtype=self.dtype).data)
        self.length += len(array)

    def sync(self) -> None:
        """Wait until all is on the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class Draft(NamedTuple):
    """What was appended.

    Attributes
    ----------
    path : Path
        The directory.
    raw : dict
        The file of each array, which has another name than the array if it is not final.
    labels : list
        In order of first appearance.
    names : list of str or None
        In order of first appearance; None if they were hashed.
    recipe : Recipe
    """

    path: Path
    raw: dict[str, str]
    labels: list[Label]
    names: list[str] | None
    recipe: Recipe

    def array(self, name: str) -> NDArray[np.number]:
        """Return the entries that were appended to an array."""
        return map_array(self.path, name, self.raw[name])


class Finished(NamedTuple):
    """The labels in order, the number of columns, and what the manifest says of each array."""

    classes: list[Label]
    n_columns: int
    arrays: dict[str, StoredArray]


def finished(draft: Draft, verbose: int) -> Finished:
    """Make the final arrays."""
    names = [name for name in draft.raw if name != "names" or draft.names is not None]
    size = sum(draft.array(name).nbytes for name in names)
    with WorkLine("encode: finishing", 2 * size, verbose) as line:
        classes = sorted_classes(draft.labels, "encode").tolist()
        _number_labels(draft, classes)
        if draft.names is None:
            n_columns = 1 << (draft.recipe.hash_bits or 0)
        elif draft.recipe.min_count > 1:
            n_columns = _leave_out(draft, draft.names, line)
        else:
            n_columns = len(draft.names)
            _check_any(n_columns > 0, draft.recipe)
        return Finished(classes, n_columns, dict(_digests(draft.path, names, size, line)))


def _number_labels(draft: Draft, classes: list[Label]) -> None:
    """Write the numbers of labels in the order of the classes."""
    place = {label: k for k, label in enumerate(classes)}
    number, before = np.array([place[label] for label in draft.labels]), draft.array("labels")
    with _Written(draft.path, "labels") as out:
        for first in range(0, len(before), _ENTRIES):
            out.append(number[before[first : first + _ENTRIES]])


def _leave_out(draft: Draft, names: list[str], line: WorkLine) -> int:
    """Write rows and names without names that occur in too few tokens; return how many are left."""
    kept = _counts(cast("UIntArray", draft.array("columns")), len(names)) >= draft.recipe.min_count
    _check_any(kept.any(), draft.recipe)
    with ExitStack() as stack:
        out = {name: stack.enter_context(_Written(draft.path, name)) for name in draft.raw if name in _ROWED}
        out["starts"].append(np.zeros(1))
        for rows in _pieces(draft, len(names)):
            short = drop_columns(rows, kept)
            out["starts"].append(short.indptr[1:] + out["columns"].length)
            out["columns"].append(short.indices)
            if "values" in out:
                out["values"].append(short.data)
            line.update(4 * out["columns"].length)
        out["names"].append(as_bytes(name for name, keep in zip(names, kept, strict=True) if keep))
    return int(kept.sum())


_ROWED = ("columns", "starts", "values", "names")


def _check_any(is_any: object, recipe: Recipe) -> None:
    if not is_any:
        raise ValueError(
            f"encode: no feature occurs in min_count={recipe.min_count} tokens; give tokens features, or "
            "lower min_count."
        )


def _counts(columns: UIntArray, n_columns: int) -> NDArray[np.int64]:
    """Return the number of tokens with each column."""
    counts = np.zeros(n_columns, dtype=np.int64)
    for first in range(0, len(columns), _ENTRIES):
        counts += np.bincount(columns[first : first + _ENTRIES], minlength=n_columns)
    return counts


def _pieces(draft: Draft, n_columns: int) -> Iterator[csr_array]:
    """Yield the rows, some at a time."""
    columns, starts = draft.array("columns"), draft.array("starts")
    values = draft.array("values") if "values" in draft.raw else None
    for first in range(0, len(starts) - 1, _ROWS):
        part = np.array(starts[first : first + _ROWS + 1])
        entries = slice(part[0], part[-1])
        indices = columns[entries].astype(np.int32)
        data = np.ones(len(indices)) if values is None else np.array(values[entries])
        yield assemble(data, indices, part - part[0], n_columns)


def _digests(path: Path, names: list[str], done: int, line: WorkLine) -> Iterator[tuple[str, StoredArray]]:
    for name in names:
        array = map_array(path, name)
        yield name, StoredArray(len(array), digest(array))
        done += array.nbytes
        line.update(done)


class _Written:
    """A context in which a new file of an array is written; afterwards it is on the disk."""

    def __init__(self, directory: Path, name: str) -> None:
        self._file = Growing(directory / name, DTYPES[name], 0)

    def __enter__(self) -> Growing:
        return self._file

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self._file.sync()
        self._file.close()

"""Write a corpus piece by piece, in memory that does not grow with the data.

Sequences are appended to files, with numbers of names and labels in order of first appearance. Every few
seconds a *journal* notes how long the files are and where the inputs were read up to. After an interruption,
whatever comes after the last note is cut off, and reading goes on from there. At the end, labels are numbered
in sorted order, rare names are left out, and the manifest is written.

Everything is made from the files to which sequences were appended, which stay until the manifest is written.
So an interruption at any moment costs no more than doing this again.
"""

import json
import os
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.encoding.labels import Label, sorted_classes
from maxmargin.encoding.matrices import assemble, drop_columns, sparse_rows
from maxmargin.encoding.sequences import NumberedSequences, hashed_rows
from maxmargin.files.corpus import (
    DTYPES,
    NAME,
    Input,
    Manifest,
    Recipe,
    StoredArray,
    digest,
    map_array,
    read_manifest,
    write_manifest,
)
from maxmargin.files.parts import as_bytes, as_texts
from maxmargin.files.sealed import remove_unfinished, write_atomically
from maxmargin.runtime.arrays import UIntArray
from maxmargin.runtime.limits import now
from maxmargin.runtime.wording import quoted
from maxmargin.solving.display import WorkLine

_JOURNAL, _LOCK = "journal.json", "lock"
Name = TypeVar("Name", bound=str | int)
# What files are called before rare names are left out, and labels numbered in order.
_BEFORE = "all."
# Seconds between notes in the journal, and entries that are written at a time.
_PATIENCE, _ENTRIES = 5.0, 1 << 22


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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.sync()
        self.close()


class Place(NamedTuple):
    """Where the inputs were read up to: the number of files read, and of lines of the next one."""

    files: int = 0
    lines: int = 0


class _Journal(TypedDict):
    """The last note of an encoding."""

    place: Place
    lengths: dict[str, int]
    labels: list[Label]
    kind: str


class CorpusWriter:
    """Writes a corpus; go on with a directory that was interrupted, or begin a new one.

    Parameters
    ----------
    path : str or path
        The directory: a new or empty one, or one that was interrupted. If its recipe or inputs differ, an
        unfinished one is begun again, and a finished one is refused.
    recipe : Recipe
    inputs : list
        What identifies the inputs, as plain data.

    Attributes
    ----------
    place : Place
        Where to go on.
    is_complete : bool
        Whether the directory is finished already.
    """

    def __init__(
        self, path: str | os.PathLike[str], recipe: Recipe, inputs: list[Input] | None = None
    ) -> None:
        self.path, self.recipe, self.inputs = Path(path), recipe, inputs or []
        self._files: dict[str, Growing] = {}
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.path / _LOCK)
        try:
            self.is_complete = self._check_finished()
            if not self.is_complete:
                self._begin(self._journal())
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._files.values():
            with suppress(OSError):  # the disk may be full; what was noted in the journal is on it
                file.close()
        with suppress(OSError):
            (self.path / _LOCK).unlink()
        self._lock.close()

    @property
    def _identity(self) -> dict[str, object]:
        return {"recipe": self.recipe._asdict(), "inputs": self.inputs}

    def _check_finished(self) -> bool:
        """Return whether the directory is a corpus of these inputs; raise if it holds something else."""
        if (self.path / NAME).exists():
            found = read_manifest(self.path)
            if (found.recipe, found.inputs) == (self.recipe, self.inputs):
                self._remove(keep=set(found.arrays))  # an earlier process may have been killed before it did
                return True
            raise ValueError(
                f"encode: {self.path} must be a new directory, got a corpus of other files or settings; "
                "remove it, or choose another directory."
            )
        ours = {_JOURNAL, _LOCK, *DTYPES, *(_BEFORE + name for name in DTYPES)}
        for name in (NAME, _JOURNAL):
            remove_unfinished(self.path / name)
        others = sorted({file.name for file in self.path.iterdir()} - ours)
        if others:
            raise ValueError(
                f"encode: {self.path} must be a new or empty directory, got one with {quoted(others[0])}; "
                "choose another."
            )
        return False

    def _journal(self) -> _Journal:
        """Return the last note of an encoding with the same inputs and recipe, or an empty one."""
        try:
            found = json.loads((self.path / _JOURNAL).read_bytes())
            is_same = found["identity"] == json.loads(json.dumps(self._identity))
            if is_same and all(map(self._reaches, found["lengths"], found["lengths"].values())):
                return cast("_Journal", found)
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            pass
        self._remove()
        return {"place": Place(), "lengths": {}, "labels": [], "kind": "strings"}

    def _reaches(self, name: str, length: int) -> bool:
        """Whether a file has at least this many entries."""
        file = self._file(name)
        return file.exists() and file.stat().st_size >= length * DTYPES[name].itemsize

    def _begin(self, journal: _Journal) -> None:
        """Open the files as they were when the journal was written."""
        self.place, self._kind, self._noted = Place(*journal["place"]), journal["kind"], now()
        lengths = journal["lengths"]
        for name in ("columns", "starts", "labels", "offsets", "names", "values"):
            if name != "values" or lengths.get("values"):
                self._files[name] = self._opened(name, lengths.get(name, 0))
        for name in ("starts", "offsets"):
            if not self._files[name].length:
                self._files[name].append(np.zeros(1))
        names = as_texts(np.fromfile(self._file("names"), dtype=np.uint8)) if lengths.get("names") else []
        self._names = _numbers(names)
        self._labels = _numbers(journal["labels"])

    def _file(self, name: str) -> Path:
        """Return the file that sequences are appended to."""
        final = name == "offsets" or (name != "labels" and self.recipe.min_count == 1)
        return self.path / (name if final else _BEFORE + name)

    def _opened(self, name: str, length: int) -> Growing:
        return Growing(self._file(name), DTYPES[name], length)

    def append(self, X: NumberedSequences, y: Iterable[Iterable[str | int]]) -> None:
        """Append sequences and their labels."""
        codes = self._label_codes(y)
        if len(codes) != X.offsets[-1]:
            raise ValueError(f"encode: y must have {X.offsets[-1]} labels, one per token, got {len(codes)}.")
        rows = self._rows(X)
        files, n_tokens = self._files, self._files["labels"].length
        if X.values is not None:
            self._kind = "dicts"
        self._append_values(rows.data)
        files["starts"].append(rows.indptr[1:] + files["columns"].length)
        files["columns"].append(rows.indices)
        files["offsets"].append(np.asarray(X.offsets[1:]) + n_tokens)
        files["labels"].append(codes)

    def _label_codes(self, y: Iterable[Iterable[str | int]]) -> NDArray[np.int64]:
        labels = list(chain.from_iterable(y))
        codes = np.fromiter(map(self._labels.__getitem__, labels), np.int64, len(labels))
        if len(set(map(type, self._labels))) > 1:
            raise ValueError("encode: labels must be all strings or all whole numbers, got both.")
        return codes

    def _rows(self, X: NumberedSequences) -> csr_array:
        """Return the rows of all tokens, and write names that are new."""
        if self.recipe.hash_bits is not None:
            return hashed_rows(X, self.recipe.hash_bits)
        known = len(self._names)
        numbers = np.fromiter(map(self._names.__getitem__, X.names), np.int32, len(X.names))
        if len(self._names) > known:
            new = [X.names[k] for k in np.flatnonzero(numbers >= known).tolist()]
            self._files["names"].append(as_bytes(new))
        return sparse_rows(numbers[X.codes], X.counts, X.values, len(self._names))

    def _append_values(self, values: NDArray[np.float64]) -> None:
        """Append values; there is no file of them as long as all are one."""
        if "values" not in self._files:
            if (values == 1.0).all():
                return
            self._files["values"] = self._opened("values", 0)
            length = self._files["columns"].length
            for first in range(0, length, _ENTRIES):
                self._files["values"].append(np.ones(min(_ENTRIES, length - first)))
        self._files["values"].append(values)

    def note(self, place: Place, *, at_once: bool = False) -> None:
        """Note in the journal that all sequences up to a place have been appended, if a note is due."""
        if not at_once and now() - self._noted < _PATIENCE:
            return
        for file in self._files.values():
            file.sync()
        lengths = {name: file.length for name, file in self._files.items()}
        journal = {"identity": self._identity, "place": place, "lengths": lengths, "kind": self._kind}
        content = json.dumps({**journal, "labels": list(self._labels)})
        write_atomically(self.path / _JOURNAL, content.encode())
        self.place, self._noted = place, now()

    def finish(self, verbose: int = 0) -> None:
        """Number labels in order, leave out rare names, and write the manifest."""
        if not self._labels:
            raise ValueError("encode: the files must have a token, got none.")
        self.note(self.place, at_once=True)
        for file in self._files.values():
            file.close()
        raw = {name: self._file(name).name for name in self._files}
        names = None if self.recipe.hash_bits is not None else list(self._names)
        draft = Draft(self.path, raw, list(self._labels), names, self.recipe)
        classes, n_columns, arrays = finished(draft, verbose)
        write_manifest(self.path, Manifest(arrays, n_columns, self._kind, classes, self.recipe, self.inputs))
        self._remove(keep=set(arrays))

    def _remove(self, keep: Container[str] = ()) -> None:
        """Remove the files of an encoding, except for the lock and those to keep."""
        for name in (_JOURNAL, *DTYPES, *(_BEFORE + name for name in DTYPES)):
            if name not in keep:
                (self.path / name).unlink(missing_ok=True)


def _numbers(names: Iterable[Name]) -> "defaultdict[Name, int]":
    """Return a dict of numbers in this order, which gives each new name the next one."""
    known = {name: k for k, name in enumerate(names)}
    return defaultdict(count(len(known)).__next__, known)


def _locked(path: Path) -> IO[bytes]:
    """Return an open file that is locked until it is closed, where locks are available: not on Windows."""
    stream = open(path, "ab")  # noqa: SIM115
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        stream.close()
        raise ValueError(f"encode: {path.parent} is being written by another process.") from None
    return stream


# Rows and entries that are processed at a time.
_ROWS, _READ_ENTRIES = 1 << 17, 1 << 22


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
        classes = sorted_classes(draft.labels).tolist()
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
    with Growing(draft.path / "labels", DTYPES["labels"], 0) as out:
        for first in range(0, len(before), _READ_ENTRIES):
            out.append(number[before[first : first + _READ_ENTRIES]])


def _leave_out(draft: Draft, names: list[str], line: WorkLine) -> int:
    """Write rows and names without names that occur in too few tokens; return how many are left."""
    kept = _counts(cast("UIntArray", draft.array("columns")), len(names)) >= draft.recipe.min_count
    _check_any(kept.any(), draft.recipe)
    with ExitStack() as stack:
        rowed = [name for name in draft.raw if name in _ROWED]
        out = {name: stack.enter_context(Growing(draft.path / name, DTYPES[name], 0)) for name in rowed}
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
    for first in range(0, len(columns), _READ_ENTRIES):
        counts += np.bincount(columns[first : first + _READ_ENTRIES], minlength=n_columns)
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

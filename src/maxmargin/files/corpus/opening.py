"""Open a corpus: map its arrays, and check everything that kernels rely on.

Estimators take its sequences and labels, whose items are made when they are asked for.
"""

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NotRequired, SupportsIndex, TypedDict, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import Kind, Tokens
from maxmargin.encoding.labels import Label, Labels, sorted_classes
from maxmargin.encoding.matrices import assemble
from maxmargin.files.corpus import DTYPES, NAME, Manifest, digest, map_array, read_manifest
from maxmargin.files.parts import as_texts
from maxmargin.files.sealed import fail
from maxmargin.runtime.arrays import CsrMatrix, FloatArray, IntArray, UIntArray, freeze

ItemT = TypeVar("ItemT")
# A sequence of names, of values by name, or of rows.
CorpusSequence = list[list[str]] | list[dict[str, float]] | CsrMatrix


class _Mapped(Sequence[ItemT]):
    """Items that are made from mapped arrays when they are asked for; a subclass defines `_item`."""

    def __init__(self, offsets: IntArray) -> None:
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> ItemT: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemT]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> ItemT | list[ItemT]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._item(*_bounds(self.offsets, operator.index(index)))

    def _item(self, first: int, stop: int) -> ItemT:
        """Return the item of these tokens."""
        raise NotImplementedError


class CorpusSequences(_Mapped[CorpusSequence]):
    """The sequences of a corpus, which estimators take as X.

    Items are made when they are asked for: lists of tokens, each a list of names or, if features have values,
    a dict. If names were hashed they are not known, and items are sparse matrices.

    Attributes
    ----------
    tokens : Tokens
        The rows of all tokens, a csr_array of mapped arrays, and the offsets of the sequences.
    names : list of str or None
        The names of the columns; None if they were hashed.
    hash_bits : int or None
    kind : {"strings", "dicts"}
    """

    def __init__(self, tokens: Tokens, names: list[str] | None, hash_bits: int | None, kind: str) -> None:
        super().__init__(tokens.offsets)
        self.tokens, self.names, self.hash_bits = tokens, names, hash_bits
        self.kind = cast("Kind", kind)

    def _item(self, first: int, stop: int) -> CorpusSequence:
        rows = cast("csr_array", self.tokens.rows)
        edges = rows.indptr[first : stop + 1]
        columns, values = (part[edges[0] : edges[-1]] for part in (rows.indices, rows.data))
        if self.names is None:
            shape = stop - first, rows.shape[1]
            return csr_array((values, columns, edges - edges[0]), shape=shape)
        names = [self.names[column] for column in columns.tolist()]
        spans = list(pairwise((edges - edges[0]).tolist()))
        if rows.data.strides == (0,):  # all values are one
            return [names[a:b] for a, b in spans]
        pairs = list(zip(names, values.tolist(), strict=True))
        return [dict(pairs[a:b]) for a, b in spans]

    def __repr__(self) -> str:
        return f"<{len(self)} sequences of {len(self.tokens.rows.indptr) - 1} tokens>"  # type: ignore[union-attr]


class CorpusLabels(_Mapped[list[Label]]):
    """The labels of a corpus, which estimators take as y; items are lists of labels.

    Attributes
    ----------
    codes : ndarray of int64
        The number of each token's label.
    classes : ndarray
        The labels, sorted.
    offsets : ndarray of int64
        Where each sequence begins, and the last one ends.
    """

    def __init__(self, codes: NDArray[np.int64], classes: Labels, offsets: NDArray[np.int64]) -> None:
        super().__init__(offsets)
        self.codes, self.classes = codes, classes

    def _item(self, first: int, stop: int) -> list[Label]:
        return cast("list[Label]", self.classes[self.codes[first:stop]].tolist())

    def __iter__(self) -> Iterator[list[Label]]:
        labels: list[Label] = list(self.classes.tolist())
        for first, stop in pairwise(self.offsets):
            yield [labels[code] for code in self.codes[first:stop].tolist()]


def _bounds(offsets: NDArray[np.int64], index: int) -> tuple[int, int]:
    """Return where a sequence begins and ends."""
    n = len(offsets) - 1
    if not -n <= index < n:
        raise IndexError(f"sequence {index} of {n}")
    return int(offsets[index % n]), int(offsets[index % n + 1])


# Entries that are checked at a time, and bytes of the largest array whose digest is always compared.
_CHUNK, _SMALL = 1 << 22, 1 << 24
_MOST_COLUMNS = 2**31 - 1
Scalar = TypeVar("Scalar", bound=np.number)


class _Arrays(TypedDict):
    """The arrays of a corpus."""

    columns: UIntArray
    starts: IntArray
    values: NotRequired[FloatArray]
    labels: IntArray
    offsets: IntArray
    names: NotRequired[NDArray[np.uint8]]


class _Corpus(NamedTuple):
    path: str
    X: CorpusSequences
    y: CorpusLabels
    manifest: Manifest
    span: tuple[int, int] | None = None


class Corpus(_Corpus):
    """An opened corpus. Its arrays are mapped: they are read from the disk when they are used.

    Attributes
    ----------
    path : str
        The directory.
    X : CorpusSequences
    y : CorpusLabels
    manifest : Manifest
        What the directory holds, and how it was made.
    span : (int, int) or None
        The first sequence and the one after the last, if it is a part of the directory.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        columns, labels = self.manifest.n_columns, len(self.y.classes)
        n, n_tokens = len(self.X), len(self.y.codes)
        return f"<Corpus {self.path}: {n} sequences, {n_tokens} tokens, {columns} features, {labels} labels>"

    def __reduce__(self) -> tuple[Callable[..., "Corpus"], tuple[object, ...]]:
        return (open_corpus, (self.path,)) if self.span is None else (open_part, (self.path, *self.span))


def open_corpus(path: str | os.PathLike[str], *, verify: bool = False) -> Corpus:
    """Open a directory that `encode_files` has made.

    Sizes, types and all numbers that are used as indices are checked, and the digests of small files.

    Parameters
    ----------
    path : str or path
        The directory.
    verify : bool, default=False
        Compare the digests of large files, too.

    Returns
    -------
    Corpus
        With ``X`` and ``y``, which `ChainSVC.fit` and `SegmentSVC.fit` take, as they take the corpus.

    Raises
    ------
    FileError
        If the directory is not a whole corpus.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from maxmargin import encode_files, open_corpus
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "data").write_text("the DET\\ndog NOUN\\n\\na DET\\ncat NOUN\\n")
    >>> _ = encode_files([Path(folder.name, "data")], Path(folder.name, "corpus"))
    >>> corpus = open_corpus(Path(folder.name, "corpus"))
    >>> len(corpus.X), corpus.y[0]
    (2, ['DET', 'NOUN'])
    >>> folder.cleanup()
    """
    directory = Path(path)
    manifest = read_manifest(directory)
    arrays = _all_mapped(directory, manifest, verify)
    return _assembled(directory, manifest, arrays)._replace(path=os.fspath(path))


def open_part(path: str | os.PathLike[str], first: int, stop: int) -> Corpus:
    """Open some sequences of a directory; no others are read.

    Parameters
    ----------
    path : str or path
        The directory.
    first, stop : int
        The first sequence and the one after the last.

    Returns
    -------
    Corpus
    """
    directory = Path(path)
    manifest = read_manifest(directory)
    arrays = _all_mapped(directory, manifest, verify=False)
    n = len(arrays["offsets"]) - 1
    if not 0 <= first < stop <= n:
        raise ValueError(f"open_part: first < stop must be among {n} sequences, got {first} and {stop}.")
    part = _assembled(directory, manifest, _cut(directory, arrays, first, stop))
    return part._replace(path=os.fspath(path), span=(first, stop))


def sequence_lengths(path: str | os.PathLike[str]) -> IntArray:
    """Return the number of tokens of each sequence of a directory."""
    directory = Path(path)
    return np.diff(_all_mapped(directory, read_manifest(directory), verify=False)["offsets"])


def _cut(directory: Path, arrays: _Arrays, first: int, stop: int) -> _Arrays:
    """Return the arrays of some sequences: views, except of what counts from their first token."""
    offsets, n_labels = arrays["offsets"][first : stop + 1], len(arrays["labels"])
    tokens = _span(directory / "offsets", offsets, n_labels)
    starts = arrays["starts"][tokens.start : tokens.stop + 1]
    rows = _span(directory / "starts", starts, len(arrays["columns"]))
    found = arrays.copy()
    found["labels"], found["columns"] = arrays["labels"][tokens], arrays["columns"][rows]
    found["offsets"], found["starts"] = freeze(offsets - offsets[0]), freeze(starts - starts[0])
    if "values" in arrays:
        found["values"] = arrays["values"][rows]
    return found


def _span(path: Path, edges: IntArray, length: int) -> slice:
    """Return the slice from the first of some edges to the last, if it lies within the array."""
    first, stop = (int(edges[0]), int(edges[-1])) if len(edges) else (0, -1)
    if not 0 <= first <= stop <= length:
        fail(path, f"edges from 0 to {length}", f"{first} to {stop}")
    return slice(first, stop)


def _all_mapped(directory: Path, manifest: Manifest, verify: bool) -> _Arrays:
    found = {name: _mapped(directory, name, manifest, verify) for name in manifest.arrays}
    return cast("_Arrays", found)  # by `DTYPES`


def _assembled(directory: Path, manifest: Manifest, arrays: _Arrays) -> Corpus:
    """Return the corpus of these arrays, if they can be used as they are."""
    classes = _checked_classes(directory, manifest)
    _check_rows(directory, arrays, manifest.n_columns)
    _check_labels(directory, arrays, len(classes))
    names = _checked_names(directory, arrays.get("names"), manifest)
    columns, offsets = arrays["columns"].view(np.int32), arrays["offsets"]  # scipy does not support uint32
    values = arrays.get("values")
    if values is None:
        values = np.broadcast_to(np.float64(1.0), len(columns))  # takes no memory
    tokens = Tokens(assemble(values, columns, arrays["starts"], manifest.n_columns), offsets)
    X = CorpusSequences(tokens, names, manifest.recipe.hash_bits, manifest.kind)
    return Corpus(str(directory), X, CorpusLabels(arrays["labels"], classes, offsets), manifest)


def _mapped(directory: Path, name: str, manifest: Manifest, verify: bool) -> NDArray[np.number]:
    """Return an array; raise unless its file has the size and, if it is small, the digest that it should."""
    path, stored = directory / name, manifest.arrays[name]
    size = stored.length * DTYPES[name].itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != size:
        fail(path, f"a file of {size} bytes", "none" if found is None else f"one of {found} bytes")
    array = map_array(directory, name)
    if (verify or size <= _SMALL) and digest(array) != stored.sha256:
        fail(path, "the bytes that were written", "others: the file is damaged; encode again")
    return array


def _checked_classes(directory: Path, manifest: Manifest) -> Labels:
    classes = manifest.classes
    kinds = set(map(type, classes))
    # Strings or numbers: either can be sorted.
    if kinds not in ({str}, {int}) or sorted(set(cast("list[str]", classes))) != classes:
        fail(directory / NAME, "labels in order, all strings or all whole numbers", str(classes))
    return sorted_classes(classes)


def _check_rows(directory: Path, arrays: _Arrays, n_columns: int) -> None:
    """Raise unless sequences are made of tokens, tokens of columns, and values are numbers."""
    columns, starts, values = arrays["columns"], arrays["starts"], arrays.get("values")
    if not 0 < n_columns <= _MOST_COLUMNS:
        fail(directory / NAME, f"1 to {_MOST_COLUMNS} columns", str(n_columns))
    _check_offsets(directory / "starts", starts, len(arrays["labels"]) + 1, len(columns))
    _check_offsets(directory / "offsets", arrays["offsets"], None, len(arrays["labels"]))
    if values is not None and len(values) != len(columns):
        fail(directory / "values", f"{len(columns)} values", str(len(values)))
    for part in _parts(columns):
        if part.max() >= n_columns:
            fail(directory / "columns", f"columns below {n_columns}", str(part.max()))
    for numbers in () if values is None else _parts(values):
        if not np.isfinite(numbers.sum()) and not np.isfinite(numbers).all():
            fail(directory / "values", "finite numbers", "others")


def _check_labels(directory: Path, arrays: _Arrays, n_labels: int) -> None:
    for part in _parts(arrays["labels"]):
        if part.min() < 0 or part.max() >= n_labels:
            got = f"one of {part.min()} to {part.max()}"
            fail(directory / "labels", f"numbers of labels from 0 to {n_labels - 1}", got)


def _check_offsets(path: Path, offsets: NDArray[np.int64], length: int | None, last: int) -> None:
    """Raise unless offsets begin with zero, do not fall, and end with ``last``."""
    if len(offsets) != (length or len(offsets)) or len(offsets) < 2:
        fail(path, f"{length or '2 or more'} offsets", str(len(offsets)))
    if offsets[0] != 0 or offsets[-1] != last:
        fail(path, f"offsets from 0 to {last}", f"{offsets[0]} to {offsets[-1]}")
    for first in range(0, len(offsets) - 1, _CHUNK):
        part = offsets[first : first + _CHUNK + 1]
        if (part[1:] < part[:-1]).any():
            fail(path, "offsets that do not fall", "others")


def _parts(array: NDArray[Scalar]) -> Iterator[NDArray[Scalar]]:
    return (array[first : first + _CHUNK] for first in range(0, len(array), _CHUNK))


def _checked_names(directory: Path, stored: NDArray[np.uint8] | None, manifest: Manifest) -> list[str] | None:
    """Return the names of the columns, None if they were hashed."""
    bits, path = manifest.recipe.hash_bits, directory / "names"
    if bits is not None:
        if stored is not None or manifest.n_columns != 1 << bits:
            fail(path, f"no names and {1 << bits} columns, as they are hashed", str(manifest.n_columns))
        return None
    if stored is None:
        fail(path, "names of columns", "none")
    try:
        names = as_texts(np.asarray(stored))
    except ValueError as error:
        fail(path, "texts in UTF-8", str(error))
    if len(names) != manifest.n_columns or len(set(names)) != len(names):
        fail(path, f"{manifest.n_columns} distinct names", str(len(names)))
    return names

"""Tag attribute files and sequences of named features with a chain, read without NumPy.

`maxmargin.load` checks all parts of a file, and says what is wrong with it. Here, a file without a seal or of
anything but a plain chain is None, so that no file is read that `load` refuses, unless somebody has edited it
and sealed it again. Whatever compiled code reads is checked here and in `lines.index_features`.
"""

import ctypes
import json
import math
from array import array
from collections.abc import Collection, Sequence
from itertools import islice
from numbers import Real
from threading import Lock
from typing import Any, BinaryIO, NamedTuple, cast

from maxmargin.compiling.object_code import Buffer
from maxmargin.files.sealed import MODEL, SIZES, Json, Raw, has_seal, read_file
from maxmargin.tagging.loops import END_OF_SEQUENCE, LINES, LONG_LINE, LONG_SEQUENCE, Loops, ready_loops

_END = b"\xff"
# What the header of such a model says, and what it must not have.
_PLAIN = {"estimator": "ChainSVC", "functions": [], "_function": ["linear"], "_order": 1}
_NAMED, _TEXTS, _FORBIDDEN = ("strings", "dicts"), ("texts", "objects"), "_forbidden"
_LANES = 4  # labels are padded to a multiple of this, as everywhere
_MOST_LABELS = 255


class ChainModel(NamedTuple):
    """A chain: its labels, its weights, and the names of its features.

    Attributes
    ----------
    labels : list of str
    names : Buffer
        The names of features in UTF-8, each followed by a byte 255.
    counts, columns, values : Buffer
        How many weights each feature has, and their labels and values.
    n_weighted : int
        How many features have weights.
    chain : Buffer of shape (n_labels + 2, width)
        The weights of pairs of labels, of the first label and of the last one.
    gives_arrays : bool
        Whether the estimator predicts arrays of labels, and not lists.
    notes : Json
        What users or the command line keep with the model.
    """

    labels: list[str]
    names: Buffer
    counts: Buffer
    columns: Buffer
    values: Buffer
    n_weighted: int
    chain: Buffer
    gives_arrays: bool
    notes: Json


class _Unfit(Exception):
    """A file holds something else, or is not as it should be."""


def read_chain(path: str) -> ChainModel | None:
    """Return the chain that a file holds, or None; raise OSError if there is no file."""
    try:
        return _File(read_file(path, MODEL, _in_memory)).chain()
    except (_Unfit, ValueError, RecursionError, LookupError, TypeError):
        return None


def _in_memory(stream: BinaryIO, size: int) -> bytearray:
    """Return the content of a file, in memory that compiled code reads."""
    content = bytearray(size)
    stream.readinto(content)  # type: ignore[attr-defined]
    return content


class _File:
    """A model file in memory."""

    def __init__(self, raw: Raw[bytearray]) -> None:
        _require(has_seal(raw.content) and raw.version == MODEL.version)
        self.content, self.spans, self.header = raw.content, raw.spans, raw.header

    def chain(self) -> ChainModel:
        """Return the model."""
        header = self.header
        _require(all(header[name] == value for name, value in _PLAIN.items()))
        _require(header["_encoder"] in _NAMED and header["classes_"] in _TEXTS)
        labels, n_features = self.texts("classes_"), header["_encoder.size"]
        n_labels = len(labels)
        if type(n_features) is not int:
            raise _Unfit
        _require(n_features > 0 and 0 < n_labels <= _MOST_LABELS)
        _require(header["weights.unary"] == [n_labels, n_features])
        n_bytes = self.length("_encoder")
        names = self.buffer("_encoder", "U8", n_bytes)
        _require(self.content[self.span("_encoder", "U8", n_bytes)[1] - 1] == _END[0])
        is_dense = "weights.unary" in self.spans
        weights = (self.dense if is_dense else self.sparse)(n_labels, n_features)
        chain, gives_arrays = self.rows(n_labels), header["_gives_arrays"] is not False
        return ChainModel(labels, names, *weights, chain, gives_arrays, self.notes())

    def sparse(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features of which zeros are not stored, and how many features have some."""
        _require(n_labels < n_features)  # otherwise they are stored label by label
        name = "weights.unary.counts"
        n_weights = self.length("weights.unary.values")
        return (
            self.buffer(name, "U8", n_features),
            self.buffer("weights.unary.columns", "U8", n_weights),
            self.weights("weights.unary.values", n_weights),
            n_features - self.content.count(b"\0", *self.span(name, "U8", n_features)),
        )

    def dense(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features that are all stored, label by label, in the order of features."""
        stored = self.floats("weights.unary", n_labels, n_features)
        values = array("d", bytes(SIZES["F64"] * len(stored)))
        for k in range(n_labels):
            values[k::n_labels] = stored[k * n_features : (k + 1) * n_features]
        return (
            Buffer(bytes([n_labels]) * n_features, (n_features,)),
            Buffer(bytes(range(n_labels)) * n_features, (len(values),)),
            Buffer((ctypes.c_double * len(values)).from_buffer(values), (len(values),)),
            n_features,
        )

    def notes(self) -> Json:
        """Return the notes; None if there are none."""
        if "notes" not in self.spans:
            return None
        (text,) = self.texts("notes")
        return cast("Json", json.loads(text))

    def rows(self, n_labels: int) -> Buffer:
        """Return the weights of pairs of labels, of the first label and of the last one.

        Those of forbidden pairs are minus infinity.
        """
        width = -(-n_labels // _LANES) * _LANES
        found = (ctypes.c_double * ((n_labels + 2) * width))()
        parts = [
            *self.small("transitions", n_labels, n_labels),
            *self.small("start", n_labels),
            *self.small("end", n_labels),
        ]
        for place in self.forbidden(n_labels):
            parts[place] = -math.inf
        for j in range(n_labels + 2):
            row = parts[j * n_labels : (j + 1) * n_labels]
            for k, weight in enumerate(row):
                found[j * width + k] = weight
        return Buffer(found, (n_labels + 2, width))

    def forbidden(self, n_labels: int) -> list[int]:
        """Return the places of forbidden pairs in `rows`; raise unless a label may repeat from start to end.

        Sequences of all lengths then have a labelling.
        """
        if _FORBIDDEN not in self.spans:
            return []
        side = n_labels + 1  # the last row is for the start, the last column for the end
        start, stop = self.span(_FORBIDDEN, "BOOL", side, side)
        marks = self.content[start:stop]
        none, last = marks[n_labels * side :], marks[n_labels::side]
        _require(any(not (marks[k * side + k] or none[k] or last[k]) for k in range(n_labels)))
        pairs = [marks[j * side + k] for j in range(n_labels) for k in range(n_labels)]
        return [place for place, mark in enumerate([*pairs, *none[:n_labels], *last[:n_labels]]) if mark]

    def small(self, name: str, *shape: int) -> "array[float]":
        """Return a part of the weights, whose zeros may not be stored."""
        name, size = f"weights.{name}", math.prod(shape)
        _require(self.header[name] == list(shape))
        if name in self.spans:
            found = self.floats(name, *shape)
        else:
            counts = self.bytes(f"{name}.counts", shape[0])
            columns = self.bytes(f"{name}.columns", sum(counts))
            values = self.floats(f"{name}.values", sum(counts))
            found = _filled(size, size // shape[0], counts, columns, values)
        _require(all(map(math.isfinite, found)))
        return found

    def texts(self, name: str) -> list[str]:
        """Return texts; raise ValueError if they are not UTF-8."""
        content = self.bytes(name, self.length(name))
        _require(content.endswith(_END))
        return [str(text, "utf-8") for text in content.split(_END)[:-1]]

    def length(self, name: str) -> int:
        """Return the length of a vector; raise ValueError if it is not one, as compiled code relies on it."""
        (found,) = self.spans[name].shape
        return found

    def bytes(self, name: str, *shape: int) -> bytearray:
        """Return an array of bytes."""
        start, stop = self.span(name, "U8", *shape)
        return self.content[start:stop]

    def floats(self, name: str, *shape: int) -> "array[float]":
        """Return an array of floats, flat; those that ``save`` has rounded take half of the space."""
        kind = self.spans[name].dtype
        start, stop = self.span(name, kind if kind == "F32" else "F64", *shape)
        return array("d", memoryview(self.content)[start:stop].cast("f" if kind == "F32" else "d"))

    def weights(self, name: str, size: int) -> Buffer:
        """Return floats as compiled code reads them: in the file, unless they are rounded."""
        if self.spans[name].dtype == "F64":
            return self.buffer(name, "F64", size)
        values = self.floats(name, size)
        return Buffer((ctypes.c_double * size).from_buffer(values), (size,))

    def buffer(self, name: str, dtype: str, *shape: int) -> Buffer:
        """Return an array as compiled code reads it."""
        start, stop = self.span(name, dtype, *shape)
        memory = (ctypes.c_char * (stop - start)).from_buffer(self.content, start)
        _require(ctypes.addressof(memory) % SIZES[dtype] == 0)
        return Buffer(memory, shape)

    def span(self, name: str, dtype: str, *shape: int) -> tuple[int, int]:
        """Return where an array of this type and shape is, within the file."""
        found = self.spans[name]
        _require(found.dtype == dtype and found.shape == list(shape))
        return found.start, found.stop


def _filled(
    size: int, n_columns: int, counts: bytearray, columns: bytearray, values: "array[float]"
) -> "array[float]":
    """Return an array of which the nonzeros are stored, row by row."""
    found, done = array("d", bytes(SIZES["F64"] * size)), 0
    for row, count in enumerate(counts):
        for p in range(done, done + count):
            _require(columns[p] < n_columns)
            found[row * n_columns + columns[p]] = values[p]
        done += count
    return found


def _require(holds: bool) -> None:
    if not holds:
        raise _Unfit


# Bytes of a line, and tokens of a sequence, that workspace is made for at first; and the longest line.
_LINE, _TOKENS, _LONGEST_LINE = 1 << 14, 1 << 9, 1 << 20
# Sequences of named features that are tagged at a time; and the most names of a token, as of a line.
_AT_ONCE, _MOST_NAMES = 64, _LONGEST_LINE - 1
_BATCH = 64  # names that are looked up at a time
_COLLECTIONS = {list, tuple, set, frozenset}


class Tagged(NamedTuple):
    """The labels of some sequences, as lines of text with a blank one after each sequence."""

    text: str
    sequences: int
    tokens: int


class TaskTagger(NamedTuple):
    """A tagger, and the task that reads its data."""

    tagger: "Tagger"
    task: str
    settings: Json


def open_tagger(path: str, tasks: Collection[str]) -> TaskTagger | None:
    """Return the tagger of a model file; None if the estimator has to tag, or to say what is wrong.

    Parameters
    ----------
    path : str
    tasks : collection of str
        The tasks whose data the caller can read.

    Raises
    ------
    OSError
        If there is no such file.
    """
    model = read_chain(path)
    if model is None:
        return None
    try:
        notes: dict[str, Any] = dict(cast("Any", model.notes)["dict"])
        task, settings = notes["task"], dict(notes["settings"]["dict"])
    except (LookupError, TypeError, ValueError):
        return None
    tagger = as_tagger(model) if task in tasks else None
    return None if tagger is None else TaskTagger(tagger, task, settings)


def as_tagger(model: ChainModel) -> "Tagger | None":
    """Return the tagger of a chain; None if there is no code that tags, or the file is not sound."""
    loops = ready_loops()
    try:
        return None if loops is None else Tagger(model, loops)
    except ValueError:
        return None


class Tagger:
    """A chain that tags; several threads may use it.

    Parameters
    ----------
    model : ChainModel
    loops : Loops
        The loops, compiled or interpreted.

    Raises
    ------
    ValueError
        If names and weights are not those of a model.
    """

    def __init__(self, model: ChainModel, loops: Loops) -> None:
        self._loops, self.labels = loops, model.labels
        self._texts = [f"{label}\n" for label in model.labels] + ["\n"]  # the last one is number -1
        n_features, width = model.counts.shape[0], model.chain.shape[1]
        n_slots = 1 << (2 * model.n_weighted + 1).bit_length()
        slots, rows = _zeros(2 * n_slots), _zeros(n_features + 1)
        self._model = model.names, slots, rows, model.columns, model.values, model.chain
        self._work, self._lock = _work(width, _LINE, _TOKENS), Lock()
        weights = model.names, model.counts, model.columns, model.values
        if loops.index_features(*weights, len(model.labels), _zeros(_BATCH, 4), slots, rows):
            raise ValueError("names and weights that are not those of a model")

    def tag(self, text: bytes) -> Tagged | None:
        """Return the labels of the sequences of an attribute file; None if the estimator has to read it.

        Parameters
        ----------
        text : bytes
            Whole lines; the last sequence ends with the text.
        """
        codes = self._codes(text)
        if codes is None:
            return None
        n_sequences = codes.count(END_OF_SEQUENCE)
        return Tagged("".join(map(self._texts.__getitem__, codes)), n_sequences, len(codes) - n_sequences)

    def predict(self, X: Sequence[object], sign: str = "=") -> list[list[str]] | None:
        """Return the labels of sequences; or None unless `features_of` reads all of them."""
        found: list[list[str]] = []
        for start in range(0, len(X), _AT_ONCE):
            features = features_of(X[start : start + _AT_ONCE], sign)
            if features is None:
                return None
            labels = map(self.labels.__getitem__, self._of_features(features))
            found += [list(islice(labels, length)) for length in features.lengths]
        return found

    def _of_features(self, features: "Features") -> list[int]:
        """Return the numbers of the labels of all tokens."""
        text, end, counts, lengths, factors = features
        out, arrays = (ctypes.c_int32 * len(counts))(), (array("q", counts), array("q", lengths), factors)
        given = [Buffer(each.tobytes(), (len(each),)) for each in arrays]
        passed, written = Buffer(text, (len(text),)), Buffer(out, (len(counts),))
        with self._lock:
            self._make_room(max(counts, default=0), max(lengths))
            self._loops.tag_names(passed, end, *given, *self._model, *self._work[1:], written)
        return out[:]

    def _make_room(self, n_names: int, n_tokens: int) -> None:
        """Enlarge the workspace, unless there is room for as many names of a token, and tokens."""
        line, _, _, unary, *_ = self._work
        (n_bytes,), (n_rows, width) = line.shape, unary.shape
        if n_names > n_bytes or n_tokens > n_rows:
            self._work = _work(width, max(n_names, n_bytes), max(n_tokens, n_rows))

    def _codes(self, text: bytes) -> list[int] | None:
        """Return the numbers of labels, and `END_OF_SEQUENCE` after each sequence."""
        try:
            if not text.isascii():  # which is found out faster, and so for most texts
                text.decode("utf-8")
        except UnicodeDecodeError:
            return None
        text = text if text.endswith(b"\n") else text + b"\n"
        text = text.replace(b"\r\n", b"\n") if b"\r" in text else text  # one byte is found much faster
        out, scan = (ctypes.c_int32 * (text.count(b"\n") + 1))(), (ctypes.c_int64 * 4)()
        passed, *written = (Buffer(memory, (len(memory),)) for memory in (text, out, scan))
        with self._lock:
            while status := self._loops.tag_text(passed, *self._model, *self._work, *written):
                if status not in (LONG_LINE, LONG_SEQUENCE) or not self._enlarge(status):
                    return None
        return out[: scan[LINES]]

    def _enlarge(self, status: int) -> bool:
        """Double the workspace for lines or for sequences; return whether it may be as large as that."""
        line, _, _, unary, *_ = self._work
        (n_bytes,), (n_tokens, width) = line.shape, unary.shape
        if status == LONG_LINE:
            n_bytes *= 2
        else:
            n_tokens *= 2
        self._work = _work(width, n_bytes, n_tokens)
        return n_bytes <= _LONGEST_LINE


class Features(NamedTuple):
    """Named features of the tokens of some sequences.

    Attributes
    ----------
    text : bytes
        All names in UTF-8, each with the byte ``end`` after it.
    end : int
    counts, lengths : lists of int
        How many names each token has, and how many tokens each sequence.
    factors : array
        The value of each feature, or nothing if all are one.
    """

    text: bytes
    end: int
    counts: list[int]
    lengths: list[int]
    factors: "array[float]"


def features_of(X: Sequence[object], sign: str = "=") -> Features | None:
    """Return the named features of sequences; None if they are of another form than these, or faulty.

    Each sequence is a list or a tuple. Its tokens are dicts of names and texts, truth values, finite numbers,
    and further dicts or collections of names; or lists, tuples or sets of names. `SequenceEncoder` reads
    these in the same way. The sign stands between a name and its text.
    """
    names: list[str] = []
    counts: list[int] = []
    values: dict[int, float] = {}  # by the places of names, where they are not one
    try:
        for tokens in X:
            if type(tokens) not in (list, tuple):
                return None
            for token in tokens:  # type: ignore[attr-defined]
                before = len(names)
                if type(token) is dict:
                    _add_dict(token, "", sign, names, values)
                elif type(token) in _COLLECTIONS:
                    names += token
                else:
                    return None
                counts.append(len(names) - before)
        text, end = _joined(names)
    except (TypeError, OverflowError, RecursionError):
        return None
    if max(counts, default=0) > _MOST_NAMES or not all(map(math.isfinite, values.values())):
        return None
    factors = array("d", [1.0]) * (len(names) if values else 0)
    for place, value in values.items():
        factors[place] = value
    return Features(text, end, counts, list(map(len, X)), factors)  # type: ignore[arg-type]


def _add_dict(
    token: dict[str, object], within: str, sign: str, names: list[str], values: dict[int, float]
) -> None:
    """Append the names of the features of a token; raise TypeError if they are of another form."""
    for key, value in token.items():
        name = within + key
        if type(value) is str:
            names.append(name + sign + value)
        elif value is True or value is False:
            names += [name] if value else ()
        elif type(value) is dict:
            _add_dict(value, name + ":", sign, names, values)
        elif type(value) in _COLLECTIONS:
            names += [name + ":" + each for each in value]  # type: ignore[attr-defined]
        elif type(value) is float or isinstance(value, Real):  # the latter takes longer to find out
            if value != 1.0:
                values[len(names)] = float(value)
            names.append(name)
        else:
            raise TypeError("a value of another form")


def _joined(names: list[str]) -> tuple[bytes, int]:
    """Return names in UTF-8, each followed by a byte that none contains, and this byte."""
    text = "\0".join([*names, ""]).encode("utf-8", "surrogatepass")
    if text.count(b"\0") == len(names):
        return text, 0
    return b"".join(name.encode("utf-8", "surrogatepass") + _END for name in names), _END[0]


def _zeros(*shape: int) -> Buffer:
    """Return an array of zeros: ints or floats, as both have eight bytes."""
    return Buffer((ctypes.c_int64 * math.prod(shape))(), shape)


def _work(width: int, n_bytes: int, n_tokens: int) -> tuple[Buffer, ...]:
    """Return the workspace of `lines.tag_text`: of a line, and of a sequence."""
    line = Buffer((ctypes.c_uint8 * n_bytes)(), (n_bytes,))
    of_line = line, _zeros(n_bytes + 1, 3), _zeros(2, n_bytes + 1)
    return *of_line, _zeros(n_tokens, width), _zeros(n_tokens, width), _zeros(n_tokens)

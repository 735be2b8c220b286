"""Tag attribute files with a chain, read without NumPy: the labels of each token as text.

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
from typing import BinaryIO, NamedTuple

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
    task : str
        The name of the task that reads its data.
    settings : Json
        The settings of the task.
    """

    labels: list[str]
    names: Buffer
    counts: Buffer
    columns: Buffer
    values: Buffer
    n_weighted: int
    chain: Buffer
    task: str
    settings: Json


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
        _require(_FORBIDDEN not in self.spans)
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
        return ChainModel(labels, names, *weights, self.rows(n_labels), *self.notes())

    def sparse(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features of which zeros are not stored, and how many features have some."""
        _require(n_labels < n_features)  # otherwise they are stored label by label
        name = "weights.unary.counts"
        n_weights = self.length("weights.unary.values")
        return (
            self.buffer(name, "U8", n_features),
            self.buffer("weights.unary.columns", "U8", n_weights),
            self.buffer("weights.unary.values", "F64", n_weights),
            n_features - self.content.count(b"\0", *self.span(name, "U8", n_features)),
        )

    def dense(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features that are all stored, label by label, in the order of features."""
        start, stop = self.span("weights.unary", "F64", n_labels, n_features)
        values, size = array("d", bytes(stop - start)), SIZES["F64"] * n_features
        for k in range(n_labels):
            values[k::n_labels] = array("d", self.content[start + k * size : start + (k + 1) * size])
        return (
            Buffer(bytes([n_labels]) * n_features, (n_features,)),
            Buffer(bytes(range(n_labels)) * n_features, (len(values),)),
            Buffer((ctypes.c_double * len(values)).from_buffer(values), (len(values),)),
            n_features,
        )

    def notes(self) -> tuple[str, Json]:
        """Return the task and its settings."""
        (text,) = self.texts("notes")
        notes = dict(json.loads(text)["dict"])
        _require(type(notes["task"]) is str)
        return notes["task"], dict(notes["settings"]["dict"])

    def rows(self, n_labels: int) -> Buffer:
        """Return the weights of pairs of labels, of the first label and of the last one."""
        width = -(-n_labels // _LANES) * _LANES
        found = (ctypes.c_double * ((n_labels + 2) * width))()
        parts = [
            *self.small("transitions", n_labels, n_labels),
            *self.small("start", n_labels),
            *self.small("end", n_labels),
        ]
        for j in range(n_labels + 2):
            row = parts[j * n_labels : (j + 1) * n_labels]
            for k, weight in enumerate(row):
                found[j * width + k] = weight
        return Buffer(found, (n_labels + 2, width))

    def small(self, name: str, *shape: int) -> list[float]:
        """Return a part of the weights, whose zeros may not be stored."""
        name, size = f"weights.{name}", math.prod(shape)
        _require(self.header[name] == list(shape))
        if name in self.spans:
            found = self.floats(name, *shape)
        else:
            counts = self.bytes(f"{name}.counts", shape[0])
            columns, values = (
                self.bytes(f"{name}.columns", sum(counts)),
                self.floats(f"{name}.values", sum(counts)),
            )
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

    def floats(self, name: str, *shape: int) -> list[float]:
        """Return an array of floats, flat."""
        start, stop = self.span(name, "F64", *shape)
        return list(memoryview(self.content)[start:stop].cast("d"))

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
    size: int, n_columns: int, counts: bytearray, columns: bytearray, values: list[float]
) -> list[float]:
    """Return an array of which the nonzeros are stored, row by row."""
    found, done = [0.0] * size, 0
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
_LABEL = "_"  # stands for a label that is not known
_BATCH = 64  # names that are looked up at a time


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
    loops = ready_loops() if model is not None and model.task in tasks else None
    if model is None or loops is None:
        return None
    try:
        return TaskTagger(Tagger(model, loops), model.task, model.settings)
    except ValueError:
        return None


class Tagger:
    """A chain that tags.

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
        self._work = _work(width, _LINE, _TOKENS)
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

    def tag_features(self, X: Sequence[Sequence[Sequence[str]]]) -> list[list[str]] | None:
        """Return the labels of sequences of tokens, each a list of the names of its features; or None.

        There is at least one token in each sequence.
        """
        text = _as_attributes(X) if X else b""
        codes = None if text is None else self._codes(text)
        if codes is None:
            return None
        found, labels = [], iter(codes)
        for x in X:
            found.append([self.labels[code] for code in islice(labels, len(x))])
            next(labels)  # the end of the sequence
        return found

    def _codes(self, text: bytes) -> list[int] | None:
        """Return the numbers of labels, and `END_OF_SEQUENCE` after each sequence."""
        if not _is_utf8(text):
            return None
        text = text if text.endswith(b"\n") else text + b"\n"
        text = text.replace(b"\r\n", b"\n") if b"\r" in text else text  # one byte is found much faster
        out, scan = (ctypes.c_int32 * (text.count(b"\n") + 1))(), (ctypes.c_int64 * 4)()
        passed, *written = (Buffer(memory, (len(memory),)) for memory in (text, out, scan))
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


def _is_utf8(text: bytes) -> bool:
    """Return whether bytes are a text; those of most texts are ASCII, which is found out faster."""
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _as_attributes(X: Sequence[Sequence[Sequence[str]]]) -> bytes | None:
    """Return sequences as an attribute file, or None if a name is empty or has a tab or a line end."""
    sequences = ("\n".join("\t".join([_LABEL, *names]) for names in tokens) for tokens in X)
    text = "\n\n".join(sequences).replace("\\", "\\\\").replace(":", "\\:") + "\n"
    n_tabs = sum(len(names) for tokens in X for names in tokens)
    n_lines = sum(map(len, X)) + len(X) - 1
    if text.count("\t") != n_tabs or text.count("\n") != n_lines or "\r" in text:
        return None
    return None if "\t\t" in text or "\t\n" in text else text.encode("utf-8", "surrogatepass")


def _zeros(*shape: int) -> Buffer:
    """Return an array of zeros: ints or floats, as both have eight bytes."""
    return Buffer((ctypes.c_int64 * math.prod(shape))(), shape)


def _work(width: int, n_bytes: int, n_tokens: int) -> tuple[Buffer, ...]:
    """Return the workspace of `lines.tag_text`: of a line, and of a sequence."""
    line = Buffer((ctypes.c_uint8 * n_bytes)(), (n_bytes,))
    of_line = line, _zeros(n_bytes + 1, 3), _zeros(2, n_bytes + 1)
    return *of_line, _zeros(n_tokens, width), _zeros(n_tokens, width), _zeros(n_tokens)

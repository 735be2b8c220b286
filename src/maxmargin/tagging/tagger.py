"""Tag attribute files with a chain: the labels of each token as text."""

import ctypes
import math
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from maxmargin.compiling.object_code import Buffer
from maxmargin.tagging.loops import Loops, ready_loops
from maxmargin.tagging.model import ChainModel, Json, read_chain

# What `lines.tag_text` returns; its module imports NumPy.
_LONG_LINE, _LONG_SEQUENCE = -1, -2
_LINES, _END_OF_SEQUENCE = 2, -1
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
        n_sequences = codes.count(_END_OF_SEQUENCE)
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
        """Return the numbers of labels, and `_END_OF_SEQUENCE` after each sequence."""
        if not _is_utf8(text):
            return None
        text = text if text.endswith(b"\n") else text + b"\n"
        text = text.replace(b"\r\n", b"\n") if b"\r" in text else text  # one byte is found much faster
        out, scan = (ctypes.c_int32 * (text.count(b"\n") + 1))(), (ctypes.c_int64 * 4)()
        passed, *written = (Buffer(memory, (len(memory),)) for memory in (text, out, scan))
        while status := self._loops.tag_text(passed, *self._model, *self._work, *written):
            if status not in (_LONG_LINE, _LONG_SEQUENCE) or not self._enlarge(status):
                return None
        return out[: scan[_LINES]]

    def _enlarge(self, status: int) -> bool:
        """Double the workspace for lines or for sequences; return whether it may be as large as that."""
        line, _, _, unary, *_ = self._work
        (n_bytes,), (n_tokens, width) = line.shape, unary.shape
        if status == _LONG_LINE:
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

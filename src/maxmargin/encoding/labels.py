"""Labels of sequences as numbers, their losses as cost matrices, and checks of numbers that are encoded.

Kernels do not check indices, so encoded examples are checked here first. The functions for this return arrays
in the form that kernels are compiled for, or raise. The arrays are copies, except where nothing can change
the original, such as a mapped file.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.encoding.kinds import SEQUENCES, Offsets, Words, pieces
from maxmargin.runtime.arrays import BoolArray, FloatArray, IntArray, aligned_zeros, kernel_copy
from maxmargin.runtime.wording import described, quoted, shown

Label = str | int
Labels = NDArray[np.int64] | NDArray[np.str_]


def encode_labels(
    y: object, offsets: Offsets | None = None, *, classes: ArrayLike | None = None, words: Words = SEQUENCES
) -> tuple[NDArray[np.int64], Labels]:
    """Number the labels of all sequences.

    Parameters
    ----------
    y : list of sequences of labels
        All labels are strings, or all are integers; booleans count as the integers 0 and 1.
    offsets : ndarray of int64, optional
        Offsets of the tokens of X: sequence i must have ``offsets[i + 1] - offsets[i]`` labels. Without
        them, each sequence must have a label.
    classes : array-like, optional
        The known labels; by default all labels of y, sorted.
    words : Words, optional
        What error messages call sequences and tokens.

    Returns
    -------
    codes : ndarray of int64
        ``classes[codes]`` are the labels of all sequences, one sequence after another.
    classes : ndarray of int64 or str
        The known labels; codes are indices of this array.

    Examples
    --------
    >>> encode_labels([["N", "V"], ["D", "N"]])
    (array([1, 2, 0, 1]), array(['D', 'N', 'V'], dtype='<U1'))
    """
    sequences = _label_sequences(y, words)
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    _check_lengths(lengths, offsets, words)
    labels = list(chain.from_iterable(sequences))
    _check_types(labels, lengths, words)
    known = sorted_classes(labels) if classes is None else np.asarray(classes)
    numbers = {label: k for k, label in enumerate(known.tolist())}
    try:
        codes = np.fromiter(map(numbers.__getitem__, labels), np.int64, len(labels))
    except KeyError:
        raise _unknown_label(labels, lengths, numbers, words) from None
    return codes, known


def without_label(
    codes: NDArray[np.int64], classes: Labels, label: str | int
) -> tuple[NDArray[np.int64], Labels]:
    """Return the codes for the classes without a label, -1 where it was, and these classes.

    Examples
    --------
    >>> without_label(np.array([0, 2, 1]), np.array([3, 5, 255]), 5)
    (array([ 0,  1, -1]), array([  3, 255]))
    """
    other = classes != label
    numbers = np.where(other, np.cumsum(other) - 1, -1)
    return numbers[codes], classes[other]


def holds_arrays(y: object) -> bool:
    """Return whether labels are given as arrays, judged by the first sequence."""
    return isinstance(y, Iterable) and isinstance(next(iter(y), None), np.ndarray)


def _label_sequences(y: object, words: Words) -> list[Sequence[object]]:
    """Return one list or tuple of labels per sequence."""
    is_frame = hasattr(y, "columns") and hasattr(y, "shape")
    if isinstance(y, str | bytes | Mapping | Set) or is_frame or not isinstance(y, Iterable):
        raise TypeError(
            f"y must be a list of label sequences, got {described(y)}; "
            f"pass one list of labels per {words.example}."
        )
    sequences = [_plain(labels, i, words) for i, labels in enumerate(y)]
    if not sequences:
        raise ValueError(f"y has no {words.example}, expected at least one.")
    return sequences


def _plain(labels: object, i: int, words: Words) -> Sequence[object]:
    """Return the labels of sequence i as a list or tuple."""
    if isinstance(labels, list | tuple):
        return labels
    # Arrays become lists of Python objects, which are faster to look up than array scalars.
    if isinstance(labels, np.ndarray) and labels.ndim:
        return labels.tolist()  # type: ignore[no-any-return]
    is_scalar = getattr(labels, "shape", None) == ()
    if is_scalar or not isinstance(labels, Iterable) or isinstance(labels, str | bytes | Mapping | Set):
        raise TypeError(
            f"y must be a list of label sequences, but y[{i}] is {described(labels)}; "
            f"if y is one {words.example} pass [y]."
        )
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _check_lengths(lengths: NDArray[np.int64], offsets: Offsets | None, words: Words) -> None:
    example, part = words
    if offsets is not None:
        expected = np.diff(offsets)
        if len(expected) != len(lengths):
            raise ValueError(
                f"X has {len(expected)} {example}s, but y has {len(lengths)}; "
                f"give one label sequence per {example}."
            )
        wrong = np.flatnonzero(lengths != expected)
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"{example} {i} has {expected[i]} {part}s in X, but {lengths[i]} labels "
                f"in y; give one label per {part}."
            )
    empty = np.flatnonzero(lengths == 0)
    if offsets is None and len(empty):
        raise ValueError(
            f"y[{empty[0]}] is empty, expected at least one label; remove empty {example}s from X and y."
        )


def _check_types(labels: list[object], lengths: NDArray[np.int64], words: Words) -> None:
    """Raise unless all labels are strings, or all are integers."""
    types = set(map(type, labels))
    text = {t for t in types if issubclass(t, str)}
    whole = {t for t in types if issubclass(t, Integral | np.bool_)}
    if types in (text, whole):
        return
    wrong = types - text - whole
    if wrong:
        k = next(k for k, label in enumerate(labels) if type(label) in wrong)
        raise TypeError(
            f"{_place(k, lengths, words)} is {described(labels[k])}, "
            "expected a str or an int; convert or remove it."
        )
    k = next(k for k, label in enumerate(labels) if (type(label) in text) != (type(labels[0]) in text))
    raise TypeError(
        f"{_place(k, lengths, words)} is {described(labels[k])}, but the first label is "
        f"{described(labels[0])}; make all labels str or all int."
    )


def sorted_classes(labels: Iterable[object]) -> Labels:
    """Return the distinct labels, all of them strings or all ints, in order."""
    distinct = sorted(dict.fromkeys(labels))  # type: ignore[type-var]  # all str or all int
    if not distinct:
        raise ValueError("y has no label, expected at least one.")
    try:
        classes = np.array(distinct, str if isinstance(distinct[0], str) else np.int64)
    except OverflowError:
        raise ValueError("an integer label of y does not fit into 64 bits.") from None
    if classes.tolist() != distinct:
        raise ValueError("a label of y ends with the NUL character; remove it.")
    return classes


def listed_classes(classes: object) -> list[object]:
    """Return the labels that a user says there are, as a list of strings or one of numbers."""
    labels: list[object] = []
    if isinstance(classes, Iterable) and not isinstance(classes, str | bytes | Mapping):
        labels = classes.tolist() if isinstance(classes, np.ndarray) and classes.ndim else list(classes)
    kind = str if labels and isinstance(labels[0], str) else Real | np.bool_
    wrong = [label for label in labels if not isinstance(label, kind) or label != label]
    if wrong or not labels:
        raise TypeError(
            "classes must be a list of all labels, each a str or each a number, got "
            f"{described((wrong or [classes])[0])}; give one list of all labels."
        )
    return labels


def given_classes(classes: object) -> Labels:
    """Return the labels that a user says there are, sorted: strings or ints."""
    labels = listed_classes(classes)
    wrong = next((label for label in labels if not isinstance(label, str | Integral | np.bool_)), None)
    if wrong is not None:
        raise TypeError(f"classes must be str or int, got {described(wrong)}; convert it.")
    return sorted_classes(labels)


def _unknown_label(
    labels: list[object], lengths: NDArray[np.int64], numbers: dict[str | int, int], words: Words
) -> ValueError:
    k = next(k for k, label in enumerate(labels) if label not in numbers)
    known = ", ".join(map(quoted, list(numbers)[:5])) + (", ..." if len(numbers) > 5 else "")
    return ValueError(
        f"{_place(k, lengths, words)} is {quoted(labels[k])}, expected one of the "
        f"{len(numbers)} known labels ({known}); fit on data that has it, or remove the {words.example}."
    )


def _place(k: int, lengths: NDArray[np.int64], words: Words) -> str:
    """Return a description of the position of label k, counted over all sequences."""
    stops = np.cumsum(lengths)
    i = int(np.searchsorted(stops, k, side="right"))
    return f"label {k - (stops[i] - lengths[i])} of {words.example} {i} of y"


def pad_columns(matrix: FloatArray, width: int) -> FloatArray:
    """Return ``matrix`` with zero columns added up to ``width``."""
    out = aligned_zeros(len(matrix), width)
    out[:, : matrix.shape[1]] = matrix
    return out


def cost_matrix(loss: object, names: tuple[str, ...], n_labels: int) -> FloatArray:
    """Return cost[truth, label] for a loss given by name (all 0/1) or as a matrix, of two labels or more."""
    check_several(n_labels)
    if isinstance(loss, str):
        if loss not in names:
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, names))} or a cost matrix "
                f"of shape ({n_labels}, {n_labels}), got {shown(loss)}."
            )
        return 1.0 - np.eye(n_labels)
    cost = _numbers(loss, n_labels)
    if cost.shape != (n_labels, n_labels):
        raise ValueError(
            "a cost matrix must have one row and column per label, shape "
            f"({n_labels}, {n_labels}), got {cost.shape}."
        )
    if not np.isfinite(cost).all() or (cost < 0).any() or np.diagonal(cost).any():
        raise ValueError(
            "a cost matrix must be finite and nonnegative with zeros on its diagonal "
            "(the truth costs nothing)."
        )
    return cost


def _numbers(loss: object, n_labels: int) -> FloatArray:
    try:
        return np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"loss must be a name or a matrix of numbers of shape ({n_labels}, {n_labels}), "
            f"got {described(loss)}."
        ) from None


def check_several(n_labels: int) -> None:
    """Raise unless there are at least two labels."""
    if n_labels < 2:
        raise ValueError(
            f"y must have at least two different labels, got {n_labels} class; with one label there "
            "is nothing to learn (in cross-validation, shuffle or use fewer folds)."
        )


def checked_offsets(
    offsets: ArrayLike, n_rows: int | None, *, name: str = "offsets", least: int = 1
) -> IntArray:
    """Return where each example begins and the last one ends; raise if one has fewer than ``least`` rows."""
    array = _integers(offsets, name)
    if len(array) < 2 or array[0] != 0 or n_rows not in (None, array[-1]):
        ends = "none" if len(array) == 0 else f"{len(array)} from {array[0]} to {array[-1]}"
        stop = "the number of rows" if n_rows is None else f"{n_rows}, the number of rows"
        raise ValueError(f"{name} must be two or more ints from 0 to {stop}, got {ends}.")
    short = array[1:] < array[:-1] + least  # a difference might overflow
    if short.any():
        i = int(short.argmax())
        raise ValueError(
            f"{name} must rise by at least {least}, got {array[i]} and {array[i + 1]} for "
            f"example {i}; leave out empty examples."
        )
    return array


def checked_numbers(
    values: ArrayLike, length: int, stop: int | IntArray, *, name: str = "labels", begin: int = 0
) -> IntArray:
    """Return ``length`` ints; raise unless each is at least ``begin`` and below ``stop``."""
    array = _integers(values, name)
    if len(array) != length:
        raise ValueError(f"{name} must be {length} ints, got {len(array)}; give one for each.")
    for piece in pieces(length):
        limit = stop[piece] if isinstance(stop, np.ndarray) else stop
        outside = (array[piece] < begin) | (array[piece] >= limit)
        if outside.any():
            at = piece.start + int(outside.argmax())
            most = int(np.broadcast_to(stop, length)[at]) - 1
            raise ValueError(f"{name} must be from {begin} to {most}, got {array[at]} at position {at}.")
    return array


def checked_count(value: object, name: str) -> int:
    """Return the value as an int; raise unless it is at least one, and small enough for an index."""
    if not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be an int >= 1, got {described(value)}.")
    if int(value) > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got {described(value)}.")
    return int(value)


def checked_flags(values: ArrayLike, length: int, name: str) -> BoolArray:
    """Return ``length`` bools."""
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype != np.bool_:
        raise ValueError(f"{name} must be {length} bools, got {described(values)} of dtype {array.dtype}.")
    return array.copy()


def _integers(values: ArrayLike, name: str) -> IntArray:
    """Return a vector of ints."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a vector of ints, got {described(values)} of dtype {array.dtype}.")
    return kernel_copy(array, np.int64)


_MOST = 1 << 48  # for counts, which are multiplied in 64 bits; later checks ensure that all fits into memory

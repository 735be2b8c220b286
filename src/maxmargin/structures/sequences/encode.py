"""Encode which labels may not follow which: pairs of labels become a matrix."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.encoding.kinds import Offsets
from maxmargin.runtime.arrays import BoolArray, IntArray
from maxmargin.runtime.wording import described, quoted

Label = str | int | None
# Pairs that an error lists, and sequences that are checked at a time.
_MOST, _SEQUENCES = 5, 1 << 14


def encode_forbidden(forbidden: object, classes: ArrayLike) -> BoolArray | None:
    """Return the matrix of forbidden transitions between labels, or None if all are allowed.

    Parameters
    ----------
    forbidden : None, "bio" or list of pairs (before, after)
        In a pair, None stands for the start of a sequence if it comes before, and for its end if it comes
        after. "bio" forbids labels ``I-x`` that do not follow ``B-x`` or ``I-x``.
    classes : array of labels

    Returns
    -------
    array of shape (n_labels + 1, n_labels + 1) or None
        The last row stands for the start, the last column for the end.
    """
    if forbidden is None:
        return None
    labels = list(np.asarray(classes).tolist())
    if isinstance(forbidden, str) and forbidden == "bio":
        pairs = _bio_pairs(labels)
    elif isinstance(forbidden, Iterable) and not isinstance(forbidden, str | dict):
        pairs = [_checked_pair(pair, labels) for pair in forbidden]
    else:
        raise ValueError(
            f"forbidden must be None, 'bio' or a list of pairs (before, after), got {described(forbidden)}."
        )
    number = {label: k for k, label in enumerate(labels)} | {None: len(labels)}
    matrix = np.zeros((len(labels) + 1, len(labels) + 1), dtype=np.bool_)
    for before, after in pairs:
        matrix[number[before], number[after]] = True
    return matrix if matrix.any() else None


def _bio_pairs(labels: list[Label]) -> list[tuple[Label, Label]]:
    inner = [label for label in labels if isinstance(label, str) and label.startswith("I-")]
    return [
        (before, after)
        for after in inner
        for before in (None, *labels)
        if before is None or before not in (after, f"B-{after[2:]}")
    ]


def _checked_pair(pair: object, labels: list[Label]) -> tuple[Label, Label]:
    """Return the pair; raise unless both its entries are labels or None."""
    entries = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
    if len(entries) != 2 or entries == (None, None):
        raise ValueError(
            f"forbidden has the item {quoted(pair)}, expected pairs of labels (before, after), with "
            "None for the start or the end."
        )
    for label in entries:
        if label is not None and label not in labels:
            raise ValueError(
                f"forbidden has the label {quoted(label)}, which is not in y; labels are {quoted(labels)}."
            )
    return entries[0], entries[1]


def check_allowed(
    labels: IntArray,
    offsets: Offsets,
    forbidden: BoolArray,
    classes: ArrayLike,
    *,
    advice: str = "correct y or remove the pairs from forbidden",
) -> None:
    """Raise if the numbered labels of sequences contain forbidden transitions; the error reports all."""
    pairs: Counter[tuple[int, int]] = Counter()
    n_wrong, first = 0, ""
    for begin in range(0, len(offsets) - 1, _SEQUENCES):
        part = offsets[begin : begin + _SEQUENCES + 1]
        found, where, place = _forbidden_pairs(labels[part[0] : part[-1]], part - part[0], forbidden)
        if len(where) and not n_wrong:
            first = f"token {place} of sequence {begin + where[0]}"
        n_wrong += len(np.unique(where))
        pairs += found
    if n_wrong:
        raise ValueError(
            f"y has forbidden pairs in {n_wrong} of {len(offsets) - 1} sequences, first at {first}: "
            f"{_listed(pairs, classes)}; {advice}."
        )


def _forbidden_pairs(
    labels: IntArray, offsets: Offsets, forbidden: BoolArray
) -> "tuple[Counter[tuple[int, int]], IntArray, int]":
    """Return the forbidden pairs of some sequences, the sequence of each, and the token of the first."""
    border, lengths = len(forbidden) - 1, np.diff(offsets)
    # One path through all sequences: a border between two is the end of one and the start of the next.
    path, begins = np.full(len(labels) + len(offsets), border), offsets + np.arange(len(offsets))
    path[np.arange(len(labels)) + 1 + np.repeat(np.arange(len(lengths)), lengths)] = labels
    wrong = np.flatnonzero(forbidden[path[:-1], path[1:]])
    where = np.searchsorted(begins, wrong, side="right") - 1
    pairs = Counter(zip(path[wrong].tolist(), path[wrong + 1].tolist(), strict=True))
    return pairs, where, int(wrong[0] - begins[where[0]]) if len(wrong) else 0


def _listed(pairs: "Counter[tuple[int, int]]", classes: ArrayLike) -> str:
    """Return the pairs and how often each occurs, the most frequent first."""
    names = list(map(repr, np.asarray(classes).tolist()))
    before, after, ranked = [*names, "the start"], [*names, "the end"], pairs.most_common()
    listed = [f"{after[b]} after {before[a]} {_times(count)}" for (a, b), count in ranked[:_MOST]]
    rest = sum(count for _, count in ranked[_MOST:])
    return ", ".join([*listed, f"others {_times(rest)}"] if rest else listed)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def check_lengths(offsets: Offsets, forbidden: BoolArray) -> None:
    """Raise if a sequence of one of these lengths has no allowed labelling."""
    lengths = set(np.diff(offsets).tolist())
    ends: BoolArray = ~forbidden[-1, :-1]
    for length in range(1, max(lengths, default=0) + 1):
        if length in lengths and not (ends & ~forbidden[:-1, -1]).any():
            raise ValueError(
                f"all labellings of {length} tokens are forbidden; remove some pairs from forbidden."
            )
        ends = np.any(ends[:, None] & ~forbidden[:-1, :-1], axis=0)


def checked_forbidden(forbidden: ArrayLike, n_labels: int) -> BoolArray:
    """Return which labels may not follow which; the last row is the start, the last column the end."""
    array, shape = np.asarray(forbidden), (n_labels + 1, n_labels + 1)
    if array.shape != shape or array.dtype != np.bool_:
        raise ValueError(
            f"forbidden must be bools of shape {shape}, got {described(forbidden)} of dtype "
            f"{array.dtype}; make it with encode_forbidden."
        )
    return array

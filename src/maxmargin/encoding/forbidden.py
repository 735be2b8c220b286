"""Encode which labels may not follow which: pairs of labels become a matrix."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import BoolArray, IntArray
from maxmargin.encoding.tokens import Offsets
from maxmargin.wording import described, quoted

Label = str | int | None


def encode_forbidden(forbidden: object, classes: ArrayLike, *, owner: str) -> BoolArray | None:
    """Return the matrix of forbidden transitions between labels, or None if all are allowed.

    Parameters
    ----------
    forbidden : None, "bio" or list of pairs (before, after)
        In a pair, None stands for the start of a sequence if it comes before, and for its end if it comes
        after. "bio" forbids labels ``I-x`` that do not follow ``B-x`` or ``I-x``.
    classes : array of labels
    owner : str
        The name to use in error messages.

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
        pairs = [_checked_pair(pair, labels, owner) for pair in forbidden]
    else:
        raise ValueError(
            f"{owner}: forbidden must be None, 'bio' or a list of pairs (before, after), got "
            f"{described(forbidden)}."
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


def _checked_pair(pair: object, labels: list[Label], owner: str) -> tuple[Label, Label]:
    """Return the pair; raise unless both its entries are labels or None."""
    entries = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
    if len(entries) != 2 or entries == (None, None):
        raise ValueError(
            f"{owner}: forbidden has the item {quoted(pair)}, expected pairs of labels (before, after), with "
            "None for the start or the end."
        )
    for label in entries:
        if label is not None and label not in labels:
            raise ValueError(
                f"{owner}: forbidden has the label {quoted(label)}, which is not in y; labels are "
                f"{quoted(labels)}."
            )
    return entries[0], entries[1]


def check_allowed(
    labels: IntArray, offsets: Offsets, forbidden: BoolArray, classes: ArrayLike, *, owner: str
) -> None:
    """Raise if the numbered labels of a sequence contain a forbidden transition."""
    border = len(forbidden) - 1
    for i in range(len(offsets) - 1):
        path = np.concatenate([[border], labels[offsets[i] : offsets[i + 1]], [border]])
        wrong = forbidden[path[:-1], path[1:]]
        if wrong.any():
            t = int(wrong.argmax())
            raise ValueError(
                f"{owner}: sequence {i} of y has {_name_of(path[t + 1], classes, 'its end')} after "
                f"{_name_of(path[t], classes, 'its start')} at token {t}, which is forbidden; correct "
                "y or remove the pair from forbidden."
            )


def _name_of(number: int, classes: ArrayLike, border: str) -> str:
    labels = np.asarray(classes)
    return border if number == len(labels) else repr(labels[number].item())


def check_lengths(offsets: Offsets, forbidden: BoolArray, *, owner: str) -> None:
    """Raise if a sequence of one of these lengths has no allowed labelling."""
    lengths = set(np.diff(offsets).tolist())
    ends: BoolArray = ~forbidden[-1, :-1]
    for length in range(1, max(lengths) + 1):
        if length in lengths and not (ends & ~forbidden[:-1, -1]).any():
            raise ValueError(
                f"{owner}: all labellings of {length} tokens are forbidden; remove some pairs from forbidden."
            )
        ends = np.any(ends[:, None] & ~forbidden[:-1, :-1], axis=0)

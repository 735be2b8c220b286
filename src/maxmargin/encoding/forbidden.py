"""Which labels may not follow which: from pairs of labels to a matrix."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.tokens import Offsets
from maxmargin.wording import described, quoted

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def encode_forbidden(forbidden: Any, classes: Any, *, owner: str) -> Bools | None:
    """Return whether each label is forbidden after each, or None if nothing is.

    Parameters
    ----------
    forbidden : None, "bio" or list of pairs (before, after)
        With None for the start of a sequence before the first label, or for its end after the last. "bio"
        forbids labels ``I-x`` that do not continue ``B-x`` or ``I-x``.
    classes : array of labels
    owner : str
        Who asks, for error messages.

    Returns
    -------
    array of shape (n_labels + 1, n_labels + 1) or None
        The last row is for the start, the last column for the end.
    """
    if forbidden is None:
        return None
    labels = list(np.asarray(classes).tolist())
    if isinstance(forbidden, str) and forbidden == "bio":
        pairs = _bio_pairs(labels)
    elif isinstance(forbidden, Iterable) and not isinstance(forbidden, str | dict):
        pairs = [_checked(pair, labels, owner) for pair in forbidden]
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


def _bio_pairs(labels: list[Any]) -> list[tuple[Any, Any]]:
    inner = [label for label in labels if isinstance(label, str) and label.startswith("I-")]
    return [
        (before, after)
        for after in inner
        for before in (None, *labels)
        if before is None or before not in (after, f"B-{after[2:]}")
    ]


def _checked(pair: Any, labels: list[Any], owner: str) -> tuple[Any, Any]:
    """The pair, if both are labels or None."""
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
    return entries


def check_allowed(labels: Ints, offsets: Offsets, forbidden: Bools, classes: Any, *, owner: str) -> None:
    """Raise if the labels of a sequence, given by numbers, have what is forbidden."""
    border = len(forbidden) - 1
    for i in range(len(offsets) - 1):
        path = np.concatenate([[border], labels[offsets[i] : offsets[i + 1]], [border]])
        wrong = forbidden[path[:-1], path[1:]]
        if wrong.any():
            t = int(wrong.argmax())
            raise ValueError(
                f"{owner}: sequence {i} of y has {_named(path[t + 1], classes, 'its end')} after "
                f"{_named(path[t], classes, 'its start')} at token {t}, which is forbidden; correct "
                "y or drop the pair."
            )


def _named(number: Any, classes: Any, border: str) -> str:
    return border if number == len(classes) else repr(np.asarray(classes)[number].item())


def check_lengths(offsets: Offsets, forbidden: Bools, *, owner: str) -> None:
    """Raise if there is no labelling at all for a sequence of one of these lengths."""
    lengths = set(np.diff(offsets).tolist())
    ends: Bools = ~forbidden[-1, :-1]
    for length in range(1, max(lengths) + 1):
        if length in lengths and not (ends & ~forbidden[:-1, -1]).any():
            raise ValueError(
                f"{owner}: all labellings of {length} tokens are forbidden; drop some pairs of forbidden."
            )
        ends = np.any(ends[:, None] & ~forbidden[:-1, :-1], axis=0)

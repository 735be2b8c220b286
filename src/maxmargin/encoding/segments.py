"""Segments of sequences: from lists of segments or of tags to numbers, and back."""

from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.tokens import Offsets
from maxmargin.wording import described, quoted

Ints = NDArray[np.int64]
Segment = tuple[int, int, Any]
_OUTSIDE = "O"


class EncodedSegments(NamedTuple):
    """The segments of all sequences by number.

    Attributes
    ----------
    codes : ndarray of int64 (n_tokens,)
        Twice the label of each token, and one more where a segment starts.
    classes : ndarray of int64 or str
        The labels by number.
    n_labels : int
        One more than there are classes if there are tokens outside of segments: each of them is a segment
        with the last label.
    """

    codes: Ints
    classes: NDArray[Any]
    n_labels: int


def encode_segments(
    y: Any, offsets: Offsets, *, owner: str, classes: NDArray[Any] | None = None, n_labels: int = 0
) -> EncodedSegments:
    """Number the segments of all sequences.

    Parameters
    ----------
    y : list of lists
        The segments ``(start, stop, label)`` of each sequence, in any order, or its tags.
    offsets : ndarray of int64
        Offsets of the tokens of X.
    owner : str
        The name to use in error messages.
    classes, n_labels : ndarray and int, optional
        The labels that there are; by default those of y.
    """
    listed = list_segments(y, offsets, owner=owner)
    if classes is None:
        classes = _sorted_labels(listed, owner)
    else:
        _check_known(listed, classes.tolist(), owner)
    number = {label: k for k, label in enumerate(classes.tolist())}
    outside = 2 * len(classes) + 1
    codes = np.full(offsets[-1], outside, dtype=np.int64)
    for first, segments in zip(offsets[:-1].tolist(), listed, strict=True):
        for start, stop, label in segments:
            codes[first + start : first + stop] = 2 * number[label]
            codes[first + start] += 1
    found = EncodedSegments(codes, classes, len(classes) + bool((codes == outside).any()))
    if 0 < n_labels < found.n_labels:
        raise ValueError(
            f"{owner}: y has tokens outside of segments, but there were none at first; call fit with all."
        )
    return found._replace(n_labels=max(n_labels, found.n_labels))


def _check_known(listed: list[list[Segment]], labels: list[Any], owner: str) -> None:
    for i, segments in enumerate(listed):
        for segment in segments:
            if segment[2] not in labels:
                raise ValueError(
                    f"{owner}: sequence {i} of y has the segment {segment}, expected a label of the first "
                    f"call, one of {quoted(labels)}; call fit with all."
                )


def decode_segments(codes: Ints, offsets: Offsets, classes: NDArray[Any]) -> list[list[Segment]]:
    """Return the segments of each sequence in order, without the tokens outside of them."""
    starts = np.flatnonzero(codes & 1)
    stops, numbers = np.append(starts[1:], len(codes)), codes[starts] >> 1
    owners = np.searchsorted(offsets, starts, side="right") - 1
    kept = numbers < len(classes)
    first = offsets[owners]
    columns = (owners[kept], (starts - first)[kept], (stops - first)[kept], numbers[kept])
    labels = classes.tolist()
    found: list[list[Segment]] = [[] for _ in range(len(offsets) - 1)]
    for i, start, stop, k in zip(*(column.tolist() for column in columns), strict=True):
        found[i].append((start, stop, labels[k]))
    return found


def segments_of_tags(tags: Iterable[str]) -> list[Segment]:
    """Return the segments that tags "B-x", "I-x" and "O" stand for.

    A segment with label x starts at ``B-x``, or at ``I-x`` that continues no segment with that label.

    Examples
    --------
    >>> segments_of_tags(["B-NP", "I-NP", "O", "B-VP"])
    [(0, 2, 'NP'), (3, 4, 'VP')]
    """
    found: list[Segment] = []
    start, label = 0, ""
    for t, tag in enumerate((*tags, _OUTSIDE)):
        prefix, its_label = _split(tag)
        if label and (prefix != "I" or its_label != label):
            found.append((start, t, label))
            label = ""
        if not label:
            start, label = t, its_label
    return found


def tags_of_segments(segments: Iterable[Segment], length: int) -> list[str]:
    """Return the tags "B-x", "I-x" and "O" of a sequence with these segments.

    Examples
    --------
    >>> tags_of_segments([(0, 2, "NP"), (3, 4, "VP")], 5)
    ['B-NP', 'I-NP', 'O', 'B-VP', 'O']
    """
    tags = [_OUTSIDE] * length
    for start, stop, label in segments:
        tags[start:stop] = [f"B-{label}", *[f"I-{label}"] * (stop - start - 1)]
    return tags


def _split(tag: Any) -> tuple[str, str]:
    prefix, _, label = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    if tag != _OUTSIDE and (prefix not in ("B", "I") or not label):
        raise ValueError(f"has {quoted(tag)}, expected the tags 'O', 'B-label' or 'I-label'")
    return prefix, label


def list_segments(y: Any, offsets: Offsets, *, owner: str) -> list[list[Segment]]:
    """Return the segments of each sequence in order, given as segments or as tags; they may not overlap."""
    lengths = np.diff(offsets).tolist()
    sequences = _sequences(y, len(lengths), owner)
    first = next((item for items in sequences for item in items), None)
    read = _read_tags if isinstance(first, str) else _read_segments
    listed = []
    for i, (items, length) in enumerate(zip(sequences, lengths, strict=True)):
        try:
            listed.append(read(items, length))
        except ValueError as error:
            raise ValueError(f"{owner}: sequence {i} of y {error}.") from None
    return listed


def _sequences(y: Any, n: int, owner: str) -> list[list[Any]]:
    """A list of segments or tags for each of n sequences."""
    plain = isinstance(y, Iterable) and not isinstance(y, str | bytes | Mapping | Set)
    sequences = list(y) if plain else []
    if not plain or len(sequences) != n:
        got = f"{len(sequences)} items" if plain else described(y)
        raise ValueError(f"{owner}: y must be a list of the segments or tags of {n} sequences, got {got}.")
    for i, items in enumerate(sequences):
        if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping | Set):
            raise TypeError(
                f"{owner}: y[{i}] is {described(items)}, expected a list of segments (start, stop, label) or "
                "of tags; if y is one sequence pass [y]."
            )
    return [list(items) for items in sequences]


def _read_tags(tags: list[Any], length: int) -> list[Segment]:
    if len(tags) != length:
        raise ValueError(f"has {len(tags)} tags, but there are {length} tokens in X; give one tag per token")
    return segments_of_tags(tags)


def _read_segments(items: list[Any], length: int) -> list[Segment]:
    segments = sorted((_segment(item, length) for item in items), key=lambda segment: segment[:2])
    for before, after in pairwise(segments):
        if after[0] < before[1]:
            raise ValueError(
                f"has the segments {before} and {after}, which overlap; a token is in one at most"
            )
    return segments


def _segment(item: Any, length: int) -> Segment:
    parts = tuple(item) if isinstance(item, Iterable) and not isinstance(item, str) else ()
    if len(parts) != 3 or not all(isinstance(bound, Integral) for bound in parts[:2]):
        raise ValueError(
            f"has {quoted(item)}, expected segments (start, stop, label) with ints for the first two"
        )
    start, stop, label = int(parts[0]), int(parts[1]), parts[2]
    if not 0 <= start < stop <= length:
        raise ValueError(
            f"has the segment {item}, expected 0 <= start < stop <= {length}, its number of tokens"
        )
    if not isinstance(label, str | Integral):
        raise ValueError(f"has the segment {item}, expected a str or an int for its label")
    return start, stop, label


def _sorted_labels(listed: list[list[Segment]], owner: str) -> NDArray[Any]:
    labels = {label for segments in listed for _, _, label in segments}
    if not labels:
        raise ValueError(f"{owner}: y has no segment, expected at least one.")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise TypeError(f"{owner}: y has str and int labels; make all labels str or all int.")
    distinct = sorted(labels)
    return np.array(distinct, str if isinstance(distinct[0], str) else np.int64)


def encode_limits(max_length: Any, found: EncodedSegments, offsets: Offsets, *, owner: str) -> Ints:
    """Return the largest number of tokens of a segment with each label; one, for tokens outside of segments.

    Parameters
    ----------
    max_length : None, int or dict {label: int}
        None, or a label that is not in the dict, stands for the longest segment with the label.
    found : EncodedSegments
        The true segments, none of which may be longer.
    """
    starts = np.flatnonzero(found.codes & 1)
    lengths, labels = np.diff(np.append(starts, len(found.codes))), found.codes[starts] >> 1
    limits = np.zeros(found.n_labels, dtype=np.int64)
    np.maximum.at(limits, labels, lengths)
    for k, limit in _given_limits(max_length, found.classes.tolist(), owner):
        limits[k] = limit
    too_long = np.flatnonzero(lengths > limits[labels])
    if len(too_long):
        start, length, k = starts[too_long[0]], int(lengths[too_long[0]]), labels[too_long[0]]
        i = int(np.searchsorted(offsets, start, side="right")) - 1
        begin = int(start - offsets[i])
        segment = (begin, begin + length, found.classes.tolist()[k])
        raise ValueError(
            f"{owner}: segment {segment} of sequence {i} of y has {length} tokens, but max_length is "
            f"{limits[k]}; set max_length to at least {length}, or split the segment."
        )
    return limits


def _given_limits(max_length: Any, labels: list[Any], owner: str) -> list[tuple[int, int]]:
    """The numbers of labels that have a limit, and the limits."""
    if max_length is None:
        return []
    given = max_length if isinstance(max_length, Mapping) else dict.fromkeys(labels, max_length)
    for label, limit in given.items():
        if label not in labels:
            raise ValueError(
                f"{owner}: max_length has the label {quoted(label)}, which is not in y; labels are "
                f"{quoted(labels)}."
            )
        if not isinstance(limit, Integral) or int(limit) < 1:
            raise ValueError(
                f"{owner}: max_length must be None, an int >= 1 or a dict of labels and such ints, "
                f"got {quoted(max_length)}."
            )
    return [(labels.index(label), int(limit)) for label, limit in given.items()]

"""Convert segments of sequences, given as segments or as tags, to numbers and back."""

from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from numbers import Integral
from typing import NamedTuple

import numpy as np

from maxmargin.encoding.kinds import Offsets
from maxmargin.encoding.labels import Labels
from maxmargin.runtime.arrays import IntArray
from maxmargin.runtime.wording import described, quoted

Label = str | int | Integral
Segment = tuple[int, int, Label]
_OUTSIDE = "O"


class EncodedSegments(NamedTuple):
    """The segments of all sequences, with numbered labels.

    Attributes
    ----------
    codes : ndarray of int64 (n_tokens,)
        Twice the label number of each token, plus one where a segment starts.
    classes : ndarray of int64 or str
        The labels of segments; label numbers are indices of this array.
    n_labels : int
        The number of classes, plus one if there are tokens outside of segments. Each such token is a segment
        of its own, with the last label number.
    """

    codes: IntArray
    classes: Labels
    n_labels: int


def encode_segments(
    y: object, offsets: Offsets, *, classes: Labels | None = None, n_labels: int = 0
) -> EncodedSegments:
    """Number the segments of all sequences.

    Parameters
    ----------
    y : list of lists
        The segments ``(start, stop, label)`` of each sequence, in any order, or its tags.
    offsets : ndarray of int64
        Offsets of the tokens of X.
    classes, n_labels : ndarray and int, optional
        The known labels and their number; by default those of y.
    """
    listed = list_segments(y, offsets)
    if classes is None:
        classes = _sorted_labels(listed)
    else:
        _check_known(listed, classes.tolist())
    number = {label: k for k, label in enumerate(classes.tolist())}
    outside = 2 * len(classes) + 1
    codes = np.full(offsets[-1], outside, dtype=np.int64)
    for first, segments in zip(offsets[:-1].tolist(), listed, strict=True):
        for start, stop, label in segments:
            codes[first + start : first + stop] = 2 * number[label]
            codes[first + start] += 1
    found = EncodedSegments(codes, classes, len(classes) + bool((codes == outside).any()))
    if 0 < n_labels < found.n_labels:
        raise ValueError("y has tokens outside of segments, but the first call had none; call fit with all.")
    return found._replace(n_labels=max(n_labels, found.n_labels))


def _check_known(listed: list[list[Segment]], labels: list[Label]) -> None:
    for i, segments in enumerate(listed):
        for segment in segments:
            if segment[2] not in labels:
                raise ValueError(
                    f"sequence {i} of y has the segment {quoted(segment)}, expected a label of the "
                    f"first call, one of {quoted(labels)}; call fit with all."
                )


def decode_segments(codes: IntArray, offsets: Offsets, classes: Labels) -> list[list[Segment]]:
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


def segments_of_tags(tags: Iterable[object]) -> list[Segment]:
    """Return the segments that the tags "B-x", "I-x" and "O" describe.

    A segment with label x starts at ``B-x``, or at ``I-x`` that does not continue one.

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


def _split(tag: object) -> tuple[str, str]:
    prefix, _, label = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    if tag != _OUTSIDE and (prefix not in ("B", "I") or not label):
        raise ValueError(f"has {quoted(tag)}, expected the tags 'O', 'B-label' or 'I-label'")
    return prefix, label


def list_segments(y: object, offsets: Offsets) -> list[list[Segment]]:
    """Return the segments of each sequence in order, given as segments or as tags; raise if they overlap."""
    lengths = np.diff(offsets).tolist()
    sequences = _sequences(y, len(lengths))
    first = next((item for items in sequences for item in items), None)
    read = _read_tags if isinstance(first, str) else _read_segments
    listed = []
    for i, (items, length) in enumerate(zip(sequences, lengths, strict=True)):
        try:
            listed.append(read(items, length))
        except ValueError as error:
            raise ValueError(f"sequence {i} of y {error}.") from None
    return listed


def _sequences(y: object, n: int) -> list[list[object]]:
    """Return a list of segments or tags for each of n sequences."""
    is_list = isinstance(y, Iterable) and not isinstance(y, str | bytes | Mapping | Set)
    sequences = list(y) if isinstance(y, Iterable) and is_list else []
    if not is_list or len(sequences) != n:
        got = f"{len(sequences)} items" if is_list else described(y)
        raise ValueError(f"y must be a list of the segments or tags of {n} sequences, got {got}.")
    for i, items in enumerate(sequences):
        if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping | Set):
            raise TypeError(
                f"y[{i}] is {described(items)}, expected a list of segments (start, stop, label) or "
                "of tags; if y is one sequence pass [y]."
            )
    return [list(items) for items in sequences]


def _read_tags(tags: list[object], length: int) -> list[Segment]:
    if len(tags) != length:
        raise ValueError(f"has {len(tags)} tags, but there are {length} tokens in X; give one tag per token")
    return segments_of_tags(tags)


def _read_segments(items: list[object], length: int) -> list[Segment]:
    segments = sorted((_segment(item, length) for item in items), key=lambda segment: segment[:2])
    for before, after in pairwise(segments):
        if after[0] < before[1]:
            raise ValueError(
                f"has the segments {quoted(before)} and {quoted(after)}, which overlap; a token can be in "
                "only one segment"
            )
    return segments


def _segment(item: object, length: int) -> Segment:
    fields = tuple(item) if isinstance(item, Iterable) and not isinstance(item, str) else ()
    if len(fields) != 3 or not all(isinstance(bound, Integral) for bound in fields[:2]):
        raise ValueError(
            f"has {quoted(item)}, expected segments (start, stop, label) with ints for the first two"
        )
    start, stop, label = int(fields[0]), int(fields[1]), fields[2]
    if not 0 <= start < stop <= length:
        raise ValueError(
            f"has the segment {quoted(item)}, expected 0 <= start < stop <= {length}, its number of tokens"
        )
    if not isinstance(label, str | Integral):
        raise ValueError(f"has the segment {quoted(item)}, expected a str or an int for its label")
    return start, stop, label


def _sorted_labels(listed: list[list[Segment]]) -> Labels:
    labels = {label for segments in listed for _, _, label in segments}
    if not labels:
        raise ValueError("y has no segment, expected at least one.")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise TypeError("y has str and int labels; make all labels str or all int.")
    distinct = sorted(labels)  # type: ignore[type-var]  # all str or all int
    return np.array(distinct, str if isinstance(distinct[0], str) else np.int64)


def encode_limits(max_length: object, found: EncodedSegments, offsets: Offsets) -> IntArray:
    """Return the largest number of tokens of segments with each label; one for tokens outside of segments.

    Parameters
    ----------
    max_length : None, int or dict {label: int}
        With None, and for labels that are not in the dict, the length of the longest true segment.
    found : EncodedSegments
        The true segments. None of them may be longer than the limit of its label.
    """
    starts = np.flatnonzero(found.codes & 1)
    lengths, labels = np.diff(np.append(starts, len(found.codes))), found.codes[starts] >> 1
    limits = np.zeros(found.n_labels, dtype=np.int64)
    np.maximum.at(limits, labels, lengths)
    for k, limit in _given_limits(max_length, found.classes.tolist()):
        limits[k] = limit
    too_long = np.flatnonzero(lengths > limits[labels])
    if len(too_long):
        start, length, k = starts[too_long[0]], int(lengths[too_long[0]]), labels[too_long[0]]
        i = int(np.searchsorted(offsets, start, side="right")) - 1
        begin = int(start - offsets[i])
        segment = (begin, begin + length, found.classes.tolist()[k])
        raise ValueError(
            f"segment {segment} of sequence {i} of y has {length} tokens, but max_length is "
            f"{limits[k]}; set max_length to at least {length}, or split the segment."
        )
    return limits


def _given_limits(max_length: object, labels: list[Label]) -> list[tuple[int, int]]:
    """Return (label number, limit) for each label whose limit is given."""
    if max_length is None:
        return []
    given: Mapping[Label, object] = (
        max_length if isinstance(max_length, Mapping) else dict.fromkeys(labels, max_length)
    )
    limits = []
    for label, limit in given.items():
        if label not in labels:
            raise ValueError(
                f"max_length has the label {quoted(label)}, which is not in y; labels are {quoted(labels)}."
            )
        if not isinstance(limit, Integral) or int(limit) < 1:
            raise ValueError(
                "max_length must be None, an int >= 1 or a dict of labels and such ints, "
                f"got {quoted(max_length)}."
            )
        limits.append((labels.index(label), int(limit)))
    return limits

"""Features of the arcs between words, by templates, and their names, read back from their hashes.

A feature is a template (McDonald, Crammer and Pereira 2005) with the words and tags that fill it: those of
the head and of the modifier, the tags next to them and between them, with the arc's direction or its length.
Its identity is a 64-bit hash of its template and contents. The odds that two of a million features have the
same hash are one in ten million; if they do, the two merely share a weight.

A sentence is an array of word numbers and one of tag numbers. Node h is word h, or the root for h = 0. It has
index h + REACH in both arrays, and there are REACH pads after the last word.

An encoder keeps the 64-bit hash of each feature, but not its contents. Each step of the hash can be inverted,
except that its lowest bit is lost. So a hash, a template and the second half of the contents determine the
first half. There are few enough second halves to try them all: with the right one, the first half consists of
known words and tags. A second solution is as unlikely as two features with the same hash.
"""

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper

# Templates that every arc fills once. An arc has one more feature for each distinct tag between its ends.
N_TEMPLATES = 38
# How far from the ends of an arc templates look, and how many pads and roots each sentence needs for that.
REACH = 2
N_AROUND = 2 * REACH + 1
_LEFT, _RIGHT, _FROM_ROOT = 0, 1, 2
# Files of models hold the hashes, and steps with these can be inverted: not the hash of the table of names.
MIX, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF, _TAG, _SHAPE = np.uint64(32), np.uint64(16), np.uint64(8)
EMPTY = np.uint64(0)


@helper
def feature_key(template, first, second):
    """Hash a template and its contents; the result is never zero."""
    key = (first ^ (np.uint64(template) * SPREAD)) * MIX
    key = ((key ^ (key >> _HALF)) + second) * SPREAD
    key = (key ^ (key >> _HALF)) * MIX
    return key ^ (key >> _HALF) | np.uint64(1)


@helper
def _shapes(h, j):
    """Return the direction of the arc from node h to node j, and its direction with its rounded length."""
    direction = _FROM_ROOT if h == 0 else (_LEFT if h > j else _RIGHT)
    length = abs(h - j)
    bucket = length if length <= 5 else (6 if length <= 10 else 7)
    return np.uint64(direction), np.uint64(4 * bucket + direction)


@helper
def arc_keys(words, tags, h, j, seen, keys):
    """Write the keys of the features of the arc from node h to node j; return their number.

    ``seen`` has an entry per tag. It receives the number of this arc for each tag between its ends, so that
    each of these tags is counted once; no entry may have that number before.
    """
    direction, shape = _shapes(h, j)
    _word_keys(words[h + REACH], tags[h + REACH], words[j + REACH], tags[j + REACH], direction, shape, keys)
    _tag_keys(tags, h + REACH, j + REACH, direction, shape, keys[15:])
    _window_keys(words, tags, h + REACH, j + REACH, direction, keys[27:])
    count, arc = N_TEMPLATES, h * tags.shape[0] + j
    pair = (tags[h + REACH] << _TAG) | tags[j + REACH]
    for between in range(min(h, j) + 1, max(h, j)):
        tag = tags[between + REACH]
        if seen[tag] != arc:
            seen[tag] = arc
            keys[count] = feature_key(0, pair, (tag << _SHAPE) | direction)
            count += 1
    return count


@helper
def _word_keys(a, A, b, B, direction, shape, keys):
    """Write the features of the head's word a and tag A, and of the modifier's word b and tag B."""
    pair, pair_of_words = (A << _TAG) | B, (a << _HALF) | b
    first_tag, second_tag = (a << _TAG) | B, (b << _TAG) | A
    keys[0] = feature_key(1, a, shape)
    keys[1] = feature_key(2, A, shape)
    keys[2] = feature_key(3, b, shape)
    keys[3] = feature_key(4, B, shape)
    keys[4] = feature_key(5, pair, shape)
    keys[5] = feature_key(6, first_tag, shape)
    keys[6] = feature_key(7, second_tag, shape)
    keys[7] = feature_key(8, pair_of_words, shape)
    keys[8] = feature_key(9, pair, direction)
    keys[9] = feature_key(10, first_tag, direction)
    keys[10] = feature_key(11, second_tag, direction)
    keys[11] = feature_key(12, pair_of_words, direction)
    keys[12] = feature_key(13, a, (pair << _SHAPE) | direction)
    keys[13] = feature_key(14, b, (pair << _SHAPE) | direction)
    keys[14] = feature_key(15, pair_of_words, (pair << _SHAPE) | direction)


@helper
def _tag_keys(tags, h, j, direction, shape, keys):
    """Write the features of both tags, at h and j, with the tags next to them."""
    pair = (tags[h] << _TAG) | tags[j]
    around = tags[h - 1], tags[h + 1], tags[j - 1], tags[j + 1]
    for c in range(4):
        keys[c] = feature_key(16 + c, pair, (around[c] << _SHAPE) | shape)
        both = (around[c // 2] << _TAG) | around[2 + c % 2]
        keys[4 + c] = feature_key(20 + c, pair, (both << _SHAPE) | direction)
        keys[8 + c] = feature_key(24 + c, pair, (both << _SHAPE) | shape)


@helper
def _window_keys(words, tags, h, j, direction, keys):
    """Write the features of both tags, at h and j, with words and pairs of tags up to two positions away.

    The words before the modifier say much about its role: they may be its prepositions.
    """
    pair, head = (tags[h] << _TAG) | tags[j], (words[h] << _TAG) | tags[j]
    nearby = words[h - 1], words[h + 1], words[j - 1], words[j + 1], words[j - 2]
    for c in range(5):
        keys[c] = feature_key(28 + c, pair, (nearby[c] << _SHAPE) | direction)
    keys[5] = feature_key(33, head, (words[j - 1] << _SHAPE) | direction)
    keys[6] = feature_key(34, head, (words[j - 2] << _SHAPE) | direction)
    for c in range(2):
        node = h if c == 0 else j
        before, after = (tags[node - 2] << _TAG) | tags[node - 1], (tags[node + 1] << _TAG) | tags[node + 2]
        keys[7 + 2 * c] = feature_key(35 + 2 * c, pair, (before << _SHAPE) | direction)
        keys[8 + 2 * c] = feature_key(36 + 2 * c, pair, (after << _SHAPE) | direction)


@helper
def true_keys(words, tags, offsets, heads, seen, keys):
    """Write the keys of all true arcs; return their number."""
    count = 0
    for i in range(offsets.shape[0] - 1):
        first, stop = offsets[i] + N_AROUND * i, offsets[i + 1] + N_AROUND * (i + 1)
        seen[:] = -1
        for j in range(1, offsets[i + 1] - offsets[i] + 1):
            h = heads[offsets[i] + j - 1]
            count += arc_keys(words[first:stop], tags[first:stop], h, j, seen, keys[count:])
    return count


@helper
def known_columns(words, tags, offsets, table, found, seen, keys, start, columns):
    """Write the columns of the known features of all arcs, and where the columns of each arc start."""
    arc = count = 0
    for i in range(offsets.shape[0] - 1):
        first, stop = offsets[i] + N_AROUND * i, offsets[i + 1] + N_AROUND * (i + 1)
        n_words = offsets[i + 1] - offsets[i]
        seen[:] = -1
        for j in range(1, n_words + 1):
            for h in range(n_words + 1):
                start[arc] = count
                arc += 1
                if h != j:
                    n_keys = arc_keys(words[first:stop], tags[first:stop], h, j, seen, keys)
                    count = _look_up(keys[:n_keys], table, found, columns, count)
    start[arc] = count
    return count


@helper
def _look_up(keys, table, found, columns, count):
    """Append the columns of the keys that the table contains to the first ``count``; return the new count."""
    mask = np.uint64(table.shape[0] - 1)
    for c in range(keys.shape[0]):
        slot = (keys[c] >> np.uint64(1)) & mask
        while table[slot] != EMPTY and table[slot] != keys[c]:
            slot = (slot + np.uint64(1)) & mask
        columns[count] = found[slot]
        count += table[slot] != EMPTY
    return count


_Hashes = NDArray[np.uint64]

_DIRECTIONS = ("left", "right", "from the root")
_DISTANCES = {**{d: f"distance {d}" for d in range(1, 6)}, 6: "distance 6 to 10", 7: "distance above 10"}
_UNMIX, _UNSPREAD = (np.uint64(pow(int(factor), -1, 2**64)) for factor in (MIX, SPREAD))
_MOST = 1 << 22


class Template(NamedTuple):
    """The contents of a template.

    Attributes
    ----------
    first, extra : tuples of str
        The words and tags of both halves of the contents. The second half ends with the direction of the arc.
    has_length : bool
        Whether the rounded length follows the direction.
    """

    first: tuple[str, ...]
    extra: tuple[str, ...]
    has_length: bool


def _templates() -> list[Template]:
    """Return the templates, in the order of their numbers."""
    a, A, b, B = "head word", "head tag", "modifier word", "modifier tag"
    around = [f"tag {side} {end}" for end in ("head", "modifier") for side in ("before", "after")]
    nearby = [name.replace("tag", "word") for name in around] + ["word two before modifier"]
    halves = [(A, B), (a, B), (b, A), (a, b)]
    both = list(itertools.product(around[:2], around[2:]))
    window = [
        (f"tag two {side} {end}", f"tag {side} {end}")[:: 1 if side == "before" else -1]
        for end in ("head", "modifier")
        for side in ("before", "after")
    ]
    return [
        Template((A, B), ("tag between",), False),
        *(Template((name,), (), True) for name in (a, A, b, B)),
        *(Template(half, (), True) for half in halves),
        *(Template(half, (), False) for half in halves),
        *(Template(half, (A, B), False) for half in ((a,), (b,), (a, b))),
        *(Template((A, B), (name,), True) for name in around),
        *(Template((A, B), names, False) for names in both),
        *(Template((A, B), names, True) for names in both),
        *(Template((A, B), (name,), False) for name in nearby),
        *(Template((a, B), (name,), False) for name in (nearby[2], nearby[4])),
        *(Template((A, B), names, False) for names in window),
    ]


TEMPLATES = _templates()


def arc_names(keys: _Hashes, words: Mapping[int, str], tags: Mapping[int, str]) -> list[str | None]:
    """Return the names of features by their hashes, or None if they have other words or tags than these."""
    names: list[str | None] = [None] * len(keys)
    # The lowest bit was lost: both of its values are tried.
    halfway = np.stack([_undone(keys ^ lost) for lost in np.array([0, 1], dtype=np.uint64)])
    for number, template in enumerate(TEMPLATES):
        for second, ending in _seconds(template, words, tags):
            step = max(1, _MOST // len(second))
            for begin in range(0, len(keys), step):
                first = _first_half(halfway[:, begin : begin + step, None], number, second)
                fits = _known(template.first, first, words, tags)
                for lost, k, s in np.argwhere(fits).tolist():
                    contents = _read(template.first, int(first[lost, k, s]))
                    given = (*contents, *_read(template.extra, int(second[s]) >> 8))
                    names[begin + k] = _written(template, given, ending, words, tags)
    return names


def sentence_names(
    numbers: tuple[_Hashes, _Hashes], known: _Hashes, words: Mapping[int, str], tags: Mapping[int, str]
) -> dict[int, str]:
    """Return the names of all known features of the arcs of a sentence, by their columns.

    ``numbers`` are those of its words and tags, with root and pads, and ``known`` the sorted hashes.
    """
    names: dict[int, str] = {}
    hashed = inspect.unwrap(feature_key)  # which takes arrays as well as numbers
    for number, template in enumerate(TEMPLATES):
        nodes = _arcs(len(numbers[0]) - 2 * REACH, with_between=number == 0)
        contents = [_contents(slots, nodes, numbers) for slots in (template.first, template.extra)]
        endings, texts = _endings(nodes, template.has_length)
        with np.errstate(over="ignore"):
            keys = hashed(number, contents[0], (contents[1] << np.uint64(8)) | endings)
        columns = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        _, firsts = np.unique(np.where(known[columns] == keys, columns, -1), return_index=True)
        for k in firsts[known[columns[firsts]] == keys[firsts]].tolist():
            given = [*_read(template.first, int(contents[0][k])), *_read(template.extra, int(contents[1][k]))]
            names[int(columns[k])] = _written(template, given, texts[k], words, tags)
    return names


def _arcs(n_nodes: int, *, with_between: bool) -> dict[str, NDArray[np.int64]]:
    """Return head and modifier of all arcs; or of all arcs with each node between them."""
    head, modifier, between = np.indices((n_nodes, n_nodes, n_nodes if with_between else 1)).reshape(3, -1)
    kept = (modifier > 0) & (head != modifier)
    if with_between:
        kept = (
            (between > np.minimum(head, modifier)) & (between < np.maximum(head, modifier)) & (modifier > 0)
        )
    return {"head": head[kept], "modifier": modifier[kept], "between": between[kept]}


def _contents(
    slots: Sequence[str], nodes: Mapping[str, NDArray[np.int64]], numbers: tuple[_Hashes, _Hashes]
) -> _Hashes:
    """Return one half of the contents of a template for all arcs."""
    contents = np.zeros(len(nodes["head"]), dtype=np.uint64)
    for slot in slots:
        end = next(name for name in nodes if name in slot)
        steps = (2 if "two" in slot else 1) * (("after" in slot) - ("before" in slot))
        of_node = numbers["tag" in slot][nodes[end] + (REACH + steps)]
        contents = (contents << np.uint64(_bits(slot))) | of_node
    return contents


def _endings(nodes: Mapping[str, NDArray[np.int64]], has_length: bool) -> tuple[_Hashes, list[str]]:
    """Return direction, and rounded length, of all arcs, as numbers and in words."""
    head, modifier = nodes["head"], nodes["modifier"]
    direction = np.where(head == 0, 2, np.where(head > modifier, 0, 1))
    length = np.abs(head - modifier)
    bucket = np.where(length <= 5, length, np.where(length <= 10, 6, 7)) if has_length else 0 * length
    texts = [
        f"{_DIRECTIONS[d]}, {_DISTANCES[b]}" if b else _DIRECTIONS[d]
        for d, b in zip(direction.tolist(), bucket.tolist(), strict=True)
    ]
    return (4 * bucket + direction).astype(np.uint64), texts


def _undone(keys: _Hashes) -> _Hashes:
    """Undo the last two steps of the hash."""
    keys = (keys ^ (keys >> _HALF)) * _UNMIX
    undone: _Hashes = (keys ^ (keys >> _HALF)) * _UNSPREAD
    return undone


def _first_half(halfway: _Hashes, number: int, second: _Hashes) -> _Hashes:
    """Undo the first step: return the first half of contents whose second half is given."""
    keys = halfway - second
    template = np.uint64(number * int(SPREAD) % 2**64)
    first: _Hashes = (keys ^ (keys >> _HALF)) * _UNMIX ^ template
    return first


def _seconds(
    template: Template, words: Mapping[int, str], tags: Mapping[int, str]
) -> Iterator[tuple[_Hashes, str]]:
    """Yield all second halves that end with the same direction and length, and that ending in words."""
    choices = [np.array([*(words if "word" in name else tags)], dtype=np.uint64) for name in template.extra]
    contents = np.zeros(1, dtype=np.uint64)
    for choice in choices:
        contents = ((contents[:, None] << np.uint64(16)) | choice).ravel()
    distances = _DISTANCES if template.has_length else {0: ""}
    for (direction, name), (bucket, distance) in itertools.product(enumerate(_DIRECTIONS), distances.items()):
        ending = np.uint64(4 * bucket + direction)
        yield (contents << np.uint64(8)) | ending, f"{name}, {distance}" if distance else name


def _known(
    names: Sequence[str], first: _Hashes, words: Mapping[int, str], tags: Mapping[int, str]
) -> NDArray[np.bool_]:
    """Return which first halves consist of known words and tags."""
    fits = np.ones(first.shape, dtype=np.bool_)
    rest = first
    for name in reversed(names):
        known = np.zeros(max(words if "word" in name else tags) + 1, dtype=np.bool_)
        known[[*(words if "word" in name else tags)]] = True
        is_last = name == names[0]
        part = rest if is_last else rest & np.uint64((1 << _bits(name)) - 1)
        rest = rest >> np.uint64(_bits(name))
        fits &= part < len(known)
        fits[fits] = known[part[fits]]
    return fits


def _bits(name: str) -> int:
    """Return the number of bits that a word or tag takes after others."""
    return 32 if "word" in name else 16


def _read(names: Sequence[str], contents: int) -> list[int]:
    """Return the numbers of the words and tags of a half of the contents."""
    found = []
    for name in reversed(names[1:]):
        found.append(contents & ((1 << _bits(name)) - 1))
        contents >>= _bits(name)
    return [contents, *reversed(found)] if names else []


def _written(
    template: Template, given: Sequence[int], ending: str, words: Mapping[int, str], tags: Mapping[int, str]
) -> str:
    """Return the name of a feature."""
    names = (*template.first, *template.extra)
    parts = [
        f"{name}={(words if 'word' in name else tags)[number]}"
        for name, number in zip(names, given, strict=True)
    ]
    return ", ".join([*parts, ending])

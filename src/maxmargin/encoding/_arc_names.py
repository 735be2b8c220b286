"""Names of the features of arcs: those of a sentence, and any others, read back from their hashes.

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

from maxmargin.encoding._arc_templates import MIX, REACH, SPREAD, feature_key

_Hashes = NDArray[np.uint64]

_HALF = np.uint64(32)
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

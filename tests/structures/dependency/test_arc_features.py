"""Features of arcs against the same templates written out as tuples of strings."""

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.structures.dependency import arc_names
from maxmargin.structures.dependency.encode import ArcEncoder, Arcs, Tagged, encode_tagged
from support.naive import all_trees

Sentence = list[tuple[str, str]]
PADS = [("", "PAD")] * 2


def named_features(sentence: Sentence, h: int, j: int) -> list[tuple[Any, ...]]:
    """Return the features of the arc from node h to node j, 0 being the root."""
    nodes = [*PADS, ("", "ROOT"), *((word.lower(), tag) for word, tag in sentence), *PADS]
    words, tags = ([node[k] for node in nodes] for k in (0, 1))
    # The root's word and the pads' are different, too.
    words[:2], words[2], words[-2:] = ["PAD"] * 2, "ROOT", ["PAD"] * 2
    p, q = h + 2, j + 2
    a, A, b, B = words[p], tags[p], words[q], tags[q]
    way = "root" if h == 0 else ("left" if h > j else "right")
    length = next(k for k, most in enumerate((1, 2, 3, 4, 5, 10, 1000)) if abs(h - j) <= most)
    ends = {
        "a": (a,),
        "A": (A,),
        "b": (b,),
        "B": (B,),
        "AB": (A, B),
        "aB": (a, B),
        "Ab": (A, b),
        "ab": (a, b),
    }
    found = [(name, parts, way, length) for name, parts in ends.items()]
    pairs = {name: ends[name] for name in ("AB", "aB", "Ab", "ab")}
    pairs |= {"aAB": (a, A, B), "AbB": (A, b, B), "all": (a, A, b, B)}
    found += [(name, parts, way) for name, parts in pairs.items()]
    around = {"h-1": tags[p - 1], "h+1": tags[p + 1], "j-1": tags[q - 1], "j+1": tags[q + 1]}
    found += [("tag", where, A, B, tag, way, length) for where, tag in around.items()]
    for first in ("h-1", "h+1"):
        for second in ("j-1", "j+1"):
            both = ("tags", first, second, A, B, around[first], around[second], way)
            found += [both, (*both, length)]
    windows = {
        "h-": tags[p - 2 : p],
        "h+": tags[p + 1 : p + 3],
        "j-": tags[q - 2 : q],
        "j+": tags[q + 1 : q + 3],
    }
    found += [("window", where, A, B, *two, way) for where, two in windows.items()]
    nearby = {"h-1": p - 1, "h+1": p + 1, "j-1": q - 1, "j+1": q + 1, "j-2": q - 2}
    found += [("word", where, A, B, words[node], way) for where, node in nearby.items()]
    found += [("lexical", k, a, B, words[q - k], way) for k in (1, 2)]
    return found + [("between", A, tag, B, way) for tag in set(tags[min(p, q) + 1 : max(p, q)])]


def rows(arcs: Arcs) -> list[list[int]]:
    start, columns = arcs.features.start, arcs.features.columns
    return [columns[a:b].tolist() for a, b in itertools.pairwise(start)]


def arcs_in_order(sentences: list[Sentence]) -> list[tuple[int, int, int]]:
    sizes = [len(sentence) for sentence in sentences]
    return [(i, h, j) for i, m in enumerate(sizes) for j in range(1, m + 1) for h in range(m + 1)]


@st.composite
def corpora(draw: Any) -> tuple[list[Sentence], list[tuple[int, ...]]]:
    """Draw sentences of few words and tags, so that features recur, with trees; one may be long."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.sampled_from((1, 2, 3, 4, 14)), min_size=1, max_size=4))
    sentences = [
        [(str(rng.choice(["a", "b", "B"])), str(rng.choice(["X", "Y"]))) for _ in range(m)] for m in sizes
    ]
    trees = [all_trees(m)[rng.integers(len(all_trees(m)))] if m < 5 else tuple(range(m)) for m in sizes]
    return sentences, trees


@pytest.mark.long
@given(corpora(), st.integers(1, 2))
def test_features_of_all_arcs_are_those_of_tuples(
    corpus: tuple[list[Sentence], list[tuple[int, ...]]], min_count: int
) -> None:
    sentences, trees = corpus
    true_arcs = [(i, h, j) for i, tree in enumerate(trees) for j, h in enumerate(tree, start=1)]
    counts = Counter(name for i, h, j in true_arcs for name in named_features(sentences[i], h, j))
    known = {name for name, count in counts.items() if count >= min_count}
    tagged = encode_tagged(sentences)
    encoder = ArcEncoder(min_count=min_count).fit(tagged, np.concatenate(trees))
    assert encoder.n_features_in_ == len(known)
    # Each feature has a column of its own if as many columns as features stand at any one set of arcs.
    by_name, by_column = defaultdict(set), defaultdict(set)
    for arc, columns in zip(arcs_in_order(sentences), rows(encoder.transform(tagged)), strict=True):
        i, h, j = arc
        assert len(columns) == len(set(columns))
        for column in columns:
            by_column[column].add(arc)
        for name in known.intersection(named_features(sentences[i], h, j)) if h != j else ():
            by_name[name].add(arc)
    assert Counter(map(frozenset, by_column.values())) == Counter(map(frozenset, by_name.values()))


def hashed(template: int, first: int, second: int) -> int:
    """Return the hash of a template and its contents, in integers that never overflow."""
    mix, spread = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    key = (first ^ template * spread % 2**64) * mix % 2**64
    key = ((key ^ key >> 32) + second) * spread % 2**64
    key = (key ^ key >> 32) * mix % 2**64
    return key ^ key >> 32 | 1


def test_hashes_wrap_around_at_64_bits() -> None:
    """Compiled and interpreted kernels make the same hashes: those of exact arithmetic modulo 2^64."""
    words, tags = (np.array([2, 2, 1, *numbers, 2, 2], dtype=np.uint64) for numbers in ((3, 4), (3, 5)))
    seen, keys = np.full(9, -1), np.zeros(arc_names.N_TEMPLATES + 2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        assert arc_names.arc_keys(words, tags, 1, 2, seen, keys) == arc_names.N_TEMPLATES
    right, near = 1, 4 * 1 + 1
    assert keys[0] == hashed(1, 3, near)  # the head's word
    assert keys[8] == hashed(9, 3 << 16 | 5, right)  # both tags
    assert keys[14] == hashed(15, 3 << 32 | 4, (3 << 16 | 5) << 8 | right)  # both words and both tags


def test_words_not_seen_have_no_features_of_their_own() -> None:
    seen, other = [[("a", "X"), ("b", "Y")]], [[("c", "X"), ("b", "Y")]]
    encoder = ArcEncoder().fit(encode_tagged(seen), np.array([2, 0]))
    known, unknown = (rows(encoder.transform(encode_tagged(x))) for x in (seen, other))
    assert all(set(fewer) <= set(some) for some, fewer in zip(known, unknown, strict=True))
    # The arc from the second word to the first, and that from the root to the second: of a, and next to a.
    assert len(unknown[2]) < len(known[2])
    assert len(unknown[3]) < len(known[3])


REFUSED = [
    ("the dog", r"X must be a list of sentences, got 'the dog' \(str\)"),
    ([], "X has no sentence, expected at least one"),
    ([[], ()], "each sentence of X is empty; give one or more that are not"),
    (["the dog"], r"sentence 0 of X is 'the dog' \(str\), expected a list of pairs"),
    ([["the", "dog"]], r"word 1 of sentence 0 of X is 'the', expected a pair \(word, tag\) of strings"),
    ([[("a", "X")], [("a", "X"), ("a",)]], r"word 2 of sentence 1 of X is \('a',\), expected a pair"),
    ([[("a", 1)]], r"word 1 of sentence 0 of X is \('a', 1\), expected a pair"),
]


@pytest.mark.parametrize(("X", "message"), REFUSED)
def test_wrong_sentences_are_refused(X: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^({message})") as caught:
        encode_tagged(X)
    assert "\n" not in str(caught.value)


def test_tagged_words_are_split_from_their_tags() -> None:
    tagged = encode_tagged([[("The", "DET"), ["dog", "NOUN"]], (("Hi", "INTJ"),)])
    assert tagged == Tagged(["the", "dog", "hi"], ["DET", "NOUN", "INTJ"], tagged.offsets)
    assert tagged.offsets.tolist() == [0, 2, 3]

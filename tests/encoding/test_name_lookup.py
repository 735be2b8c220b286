"""The table of names against a plain dict."""

import os
from gzip import open as open_gzip
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encoding import table
from maxmargin.encoding import table as lookup
from maxmargin.encoding.kinds import chunk_edges
from maxmargin.files.parts import as_bytes, as_texts

# All characters, lone surrogates and NUL too, and repeats that make names of all lengths.
PIECES = st.text(st.characters(exclude_categories=()), max_size=5)
NAMES = st.builds(lambda piece, times: piece * times, PIECES, st.integers(1, 20))
SIMPLE = st.text("ab", max_size=20)


def look_up(names, bags):
    """Numbers by the table, made to answer however few names and strings there are."""
    vocabulary = lookup.Vocabulary(names)
    sizes = np.array(list(map(len, bags)), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "FEW", 0)
        patch.setattr(lookup, "CHUNK", 7)
        vocabulary.expect(len(names))
        found = vocabulary.lookup(bags, sizes).tolist()
    assert vocabulary._table is not None
    return found


def expected(names, bags):
    numbers = {name: k for k, name in enumerate(names)}
    return [numbers.get(name, len(names)) for name in chain.from_iterable(bags)]


@given(st.data(), st.lists(NAMES | SIMPLE, unique=True, min_size=1, max_size=40))
def test_the_table_finds_what_a_dict_finds(data, names):
    asked = st.sampled_from(names) | NAMES | SIMPLE
    bags = data.draw(st.lists(st.lists(asked, max_size=9), min_size=1, max_size=9))
    bags.append([names[0]])
    assert look_up(names, bags) == expected(names, bags)


@pytest.mark.parametrize("slot", [0, 123, -1])
@given(st.lists(SIMPLE, unique=True, min_size=1, max_size=40), st.lists(SIMPLE, min_size=1))
def test_names_are_found_even_if_all_are_at_one_slot(slot, names, asked):
    """From the last slot, the search goes on at the start of the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "hash_of", lambda text, start, length: np.uint64(slot % 2**32))
        assert look_up(names, [asked]) == expected(names, [asked])


@pytest.mark.parametrize("length", [7, 8, 9, 16])
def test_names_about_as_long_as_a_machine_word_are_told_apart(length):
    names = ["x" * (length - 1), "x" * length, "y" * length, "é" * (length // 2), "z", "", "x" * (length + 8)]
    longer = ["x" * (length + 1), "x" * length + "\0", "é" * (length // 2) + "x", "x" * (length - 1) + "é"]
    bags = [[*names, "x" * (length + 2)], [*longer, *names]]
    assert look_up(names, bags) == expected(names, bags)
    assert look_up(names[::-1], bags) == expected(names[::-1], bags)


def test_the_table_grows():
    names = [f"{k:x}" for k in range(5000)]
    found = table.NameTable(10**5)
    text = np.frombuffer(("\t".join(names * 2) + "\n").encode(), np.uint8)
    codes, counts = found.learn(text, 10**4, 1)
    assert codes.tolist() == 2 * list(range(5000))
    assert counts.tolist() == [10**4]
    assert as_texts(found.names) == names


def test_names_that_hold_the_separator_are_found():
    names = ["\0", "a\0b"]
    bags = [["a\0b", "a", "b"], ["\0", "\0\0"]]
    assert look_up(names, bags) == expected(names, bags)


def test_hash_spreads_names_that_differ_little():
    names = [f"{a}{b}{c}" for a in range(10, 99) for b in range(10, 60) for c in range(10, 20)]
    text, slots = as_bytes(names), 1 << 17
    with np.errstate(over="ignore"):  # as in compiled code
        keys = [int(table.hash_of(text, 7 * k, 6)) for k in range(len(names))]
    distinct = len({key % slots for key in keys})
    # What names thrown at random would take, and a little less.
    assert distinct > 0.97 * slots * -np.expm1(-len(names) / slots)


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 20))
def test_chunks_cover_all_items_once(sizes, limit):
    edges = chunk_edges(np.array(sizes, np.int64), limit).tolist()
    assert edges[0] == 0
    assert edges[-1] == len(sizes)
    assert edges == sorted(set(edges))
    # Only the last item may take a chunk beyond the limit.
    for start, stop in pairwise(edges):
        assert sum(sizes[start : stop - 1]) <= limit


def test_names_of_conll_are_found_as_a_dict_finds_them():
    root = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("MAXMARGIN_DATA", root)) / "conll2000" / "test.txt.gz"
    if not path.exists():
        pytest.skip(f"no {path}; set MAXMARGIN_DATA")
    with open_gzip(path, "rt", encoding="utf-8") as lines:
        bags = [[f"w={p[0]}", f"p={p[1]}"] for p in map(str.split, lines) if p]
    names = list(dict.fromkeys(chain.from_iterable(bags[:20_000])))
    found = lookup.Vocabulary(names).lookup(bags, np.full(len(bags), 2))
    assert found.tolist() == expected(names, bags)

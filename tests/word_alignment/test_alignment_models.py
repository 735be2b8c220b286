"""Numbered text, model 1 and the hidden Markov models against the same written out in plain Python."""

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from word_alignment import hmm
from word_alignment.hmm import Aligner, Jumps, link_posteriors, train_aligner
from word_alignment.lexicon import Lexicon, model_1
from word_alignment.parallel_text import number_text, sentence_counts, words_of

PAIRS = [
    ("the house", "la maison"),
    ("the blue house", "la maison bleue"),
    ("the flower", "la fleur"),
    ("blue", "bleue bleue"),
    ("house the house", "maison"),
]
TEXT, WORDS = number_text(PAIRS)


def by_words(table):
    """Return the entries of a table of word pairs under (source word, target word)."""
    source = np.repeat(np.arange(len(WORDS.source)), np.diff(TEXT.first))
    names = [(WORDS.source[a], WORDS.target[b]) for a, b in zip(source, TEXT.partner, strict=True)]
    assert len(set(names)) == len(names) == len(table)
    return dict(zip(names, table.tolist(), strict=True))


def test_numbers_stand_for_the_words_and_pairs_of_words_they_came_from():
    numbers = by_words(np.arange(len(TEXT.partner)))
    for s, (a, b) in enumerate(PAIRS):
        assert [WORDS.source[k] for k in words_of(TEXT.source, s)] == a.split()
        assert [WORDS.target[k] for k in words_of(TEXT.target, s)] == b.split()
        found = TEXT.number[TEXT.offsets[s] : TEXT.offsets[s + 1]].tolist()
        assert found == [numbers[pair] for pair in product(a.split(), b.split())]


def test_counts_of_sentences():
    counts = sentence_counts(*TEXT.source, len(WORDS.source))
    assert dict(zip(WORDS.source, counts.tolist(), strict=True)) == Counter(
        word for a, _ in PAIRS for word in set(a.split())
    )


def naive_model_1(pairs, iterations):
    """Return t(target | source) by expectation maximisation in dictionaries; None is no word."""
    t = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for a, b in pairs:
            for target in b.split():
                sources = [None, *a.split()]
                whole = sum(t[source, target] for source in sources)
                for source in sources:
                    counts[source, target] += t[source, target] / whole
                    totals[source] += t[source, target] / whole
        t = defaultdict(float, {link: count / totals[link[0]] for link, count in counts.items()})
    return t


@pytest.mark.parametrize("iterations", [1, 4])
def test_model_1_is_right_in_both_directions(iterations):
    lexicon = model_1(TEXT, iterations)
    forward = naive_model_1(PAIRS, iterations)
    backward = naive_model_1([(b, a) for a, b in PAIRS], iterations)
    for (a, b), value in by_words(lexicon.forward).items():
        assert value == pytest.approx(forward[a, b], rel=1e-9)
    for (a, b), value in by_words(lexicon.backward).items():
        assert value == pytest.approx(backward[b, a], rel=1e-9)
    for word, value in zip(WORDS.target, lexicon.unlinked_targets, strict=True):
        assert value == pytest.approx(forward[None, word], rel=1e-9)
    for word, value in zip(WORDS.source, lexicon.unlinked_sources, strict=True):
        assert value == pytest.approx(backward[None, word], rel=1e-9)


def random_aligner(seed):
    rng = np.random.default_rng(seed)
    sizes = len(TEXT.partner), len(TEXT.partner), len(WORDS.target), len(WORDS.source)
    lexicon = Lexicon(*(rng.uniform(0.01, 1.0, size) for size in sizes))
    return Aligner(lexicon, Jumps(*rng.uniform(0.1, 1.0, (2, 2 * hmm._REACH + 1))))


def jump_probability(jumps, a, b, width):
    reach = hmm._REACH
    weights = [jumps[np.clip(c - a, -reach, reach) + reach] for c in range(width)]
    return weights[b] / sum(weights)


def all_paths(emission, unlinked, jumps):
    """Yield every path, a (position, linked?) per word, with its probability."""
    length, width = emission.shape
    for path in product(product(range(width), (True, False)), repeat=length):
        probability = 1.0
        for t, (b, linked) in enumerate(path):
            a = path[t - 1][0] if t else None
            if linked:
                step = jump_probability(jumps, a, b, width) if t else 1.0 / width
                probability *= (1.0 - hmm._UNLINKED) * step * emission[t, b]
            else:
                step = float(a == b) if t else 1.0 / width
                probability *= hmm._UNLINKED * step * unlinked[t]
        yield path, probability


def naive_inference(emission, unlinked, jumps):
    """Return the posterior of each position for each word, and the expected jumps, by all paths."""
    posterior, expected = np.zeros(emission.shape), np.zeros(len(jumps))
    reach, whole = hmm._REACH, 0.0
    for path, probability in all_paths(emission, unlinked, jumps):
        whole += probability
        for t, (b, linked) in enumerate(path):
            posterior[t, b] += probability * linked
            if t and linked:
                expected[np.clip(b - path[t - 1][0], -reach, reach) + reach] += probability
    return posterior / whole, expected / whole


def naive_posteriors(aligner, s):
    """Return forward and backward posteriors, (source, target), and the expected jumps of both models."""
    lexicon, jumps = aligner
    sources, targets = words_of(TEXT.source, s), words_of(TEXT.target, s)
    number = TEXT.number[TEXT.offsets[s] : TEXT.offsets[s + 1]].reshape(len(sources), len(targets))
    one = naive_inference(lexicon.forward[number].T, lexicon.unlinked_targets[targets], jumps.forward)
    two = naive_inference(lexicon.backward[number], lexicon.unlinked_sources[sources], jumps.backward)
    return one[0].T, two[0], one[1], two[1]


@pytest.mark.long
def test_posteriors_are_those_of_all_paths():
    aligner = random_aligner(0)
    forward, backward = link_posteriors(TEXT, aligner, len(PAIRS))
    for s in range(len(PAIRS)):
        links = slice(TEXT.offsets[s], TEXT.offsets[s + 1])
        one, two, _, _ = naive_posteriors(aligner, s)
        assert forward[links] == pytest.approx(one.ravel(), abs=1e-12)
        assert backward[links] == pytest.approx(two.ravel(), abs=1e-12)


def test_far_jumps_are_all_alike(monkeypatch):
    monkeypatch.setattr(hmm, "_REACH", 1)  # for what is written out; the package is compiled for its own
    jumps = np.array([1.0, 2.0, 5.0])
    assert jump_probability(jumps, 0, 2, 4) == jump_probability(jumps, 0, 3, 4) == 5 / 17


@pytest.mark.slow
def test_a_training_step_counts_what_both_models_expect():
    lexicon = random_aligner(1).lexicon
    begin, after = train_aligner(TEXT, lexicon, 0), train_aligner(TEXT, lexicon, 1)
    links, jumps = np.zeros(len(TEXT.partner)), np.zeros((2, 2 * hmm._REACH + 1))
    none = np.zeros(len(WORDS.target))
    for s in range(len(PAIRS)):
        one, two, *both_jumps = naive_posteriors(begin, s)
        np.add.at(links, TEXT.number[TEXT.offsets[s] : TEXT.offsets[s + 1]], (one * two).ravel())
        np.add.at(none, words_of(TEXT.target, s), 1.0 - one.sum(axis=0))
        jumps += both_jumps
    counts, totals = by_words(links), defaultdict(float)
    for (a, _), count in counts.items():
        totals[a] += count
    for (a, b), value in by_words(after.lexicon.forward).items():
        assert value == pytest.approx(counts[a, b] / totals[a], rel=1e-9)
    assert after.lexicon.unlinked_targets == pytest.approx(none / none.sum(), rel=1e-9)
    assert np.array(after.jumps) == pytest.approx(jumps, rel=1e-9, abs=1e-12)

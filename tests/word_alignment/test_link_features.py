"""Features of links: each against its definition, on a small text."""

from itertools import combinations, product

import numpy as np
import pytest

from word_alignment.hmm import train_aligner
from word_alignment.lexicon import model_1
from word_alignment.link_features import gather, link_features
from word_alignment.parallel_text import number_text
from word_alignment.spelling import spell, spelling_similarity

# Numba compiles the aligner even where kernels of the package are interpreted.
pytestmark = pytest.mark.slow

PAIRS = [
    ("the nation is great .", "la nation est grande ."),
    ("the great house", "la grande maison"),
    ("a nation of 12 houses", "une nation de 12 maisons"),
    (".", "."),
]


@pytest.fixture(scope="module")
def statistics():
    text, words = number_text(PAIRS)
    lexicon = model_1(text)
    return text, gather(text, words, lexicon, train_aligner(text, lexicon), len(PAIRS))


@pytest.fixture(scope="module")
def tables(statistics):
    return [link_features(*statistics, s) for s in range(len(PAIRS))]


def test_every_link_has_the_same_finite_features(tables):
    for (a, b), table in zip(PAIRS, tables, strict=True):
        assert list(table) == list(tables[0])
        for values in table.values():
            assert values.shape == (len(a.split()), len(b.split()))
            assert np.isfinite(values).all()
            assert np.abs(values).max() <= 2.0


def test_dice_is_that_of_counts(tables):
    for (a, b), table in zip(PAIRS, tables, strict=True):
        for (j, x), (k, y) in product(enumerate(a.split()), enumerate(b.split())):
            has_x = [x in pair[0].split() for pair in PAIRS]
            has_y = [y in pair[1].split() for pair in PAIRS]
            both = sum(p and q for p, q in zip(has_x, has_y, strict=True))
            assert table["dice"][j, k] == pytest.approx(2 * both / (sum(has_x) + sum(has_y)))


def test_links_are_compared_with_others_at_their_words(tables):
    for table in tables:
        both = table["hmm both"]
        np.testing.assert_allclose(both**2, table["hmm forward"] * table["hmm backward"])
        for (j, k), value in np.ndenumerate(both):
            row = max((both[j, c] for c in range(both.shape[1]) if c != k), default=0.0)
            column = max((both[c, k] for c in range(both.shape[0]) if c != j), default=0.0)
            assert table["ahead at source"][j, k] == pytest.approx(value - row)
            assert table["ahead at target"][j, k] == pytest.approx(value - column)
            assert table["best"][j, k] == (value > max(row, column))


def test_neighbours_are_those_of_the_definition(tables):
    steps = {
        "diagonal": [(1, 1), (-1, -1)],
        "crossed": [(1, -1), (-1, 1)],
        "source": [(1, 0), (-1, 0)],
        "target": [(0, 1), (0, -1)],
    }
    for table, (name, shifts) in product(tables, steps.items()):
        both = table["hmm both"]
        links = dict(np.ndenumerate(both))
        for j, k in links:
            expected = sum(links.get((j + a, k + b), 0.0) for a, b in shifts)
            assert table[f"{name} neighbours"][j, k] == pytest.approx(expected)


def test_distances_ranks_and_common_words_are_features(tables):
    table = tables[0]
    assert table["distance"][0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert table["distance squared"][4, 0] == table["distance root"][0, 4] == 1.0
    assert table["source word the"][:, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert table["target word la"][0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    # "the" is among the commonest words, "is" among the rarest.
    assert table["source rank"][0, 0] < table["source rank"][2, 0]
    difference = table["source rank"] - table["target rank"]
    np.testing.assert_allclose(np.abs(difference), table["rank difference"])


def test_model_1_posteriors_sum_to_less_than_one(tables):
    for table in tables:
        assert (table["model 1 forward"].sum(axis=0) < 1.0).all()
        assert (table["model 1 backward"].sum(axis=1) < 1.0).all()


def subsequences(word):
    return {"".join(letters) for size in range(len(word) + 1) for letters in combinations(word, size)}


def test_spelling_is_compared_letter_by_letter():
    words = ["nation", "national", "nations", "cat", "ca", ".", ",", "12", "13", "a", "banana"]
    numbers = np.arange(len(words))
    found = spelling_similarity(spell(words), spell(words[::-1]), (numbers, numbers))
    for (j, a), (k, b) in product(enumerate(words), enumerate(words[::-1])):
        longer, is_long = max(len(a), len(b)), min(len(a), len(b)) >= 4
        prefix = max(
            size for size in range(longer + 1) if a[:size] == b[:size] and size <= min(len(a), len(b))
        )
        common = max(map(len, subsequences(a) & subsequences(b))) / longer
        assert found["same"][j, k] == (a == b)
        assert found["same long"][j, k] == (a == b and is_long)
        assert found["prefix"][j, k] == pytest.approx(prefix / longer * is_long)
        assert found["common letters"][j, k] == pytest.approx(common)
        assert found["common letters, long"][j, k] == pytest.approx(common * is_long)
        assert found["marks"][j, k] == (a in ".," and b in ".,")
        assert found["mark and word"][j, k] == ((a in ".,") != (b in ".,"))
        assert found["same marks"][j, k] == (a == b and a in ".,")
        assert found["same numbers"][j, k] == (a == b and a.isdigit())
        assert found["other numbers"][j, k] == (a != b and a.isdigit() and b.isdigit())

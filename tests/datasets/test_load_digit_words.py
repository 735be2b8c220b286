"""Digit words: what the words are made of, and that a chain has something to gain."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from maxmargin.datasets import load_digit_words
from maxmargin.datasets.digit_words import _LEXICON

PAD = {"2": "abc", "3": "def", "4": "ghi", "5": "jkl", "6": "mno", "7": "pqrs", "8": "tuv"}
KEYS = {letter: key for key, letters in {**PAD, "9": "wxyz"}.items() for letter in letters}
Array = NDArray[np.float64]


def spelled(labels: list[NDArray[np.int64]]) -> set[str]:
    return {"".join(map(str, word)) for word in labels}


def rows(words: list[Array]) -> set[bytes]:
    return {row.tobytes() for word in words for row in word}


def test_words_have_the_declared_shapes_and_types() -> None:
    X_train, y_train, X_test, y_test = load_digit_words(n_train=30, n_test=20)
    assert (len(X_train), len(y_train), len(X_test), len(y_test)) == (30, 30, 20, 20)
    for x, y in zip(X_train + X_test, y_train + y_test, strict=True):
        assert x.shape == (len(y), 64)
        assert x.dtype == np.float64
        assert x.flags.c_contiguous
        assert y.dtype == np.int64
        assert x.min() >= 0
        assert x.max() <= 1


def test_all_eight_digits_occur_on_both_sides() -> None:
    _, y_train, _, y_test = load_digit_words()
    assert set(np.concatenate(y_train)) == set(range(2, 10)) == set(np.concatenate(y_test))


def test_same_seed_same_words_other_seed_other_words() -> None:
    first, again, other = (load_digit_words(n_train=9, n_test=9, random_state=s) for s in (3, 3, 4))
    for side in (0, 2):
        np.testing.assert_array_equal(np.vstack(first[side]), np.vstack(again[side]))
    for side in (1, 3):
        assert [y.tolist() for y in first[side]] == [y.tolist() for y in again[side]]
    assert spelled(first[1]) != spelled(other[1])


def test_test_words_do_not_depend_on_the_number_of_training_words() -> None:
    few, many = (load_digit_words(n_train=n, n_test=5) for n in (1, 50))
    assert all(np.array_equal(a, b) for a, b in zip(few[2], many[2], strict=True))


@pytest.mark.parametrize("seed", [0, 1])
def test_training_and_test_share_neither_scans_nor_words(seed: int) -> None:
    X_train, y_train, X_test, y_test = load_digit_words(noise=0, random_state=seed)
    assert rows(X_train).isdisjoint(rows(X_test))
    assert spelled(y_train).isdisjoint(spelled(y_test))


def test_clean_scans_show_the_labelled_digit() -> None:
    scans, digits = load_digits(return_X_y=True)
    shown = {scan.tobytes(): digit for scan, digit in zip(scans / 16, digits, strict=True)}
    X_train, y_train, X_test, y_test = load_digit_words(noise=0)
    for x, y in zip(X_train + X_test, y_train + y_test, strict=True):
        assert [shown[row.tobytes()] for row in x] == y.tolist()


def test_labels_are_lexicon_words_on_a_telephone() -> None:
    lexicon = _LEXICON.split()
    keyed = {"".join(KEYS[letter] for letter in word) for word in lexicon}
    assert len(keyed) == len(lexicon) > 300
    _, y_train, _, y_test = load_digit_words()
    assert spelled(y_train) | spelled(y_test) <= keyed


def test_noise_changes_pixels_and_nothing_else() -> None:
    clean, noisy = (load_digit_words(n_train=40, n_test=40, noise=s) for s in (0.0, 0.1))
    assert all(np.array_equal(a, b) for a, b in zip(clean[1], noisy[1], strict=True))
    change = np.vstack(noisy[0]) - np.vstack(clean[0])
    inside = (np.vstack(clean[0]) > 0.4) & (np.vstack(clean[0]) < 0.6)
    assert change[inside].std() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize(
    ("name", "value"), [("n_train", 0), ("n_test", -1), ("noise", -0.1), ("noise", np.nan)]
)
def test_bad_parameters_are_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^load_digit_words: {name} must be at least \d; got"):
        load_digit_words(**{name: value})  # type: ignore[arg-type]


def best_path(scores: Array, follow: Array) -> list[int]:
    """Viterbi, the plain way: the best score and path to each label."""
    paths = [[label] for label in range(scores.shape[1])]
    totals = scores[0]
    for row in scores[1:]:
        through = totals[:, None] + follow
        paths = [[*paths[k], label] for label, k in enumerate(through.argmax(axis=0))]
        totals = through.max(axis=0) + row
    return paths[int(totals.argmax())]


def test_which_digit_follows_which_carries_over_to_new_words() -> None:
    X_train, y_train, X_test, y_test = load_digit_words()
    truth = np.concatenate(y_test) - 2
    single = LinearDiscriminantAnalysis().fit(np.vstack(X_train), np.concatenate(y_train))
    scores = [single.predict_log_proba(word) for word in X_test]
    counts = np.ones((8, 8))
    for word in y_train:
        for a, b in pairwise(word - 2):
            counts[a, b] += 1
    follow = np.log(counts / counts.sum(axis=1, keepdims=True)) - np.log(single.priors_)
    alone = np.mean(np.vstack(scores).argmax(axis=1) != truth)
    chained = np.mean(np.concatenate([best_path(s, follow) for s in scores]) != truth)
    assert 0.08 < alone < 0.15
    assert chained < 0.9 * alone

"""The Hansards: files, links, error rates computed by hand, and the real pairs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.datasets import alignment_error_rate, load_hansards
from maxmargin.datasets.hansards import folded
from support.small_hansards import N_TEST, N_TRIAL, write, write_all


def test_folding_removes_accents_and_capitals() -> None:
    assert folded("36 e Législature À ÇA, « Où »") == "36 e legislature a ca, « ou »"


@pytest.mark.parametrize("folder", ["", "hansards"])
def test_pairs_aligned_by_hand_are_read(tmp_path: Path, folder: str) -> None:
    write_all(tmp_path / folder)
    train, test, text = load_hansards(data_home=tmp_path)
    for pairs, size in ((train, N_TRIAL + 100), (test, N_TEST - 100)):
        assert [len(column) for column in pairs] == [size] * 3
        assert set(map(tuple, pairs.sure)) == {((0, 0), (1, 1))}
        assert set(map(tuple, pairs.possible)) == {((0, 0), (0, 1), (1, 1))}
    house = ["the", "house", "is", "great"], ["la", "maison", "est", "a", "elle"]
    # Training begins with the trial set and ends with the first hundred pairs of the test set.
    assert train.words[1] == train.words[N_TRIAL + 1] == test.words[0] == house
    assert text == [  # without repetitions
        ("the nation", "la nation"),
        ("the house is great", "la maison est a elle"),
        ("a great house", "une grande maison"),
    ]


@pytest.mark.parametrize("n_text", [0, 1, 2, 3, 9])
def test_the_first_unlabelled_pairs_are_returned(tmp_path: Path, n_text: int) -> None:
    write_all(tmp_path)
    everything = load_hansards(data_home=tmp_path).text
    assert load_hansards(data_home=tmp_path, n_text=n_text).text == everything[:n_text]


DAMAGED = [
    (
        "trial.wa",
        "1 1 1 S\n1 9 1 P\n",
        "line 2 is not a valid link 'pair english french S|P'",
    ),
    ("test.wa", "106 1 1 S\n", "line 1 is not a valid link"),
    ("test.wa", "1 1 1 X\n", "line 1 is not a valid link"),
    ("trial.fr", "la nation\n", "1 lines, but 2 in trial.en.gz"),
    ("isi_short_tok.en", "the\n \nhouse\n", "line 2 is empty"),
]


@pytest.mark.parametrize(("name", "content", "reason"), DAMAGED)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: str, reason: str) -> None:
    write_all(tmp_path)
    write(tmp_path, name, content)
    with pytest.raises(OSError, match=r"^load_hansards: .* is damaged") as caught:
        load_hansards(data_home=tmp_path)
    assert f"{name}.gz" in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_all(tmp_path)
    (tmp_path / "train36_1_sample.fr.gz").unlink()
    missing = "^load_hansards: no 'hansards/train36_1_sample.fr.gz' or 'train36_1_sample.fr.gz' in "
    with pytest.raises(FileNotFoundError, match=missing):
        load_hansards(data_home=tmp_path)


def test_a_negative_number_of_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^load_hansards: n_text must be an int >= 0, got -1\."):
        load_hansards(n_text=-1)


LINK_SETS = st.lists(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))), min_size=2, max_size=2)


@given(LINK_SETS, LINK_SETS, LINK_SETS)
def test_error_rate_is_one_minus_its_shares(sure: Any, possible: Any, predicted: Any) -> None:
    S, P, A = ({(s, *link) for s in (0, 1) for link in side[s]} for side in (sure, possible, predicted))
    P = P | S
    expected = 1 - (len(A & S) + len(A & P)) / (len(A) + len(S)) if A or S else 0.0
    assert alignment_error_rate(sure, possible, predicted) == pytest.approx(expected)


def test_error_rate_of_numbers_that_are_too_large() -> None:
    with pytest.raises(ValueError, match=r"^alignment_error_rate: links must be pairs of numbers of words"):
        alignment_error_rate([[(0, 10**30)]], [[]], [[]])


def test_error_rate_is_computed_from_predicted_targets() -> None:
    sure, possible = [[(0, 0)], [(1, 2)]], [[(0, 0), (1, 1)], [(1, 2)]]
    assert alignment_error_rate(sure, possible, [np.array([0, 1]), [-1, 2]]) == 0.0
    assert alignment_error_rate(sure, possible, [np.array([1, -1]), [-1, -1]]) == 1.0
    with pytest.raises(ValueError, match=r"^alignment_error_rate: expected .* equally many .*, got 2, 2, 1"):
        alignment_error_rate(sure, possible, [[0]])


def test_real_pairs_are_read(real_data: Path) -> None:
    train, test, text = load_hansards(data_home=real_data, n_text=3000)
    assert (len(train.words), len(test.words), len(set(text))) == (137, 347, 3000)
    assert sum(map(len, train.sure + test.sure)) == 338 + 4038
    assert sum(map(len, train.possible + test.possible)) == 338 + 1446 + 4038 + 13400

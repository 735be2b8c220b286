"""Scores against hand-computed values, conlleval's rules, seqeval and scikit-learn."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, hamming_loss

from maxmargin.cli.evaluate import conlleval
from maxmargin.evaluation import (
    Counts,
    alignment_error_rate,
    are_phrase_tags,
    attachment_scores,
    paired,
    phrase_scores,
    phrases,
    set_scores,
)

TAGS = st.sampled_from(["O", "B-X", "I-X", "E-X", "B-Y", "I-Y", "E-Y"])


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-NP I-NP O B-NP", [(0, 2, "NP"), (3, 4, "NP")]),  # IOB2
        ("I-NP I-NP O I-NP B-NP", [(0, 2, "NP"), (3, 4, "NP"), (4, 5, "NP")]),  # IOB1
        ("O I-NP I-VP", [(1, 2, "NP"), (2, 3, "VP")]),
        ("B-NP I-VP I-NP", [(0, 1, "NP"), (1, 2, "VP"), (2, 3, "NP")]),
        ("B-NP B-NP I-NP", [(0, 1, "NP"), (1, 3, "NP")]),
        ("B-X I-X E-X E-X I-X", [(0, 3, "X"), (3, 4, "X"), (4, 5, "X")]),  # IOBES
        ("S-X S-X B-X E-X", [(0, 1, "X"), (1, 2, "X"), (2, 4, "X")]),
        ("U-X B-X L-X", [(0, 1, "X"), (1, 3, "X")]),
        ("I-a-b I-a-b", [(0, 2, "a-b")]),
        ("B I O B", [(0, 2, ""), (3, 4, "")]),
        ("O O", []),
        ("", []),
    ],
)
def test_phrases_are_those_found_by_hand(tags: str, expected: list[tuple[int, int, str]]) -> None:
    assert list(phrases(tags.split())) == expected


# What conlleval says of two neighbouring tags of one type: does a phrase end in between, does one start?
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO", "EB"}
STARTS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE", "EB"}


def phrases_by_rules(tags: list[str]) -> set[tuple[int, int, str]]:
    found, start = set(), 0
    padded = [("O", ""), *((tag[0], tag[2:]) for tag in tags), ("O", "")]
    for place, ((a, x), (b, y)) in enumerate(itertools.pairwise(padded)):
        if a + b in ENDS or (a != "O" and x != y):
            found.add((start, place, x))
        if a + b in STARTS or (b != "O" and x != y):
            start = place
    return found


@given(st.lists(TAGS, max_size=8))
def test_phrases_follow_the_rules_of_conlleval(tags: list[str]) -> None:
    assert set(phrases(tags)) == phrases_by_rules(tags)


@given(
    st.lists(
        st.lists(TAGS.filter(lambda tag: tag[0] != "E"), min_size=1, max_size=5), min_size=1, max_size=3
    ),
    st.data(),
)
def test_scores_of_seqeval(truth: list[list[str]], data: st.DataObject) -> None:
    metrics = pytest.importorskip("seqeval.metrics")
    tags = TAGS.filter(lambda tag: tag[0] != "E")
    predicted = [data.draw(st.lists(tags, min_size=len(t), max_size=len(t))) for t in truth]
    overall = phrase_scores(truth, predicted).overall
    expected = [
        getattr(metrics, f"{name}_score")(truth, predicted, zero_division=0)
        for name in ("precision", "recall", "f1")
    ]
    assert [overall.precision, overall.recall, overall.f1] == pytest.approx(expected)


def test_scores_by_type_in_the_layout_of_conlleval() -> None:
    truth = [["B-NP", "I-NP", "B-VP", "O"], ["B-NP"]]
    predicted = [["B-NP", "I-NP", "O", "B-PP"], ["I-NP"]]
    scores = phrase_scores(truth, predicted)
    assert scores.by_type == {"NP": Counts(2, 2, 2), "PP": Counts(0, 1, 0), "VP": Counts(1, 0, 0)}
    assert conlleval(scores).split("\n") == [
        "processed 5 tokens with 3 phrases; found: 3 phrases; correct: 2.",
        "accuracy:  40.00%; precision:  66.67%; recall:  66.67%; FB1:  66.67",
        "               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  2",
        "               PP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
        "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
    ]


def test_without_phrases_scores_are_zero() -> None:
    scores = phrase_scores([["O"]], [["O"]])
    assert scores.overall == Counts(0, 0, 0)
    assert (scores.overall.f1, scores.overall.precision, scores.overall.recall, scores.accuracy) == (
        0,
        0,
        0,
        1,
    )


def test_tags_of_phrases() -> None:
    assert are_phrase_tags(["O", "I-x", "E-y"])
    assert not are_phrase_tags(["O", "B"])
    assert not are_phrase_tags(["B-x", "X-y"])


def test_attachment_is_that_counted_by_hand() -> None:
    found = attachment_scores([[2, 0, 2], [0]], [[2, 0, 1], [0]], [[False, False, True], [True]])
    assert found == (0.75, 1.0, 4)


def test_alignment_error_rate_is_that_counted_by_hand() -> None:
    # |A| = 4, |S| = 3, |A & S| = 2, |A & P| = 3
    sure, possible = {(0, 0), (1, 1), (2, 2)}, {(0, 1)}
    rate = alignment_error_rate([sure], [possible], [{(0, 0), (1, 1), (0, 1), (5, 5)}])
    assert rate == pytest.approx(1 - 5 / 7)


@given(st.lists(st.tuples(st.sets(st.integers(0, 3)), st.sets(st.integers(0, 3))), min_size=1, max_size=6))
def test_sets_of_labels_as_scikit_learn(pairs: list[tuple[set[int], set[int]]]) -> None:
    truth, predicted = zip(*pairs, strict=True)
    a, b = (
        np.array([[label in labels for label in range(4)] for labels in side]) for side in (truth, predicted)
    )
    found = set_scores(truth, predicted, 4)
    assert found.subset_accuracy == pytest.approx(accuracy_score(a, b))
    assert found.hamming_loss == pytest.approx(hamming_loss(a, b))
    assert found.labels == (a.sum(), b.sum(), (a & b).sum())


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([[1]], [[1], [2]], "got more that are predicted than true"),
        ([[1], [2]], [[1]], "got more that are true than predicted"),
        ([[1], [2, 3]], [[1], [2]], "expected 2 predictions for sequence 1, got 1"),
    ],
)
def test_pairs_that_do_not_match(truth: list[list[int]], predicted: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(paired(truth, predicted))

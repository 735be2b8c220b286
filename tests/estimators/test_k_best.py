"""The k best labellings and segmentations against a list of all, in order."""

from itertools import pairwise as pairwise_of
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainSVC
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import oracle_workspace
from maxmargin.structures.problem import sizes
from maxmargin.structures.questions import find_k_best, search_space
from maxmargin.structures.recursions import k_best_work
from maxmargin.structures.sequences.inference import k_best_paths, k_best_second_order
from support import naive
from support.catalogue import Case, flat, layout, segment_cases
from support.naive import Array, Output


def value(unary: Array, pairwise: Array, y: Output, triples: Array | None = None) -> float:
    """Return the score of a labelling; ``triples[j, i, k]`` is that of label k after j after i."""
    total = sum(unary[t, label] for t, label in enumerate(y)) + sum(pairwise[a, b] for a, b in pairwise_of(y))
    if triples is None:
        return total
    return total + sum(triples[b, a, c] for a, b, c in zip(y, y[1:], y[2:], strict=False))


@pytest.mark.parametrize("order", [1, 2])
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 3), st.integers(1, 9), st.booleans())
def test_paths_come_in_order(order: int, seed: int, length: int, n_labels: int, k: int, whole: bool) -> None:
    rng, width = np.random.default_rng(seed), n_labels + 1
    shapes = (length, width), (n_labels, width), (n_labels, n_labels, width)
    unary, pairwise, triples = (
        np.round(x) if whole else x for x in (rng.normal(size=shape) for shape in shapes)
    )
    y, scores = np.full((k, length + 1), -1), np.zeros(k)
    work = k_best_work(length + 1, n_labels**order, k)
    for array in work:
        array[:] = 7
    if order == 1:
        k_best_paths(unary, pairwise, work, y, scores)
    else:
        k_best_second_order(unary, pairwise, triples, n_labels, work, y, scores)
    by_hand = {
        path: value(unary, pairwise, path, triples if order == 2 else None)
        for path in product(range(n_labels), repeat=length)
    }
    expected = sorted(by_hand.values(), reverse=True)[:k]
    count = len(expected)
    assert scores[:count] == pytest.approx(expected, abs=1e-11)
    assert (scores[count:] == -np.inf).all()
    found = [tuple(row[:length].tolist()) for row in y[:count]]
    assert len(set(found)) == count
    assert [by_hand[path] for path in found] == pytest.approx(expected, abs=1e-11)
    assert (y[:, length] == -1).all()


@given(segment_cases(rows=("dense", "whole")), st.integers(0, 1000), st.integers(1, 9), st.booleans())
def test_segmentations_come_in_order(case: Case, seed: int, k: int, whole: bool) -> None:
    rng, problem, size = np.random.default_rng(seed), case.problem, sizes(case.problem)
    weights = rng.normal(size=case.data.psi[0].shape[1])
    w = layout(problem, np.round(weights) if whole else weights)
    theta, y, found = np.zeros(size.statistics), np.full((k, size.output), -1), np.zeros(k)
    for i, outputs in enumerate(case.data.outputs):
        oracle = problem.oracle
        score(problem.map, i, w, theta)
        find_k_best(oracle, i, theta, oracle_workspace(oracle), search_space(oracle, k), y, found)
        scores = naive.margins(case.data, i, flat(problem, w)) - case.data.losses[i]
        expected = np.sort(scores)[::-1][:k]
        count = len(expected)
        best = [outputs.index(tuple(row[: len(outputs[0])].tolist())) for row in y[:count]]
        assert len(set(best)) == count
        assert scores[best] == pytest.approx(expected, abs=1e-10)
        assert found[0] - found[:count] == pytest.approx(expected[0] - expected, abs=1e-10)
        assert (found[count:] == -np.inf).all()


_rng = np.random.default_rng(0)
X = [_rng.normal(size=(length, 3)) for length in (3, 4, 1, 2)]
Y = [["O", "B-x", "I-x"], ["B-x", "I-x", "O", "O"], ["O"], ["B-x", "O"]]


@pytest.mark.parametrize("forbidden", [None, "bio"])
def test_k_best_labellings_have_the_margins_of_their_scores(forbidden: str | None) -> None:
    model = ChainSVC(C=1.0, forbidden=forbidden, random_state=0).fit(X, Y)
    best = model.predict(X)
    for x, first, (labels, margins) in zip(X, best, model.predict_k_best(X, 5), strict=True):
        np.testing.assert_array_equal(labels[0], first)
        codes = np.searchsorted(model.classes_, labels)
        unary = x @ model.coef_.T
        unary[0] += model.start_
        unary[-1] += model.end_
        allowed = [
            y
            for y in product(range(3), repeat=len(x))
            if forbidden is None or _is_bio(model.classes_[list(y)])
        ]
        scores = sorted((value(unary, model.transitions_, y) for y in allowed), reverse=True)[:5]
        assert margins == pytest.approx(scores[0] - np.array(scores), abs=1e-11)
        assert len(labels) == len(scores)
        assert [value(unary, model.transitions_, tuple(row)) for row in codes] == pytest.approx(scores)
        assert forbidden is None or all(map(_is_bio, labels))


def _is_bio(labels: Array) -> bool:
    before = ["O", *labels[:-1]]
    return not any(b == "I-x" and a == "O" for a, b in zip(before, labels, strict=True))


@pytest.mark.parametrize("k", [0, 1.5, None])
def test_a_k_that_is_no_positive_int_is_refused(k: object) -> None:
    model = ChainSVC(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"^ChainSVC: k must be an int >= 1, got "):
        model.predict_k_best(X, k)

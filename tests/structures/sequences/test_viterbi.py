"""Viterbi against all paths."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.structures.sequences.inference import viterbi
from support.naive import Array


def all_paths(unary: Array, pairwise: Array, n_labels: int) -> dict[tuple[int, ...], float]:
    """Return the score of every path."""
    scores = {}
    for y in itertools.product(range(n_labels), repeat=len(unary)):
        steps = sum(pairwise[j, k] for j, k in itertools.pairwise(y))
        scores[y] = sum(unary[t, k] for t, k in enumerate(y)) + steps
    return scores


def run(unary: Array, pairwise: Array, n_labels: int) -> tuple[float, tuple[int, ...]]:
    """Return Viterbi's score and path; its work arrays are longer than need be and full of NaN."""
    length, width = unary.shape
    y = np.full(length + 2, -7)
    score = viterbi(unary, pairwise, n_labels, np.full((length + 1, width), np.nan), y)
    assert (y[length:] == -7).all()
    return score, tuple(y[:length].tolist())


trellises = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 7), st.integers(0, 3))


@given(trellises)
def test_score_and_path_are_the_best_of_all(trellis: tuple[int, int, int, int]) -> None:
    seed, length, n_labels, padding = trellis
    rng = np.random.default_rng(seed)
    unary, pairwise = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
    paths = all_paths(unary, pairwise, n_labels)
    # What pads a row is better than anything in it: no padded label may be chosen.
    pad = ((0, 0), (0, padding))
    score, y = run(
        np.pad(unary, pad, constant_values=99.0), np.pad(pairwise, pad, constant_values=99.0), n_labels
    )
    assert score == pytest.approx(max(paths.values()), abs=1e-12)
    assert y == max(paths, key=paths.__getitem__)


@given(trellises)
def test_ties_go_to_the_smaller_label_from_the_last_position_backwards(trellis) -> None:
    seed, length, n_labels, _ = trellis
    rng = np.random.default_rng(seed)
    unary = rng.integers(0, 2, (length, n_labels)).astype(float)
    pairwise = rng.integers(0, 2, (n_labels, n_labels)).astype(float)
    paths = all_paths(unary, pairwise, n_labels)
    best = max(paths.values())
    score, y = run(unary, pairwise, n_labels)
    assert score == best
    assert y == min((path for path in paths if paths[path] == best), key=lambda path: path[::-1])


def test_forbidden_transitions_are_not_taken() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        unary, pairwise = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
        pairwise[rng.random((3, 3)) < 0.3] = -np.inf
        np.fill_diagonal(pairwise, 0.0)
        paths = all_paths(unary, pairwise, 3)
        assert run(unary, pairwise, 3)[1] == max(paths, key=paths.__getitem__)

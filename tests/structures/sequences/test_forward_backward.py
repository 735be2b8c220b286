"""Forward sums and backward means against all paths."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.structures.recursions import softmax
from maxmargin.structures.sequences.inference import forward_backward
from support.naive import Array

trellises = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 5), st.integers(0, 3))
SIZES = (0.1, 1.0, 30.0, 70.0, 1e3)


def all_paths(unary: Array, pairwise: Array) -> tuple[float, Array, Array]:
    """Return the logarithm of the partition sum, the marginals and the expected counts of pairs."""
    (length, K), scores = unary.shape, {}
    for y in itertools.product(range(K), repeat=length):
        steps = [pairwise[j, k] for j, k in itertools.pairwise(y)]
        scores[y] = math.fsum([*(unary[t, k] for t, k in enumerate(y)), *steps])
    largest = max(scores.values())
    total = math.fsum(math.exp(score - largest) for score in scores.values())
    marginals, counts = np.zeros((length, K)), np.zeros((K, K))
    for y, score in scores.items():
        p = math.exp(score - largest) / total
        for t, k in enumerate(y):
            marginals[t, k] += p
            if t > 0:
                counts[y[t - 1], k] += p
    return largest + math.log(total), marginals, counts


def run(unary: Array, pairwise: Array, n_labels: int) -> tuple[float, Array, Array]:
    """Return what the package finds; its work arrays are longer than need be, and all are full of NaN."""
    (length, width), nan = unary.shape, np.nan
    value, joint = np.full((length + 1, width), nan), np.full((2 * n_labels + 2, width), nan)
    marginals, counts = np.full((length, width), nan), np.full((n_labels, width), nan)
    found = forward_backward(unary, pairwise, n_labels, value, joint, marginals, counts)
    return found, marginals, counts


def padded_with(array: Array, columns: int, value: float) -> Array:
    return np.pad(array, ((0, 0), (0, columns)), constant_values=value)


@given(trellises, st.sampled_from(SIZES))
def test_sums_and_means_are_those_of_all_paths(trellis: tuple[int, int, int, int], size: float) -> None:
    seed, length, K, padding = trellis
    rng = np.random.default_rng(seed)
    unary, pairwise = size * rng.normal(size=(length, K)), size * rng.normal(size=(K, K))
    log_partition, marginals, counts = all_paths(unary, pairwise)
    # What pads a row is better than anything in it: no padded label may get any weight.
    found = run(padded_with(unary, padding, 9e3), padded_with(pairwise, padding, 9e3), K)
    assert found[0] == pytest.approx(log_partition, abs=1e-12 * (1.0 + size))
    assert found[1] == pytest.approx(padded_with(marginals, padding, 0.0), abs=1e-11)
    assert found[2] == pytest.approx(padded_with(counts, padding, 0.0), abs=1e-11)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e8])
def test_sums_are_right_for_long_chains_of_large_scores(size: float) -> None:
    """Nothing overflows or is lost: every position has mass one, every pair the mass of its ends."""
    rng, length, K = np.random.default_rng(0), 3000, 6
    unary, pairwise = size * rng.normal(size=(length, K)), size * rng.normal(size=(K, K))
    log_partition, marginals, counts = run(unary, pairwise, K)
    assert np.isfinite(log_partition)
    assert (marginals >= 0.0).all()
    assert marginals.sum(axis=1) == pytest.approx(np.ones(length), abs=1e-11)
    assert counts.sum(axis=0) == pytest.approx(marginals[1:].sum(axis=0), abs=1e-9)
    assert counts.sum(axis=1) == pytest.approx(marginals[:-1].sum(axis=0), abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 4), st.sampled_from([299.0, 301.0]))
def test_sums_are_right_for_scores_far_apart(seed: int, length: int, K: int, apart: float) -> None:
    """Exponentials of pairs are shared by all positions or not: on both sides nothing is lost."""
    rng = np.random.default_rng(seed)
    unary, pairwise = 2.0 * apart * rng.normal(size=(length, K)), apart * rng.integers(0, 2, (K, K))
    log_partition, marginals, counts = all_paths(unary, pairwise)
    found = run(unary, pairwise.astype(float), K)
    assert found[0] == pytest.approx(log_partition, abs=1e-9)
    assert found[1] == pytest.approx(marginals, abs=1e-11)
    assert found[2] == pytest.approx(counts, abs=1e-11)


def test_equal_scores_make_all_paths_alike() -> None:
    """All paths are alike: K^T of them, each label with probability 1 / K."""
    log_partition, marginals, counts = run(np.full((50, 4), -2.0), np.zeros((4, 4)), 4)
    assert log_partition == pytest.approx(50 * (math.log(4) - 2.0), rel=1e-13)
    assert marginals == pytest.approx(np.full((50, 4), 0.25), abs=1e-14)
    assert counts == pytest.approx(np.full((4, 4), 49 / 16), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 3), st.sampled_from([1.0, 1e3, 1e300]))
def test_softmax_is_that_of_the_odds(seed: int, K: int, padding: int, size: float) -> None:
    scores = size * np.random.default_rng(seed).normal(size=K)
    odds = np.array([[math.exp(min(b - a, 700.0)) for b in scores] for a in scores])
    p = np.concatenate([scores, np.full(padding, 1e301)])
    log_sum = softmax(p, K, p)  # in place
    assert p[:K] == pytest.approx(1.0 / odds.sum(axis=1), abs=1e-13)
    assert (p[K:] == 0.0).all()
    assert log_sum == pytest.approx(scores.max() + math.log(odds[scores.argmax()].sum()), rel=1e-12)

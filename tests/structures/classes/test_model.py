"""The multiclass oracle against a loop over the classes."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.methods.scratch import new_scratch
from maxmargin.problems import Multiclass
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import argmax, decode, loss, psi
from maxmargin.structures.problem import sizes
from support.catalogue import Case, flat, layout, multiclass_case, multiclass_cases
from support.naive import margins


@given(multiclass_cases(), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_the_classes(case: Case, seed: int, whole: bool) -> None:
    rng, d = np.random.default_rng(seed), case.data.psi[0].shape[1]
    problem, scratch = case.problem, new_scratch(case.problem)
    w = layout(problem, rng.integers(-2, 3, d).astype(float) if whole else rng.normal(size=d))
    unary = problem.unpack(w).unary
    decoded = []
    for i, x in enumerate(case.X):
        scores = np.array([sum(a * b for a, b in zip(row, x, strict=True)) for row in unary])
        score(problem.map, i, w, scratch.block.theta)
        argmax(problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
        augmented = scores + case.data.losses[i]
        assert augmented[scratch.y[0]] == pytest.approx(augmented.max(), abs=1e-12)
        decode(problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
        assert scores[scratch.y[0]] == pytest.approx(scores.max(), abs=1e-12)
        decoded.append(int(scratch.y[0]))
    compiled = np.zeros(len(decoded), dtype=np.int64)
    predictions(problem, w, 0, len(compiled), compiled, *decoding_work(problem))
    assert compiled.tolist() == decoded


@given(multiclass_cases(), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    weights = np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])
    w = layout(case.problem, weights)
    assert (flat(case.problem, w) == weights).all()
    expected = [margins(case.data, i, weights).max() for i in range(len(case.X))]
    assert hinge_losses(case.problem, w) == pytest.approx(expected, abs=1e-12)


@given(multiclass_cases())
def test_loss_and_statistics_are_those_of_every_class(case: Case) -> None:
    where, value = np.zeros(2, dtype=np.uint32), np.zeros(2)
    one_hot = np.eye(case.problem.map.width)
    for i, truth in enumerate(case.data.truths):
        for k, expected in enumerate(case.data.losses[i]):
            y = np.array([k])
            assert loss(case.problem.oracle, i, y) == expected
            entries = np.zeros(case.problem.map.width)
            count = psi(case.problem.oracle, i, y, where, value)
            np.add.at(entries, where[:count], value[:count])
            assert (entries == one_hot[truth] - one_hot[k]).all()


def test_ties_go_to_the_smaller_class() -> None:
    case = multiclass_case(0, n=8, n_labels=5, loss="zero_one")
    scratch = new_scratch(case.problem)
    for i, truth in enumerate(case.data.truths):
        score(case.problem.map, i, np.zeros(sizes(case.problem).weights), scratch.block.theta)
        decode(case.problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
        assert scratch.y[0] == 0
        argmax(case.problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
        assert scratch.y[0] == (1 if truth == 0 else 0)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_matrix])
@pytest.mark.parametrize("shape", [(4, 4), (6, 3)])
def test_squared_norms_of_sparse_rows_are_right(kind, shape: tuple[int, int]) -> None:
    # Between matrices, unlike arrays, * is the matrix product.
    X = np.random.default_rng(0).normal(size=shape)
    problem = Multiclass.from_arrays(kind(X), np.arange(shape[0]) % 3)
    assert problem.map.squared_norms == pytest.approx((X**2).sum(axis=1))


def test_repeated_entries_of_a_sparse_matrix_add_up() -> None:
    data, columns, start = [1.0, 2.0, 4.0, 8.0, 16.0], [2, 0, 2, 1, 1], [0, 3, 5]
    X = scipy.sparse.csr_array((data, columns, start), shape=(2, 3))
    problem = Multiclass.from_encoded(X, np.array([0, 1]), 2)
    assert problem.map.squared_norms.tolist() == [2.0**2 + 5.0**2, 24.0**2]
    scores = np.zeros(problem.map.width)
    score(problem.map, 0, layout(problem, np.array([1.0, 10.0, 100.0, 0.0, 0.0, 0.0])), scores)
    assert scores[:2].tolist() == [502.0, 0.0]
    assert (X.data.tolist(), X.indices.tolist()) == (data, columns)


def test_classes_are_numbered_in_sorted_order() -> None:
    X = np.random.default_rng(0).normal(size=(4, 2))
    problem = Multiclass.from_arrays(X, ["pear", "apple", "fig", "fig"])
    assert problem.oracle.labels.tolist() == [2, 0, 1, 1]

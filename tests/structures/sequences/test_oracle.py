"""The chain's oracle, loss and statistics against a list of all labellings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.problems import Chain
from maxmargin.structures.oracle import argmax, decode, loss
from maxmargin.structures.problem import sizes
from support.catalogue import Case, chain_case, chain_cases
from support.model_checks import (
    assert_compiled_hinges,
    assert_compiled_predictions,
    assert_loss_and_statistics,
    assert_oracles_maximise,
    draw_weights,
    found_output,
)
from support.naive import Array, Output


def written_out_score(case: Case, i: int, w: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, term by term."""
    weights, x = case.problem.unpack(w), case.X[i]
    total = weights.start[y[0]] + weights.end[y[-1]]
    for t in range(len(y)):
        total += sum(weights.unary[y[t], f] * x[t, f] for f in range(x.shape[1]))
        if t > 0:
            total += weights.transitions[y[t - 1], y[t]]
    return float(total)


@given(chain_cases(), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_labellings(case: Case, seed: int, whole: bool) -> None:
    w = draw_weights(case, seed, whole)
    assert_oracles_maximise(case, w, written_out_score)
    assert_compiled_predictions(case, w)


@given(chain_cases(), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    assert_compiled_hinges(case, draw_weights(case, seed, whole=False))


@given(chain_cases())
def test_loss_and_statistics_are_those_of_every_labelling(case: Case) -> None:
    assert_loss_and_statistics(case)


@pytest.mark.parametrize("kind", ["normalized_hamming", "hamming"])
def test_named_losses_count_wrong_labels(kind: str) -> None:
    problem = chain_case(0, (4, 2), 3, loss=kind).problem
    wrong = (problem.oracle.labels + np.array([0, 1, 2, 1, 1, 0])) % 3
    counts = {"hamming": (3.0, 1.0), "normalized_hamming": (3 / 4, 1 / 2)}[kind]
    assert (loss(problem.oracle, 0, wrong[:4]), loss(problem.oracle, 1, wrong[4:])) == counts


def test_ties_go_to_the_smaller_label() -> None:
    problem = chain_case(0, (3, 2), 4, loss="hamming").problem
    w = np.zeros(sizes(problem).weights)
    for i, truth in enumerate(np.split(problem.oracle.labels, [3])):
        assert found_output(problem, i, w, decode) == (0,) * len(truth)
        assert found_output(problem, i, w, argmax) == tuple(1 if label == 0 else 0 for label in truth)


def test_weights_have_the_dimension_of_the_authors_code() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(26, 129))
    problem = Chain.from_encoded(features, np.array([0, 20, 26]), np.arange(26), 26)
    weights = problem.unpack(rng.normal(size=sizes(problem).weights))
    shapes = [part.shape for part in weights]
    assert shapes == [(26, 129), (26,), (26,), (26, 26)]
    assert sum(part.size for part in weights) == 26 * 129 + 26 + 26 + 26 * 26 == 4082


def test_inner_products_of_tokens_are_tabulated() -> None:
    case = chain_case(4, (3, 1, 4))
    squares = [(x @ x.T).ravel() for x in case.X]
    assert case.problem.map.products == pytest.approx(np.concatenate(squares), abs=1e-14)
    assert case.problem.map.product_spans.tolist() == [[0, 9], [9, 10], [10, 26]]


def test_sequences_of_names_become_the_problem_they_describe() -> None:
    X = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])]
    problem = Chain.from_sequences(X, [["verb", "noun"], ["adverb"]])
    assert problem.map.rows.values.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert problem.map.tokens.tolist() == problem.oracle.tokens.tolist() == [[0, 2], [2, 3]]
    assert problem.oracle.labels.tolist() == [2, 1, 0]
    assert problem.oracle.scale.tolist() == [0.5, 1.0]

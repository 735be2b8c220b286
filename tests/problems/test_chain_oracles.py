"""The chain's oracle, loss and statistics against a list of all labellings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import predictions
from maxmargin.objective import hinge_losses
from maxmargin.problems import Chain, ChainWeights
from maxmargin.problems._protocol import argmax, decode, loss, output_size, psi, score, sizes
from support.catalogue import Case, chain_case, chain_cases, flat, layout
from support.naive import Array, Output, margins


def draw_weights(case: Case, seed: int, whole: bool) -> Array:
    """Return random weights in the problem's layout; whole numbers make ties."""
    rng = np.random.default_rng(seed)
    d = case.data.psi[0].shape[1]
    return layout(case.problem, rng.integers(-2, 3, d).astype(float) if whole else rng.normal(size=d))


def written_out_score(weights: ChainWeights, x: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, term by term."""
    total = weights.start[y[0]] + weights.end[y[-1]]
    for t in range(len(y)):
        total += sum(weights.unary[y[t], f] * x[t, f] for f in range(x.shape[1]))
        if t > 0:
            total += weights.transitions[y[t - 1], y[t]]
    return float(total)


def statistics(problem: Chain, y: Output) -> Array:
    """Return s(y): counts of transitions, then the indicator of the label at each position."""
    counts, labels = np.zeros((problem.n_labels, problem.width)), np.zeros((problem.longest, problem.width))
    for t, label in enumerate(y):
        labels[t, label] = 1.0
        if t > 0:
            counts[y[t - 1], label] += 1.0
    return np.concatenate([counts.ravel(), labels.ravel()])


def found_output(problem: Chain, i: int, w: Array, oracle) -> Output:
    """Return what ``argmax`` or ``decode`` answers for example i."""
    scratch = new_scratch(problem)
    score(problem, i, w, scratch.theta)
    oracle(problem, i, scratch.theta, scratch.y, scratch.oracle)
    return tuple(int(label) for label in scratch.y[: output_size(problem, i)])


@given(chain_cases(), st.integers(0, 1000), st.booleans())
def test_argmax_maximises_loss_plus_score(case: Case, seed: int, whole: bool) -> None:
    w = draw_weights(case, seed, whole)
    weights = case.problem.unpack(w)
    for i, x in enumerate(case.X):
        outputs, losses = case.data.outputs[i], case.data.losses[i]
        values = [L + written_out_score(weights, x, y) for L, y in zip(losses, outputs, strict=True)]
        answer = found_output(case.problem, i, w, argmax)
        assert values[outputs.index(answer)] == pytest.approx(max(values), abs=1e-11)


@given(chain_cases(), st.integers(0, 1000), st.booleans())
def test_decode_maximises_the_score(case: Case, seed: int, whole: bool) -> None:
    w = draw_weights(case, seed, whole)
    weights = case.problem.unpack(w)
    best = []
    for i, x in enumerate(case.X):
        values = [written_out_score(weights, x, y) for y in case.data.outputs[i]]
        answer = found_output(case.problem, i, w, decode)
        assert values[case.data.outputs[i].index(answer)] == pytest.approx(max(values), abs=1e-11)
        best.append(answer)
    compiled = np.zeros(sum(map(len, best)), dtype=np.int64)
    predictions(case.problem, w, 0, len(case.X), compiled, new_scratch(case.problem))
    assert compiled.tolist() == [label for y in best for label in y]


@given(chain_cases(), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    w = draw_weights(case, seed, whole=False)
    expected = [margins(case.data, i, flat(case.problem, w)).max() for i in range(len(case.X))]
    assert hinge_losses(case.problem, w) == pytest.approx(expected, abs=1e-11)


@given(chain_cases())
def test_loss_and_statistics_of_every_labelling(case: Case) -> None:
    size = sizes(case.problem)
    where, value = np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts)
    for i in range(len(case.X)):
        truth = case.data.outputs[i][case.data.truths[i]]
        for y, expected in zip(case.data.outputs[i], case.data.losses[i], strict=True):
            labels = np.array(y)
            assert loss(case.problem, i, labels) == pytest.approx(expected, abs=1e-13)
            entries = np.zeros(size.statistics)
            count = psi(case.problem, i, labels, where, value)
            np.add.at(entries, where[:count], value[:count])
            assert (entries == statistics(case.problem, truth) - statistics(case.problem, y)).all()


@pytest.mark.parametrize("kind", ["normalized_hamming", "hamming"])
def test_named_losses_count_wrong_labels(kind: str) -> None:
    problem = chain_case(0, (4, 2), 3, loss=kind).problem
    wrong = (problem.labels + np.array([0, 1, 2, 1, 1, 0])) % 3
    counts = {"hamming": (3.0, 1.0), "normalized_hamming": (3 / 4, 1 / 2)}[kind]
    assert (loss(problem, 0, wrong[:4]), loss(problem, 1, wrong[4:])) == counts


def test_ties_go_to_the_smaller_label() -> None:
    problem = chain_case(0, (3, 2), 4, loss="hamming").problem
    w = np.zeros(sizes(problem).weights)
    for i, truth in enumerate((problem.labels[:3], problem.labels[3:])):
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


def test_inner_products_of_tokens() -> None:
    case = chain_case(4, (3, 1, 4))
    squares = [(x @ x.T).ravel() for x in case.X]
    assert case.problem.products == pytest.approx(np.concatenate(squares), abs=1e-14)
    assert case.problem.product_offsets.tolist() == [0, 9, 10, 26]


def test_sequences_of_names_become_the_problem_they_describe() -> None:
    X = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])]
    problem = Chain.from_sequences(X, [["verb", "noun"], ["adverb"]])
    assert problem.rows.values.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert (problem.offsets.tolist(), problem.labels.tolist()) == ([0, 2, 3], [2, 1, 0])
    assert problem.scale.tolist() == [0.5, 1.0]

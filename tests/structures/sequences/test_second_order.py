"""Second-order chains: oracles and statistics against a list of all labellings, and optima against others."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    BlockFrankWolfe,
    ExponentiatedGradient,
    Pairwise,
    Result,
    Status,
    check_problem,
    solve,
)
from maxmargin.problems import Chain, SecondOrderChain
from maxmargin.solving import objective
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.structures import products
from maxmargin.structures.oracle import argmax, decode
from maxmargin.structures.problem import Problem, sizes
from support import naive
from support.catalogue import Case, chain_case, chain_cases, flat, layout
from support.model_checks import (
    assert_compiled_hinges,
    assert_compiled_predictions,
    assert_gram_and_norm2,
    assert_loss_and_statistics,
    assert_oracles_maximise,
    draw_weights,
    found_output,
)
from support.naive import Array, Enumerated, Output
from support.slack import check_slack_oracle

LAM = 0.1
cases = chain_cases(max_labels=3, order=2)
dense_cases = chain_cases(max_labels=3, rows=("dense", "whole"), order=2)


def written_out_score(case: Case, i: int, w: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, term by term."""
    weights, x = case.problem.unpack(w), case.X[i]
    total = weights.start[y[0]] + weights.end[y[-1]]
    for t, label in enumerate(y):
        total += float(weights.unary[label] @ x[t])
        total += weights.transitions[y[t - 1], label] if t > 0 else 0.0
        total += weights.trigrams[y[t - 2], y[t - 1], label] if t > 1 else 0.0
    return float(total)


@given(cases, st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_labellings(case: Case, seed: int, whole: bool) -> None:
    assert_oracles_maximise(case, draw_weights(case, seed, whole), written_out_score)


@given(dense_cases, st.integers(0, 1000))
def test_compiled_oracles_give_the_same(case: Case, seed: int) -> None:
    w = draw_weights(case, seed, whole=False)
    assert_compiled_hinges(case, w)
    assert_compiled_predictions(case, w)


@given(cases)
def test_loss_and_statistics_are_those_of_every_labelling(case: Case) -> None:
    assert_loss_and_statistics(case)


def test_ties_go_to_the_smaller_label() -> None:
    case = chain_case(0, (4, 2, 1), loss="hamming", order=2)
    w = np.zeros(sizes(case.problem).weights)
    for i, t in enumerate(case.data.truths):
        truth = case.data.outputs[i][t]
        assert found_output(case.problem, i, w, decode) == (0,) * len(truth)
        assert found_output(case.problem, i, w, argmax) == tuple(1 if label == 0 else 0 for label in truth)


def test_gram_and_norm2_are_right_for_sequences_too_long_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_TABULATED", 2)
    assert_gram_and_norm2(chain_case(5, (4, 2, 1, 3), order=2))


def solved(problem: Any, tol: float = 2e-4) -> Result:
    return solve(problem, Accelerated(Pairwise(LAM)), tol=tol, max_passes=5000, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("method", [BlockFrankWolfe(LAM), Accelerated(Pairwise(LAM))], ids=["BCFW", "auto"])
def test_certificates_bracket_the_optimum(method: Any) -> None:
    case = chain_case(3, (3, 1, 2, 4, 3), 2, order=2)
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, method, tol=5e-3 * best.primal, max_passes=20000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= 1.005 * best.primal + 1e-9
    assert result.primal == pytest.approx(naive.primal(case.data, flat(case.problem, result.w), LAM))


def test_without_trigrams_it_is_the_chain() -> None:
    """Sequences of up to two tokens have none: the optimum is the chain's, and all of B is zero."""
    second, first = (chain_case(4, (2, 1, 2, 2, 1), order=order) for order in (2, 1))
    results = solved(second.problem), solved(first.problem)
    assert max(result.dual for result in results) <= min(result.primal for result in results)
    assert results[0].primal == pytest.approx(results[1].primal, abs=4e-4)
    assert not second.problem.unpack(results[0].w).trigrams.any()


def test_weights_of_the_chain_have_its_objective() -> None:
    """With B = 0 both have the same objective, so that the richer model's optimum is no larger."""
    second, first = (chain_case(5, (3, 4, 2, 3), 2, order=order) for order in (2, 1))
    best = solved(first.problem)
    w = np.concatenate([best.w, np.zeros(sizes(second.problem).weights - len(best.w))])
    assert objective.primal(second.problem, w, LAM) == pytest.approx(best.primal, rel=1e-12)
    assert solved(second.problem).dual < best.dual


def forbidding_case(seed: int, lengths: tuple[int, ...]) -> tuple[Problem[Any, Any], Enumerated]:
    """Return a problem with forbidden transitions, none of them in the truth, and what is left of outputs."""
    case, rng = chain_case(seed, lengths, order=2, loss="hamming"), np.random.default_rng(seed)
    K, truths = 3, [outputs[t] for outputs, t in zip(case.data.outputs, case.data.truths, strict=True)]
    paths = [[K, *y, K] for y in truths]
    forbidden = rng.random((K + 1, K + 1)) < 0.5
    for path in paths:
        forbidden[path[:-1], path[1:]] = False
    kept = [
        [k for k, y in enumerate(outputs) if not any(forbidden[p] for p in itertools.pairwise([K, *y, K]))]
        for outputs in case.data.outputs
    ]
    data = Enumerated(
        [[case.data.outputs[i][k] for k in rest] for i, rest in enumerate(kept)],
        [rest.index(t) for rest, t in zip(kept, case.data.truths, strict=True)],
        [case.data.losses[i][rest] for i, rest in enumerate(kept)],
        [case.data.psi[i][rest] for i, rest in enumerate(kept)],
    )
    labels, offsets = case.problem.oracle.inner.labels, np.cumsum([0, *lengths])
    problem = SecondOrderChain.from_encoded(
        np.vstack(case.X), offsets, labels, K, loss="hamming", forbidden=forbidden
    )
    return problem, data


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_oracles_choose_among_what_is_allowed(seed: int, lengths: tuple[int, ...]) -> None:
    problem, data = forbidding_case(seed, lengths)
    w = layout(problem, 3 * np.random.default_rng(seed).normal(size=data.psi[0].shape[1]))
    case, found = Case(problem, data, [np.zeros(length) for length in lengths]), []
    for i, outputs in enumerate(data.outputs):
        scores = -data.psi[i] @ flat(problem, w)
        for oracle, values in ((argmax, scores + data.losses[i]), (decode, scores)):
            y = found_output(case.problem, i, w, oracle)
            assert values[outputs.index(y)] == pytest.approx(values.max(), abs=1e-11)
        found += y
    compiled = np.zeros(len(found), dtype=np.int64)
    predictions(problem, w, 0, len(lengths), compiled, *decoding_work(problem))
    assert compiled.tolist() == found
    check_slack_oracle(problem, data, seed)


X = [np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 5.0]]), np.array([[5.0, 6.0]])]
Y = [["verb", "noun", "verb"], ["adverb"]]


def test_sequences_become_the_chain_that_they_describe() -> None:
    problem = SecondOrderChain.from_sequences(X, Y, loss="hamming")
    expected = Chain.from_sequences(X, Y, loss="hamming")
    assert problem.map.inner.rows.values.tolist() == expected.map.rows.values.tolist()
    for name in ("tokens", "products", "product_spans"):
        np.testing.assert_array_equal(getattr(problem.map.inner, name), getattr(expected.map, name))
    for name in ("tokens", "labels", "cost", "scale"):
        np.testing.assert_array_equal(getattr(problem.oracle.inner, name), getattr(expected.oracle, name))
    assert problem.map.inner.tokens.tolist() == [[0, 3], [3, 4]]
    weights = problem.unpack(np.zeros(sizes(problem).weights))
    assert [part.shape for part in weights] == [(3, 2), (3,), (3,), (3, 3), (3, 3, 3)]
    assert check_problem(problem).ok


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (X, [["noun"] * 3, ["noun"]], {}, "y must have at least two different labels"),
    (X, Y[:1], {}, "X has 2 sequences, but y has 1"),
    (X, Y, {"loss": "zero_one"}, "loss must be one of 'normalized_hamming', 'hamming' or a cost matrix"),
    (
        X,
        Y,
        {"forbidden": [("noun", "verb")]},
        "y has forbidden pairs in 1 of 2 sequences, first at token 2",
    ),
    ([X[0], np.ones((1, 3))], Y, {}, "sequence 1 of X has 3 features, but sequence 0 has 2"),
]


@pytest.mark.parametrize(("features", "labels", "options", "message"), REFUSED)
def test_wrong_data_and_options_are_refused(
    features: Any, labels: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^SecondOrderChain: {message}") as caught:
        SecondOrderChain.from_sequences(features, labels, **options)
    assert "\n" not in str(caught.value)


def test_methods_that_need_expectations_are_refused() -> None:
    problem = SecondOrderChain.from_sequences(X, Y)
    with pytest.raises(TypeError, match=r"^solve: ExponentiatedGradient needs .* got SecondOrderOracle; use"):
        solve(problem, ExponentiatedGradient(LAM))

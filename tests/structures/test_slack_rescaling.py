"""Slack rescaling against all outputs, with psi times the loss written out."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    BlockExact,
    BlockFrankWolfe,
    BrokenOracle,
    ChainSVC,
    MulticlassSVC,
    Pairwise,
    Status,
    check_problem,
    solve,
)
from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.problems import Chain, SlackRescaled
from maxmargin.structures.oracle import decode
from maxmargin.structures.recursions import best_by_count, best_end, trace_back
from support import naive
from support.catalogue import Case, chain_case, chain_cases, multiclass_case, multiclass_cases
from support.own_functions import custom
from support.slack import check_slack_oracle, random_weights, rescaled

LAM = 0.1
CASES = {
    "chain": chain_case(3, (1, 2, 3), 2, loss="hamming"),
    "chain, normalized": chain_case(5, (2, 3), 3, loss="normalized_hamming"),
    "multiclass": multiclass_case(4, n=6, n_labels=4),
}


@settings(max_examples=60)
@given(
    st.one_of(chain_cases(rows=("dense", "whole")).map(lambda case: with_hamming(case)), multiclass_cases()),
    st.integers(0, 1000),
)
def test_the_oracle_finds_the_largest_of_all_outputs(case: Case, seed: int) -> None:
    check_slack_oracle(case.problem, case.data, seed)


def with_hamming(case: Case) -> Case:
    """Return the case with every wrong label counted once."""
    chain, offsets = case.problem.oracle, np.cumsum([0, *map(len, case.X)])
    Y, hamming = np.split(chain.labels, offsets[1:-1]), 1.0 - np.eye(chain.n_labels)
    data = naive.enumerate_chain(case.X, Y, chain.n_labels, hamming, per_token=False)
    problem = Chain.from_encoded(np.vstack(case.X), offsets, chain.labels, chain.n_labels, loss="hamming")
    return Case(problem, data, case.X)


@given(st.integers(1, 4), st.integers(2, 3), st.integers(0, 1000))
def test_the_best_path_is_found_for_every_number_of_wrong_labels(
    length: int, n_labels: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    unary, pairwise = rng.normal(size=(length, 4)), rng.normal(size=(n_labels, 4))
    truth, value = rng.integers(n_labels, size=length), np.full((length + 1, length, 4), np.nan)
    best_by_count(unary, pairwise, truth, n_labels, value)
    paths = [np.array(path) for path in product(range(n_labels), repeat=length)]
    for m in range(length + 1):
        score, best = max(
            (unary[range(length), p].sum() + pairwise[p[:-1], p[1:]].sum(), tuple(p))
            for p in paths
            if (p != truth).sum() == m
        )
        y = np.zeros(length, dtype=np.int64)
        trace_back(value, pairwise, truth, m, length - 1, n_labels, y)
        assert tuple(y) == best
        assert value[m, length - 1, best_end(value, m, length - 1, n_labels)] == pytest.approx(score)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", [Accelerated(Pairwise(LAM)), BlockFrankWolfe(LAM)])
def test_the_optimum_is_that_of_a_quadratic_program(name: str, method: Any) -> None:
    check_optimum(CASES[name], method)


@settings(max_examples=10, deadline=None)
@given(multiclass_cases())
def test_exact_blocks_have_the_optimum_of_a_quadratic_program(case: Case) -> None:
    check_optimum(case, Accelerated(BlockExact(LAM)))


def check_optimum(case: Case, method: Any) -> None:
    data = rescaled(case.data)
    best = naive.optimum(data, LAM)
    tol = 1e-6 if isinstance(method, Accelerated) else 0.02
    result = solve(SlackRescaled(case.problem), method, tol=tol, max_passes=2000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert result.primal == pytest.approx(naive.primal(data, result.weights, LAM), abs=1e-10)
    assert result.dual - 1e-9 <= best.dual <= best.primal <= result.primal + 1e-9


@pytest.mark.parametrize("name", CASES)
def test_rescaled_problems_pass_all_checks(name: str) -> None:
    case = CASES[name]
    outputs = [list(map(list, outputs)) for outputs in case.data.outputs]
    report = check_problem(SlackRescaled(case.problem), outputs=outputs)
    assert report.ok, str(report)


def test_of_zero_one_losses_it_is_margin_rescaling() -> None:
    case = multiclass_case(6, loss="zero_one")
    runs = [
        solve(p, BlockFrankWolfe(LAM), tol=0.0, max_passes=5, random_state=0)
        for p in (case.problem, SlackRescaled(case.problem))
    ]
    np.testing.assert_allclose(runs[1].w, runs[0].w, rtol=1e-12, atol=1e-14)


def test_predictions_are_those_of_the_problem() -> None:
    case = CASES["chain"]
    problem, w = SlackRescaled(case.problem), random_weights(case.problem, case.data, 0)
    answers = []
    for p in (problem, case.problem):
        scratch = new_scratch(p)
        find_corner(p, 2, w, scratch)
        decode(p.oracle, 2, scratch.block.theta, scratch.y, scratch.oracle)
        answers.append(scratch.y.tolist())
    assert answers[0] == answers[1]


def test_other_problems_are_refused_in_one_line() -> None:
    expected = (
        "SlackRescaled: problem must be a Multiclass, or a Chain, SecondOrderChain, Segments or Graph with a "
        "Hamming loss, got a CustomOracle."
    )
    with pytest.raises(TypeError) as caught:
        SlackRescaled(custom(CASES["chain"]))
    assert str(caught.value) == expected
    with pytest.raises(TypeError, match=r"^SlackRescaled: problem must not have its slacks rescaled already"):
        SlackRescaled(SlackRescaled(CASES["chain"].problem))
    with pytest.raises(
        ValueError, match=r"^SlackRescaled: slack rescaling needs the loss .* got a cost matrix"
    ):
        SlackRescaled(chain_case(0, loss="matrix").problem)


@pytest.mark.parametrize("name", ["chain", "multiclass"])
def test_features_that_are_not_finite_are_reported(name: str) -> None:
    problem = CASES[name].problem
    values = problem.map.rows.values
    values[1, 0], kept = np.nan, values[1, 0]
    try:
        with pytest.raises(BrokenOracle, match="example 1 has a negative or undefined"):
            solve(SlackRescaled(problem), BlockFrankWolfe(LAM), random_state=0)
    finally:
        values[1, 0] = kept


def test_estimators_reach_the_rescaled_optimum() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 3
    cost = rng.uniform(0.5, 2.0, (3, 3)) * (1 - np.eye(3))
    model = MulticlassSVC(C=1.0, loss=cost, rescaling="slack", fit_intercept=False, tol=1e-7, random_state=0)
    model.fit(X, y)
    written_out = rescaled(naive.enumerate_multiclass(X, y, 3, cost))
    best = naive.optimum(written_out, 1 / 12)
    assert naive.primal(written_out, model.coef_.ravel(), 1 / 12) - best.dual <= 1e-6
    sequences, labels = [X[:5], X[5:]], [y[:5], y[5:]]
    chain = ChainSVC(C=10.0, rescaling="slack", tol=1e-4, max_iter=1000, random_state=0).fit(
        sequences, labels
    )
    assert chain.gap_ <= 1e-4
    assert chain.score(sequences, labels) == 1.0
    with pytest.raises(ValueError, match=r"^ChainSVC: slack rescaling needs the loss .* got a cost matrix"):
        ChainSVC(loss=cost, rescaling="slack").fit(sequences, labels)
    with pytest.raises(ValueError, match=r"^ChainSVC: class_weight must be None .* 'slack', got"):
        ChainSVC(class_weight="balanced", rescaling="slack").fit(sequences, labels)

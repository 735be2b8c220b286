"""Mean statistics of every model against a list of all outputs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.compiling import kernel
from maxmargin.problems import Chain, SecondOrderChain, SlackRescaled, Weighted
from maxmargin.solving.decoding import marginals_all, part_shapes, score_range
from maxmargin.structures.feature_map import score, statistics_size
from maxmargin.structures.oracle import oracle_workspace
from maxmargin.structures.problem import sizes
from maxmargin.structures.questions import find_means, has_means, means_space
from maxmargin.structures.segments.oracle import SegmentsOracle
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    graph_case,
    graph_cases,
    layout,
    matching_case,
    multiclass_case,
    multiclass_cases,
    segment_case,
    segment_cases,
    tree_case,
    tree_cases,
)
from support.maps import statistics
from support.naive import Array

DENSE = ("dense",)
cases = st.one_of(
    multiclass_cases(DENSE),
    chain_cases(rows=DENSE),
    chain_cases(3, 3, rows=DENSE, order=2),
    segment_cases(rows=DENSE),
    graph_cases(("tree",), DENSE),
    tree_cases(DENSE),
)
MADE: dict[str, Any] = {
    "multiclass": multiclass_case,
    "chain": chain_case,
    "second-order": lambda seed: chain_case(seed, (1, 2, 3, 4), order=2),
    "segments": segment_case,
    "tree": graph_case,
    "heads": tree_case,
    "heads, several roots": lambda seed: tree_case(seed, single_root=False),
    "projective": lambda seed: tree_case(seed, projective=True),
    "projective, several roots": lambda seed: tree_case(seed, projective=True, single_root=False),
}


@kernel
def answer(problem, i, w, theta, work, own, mean):
    """Score an example and call the function from compiled code."""
    score(problem.map, i, w, theta)
    return find_means(problem.oracle, i, theta, work, own, mean)


def found_means(problem: Any, i: int, w: Array, run: Any = answer) -> tuple[Array, float]:
    """Return the mean statistics, as long as the longest, and the log-partition; workspace is reused."""
    size, theta = statistics_size(problem.map, i), np.zeros(sizes(problem).statistics)
    mean = np.full(size, np.nan)
    oracle = problem.oracle
    log_partition = run(problem, i, w, theta, oracle_workspace(oracle), means_space(oracle), mean)
    return np.pad(mean, (0, sizes(problem).statistics - size)), log_partition


def enumerated_means(case: Case, i: int, weights: Array, allowed: Any = None) -> tuple[Array, float]:
    """The same from all outputs, up to the score of the truth; or from those that are allowed."""
    outputs, exponents = case.data.outputs[i], -(case.data.psi[i] @ weights)
    kept = [r for r, y in enumerate(outputs) if allowed is None or allowed(y)]
    largest = exponents[kept].max()
    p = np.exp(exponents[kept] - largest)
    s = np.array([statistics(case, i, outputs[r]) for r in kept])
    return p @ s / p.sum(), float(largest + math.log(p.sum()))


@given(cases, st.integers(0, 1000), st.sampled_from([0.0, 0.1, 1.0, 30.0, 1e3, 1e6]))
def test_means_are_those_of_all_outputs(case: Case, seed: int, size: float) -> None:
    weights = size * np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])
    w = layout(case.problem, weights)
    for i, outputs in enumerate(case.data.outputs):
        mean, log_partition = enumerated_means(case, i, weights)
        found = found_means(case.problem, i, w)
        assert found[0] == pytest.approx(mean, abs=1e-10 + 1e-14 * size)
        theta = np.zeros(sizes(case.problem).statistics)
        score(case.problem.map, i, w, theta)
        true_score = theta @ statistics(case, i, outputs[case.data.truths[i]])
        assert found[1] == pytest.approx(log_partition + true_score, abs=1e-10 * (1.0 + size))
        assert (found[0] >= 0.0).all()


@given(cases, st.integers(0, 1000), st.sampled_from([0.05, 1.0, 20.0]))
def test_marginals_are_those_of_the_parts_of_all_outputs(case: Case, seed: int, t: float) -> None:
    weights = np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])
    shapes = part_shapes(case.problem)
    found = marginals_all(case.problem, layout(case.problem, weights), t, shapes)
    end, has_codes = 0, isinstance(case.problem.oracle, SegmentsOracle)
    for i, (n_parts, n_states) in enumerate(shapes):
        exponents = -(case.data.psi[i] @ weights) / t
        p = np.exp(exponents - exponents.max())
        states = np.array(case.data.outputs[i]) >> has_codes
        expected = [[p[states[:, r] == k].sum() / p.sum() for k in range(n_states)] for r in range(n_parts)]
        part = found[end : end + n_parts * n_states].reshape(n_parts, n_states)
        assert part == pytest.approx(np.array(expected), abs=1e-11)
        assert part.sum(axis=1) == pytest.approx(np.ones(n_parts), abs=1e-12)
        end += part.size
    assert end == len(found)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [0.3, 3.0, 1e3])
def test_forbidden_transitions_have_no_probability(order: int, size: float) -> None:
    case = chain_case(3, (1, 3, 4), n_labels=3, order=order)
    forbidden = np.zeros((4, 4), dtype=bool)
    forbidden[0, 1] = forbidden[2, 2] = forbidden[3, 2] = forbidden[1, 3] = True
    steps = {(0, 1), (2, 2), (3, 2), (1, 3)}
    made, features = (Chain, SecondOrderChain)[order - 1], np.concatenate(case.X)
    problem = made.for_prediction(features, np.array([0, 1, 4, 8]), 3, forbidden)
    weights = size * np.random.default_rng(0).normal(size=case.data.psi[0].shape[1])
    for i in range(3):
        mean, _ = enumerated_means(
            case, i, weights, lambda y: not steps & {*zip((3, *y), (*y, 3), strict=True)}
        )
        assert found_means(problem, i, layout(problem, weights))[0] == pytest.approx(mean, abs=1e-11)


@pytest.mark.parametrize("name", ["chain", "second-order", "segments", "tree"])
def test_wrappers_of_the_oracle_change_nothing(name: str) -> None:
    case = MADE[name](5) if name != "chain" else chain_case(5, loss="hamming")
    plain = case.problem
    w = np.random.default_rng(5).normal(size=sizes(plain).weights)
    wrapped = Weighted(plain, np.arange(1.0, 1.0 + len(case.X)))
    if name == "chain":
        wrapped = Weighted(SlackRescaled(plain), np.arange(1.0, 1.0 + len(case.X)))
    for i in range(len(case.X)):
        assert (found_means(wrapped, i, w)[0] == found_means(plain, i, w)[0]).all()


def test_the_range_of_scores_is_the_widest_of_all_words() -> None:
    case = tree_case(4, (3, 2))
    w = np.random.default_rng(4).normal(size=sizes(case.problem).weights)
    assert score_range(case.problem, w) == pytest.approx(max(np.ptp(x @ w) for x in case.X), rel=1e-12)


def test_matchings_cuts_and_messages_alone_have_no_means() -> None:
    assert all(has_means(made(0).problem.oracle) for made in MADE.values())
    without = [
        matching_case(0),
        graph_case(0, inference="cut", n_labels=2),
        graph_case(0, inference="messages"),
    ]
    assert not any(has_means(case.problem.oracle) for case in without)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({*MADE} - {"multiclass", "chain", "heads, several roots", "projective, several roots"})
)
def test_compiled_means_are_the_interpreted_ones(name: str) -> None:
    case = MADE[name](2)
    w = 3.0 * np.random.default_rng(2).normal(size=sizes(case.problem).weights)
    for i in range(len(case.X)):
        compiled, interpreted = (
            found_means(case.problem, i, w, run) for run in (answer.compiled, answer.interpreted)
        )
        assert (compiled[0] == interpreted[0]).all()
        assert compiled[1] == interpreted[1]

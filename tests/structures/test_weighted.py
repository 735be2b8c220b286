"""Weights of examples against all outputs, with losses and psi times the weights written out."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Accelerated, ExponentiatedGradient, Pairwise, Status, check_problem, solve
from maxmargin.compiling.generics import has_implementation
from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.methods.sweep import hinges
from maxmargin.problems import Multiclass, SlackRescaled, Weighted
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.structures.feature_map import score, statistics_size
from maxmargin.structures.oracle import expectation, psi
from maxmargin.structures.problem import sizes
from support import naive
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    flat,
    graph_case,
    graph_cases,
    layout,
    matching_case,
    matching_cases,
    multiclass_case,
    multiclass_cases,
    tree_case,
    tree_cases,
)
from support.counting import Counting
from support.naive import Array, Enumerated
from support.own_functions import custom

LAM = 0.1
METHOD = Accelerated(Pairwise(LAM))
some_cases = st.one_of(
    chain_cases(), multiclass_cases(), matching_cases(), tree_cases(), graph_cases(("tree", "cut"))
)


def some_weights(case: Case, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.1, 4.0, sizes(case.problem).examples)


def weighted(data: Enumerated, weights: Array) -> Enumerated:
    """Return the same outputs, with losses and psi of each example times its weight."""
    losses = [c * losses for c, losses in zip(weights, data.losses, strict=True)]
    return data._replace(losses=losses, psi=[c * psi for c, psi in zip(weights, data.psi, strict=True)])


@settings(max_examples=60)
@given(some_cases, st.integers(0, 1000))
def test_hinges_and_corners_are_multiplied(case: Case, seed: int) -> None:
    weights = some_weights(case, seed)
    problem, data = Weighted(case.problem, weights), weighted(case.data, weights)
    w = layout(case.problem, np.random.default_rng(seed).normal(size=data.psi[0].shape[1]))
    scratch = new_scratch(problem)
    index, value = (np.zeros_like(a) for a in scratch.block.corner[:2])
    for i, c in enumerate(weights):
        loss, hinge = find_corner(problem, i, w, scratch)
        margins = naive.margins(data, i, flat(case.problem, w))
        assert hinge == pytest.approx(margins.max(), abs=1e-10)
        answer = tuple(scratch.y[: len(data.outputs[i][0])].tolist())
        if answer in data.outputs[i]:  # a cut has entries for bonds besides
            assert loss == pytest.approx(data.losses[i][data.outputs[i].index(answer)])
        size = psi(case.problem.oracle, i, scratch.y, index, value)
        assert size == scratch.block.corner.size[0]
        np.testing.assert_array_equal(scratch.block.corner.where[:size], index[:size])
        np.testing.assert_array_equal(scratch.block.corner.value[:size], c * value[:size])


@given(st.one_of(chain_cases(), multiclass_cases()), st.integers(0, 1000), st.sampled_from([0.0, 0.5, 3.0]))
def test_means_are_those_of_all_outputs(case: Case, seed: int, share: float) -> None:
    weights = some_weights(case, seed)
    problem, data = Weighted(case.problem, weights), weighted(case.data, weights)
    w = np.random.default_rng(seed).normal(size=data.psi[0].shape[1])
    scratch = new_scratch(problem)
    for i in range(len(weights)):
        score(problem.map, i, layout(case.problem, w), scratch.block.theta)
        z = np.full(statistics_size(problem.map, i), np.nan)
        log_partition, loss = expectation(problem.oracle, i, scratch.block.theta, share, z, scratch.oracle)
        exponents = share * data.losses[i] - data.psi[i] @ w
        p = np.exp(exponents - exponents.max())
        assert log_partition == pytest.approx(exponents.max() + math.log(p.sum()), abs=1e-10)
        assert loss == pytest.approx(p @ data.losses[i] / p.sum(), abs=1e-10)
        # <theta, z> is the mean of <w, psi>
        assert scratch.block.theta[: len(z)] @ z == pytest.approx(p @ data.psi[i] @ w / p.sum(), abs=1e-9)


def assert_optimal(problem: Any, data: Enumerated, method: Any = METHOD, tol: float = 1e-6) -> None:
    """The certified bracket holds the minimum of the quadratic program."""
    best = naive.optimum(data, LAM)
    result = solve(problem, method, tol=tol, max_passes=3000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.primal == pytest.approx(naive.primal(data, result.weights, LAM), abs=1e-10)
    assert result.dual - 1e-9 <= best.dual <= best.primal <= result.primal + 1e-9


@pytest.mark.parametrize("case", [chain_case(3), multiclass_case(4)], ids=["chain", "multiclass"])
def test_the_optimum_is_that_of_a_quadratic_program(case: Case) -> None:
    weights = some_weights(case)
    assert_optimal(Weighted(case.problem, weights), weighted(case.data, weights))


INTERPRETED = {"matching": matching_case(5), "trees": tree_case(6), "graphs": graph_case(7)}


@pytest.mark.parametrize("name", INTERPRETED)
def test_a_plain_object_reaches_the_weighted_optimum(name: str) -> None:
    case = INTERPRETED[name]
    weights = some_weights(case)
    problem = Weighted(Counting(case.problem), weights)
    assert hinges.mode(problem) == "interpreted"
    assert_optimal(problem, weighted(case.data, weights), tol=1e-4)
    assert problem.oracle.inner.calls["argmax"] > 0


def test_three_functions_reach_the_weighted_optimum() -> None:
    case = chain_case(8, (1, 2, 2), 2)
    weights = some_weights(case)
    assert_optimal(Weighted(custom(case), weights), weighted(case.data, weights))
    assert not check_problem(Weighted(custom(case), weights), random_state=0).findings


def test_weights_multiply_expectations_and_rescaled_slacks() -> None:
    case = multiclass_case(4)
    weights = some_weights(case)
    plain = Weighted(Counting(case.problem), weights)
    assert has_implementation(plain.oracle, expectation)
    assert_optimal(plain, weighted(case.data, weights), ExponentiatedGradient(LAM), tol=0.01)
    psi = [losses[:, None] * psi for losses, psi in zip(case.data.losses, case.data.psi, strict=True)]
    rescaled = Weighted(SlackRescaled(case.problem), weights)
    assert not has_implementation(rescaled.oracle, expectation)
    assert not check_problem(rescaled, random_state=0).findings
    data = weighted(case.data._replace(psi=psi), weights)
    scratch, w = new_scratch(rescaled), np.random.default_rng(0).normal(size=data.psi[0].shape[1])
    for i in range(len(weights)):
        _, hinge = find_corner(rescaled, i, layout(case.problem, w), scratch)
        assert hinge == pytest.approx(naive.margins(data, i, w).max(), abs=1e-10)


def test_weights_of_one_change_no_bit() -> None:
    problem = chain_case(3).problem
    plain, ones = (
        solve(p, METHOD, tol=1e-4, random_state=0) for p in (problem, Weighted(problem, np.ones(4)))
    )
    np.testing.assert_array_equal(plain.w, ones.w)
    np.testing.assert_array_equal(plain.history.primal, ones.history.primal)
    np.testing.assert_array_equal(plain.history.dual, ones.history.dual)


def test_a_weight_of_two_is_the_example_twice() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(6, 2)), np.arange(6) % 3, np.array([1.0, 2, 3, 1, 2, 1])
    rows = np.repeat(np.arange(6), weights.astype(int))
    once = Weighted(Multiclass.from_arrays(X, y), weights * 6 / 10)
    several = Multiclass.from_arrays(X[rows], y[rows])
    results = [solve(p, METHOD, tol=1e-9, max_passes=5000, random_state=0) for p in (once, several)]
    assert results[0].primal == pytest.approx(results[1].primal, abs=2e-9)
    assert results[0].weights == pytest.approx(results[1].weights, abs=1e-3)


def test_predictions_do_not_depend_on_weights_of_examples() -> None:
    case = chain_case(3)
    problem = pickle.loads(pickle.dumps(Weighted(case.problem, some_weights(case))))
    w = np.random.default_rng(0).normal(size=sizes(problem).weights)
    answers = np.zeros((2, len(case.problem.oracle.labels)), dtype=np.int64)
    for each, out in zip((problem, case.problem), answers, strict=True):
        predictions.interpreted(each, w, 0, len(case.X), out, *decoding_work(each))
    np.testing.assert_array_equal(*answers)
    for found, expected in zip(problem.unpack(w), case.problem.unpack(w), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "weights must be 4 numbers, one per example, got"),
        ([[1.0]] * 4, "weights must be 4 numbers, one per example, got"),
        ("many", "weights must be 4 numbers, one per example, got"),
        (
            [1.0, 0.0, 1.0, 1.0],
            "must be finite and > 0, got 0.0 for example 1; leave out",
        ),
        ([1.0, 1.0, -2.0, 1.0], "must be finite and > 0, got -2.0 for example 2"),
        ([np.nan, 1.0, 1.0, 1.0], "must be finite and > 0, got nan for example 0"),
        ([1.0, 1.0, 1.0, np.inf], "must be finite and > 0, got inf for example 3"),
    ],
)
def test_wrong_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^Weighted: .*{message}") as caught:
        Weighted(chain_case(3).problem, weights)
    assert "\n" not in str(caught.value)


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Weighted: problem must be a Problem, got .* define sizes, score"):
        Weighted([1, 2], [1.0, 1.0])

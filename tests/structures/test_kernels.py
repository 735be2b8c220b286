"""Kernels against explicit features, with every model, wrapper and method."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import (
    BMRM,
    Accelerated,
    Averaged,
    Divided,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    Pairwise,
    Perceptron,
)
from maxmargin.problems import (
    Kernelised,
    LinearKernel,
    PolynomialKernel,
    SignConstrained,
    SlackRescaled,
    Weighted,
)
from maxmargin.structures.feature_map import (
    gram,
    inner,
    map_sizes,
    map_workspace,
    norm2,
    push,
    rebuilt,
    score,
    unpack,
)
from maxmargin.structures.kernelised import kernel_parts
from maxmargin.structures.oracle import psi
from maxmargin.structures.problem import sizes, take
from support.catalogue import Case
from support.kernels import (
    CUBE,
    LAM,
    METHODS,
    MODELS,
    N_ROWS,
    SQUARE,
    assert_same_answers,
    assert_same_run,
    kernel_problem,
    linear_case,
    monomials,
    ran,
    random_rows,
)
from support.maps import as_move
from support.naive import Array

# Those that are written for few models, or differ from these in nothing that a map sees.
OTHERS = {
    "BMRM": BMRM(LAM),
    "perceptron": Perceptron(LAM),
    "averaged perceptron": Averaged(Perceptron(LAM), "uniform"),
    "exponentiated gradient": ExponentiatedGradient(LAM),
    "extragradient": Extragradient(LAM),
    "excessive gap": ExcessiveGap(LAM),
    "averaged FW": Averaged(FrankWolfe(LAM)),
    "accelerated and divided": Accelerated(Divided(Pairwise(LAM), 2)),
}


@pytest.mark.parametrize("kernel", [SQUARE, CUBE], ids=["square", "cube"])
@pytest.mark.parametrize("model", MODELS)
def test_a_polynomial_kernel_is_its_explicit_features(model: str, kernel: PolynomialKernel) -> None:
    X = random_rows(0)
    problem, explicit = kernel_problem(model, X, kernel), linear_case(model, monomials(X, kernel)).problem
    for method in METHODS.values() if kernel is SQUARE else (METHODS["BCFW"], METHODS["accelerated"]):
        found, expected = ran(problem, method, 4), ran(explicit, method, 4)
        assert_same_run(found, expected)
        assert_same_answers(problem, found, explicit, expected)
        assert found.certified


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("model", ["multiclass", "chain"])
def test_other_methods_agree_with_features_of_a_polynomial_kernel(model: str, name: str) -> None:
    X = random_rows(1)
    problem, explicit = kernel_problem(model, X, SQUARE), linear_case(model, monomials(X, SQUARE)).problem
    found, expected = ran(problem, OTHERS[name]), ran(explicit, OTHERS[name])
    assert_same_run(found, expected)
    assert_same_answers(problem, found, explicit, expected)


@pytest.mark.parametrize("model", MODELS)
def test_linear_features_stay_beside_the_kernel(model: str) -> None:
    X, linear = random_rows(2), random_rows(3)
    problem = kernel_problem(model, X, SQUARE, linear=linear)
    explicit = linear_case(model, np.hstack([linear, monomials(X, SQUARE)])).problem
    for method in (METHODS["BCFW"], METHODS["accelerated"]):
        found, expected = ran(problem, method), ran(explicit, method)
        assert_same_run(found, expected)
        assert_same_answers(problem, found, explicit, expected)


def feature_weights(model: str, problem: Any, w: Array, X: Array) -> tuple[list[Array], list[Array]]:
    """Return the weights of features that a linear kernel stands for, X' W, and all other weights."""
    linear, W, _ = kernel_parts(problem.map, w)
    n_parts = 3 if model == "segments" else 1
    n_labels = len(unpack(problem.map.inner, linear)[0])
    by_part = np.split(W, n_parts, axis=1)
    return [(X.T @ part[:, :n_labels]).T for part in by_part], unpack(problem.map.inner, linear)[n_parts:]


@pytest.mark.parametrize("model", MODELS)
def test_a_linear_kernel_is_the_linear_model_pass_by_pass(model: str) -> None:
    X = random_rows(4)
    problem, explicit = kernel_problem(model, X, LinearKernel()), linear_case(model, X).problem
    for method in (METHODS["BCFW"], METHODS["away"], METHODS["subgradient"]):
        for passes in (1, 2, 5):
            found, expected = (ran(p, method, passes, check_every=1) for p in (problem, explicit))
            by_feature, others = feature_weights(model, problem, found.w, X)
            parts = explicit.unpack(expected.w)
            for a, b in zip([*by_feature, *others], parts, strict=True):
                np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-10)
            assert np.abs(parts[0]).max() > 1e-3
            np.testing.assert_allclose(found.history.dual, expected.history.dual, rtol=0.0, atol=1e-10)


WEIGHTS = {3: [0.5, 2.0, 1.5], 4: [0.5, 2.0, 1.5, 0.7], 7: [0.5, 2.0, 1.5, 0.7, 1.0, 3.0, 0.2]}


@pytest.mark.parametrize("model", MODELS)
def test_weights_of_examples_wrap_kernels_in_either_order(model: str) -> None:
    X, blank = random_rows(6), linear_case(model, np.zeros((N_ROWS, 0))).problem
    weights = WEIGHTS[sizes(blank).examples]
    explicit = Weighted(linear_case(model, monomials(X, SQUARE)).problem, weights)
    expected = ran(explicit, METHODS["accelerated"])
    for problem in (
        Weighted(Kernelised(blank, X, SQUARE), weights),
        Kernelised(Weighted(blank, weights), X, SQUARE),
    ):
        found = ran(problem, METHODS["accelerated"])
        assert_same_run(found, expected)
        assert_same_answers(problem, found, explicit, expected)


@pytest.mark.parametrize("model", ["multiclass", "chain", "second order", "segments", "tree"])
def test_rescaled_slacks_wrap_kernels_in_either_order(model: str) -> None:
    X, blank = random_rows(7), linear_case(model, np.zeros((N_ROWS, 0)), hamming=True).problem
    weights = WEIGHTS[sizes(blank).examples]
    explicit = SlackRescaled(linear_case(model, monomials(X, SQUARE), hamming=True).problem)
    expected, expected_weighted = (ran(p, METHODS["BCFW"]) for p in (explicit, Weighted(explicit, weights)))
    for problem in (
        SlackRescaled(Kernelised(blank, X, SQUARE)),
        Kernelised(SlackRescaled(blank), X, SQUARE),
    ):
        assert_same_run(ran(problem, METHODS["BCFW"]), expected)
        assert_same_run(ran(Weighted(problem, weights), METHODS["BCFW"]), expected_weighted)


def signs_of(model: str, n_features: int) -> Array:
    """Return which weights get signs: of the first feature, and of transitions if there are any."""
    first = n_features * np.arange(3)
    return first if model == "multiclass" else np.append(first, 3 * n_features + np.arange(6, 15, 2))


@pytest.mark.parametrize("model", ["multiclass", "chain"])
def test_signs_of_weights_hold_beside_a_kernel(model: str) -> None:
    X, linear = random_rows(8), random_rows(9, 1)
    F = np.hstack([linear, monomials(X, SQUARE)])
    explicit = SignConstrained(linear_case(model, F).problem, signs_of(model, F.shape[1]))
    problem = SignConstrained(kernel_problem(model, X, SQUARE, linear=linear), signs_of(model, 1))
    for name in ("BCFW", "accelerated", "away"):
        found, expected = ran(problem, METHODS[name]), ran(explicit, METHODS[name])
        assert_same_run(found, expected)
        assert_same_answers(problem, found, explicit, expected)
        assert found.weights[signs_of(model, 1)].min() == 0.0
        free = ran(problem._replace(map=problem.map.inner), METHODS[name])
        assert free.dual > found.dual + 1e-6 or free.weights[signs_of(model, 1)].min() < 0.0
    weighted = Weighted(problem, WEIGHTS[sizes(problem).examples])
    assert_same_run(
        ran(weighted, METHODS["BCFW"]),
        ran(Weighted(explicit, WEIGHTS[sizes(explicit).examples]), METHODS["BCFW"]),
    )


def test_signs_of_coefficients_and_kernels_around_signs_are_refused() -> None:
    problem = kernel_problem("multiclass", random_rows(0), SQUARE, linear=random_rows(1))
    with pytest.raises(
        ValueError, match=r"^SignConstrained: .* got coefficients of the kernel; leave them out\.$"
    ):
        SignConstrained(problem, [0, 6])
    signed = SignConstrained(linear_case("multiclass", random_rows(1)).problem, [0])
    with pytest.raises(
        TypeError, match=r"^Kernelised: problem must be of .* got a problem with a ProximalMap\.$"
    ):
        Kernelised(signed, random_rows(0), SQUARE)


def outputs_of(case: Case, i: int) -> list[Array]:
    return [np.array(y) for y in case.data.outputs[i]]


def random_moves(case: Case, problem: Any, rng: np.random.Generator) -> list[tuple[int, Array]]:
    """Return a random combination of the corners of each example."""
    size, found = sizes(problem), []
    where, value = np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts)
    for i in range(size.examples):
        delta = np.zeros(size.statistics)
        for y in outputs_of(case, i)[::3] or outputs_of(case, i):
            count = psi(problem.oracle, i, y, where, value)
            np.add.at(delta, where[:count], rng.normal() * value[:count])
        found.append((i, delta))
    return found


def pushed(problem: Any, moves: list[tuple[int, Array]], scales: Array) -> Array:
    w = np.zeros(sizes(problem).weights)
    for (i, delta), scale in zip(moves, scales, strict=True):
        push(problem.map, i, as_move(delta), scale, w, map_workspace(problem.map))
    return w


@pytest.mark.parametrize("model", MODELS)
def test_every_function_of_the_map_is_that_of_explicit_features(model: str) -> None:
    X, rng = random_rows(10), np.random.default_rng(0)
    case = linear_case(model, monomials(X, SQUARE))
    problem, explicit = kernel_problem(model, X, SQUARE), case.problem
    moves = random_moves(case, problem, rng)
    u, v = (rng.normal(size=len(moves)) for _ in range(2))
    (a, b), (c, d) = ([pushed(p, moves, s) for s in (u, v)] for p in (problem, explicit))
    assert inner(problem.map, a, b) == pytest.approx(inner(explicit.map, c, d), rel=1e-10)
    assert inner(problem.map, a, b) == pytest.approx(inner(problem.map, b, a), rel=1e-10)
    for i, delta in moves:
        theta, image = (
            np.full((2, sizes(problem).statistics), np.nan),
            np.full(sizes(problem).statistics, np.nan),
        )
        score(problem.map, i, a, theta[0])
        score(explicit.map, i, c, theta[1])
        where = np.flatnonzero(~np.isnan(theta[1]))
        np.testing.assert_allclose(theta[0, where], theta[1, where], atol=1e-10)
        move = as_move(delta)
        alone = pushed(problem, [(i, delta)], np.ones(1))
        score(problem.map, i, alone, theta[0])
        gram(problem.map, i, move, image, map_workspace(problem.map))
        np.testing.assert_allclose(image[where], theta[0, where], atol=1e-10)
        length = norm2(problem.map, i, move, image, map_workspace(problem.map))
        assert length == pytest.approx(inner(problem.map, alone, alone), rel=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_the_matrix_times_the_coefficients(model: str) -> None:
    X = random_rows(11)
    problem = kernel_problem(model, X, CUBE, linear=random_rows(12))
    w, K = ran(problem, METHODS["accelerated"]).w, (0.5 * X @ X.T + 1.0) ** 3
    _, W, G = kernel_parts(problem.map, w)
    assert np.abs(W).max() > 0.01
    np.testing.assert_allclose(G, (K @ W).T, atol=1e-11)
    spoilt = w.copy()
    kernel_parts(problem.map, spoilt)[2][:] += 0.1
    np.testing.assert_array_equal(rebuilt(problem.map, spoilt), rebuilt(problem.map, w))
    np.testing.assert_allclose(rebuilt(problem.map, w), w, atol=1e-12)
    coefficients = problem.unpack(w)[-1]
    np.testing.assert_array_equal(coefficients, W.T)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(MODELS)), st.integers(1, 4))
def test_dual_objectives_follow_from_the_coefficients(seed: int, model: str, degree: int) -> None:
    """The squared length of the weights is tr W' K W, and no more of the result is needed for it."""
    X, kernel = random_rows(seed % 1000, 3), PolynomialKernel(degree, 0.3, 0.5)
    problem = kernel_problem(model, X, kernel)
    result = ran(problem, METHODS["BCFW"], 2)
    linear, W, _ = kernel_parts(problem.map, result.w)
    expected = float(linear @ linear + np.trace(W.T @ (0.3 * X @ X.T + 0.5) ** degree @ W))
    assert inner(problem.map, result.w, result.w) == pytest.approx(expected, rel=1e-9)
    assert map_sizes(problem.map).weights == len(linear) + 2 * W.size


def test_examples_that_are_taken_keep_their_kernel() -> None:
    X = random_rows(14)
    problem, explicit = kernel_problem("chain", X, SQUARE), linear_case("chain", monomials(X, SQUARE)).problem
    for chosen in ([2, 0], [3, 1, 1], [2, 3, 0, 1]):
        a, b = take(problem, chosen), take(explicit, chosen)
        found, expected = ran(a, METHODS["accelerated"]), ran(b, METHODS["accelerated"])
        assert_same_run(found, expected)
        assert_same_answers(a, found, b, expected)

"""A million steps with a kernel: what rounding does to the scores, and that certificates do without it."""

import numpy as np
import pytest

from maxmargin import BlockFrankWolfe
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Chain, GaussianKernel, Kernelised, PrecomputedKernel
from maxmargin.solving import objective
from maxmargin.solving.driver import solve
from maxmargin.structures.feature_map import rebuilt
from maxmargin.structures.kernelised import kernel_parts

LAM = 0.05
X = np.random.default_rng(0).normal(size=(12, 2))
K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))


def chains() -> Chain:
    y = np.random.default_rng(1).integers(3, size=12)
    return Chain.from_encoded(np.zeros((12, 0)), np.array([0, 3, 4, 8, 12]), y, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [None, 0])
def test_scores_after_a_million_steps_are_those_of_their_coefficients(kept: int | None) -> None:
    problem = Kernelised(chains(), X, GaussianKernel(0.5), cache_size=200.0 if kept is None else 0.0)
    method = BlockFrankWolfe(LAM)
    state, rng, steps = start(method, problem), np.random.default_rng(2), 1_000_000
    for _ in range(10):
        state = advance(method, state, problem, rng.integers(4, size=steps // 10))
    w = point(method, state, problem).w
    _, W, G = kernel_parts(problem.map, w)
    drift = np.abs(G - (K @ W).T).max()
    assert 0.0 < drift < 1e-9
    fresh = rebuilt(problem.map, w)
    assert np.abs(kernel_parts(problem.map, fresh)[2] - (K @ W).T).max() < 1e-12
    assert objective.primal(problem, fresh, LAM) == pytest.approx(objective.primal(problem, w, LAM), abs=1e-9)


@pytest.mark.slow
def test_a_result_is_certified_at_rebuilt_weights() -> None:
    """The objective of the result is that of its coefficients, found with the matrix alone."""
    problem = Kernelised(chains(), K, PrecomputedKernel(True))
    result = solve(
        problem, BlockFrankWolfe(LAM), tol=0.0, max_passes=25_000, check_every=5_000, random_state=0
    )
    np.testing.assert_array_equal(rebuilt(problem.map, result.w), result.w)
    assert result.history.oracle_calls[-1] >= 100_000
    linear, W, G = kernel_parts(problem.map, result.w)
    assert np.abs(G - (K @ W).T).max() < 1e-12
    norm2 = linear @ linear + np.trace(W.T @ K @ W)
    expected = 0.5 * LAM * norm2 + objective.hinge_losses(problem, result.w).mean()
    assert result.primal == pytest.approx(expected, abs=1e-12)
    assert result.dual <= result.primal
    assert result.primal == pytest.approx(result.history.primal.min(), abs=1e-9)

"""The paper's convergence theorems, with curvatures, optima and expectations computed exactly.

Expectations are means over all sequences of blocks, so no bound is tested up to chance.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from maxmargin import Predefined
from maxmargin.product import (
    BlockConditionalGradient,
    Box,
    ConditionalGradient,
    L1Ball,
    Product,
    ProductProblem,
    Quadratic,
    Simplex,
)
from maxmargin.solving.objective import certificate
from support.naive import Array
from support.products import all_runs, block_curvature, quadratic_optimum, vertices, worst_allowed
from support.runs import RULES

N_STEPS = 8


class Setting(NamedTuple):
    """A quadratic on a simplex and a second polytope, also with exact oracles."""

    problem: ProductProblem
    exact: ProductProblem
    curvatures: tuple[float, float]
    optimum: float


@cache
def setting(second: str, nu: float = 1.0, delta: float = 0.0) -> Setting:
    rng = np.random.default_rng(4)
    B = rng.normal(size=(4, 5))
    Q, c = B.T @ B, 3.0 * rng.normal(size=5)
    corners = vertices("simplex", 3), vertices(second, 2)
    where = slice(0, 3), slice(3, 5)
    curvatures = tuple(block_curvature(Q, *pair) for pair in zip(where, corners, strict=True))
    sets = Simplex(3), L1Ball(2) if second == "l1" else Box([-1.0, -1.0], 1.0)
    claims = zip(sets, corners, curvatures, strict=True)
    poor = [worst_allowed(s, v, nu, delta * C) for s, v, C in claims]
    problem, exact = (ProductProblem(Quadratic(Q, c), Product(blocks)) for blocks in (poor, sets))
    return Setting(exact if (nu, delta) == (1.0, 0.0) else problem, exact, curvatures, least(Q, c, corners))


def least(Q: Array, c: Array, corners: tuple[Array, Array]) -> float:
    """Return the optimum over the weights of the vertices."""
    V = np.zeros((5, sum(map(len, corners))))
    V[:3, :3], V[3:, 3:] = corners[0].T, corners[1].T
    m = V.shape[1]
    sums = np.repeat(np.eye(2), [3, m - 3], axis=1)
    return quadratic_optimum(V.T @ Q @ V, V.T @ c, -np.eye(m), np.zeros(m), sums, np.ones(2))


def mean_errors(method: ConditionalGradient, given: Setting) -> tuple[Array, Array]:
    """Return the expected error and the expected gap of each iterate, or average of iterates."""
    errors, gaps = [], []
    for states in all_runs(method, given.problem, N_STEPS):
        found = [certificate(method, state, given.exact, True) for state in states]
        errors.append(np.mean([f.primal for f in found]) - given.optimum)
        gaps.append(np.mean([f.primal - f.dual for f in found]))
    return np.array(errors), np.array(gaps)


QUALITIES = [(1.0, 0.0), (0.4, 0.0), (1.0, 0.7), (0.5, 0.5)]


@pytest.mark.parametrize(("nu", "delta"), QUALITIES)
@pytest.mark.parametrize("second", ["l1", "box"])
@pytest.mark.parametrize("rule", RULES)
def test_blocks_converge_as_theorem_C_1_says(rule: str, second: str, nu: float, delta: float) -> None:
    """Theorems C.1 and C.3: E h_k <= 2n/(nu k + 2n) C, and some E g_k <= 6n/(nu (K + 1)) C."""
    given, n = setting(second, nu, delta), 2
    step = Predefined(nu) if rule == "predefined" else RULES[rule]
    errors, gaps = mean_errors(BlockConditionalGradient(step), given)
    C, k = sum(given.curvatures) * (1 + delta) / nu + errors[0], np.arange(N_STEPS + 1)
    assert errors.min() >= -1e-8
    assert (errors <= gaps + 1e-8).all()
    assert (errors <= 2 * n / (nu * k + 2 * n) * C).all()
    assert (np.minimum.accumulate(gaps) <= 6 * n / (nu * (k + 1)) * C).all()


@pytest.mark.parametrize(("nu", "delta"), QUALITIES)
@pytest.mark.parametrize("rule", RULES)
def test_weighted_averages_converge_as_theorem_C_3_says(rule: str, nu: float, delta: float) -> None:
    """Theorem C.3: the gap of a quadratic is convex, so the bound holds for each weighted average."""
    given, n = setting("l1", nu, delta), 2
    step = Predefined(nu) if rule == "predefined" else RULES[rule]
    errors, gaps = mean_errors(BlockConditionalGradient(step, "weighted"), given)
    C, K = sum(given.curvatures) * (1 + delta) / nu + errors[0], np.arange(N_STEPS + 1)
    assert (gaps <= 6 * n / (nu * (K + 1)) * C).all()


@pytest.mark.parametrize(("nu", "delta"), QUALITIES)
@pytest.mark.parametrize("rule", RULES)
def test_one_set_converges_in_every_run(rule: str, nu: float, delta: float) -> None:
    """With n = 1 the bounds hold for every run; without a multiplicative error h_0 is not in them."""
    rng = np.random.default_rng(7)
    B, c, corners = rng.normal(size=(4, 5)), rng.normal(size=5), vertices("l1", 5)
    Q = B.T @ B
    C = block_curvature(Q, slice(0, 5), corners)
    domain = L1Ball(5) if (nu, delta) == (1.0, 0.0) else worst_allowed(L1Ball(5), corners, nu, delta * C)
    problem, exact = (ProductProblem(Quadratic(Q, c), d) for d in (domain, L1Ball(5)))
    V = corners.T
    best = quadratic_optimum(V.T @ Q @ V, V.T @ c, -np.eye(10), np.zeros(10), np.ones((1, 10)), np.ones(1))
    method = ConditionalGradient(Predefined(nu) if rule == "predefined" else RULES[rule])
    state, gaps = method.start(problem), []
    h_0 = certificate(method, state, exact, True).primal - best
    total = C * (1 + delta) / nu + (h_0 if nu < 1.0 else 0.0)
    for k in range(1, 60):
        method.advance(state, problem, np.zeros(0, dtype=int))
        found = certificate(method, state, exact, True)
        gaps.append(found.primal - found.dual)
        assert -1e-8 <= found.primal - best <= 2 / (nu * k + 2) * total
        assert min(gaps) <= 6 / (nu * (k + 1)) * total


@pytest.mark.parametrize(("nu", "delta"), QUALITIES)
def test_certificates_of_approximate_oracles_hold(nu: float, delta: float) -> None:
    """The reported gap is at least that of exact oracles, whatever the oracle keeps back."""
    given, method = setting("box", nu, delta), BlockConditionalGradient()
    state = method.start(given.problem)
    for k in range(60):
        ours, true = (certificate(method, state, p, True) for p in (given.problem, given.exact))
        assert ours.primal == pytest.approx(true.primal, abs=1e-12)
        assert ours.dual <= true.dual + 1e-9
        assert ours.dual <= given.optimum + 1e-8
        method.advance(state, given.problem, np.array([k % 2]))
    assert ours.primal - ours.dual < 0.3 * sum(given.curvatures)

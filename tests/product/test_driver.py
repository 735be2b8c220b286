"""The driver on products: stopping, callbacks, sampling, warm starts, interrupts, and what it refuses."""

import signal
from typing import Any

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, BrokenOracle, Predefined, ProgressLine, Status, solve
from maxmargin.methods.rules import ByGap
from maxmargin.problems import Multiclass
from maxmargin.product import (
    Approximate,
    BlockConditionalGradient,
    ConditionalGradient,
    L2Ball,
    LeastSquares,
    Oracle,
    Product,
    ProductProblem,
    Quadratic,
    Simplex,
)
from maxmargin.solving.resume import UnfitStart
from support.naive import Array

METHODS = {
    "batch": ConditionalGradient(),
    "blocks": BlockConditionalGradient(),
    "average": BlockConditionalGradient(average="weighted"),
}
N = 5


def problem_of(domain: Any = None, seed: int = 0) -> ProductProblem:
    A, b = np.random.default_rng(seed).normal(size=(12, 3 * N)), np.ones(12)
    return ProductProblem(LeastSquares(A, b), domain or Product([Simplex(3)] * N))


@pytest.mark.parametrize("name", METHODS)
def test_a_result_has_its_gap_and_its_best_value(name: str) -> None:
    problem, seen = problem_of(), []
    result = solve(problem, METHODS[name], tol=0.05, max_passes=500, callbacks=[seen.append], random_state=0)
    assert result.status is Status.CONVERGED
    assert result.gap == result.primal - result.dual <= 0.05
    assert result.primal == result.history.primal.min() == problem.objective.value(result.w)
    assert result.dual == result.history.dual.max()
    assert (result.weights == result.w).all()
    assert [block.shape for block in problem.blocks(result.w)] == [(3,)] * N
    assert len(seen) == result.history.passes[-1] == seen[-1].oracle_calls / N


def test_limits_and_callbacks_end_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    problem = problem_of()
    assert solve(problem, METHODS["blocks"], tol=0.0, max_passes=3).status is Status.MAX_PASSES
    stopped = solve(problem, METHODS["blocks"], tol=0.0, callbacks=[lambda p: False, ProgressLine()])
    assert stopped.status is Status.STOPPED
    assert stopped.history.oracle_calls.tolist() == [N]
    assert solve(problem, METHODS["batch"], tol=0.0, time_limit=1e-9).status is Status.TIME_LIMIT


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = (
        solve(problem_of(), METHODS["blocks"], tol=0.0, max_passes=6, random_state=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.w, again.w)
    assert (first.w != other.w).any()


def test_sampling_by_gap_records_the_gaps_of_blocks() -> None:
    """Visits record the gaps of their blocks."""
    problem, method = problem_of(), BlockConditionalGradient()
    assert solve(problem, method, tol=0.05, max_passes=500, sampling="gap", random_state=0).gap <= 0.05
    tree = np.zeros(16)
    state = method.advance(method.start(problem), problem, np.array([3]))
    gradient = problem.objective.gradient(state.at.x, slice(0, 3 * N))
    gaps = [x @ g - g.min() for x, g in zip(*map(problem.blocks, (state.at.x, gradient)), strict=True)]
    i = int(np.argmax(gaps))
    method.advance(state, problem, ByGap(np.array([i]), np.array([0.5]), tree))
    assert tree[8 + i] == tree[1] == pytest.approx(gaps[i], abs=1e-12)
    assert gaps[i] > 0.1
    method.advance(state, problem, ByGap(np.array([-1]), np.array([0.5]), tree))  # drawn by gap: the only one
    assert state.steps == 3
    assert np.flatnonzero(tree[8:]).tolist() in ([i], [])


@pytest.mark.parametrize("name", METHODS)
def test_a_run_can_be_continued(name: str) -> None:
    problem, method = problem_of(), METHODS[name]
    options: dict[str, Any] = {"tol": 0.0, "check_every": 1}
    half = solve(problem, method, max_passes=4, random_state=0, **options)
    rest = solve(problem, method, max_passes=4, random_state=1, start=half, **options)
    assert rest.stopped.state.steps == 2 * half.stopped.state.steps
    assert rest.history.primal[0] == half.primal
    assert rest.dual >= half.dual
    assert rest.primal <= half.primal
    if name == "batch":  # which draws nothing
        whole = solve(problem, method, max_passes=8, **options)
        assert rest.w == pytest.approx(whole.w, abs=1e-9)
    assert solve(problem, method, tol=half.gap, start=half).history.oracle_calls.tolist() == [0]


def test_a_run_can_start_at_a_point() -> None:
    x0 = np.tile([0.2, 0.5, 0.3], N)
    problem = ProductProblem(Quadratic(np.eye(3 * N), x0), Product([Simplex(3)] * N), x0)
    result = solve(problem, METHODS["blocks"], tol=1e-9, max_passes=1)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.w, x0, atol=1e-12)


def test_interrupts_end_a_run_with_bounds() -> None:
    """The first Ctrl-C ends the run after the piece of a pass under way, with a certificate."""
    calls = []

    def lmo(gradient: Array) -> Array:
        calls.append(1)
        if len(calls) == 23:
            signal.raise_signal(signal.SIGINT)
        return np.eye(3)[int(gradient.argmin())]

    problem = problem_of(Product([Oracle(lmo, 3)] * N))
    result = solve(problem, METHODS["blocks"], tol=0.0, max_passes=10**6)
    assert result.status is Status.INTERRUPTED
    assert result.primal == problem.objective.value(result.w)
    assert result.dual <= solve(problem_of(), METHODS["blocks"], tol=0.01).primal


class Mistaken:
    """|x|^2 / 2 with a gradient that is too short."""

    def value(self, x: Array) -> float:
        return 0.5 * float(x @ x)

    def gradient(self, x: Array, where: slice) -> Array:
        return 0.01 * x[where]


def test_wrong_oracles_and_functions_are_found() -> None:
    worst = Oracle(lambda g: np.eye(3)[int(g.argmax())], 3)
    with pytest.raises(BrokenOracle, match=r"block \d has a negative or undefined gap, -"):
        solve(problem_of(Product([worst] * N)), METHODS["blocks"])
    flat = Oracle(lambda g: np.zeros((2, 1)), 2)
    with pytest.raises(ValueError, match=r"must return an array of shape \(2,\), got \(2, 1\)"):
        solve(ProductProblem(Quadratic(np.eye(2), [1, 1]), flat, np.zeros(2)), METHODS["blocks"])
    with pytest.raises(BrokenOracle, match="the lower bound must be at most the objective"):
        solve(
            ProductProblem(Mistaken(), L2Ball(2)), ConditionalGradient(Predefined()), tol=0.0, check_every=1
        )
    undefined = Quadratic(np.eye(2))
    undefined.c[0] = np.nan
    with pytest.raises(BrokenOracle, match="undefined gap, nan"):
        solve(ProductProblem(undefined, L2Ball(2)), METHODS["batch"])


POOR = Approximate(Simplex(3), lambda g, x, error: Simplex(3).lmo(g), nu=0.5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: solve(problem_of(), BlockFrankWolfe(0.1)),
            TypeError,
            "method must be ConditionalGradient.. or BlockConditionalGradient.. of maxmargin.product",
        ),
        (lambda: Averaged(METHODS["blocks"]), ValueError, "inner must be .*got BlockConditionalGradient"),
        (lambda: solve(problem_of(), 3), TypeError, "got 3"),
        (
            lambda: solve(Multiclass.from_arrays(np.eye(2), [0, 1]), METHODS["blocks"]),
            TypeError,
            "one for structural SVMs.*got BlockConditionalGradient, which is for a ProductProblem",
        ),
        (lambda: ConditionalGradient(0.5), ValueError, "step must be LineSearch.. or Predefined.., got 0.5"),
        (
            lambda: ConditionalGradient(average="last"),
            ValueError,
            "average must be one of 'weighted'.*'last'",
        ),
        (
            lambda: solve(problem_of(Product([POOR] * N)), BlockConditionalGradient(Predefined())),
            ValueError,
            r"step must be Predefined\(0.5\) for this oracle, got Predefined\(nu=1.0\)",
        ),
        (
            lambda: problem_of(Simplex(2)),
            ValueError,
            "objective must be a function of 2 numbers, got one of 15",
        ),
        (lambda: ProductProblem(sum, Simplex(2)), TypeError, "objective must have value.* and gradient"),
        (lambda: ProductProblem(Quadratic(np.eye(2)), Simplex(2), [2, 0]), ValueError, "x0 must be a point"),
        (lambda: Quadratic([[1, 2], [0, 1]]), ValueError, "Q must be symmetric, got a list; use"),
        (lambda: Quadratic([1, 2]), ValueError, "Q must be a matrix of finite numbers"),
        (lambda: LeastSquares(np.eye(2), [1]), ValueError, "b must be 2 finite numbers, got a list"),
        (
            lambda: solve(problem_of(), METHODS["batch"], start=solve(problem_of(), METHODS["batch"], tol=9)),
            UnfitStart,
            "start must come from the same problem",
        ),
    ],
)
def test_wrong_problems_are_refused(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

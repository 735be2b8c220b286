"""Frank-Wolfe on general sets, compared with copt, another implementation in Python.

    pip install copt && python benchmarks/product.py [--rounds 7]

On one set both make the same steps: the largest difference of their iterates, and the ratio of their seconds,
copt's divided by ours. On products, passes and seconds until the gap is a hundredth of that after one pass of
block steps; copt moves all blocks at once. Its oracle for simplices answers for all of them in three lines
of NumPy, which a loop over blocks cannot match; that for nuclear norm balls asks one after another. Without
copt, our own seconds stand alone.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _measure import Figure, interleaved, print_figures
from maxmargin import LineSearch, Predefined, Result, solve
from maxmargin.product import (
    BlockConditionalGradient,
    ConditionalGradient,
    Domain,
    L1Ball,
    LeastSquares,
    NuclearNormBall,
    Product,
    ProductProblem,
    Simplex,
)
from maxmargin.runtime.arrays import FloatArray

N_STEPS = 100
RULES = {"line search": LineSearch(), "2/(k + 2)": Predefined()}
N_BLOCKS, BLOCK_SIZE = 200, 10


def least_squares(size: int, rows: int, seed: int = 0) -> LeastSquares:
    """Return a function whose minimum over the ball of radius one is at its boundary."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, size)) / np.sqrt(rows)
    return LeastSquares(A, A @ rng.laplace(size=size) * 5.0 / np.sqrt(size))


def ours(problem: ProductProblem, step: Any) -> FloatArray:
    """Return the iterate after N_STEPS steps, certified once."""
    result = solve(problem, ConditionalGradient(step), tol=0.0, max_passes=N_STEPS, check_every=N_STEPS)
    return result.stopped.state.at.x  # type: ignore[attr-defined, no-any-return]


def theirs(problem: ProductProblem, lmo: Callable[..., Any], rule: str, **options: Any) -> Any:
    """Run copt from the same starting point."""
    import copt

    A, b = problem.objective.matrix, problem.objective.b  # type: ignore[attr-defined]

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        rest = A @ x - b
        return 0.5 * float(rest @ rest), A.T @ rest

    def exact(known: dict[str, Any]) -> float:
        image = A @ known["update_direction"]
        return min(float(known["certificate"]) / float(image @ image), 1.0)

    step = exact if rule == "line search" else "sublinear"
    options = {"max_iter": N_STEPS, "tol": 0.0, **options}
    start = problem.x0.copy()
    return copt.minimize_frank_wolfe(
        value_and_gradient, start, lmo, jac=True, step=step, lipschitz=1.0, **options
    )


def same_steps(name: str, domain: Domain, constraint: Any, rounds: int) -> list[Figure]:
    """Return the difference of iterates and the ratio of seconds on one set."""
    problem, figures = ProductProblem(least_squares(domain.size, 400), domain), []
    for rule, step in RULES.items():
        tasks: dict[str, Callable[[], Any]] = {"ours": lambda step=step: ours(problem, step)}
        if constraint is not None:
            tasks["theirs"] = lambda rule=rule: theirs(problem, constraint.lmo, rule)
            apart = np.abs(ours(problem, step) - theirs(problem, constraint.lmo, rule).x).max()
            figures.append(Figure(f"{name}, {rule}: 1e12 x difference of iterates", 1e12 * float(apart)))
        times = interleaved(tasks, rounds)
        figures.append(Figure(f"{name}, {rule}: {N_STEPS} steps", 1e3 * times["ours"].median, "ms"))
        if constraint is not None:
            figures.append(
                Figure(f"{name}, {rule}: copt / ours", times["theirs"].ratio_to(times["ours"]), "x")
            )
    return figures


def all_simplices(u: FloatArray, x: FloatArray, active_set: object) -> tuple[FloatArray, None, None, float]:
    """Return copt's direction for a product of simplices, without a loop."""
    direction, best = -x, u.reshape(N_BLOCKS, BLOCK_SIZE).argmax(axis=1)
    direction[np.arange(N_BLOCKS) * BLOCK_SIZE + best] += 1.0
    return direction, None, None, 1.0


def in_turn(domain: Domain) -> Callable[..., Any]:
    """Return copt's direction for any set, by its oracle."""
    return lambda u, x, active_set: (domain.lmo(-u) - x, None, None, 1.0)


def to_a_gap(
    name: str, domain: Product, lmo: Callable[..., Any], has_copt: bool, rounds: int
) -> list[Figure]:
    """Return passes, and the ratio of the seconds, to the same gap."""
    problem, method = ProductProblem(least_squares(domain.size, 400), domain), BlockConditionalGradient()
    first = solve(problem, method, tol=0.0, max_passes=1, random_state=0)
    tol = float(first.history.gap[0]) / 100.0

    def blocks() -> Result:
        return solve(problem, method, tol=tol, max_passes=10**5, random_state=0)

    def batches() -> Any:
        return theirs(problem, lmo, "line search", tol=tol, max_iter=10**6)

    times = interleaved({"ours": blocks, "theirs": batches} if has_copt else {"ours": blocks}, rounds)
    figures = [
        Figure(f"{name}, gap / 100: block steps", 1e3 * times["ours"].median, "ms"),
        Figure(f"{name}, gap / 100: passes of block steps", float(blocks().history.passes[-1])),
    ]
    if has_copt:
        figures.append(Figure(f"{name}, gap / 100: passes of copt", float(batches().nit)))
        figures.append(
            Figure(f"{name}, gap / 100: copt / ours", times["theirs"].ratio_to(times["ours"]), "x")
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    try:
        from copt.constraint import L1Ball as TheirL1Ball
        from copt.constraint import TraceBall

        constraints = [TheirL1Ball(1.0), TraceBall(1.0, (40, 50))]
    except ImportError:
        print("copt is not installed: no comparison")
        constraints = [None, None]
    print(f"load of the machine {os.getloadavg()[0]:.1f}\n")
    with threadpool_limits(1):  # threads of BLAS wait for each other on a busy machine
        figures = same_steps("l1 ball", L1Ball(2000), constraints[0], rounds)
        figures += same_steps("nuclear norm ball", NuclearNormBall((40, 50)), constraints[1], rounds)
        simplices = Product([Simplex(BLOCK_SIZE)] * N_BLOCKS)
        figures += to_a_gap("200 simplices", simplices, all_simplices, constraints[0] is not None, rounds)
        balls = Product([NuclearNormBall((12, 12))] * 20)
        figures += to_a_gap(
            "20 nuclear norm balls", balls, in_turn(balls), constraints[0] is not None, rounds
        )
    print_figures(figures)


if __name__ == "__main__":
    main()

"""Frank-Wolfe on general sets, compared with copt, another implementation in Python.

    pip install copt && python benchmarks/product.py [--rounds 7]

On one set both make the same steps: the largest difference of their iterates, and the ratio of their seconds,
in which copt's iterations are divided by those of `ConditionalGradient`. On a product of simplices the
seconds until the gap is a hundredth of the first one, again copt's divided by ours; copt has no block steps,
and gets an oracle of all simplices at once, written in NumPy. Without copt, our own seconds stand alone.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _measure import Figure, interleaved, print_figures
from maxmargin import LineSearch, Predefined, Result, solve
from maxmargin.arrays import FloatArray
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


def to_a_gap(has_copt: bool, rounds: int) -> list[Figure]:
    """Return the ratio of the seconds to the same gap on a product of simplices."""
    m = N_BLOCKS * BLOCK_SIZE
    problem = ProductProblem(least_squares(m, 400), Product([Simplex(BLOCK_SIZE)] * N_BLOCKS))

    def blocks(tol: float) -> Result:
        return solve(problem, BlockConditionalGradient(), tol=tol, max_passes=10**5, random_state=0)

    first = solve(problem, BlockConditionalGradient(), tol=0.0, max_passes=1, random_state=0)
    tol = float(first.history.gap[0]) / 100.0

    def lmo(u: FloatArray, x: FloatArray, active_set: object) -> tuple[FloatArray, None, None, float]:
        direction, best = -x, u.reshape(N_BLOCKS, BLOCK_SIZE).argmax(axis=1)
        direction[np.arange(N_BLOCKS) * BLOCK_SIZE + best] += 1.0
        return direction, None, None, 1.0

    tasks: dict[str, Callable[[], Any]] = {"ours": lambda: blocks(tol)}
    if has_copt:
        tasks["theirs"] = lambda: theirs(problem, lmo, "line search", tol=tol, max_iter=10**6)
    times = interleaved(tasks, rounds)
    name = f"{N_BLOCKS} simplices, gap / 100"
    figures = [
        Figure(f"{name}: block steps", 1e3 * times["ours"].median, "ms"),
        Figure(f"{name}: passes of block steps", float(blocks(tol).history.passes[-1])),
    ]
    if has_copt:
        figures.append(
            Figure(
                f"{name}: iterations of copt",
                float(theirs(problem, lmo, "line search", tol=tol, max_iter=10**6).nit),
            )
        )
        figures.append(Figure(f"{name}: copt / ours", times["theirs"].ratio_to(times["ours"]), "x"))
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
        figures += to_a_gap(constraints[0] is not None, rounds)
    print_figures(figures)


if __name__ == "__main__":
    main()

"""Block-coordinate Frank-Wolfe with line search (Algorithm 4)."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import BlockFrankWolfe


class Solver(MethodSolver):
    """Block-coordinate Frank-Wolfe with line search (Algorithm 4)."""

    name = "BCFW"

    def method(self, lam: float) -> Any:
        return BlockFrankWolfe(lam=lam)

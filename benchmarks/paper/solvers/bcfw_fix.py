"""Block-coordinate Frank-Wolfe with step sizes 2n / (k + 2n)."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import BlockFrankWolfe, Predefined


class Solver(MethodSolver):
    """Block-coordinate Frank-Wolfe with step sizes 2n / (k + 2n)."""

    name = "BCFW-fix"

    def method(self, lam: float) -> Any:
        return BlockFrankWolfe(lam=lam, step=Predefined())

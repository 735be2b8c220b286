"""The weighted average of block-coordinate Frank-Wolfe's iterates, with step sizes 2n / (k + 2n)."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, BlockFrankWolfe, Predefined


class Solver(MethodSolver):
    """The weighted average of block-coordinate Frank-Wolfe's iterates, with step sizes 2n / (k + 2n)."""

    name = "BCFW-fix-wavg"

    def method(self, lam: float) -> Any:
        return Averaged(BlockFrankWolfe(lam=lam, step=Predefined()), "weighted")

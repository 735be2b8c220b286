"""The weighted average of block-coordinate Frank-Wolfe's iterates."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, BlockFrankWolfe


class Solver(MethodSolver):
    """The weighted average of block-coordinate Frank-Wolfe's iterates."""

    name = "BCFW-wavg"

    def method(self, lam: float) -> Any:
        return Averaged(BlockFrankWolfe(lam=lam), "weighted")

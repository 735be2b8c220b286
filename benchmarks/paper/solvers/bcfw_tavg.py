"""The average of block-coordinate Frank-Wolfe's iterates since the last power of two."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, BlockFrankWolfe


class Solver(MethodSolver):
    """The average of block-coordinate Frank-Wolfe's iterates since the last power of two."""

    name = "BCFW-tavg"

    def method(self, lam: float) -> Any:
        return Averaged(BlockFrankWolfe(lam=lam), "suffix")

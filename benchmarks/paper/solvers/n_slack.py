"""The n-slack cutting plane method (Tsochantaridis 2005)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import NSlackCuttingPlane


class Solver(BatchSolver):
    """The n-slack cutting plane method (Tsochantaridis 2005)."""

    name = "n-slack cutting plane"
    cost = 10.0

    def method(self, lam: float) -> Any:
        return NSlackCuttingPlane(lam=lam)

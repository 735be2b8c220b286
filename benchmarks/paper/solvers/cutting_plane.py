"""The 1-slack cutting plane method (Joachims 2009)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import CuttingPlane


class Solver(BatchSolver):
    """The 1-slack cutting plane method (Joachims 2009)."""

    name = "cutting plane"

    def method(self, lam: float) -> Any:
        return CuttingPlane(lam=lam)

"""Batch Frank-Wolfe with line search (Algorithm 2)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import FrankWolfe


class Solver(BatchSolver):
    """Batch Frank-Wolfe with line search (Algorithm 2)."""

    name = "FW"

    def method(self, lam: float) -> Any:
        return FrankWolfe(lam=lam)

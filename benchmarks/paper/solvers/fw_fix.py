"""Batch Frank-Wolfe with step sizes 2 / (k + 2)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import FrankWolfe, Predefined


class Solver(BatchSolver):
    """Batch Frank-Wolfe with step sizes 2 / (k + 2)."""

    name = "FW-fix"

    def method(self, lam: float) -> Any:
        return FrankWolfe(lam=lam, step=Predefined())

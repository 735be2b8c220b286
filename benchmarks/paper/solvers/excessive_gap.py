"""Excessive gap reduction (Zhang 2011)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import ExcessiveGap


class Solver(BatchSolver):
    """Excessive gap reduction (Zhang 2011)."""

    name = "excessive gap"
    cost = 20.0

    def method(self, lam: float) -> Any:
        return ExcessiveGap(lam=lam)

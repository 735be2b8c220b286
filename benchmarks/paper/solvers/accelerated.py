"""Accelerated pairwise steps: the default of this project's estimators."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Accelerated, Pairwise


class Solver(MethodSolver):
    """Accelerated pairwise steps: the default of this project's estimators."""

    name = "accelerated"
    sampling = "permutation"

    def method(self, lam: float) -> Any:
        return Accelerated(Pairwise(lam=lam))

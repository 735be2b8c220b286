"""Stochastic subgradient with Pegasos' step sizes."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Subgradient


class Solver(MethodSolver):
    """Stochastic subgradient with Pegasos' step sizes."""

    name = "SSG"

    def method(self, lam: float) -> Any:
        return Subgradient(lam=lam)

"""The weighted average of the stochastic subgradient method's iterates."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, Subgradient


class Solver(MethodSolver):
    """The weighted average of the stochastic subgradient method's iterates."""

    name = "SSG-wavg"

    def method(self, lam: float) -> Any:
        return Averaged(Subgradient(lam=lam), "weighted")

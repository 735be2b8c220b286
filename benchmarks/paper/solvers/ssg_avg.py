"""The uniform average of the stochastic subgradient method's iterates."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, Subgradient


class Solver(MethodSolver):
    """The uniform average of the stochastic subgradient method's iterates."""

    name = "SSG-avg"

    def method(self, lam: float) -> Any:
        return Averaged(Subgradient(lam=lam), "uniform")

"""The average of the stochastic subgradient method's iterates since the last power of two."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, Subgradient


class Solver(MethodSolver):
    """The average of the stochastic subgradient method's iterates since the last power of two."""

    name = "SSG-tavg"

    def method(self, lam: float) -> Any:
        return Averaged(Subgradient(lam=lam), "suffix")

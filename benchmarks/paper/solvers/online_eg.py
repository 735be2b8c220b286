"""Online exponentiated gradient (Collins 2008)."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import ExponentiatedGradient


class Solver(MethodSolver):
    """Online exponentiated gradient (Collins 2008)."""

    name = "online-EG"
    cost = 30.0

    def method(self, lam: float) -> Any:
        return ExponentiatedGradient(lam=lam)

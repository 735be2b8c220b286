"""The dual extragradient method (Taskar 2006)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import Extragradient


class Solver(BatchSolver):
    """The dual extragradient method (Taskar 2006)."""

    name = "extragradient"
    cost = 20.0

    def method(self, lam: float) -> Any:
        return Extragradient(lam=lam)

"""The bundle method for regularised risk minimisation (Teo 2010)."""

from typing import Any

from benchmark_utils.solver import BatchSolver
from maxmargin import BMRM


class Solver(BatchSolver):
    """The bundle method for regularised risk minimisation (Teo 2010)."""

    name = "BMRM"

    def method(self, lam: float) -> Any:
        return BMRM(lam=lam)

"""The averaged structured perceptron (Collins 2002), which knows no lam."""

from typing import Any

from benchmark_utils.solver import MethodSolver
from maxmargin import Averaged, Perceptron


class Solver(MethodSolver):
    """The averaged structured perceptron (Collins 2002), which knows no lam."""

    name = "perceptron"
    sampling = "permutation"

    def method(self, lam: float) -> Any:
        return Averaged(Perceptron(lam=lam), "uniform")

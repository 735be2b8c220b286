"""python-crfsuite's averaged perceptron."""

import pycrfsuite  # noqa: F401  (benchopt skips this solver where it is not installed)

from benchmark_utils.solver import CrfSuiteSolver


class Solver(CrfSuiteSolver):
    """python-crfsuite's averaged perceptron."""

    name = "crfsuite-ap"
    algorithm = "ap"

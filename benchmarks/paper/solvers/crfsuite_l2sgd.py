"""python-crfsuite's conditional random field, trained by stochastic gradients."""

import pycrfsuite  # noqa: F401  (benchopt skips this solver where it is not installed)

from benchmark_utils.solver import CrfSuiteSolver


class Solver(CrfSuiteSolver):
    """python-crfsuite's conditional random field, trained by stochastic gradients."""

    name = "crfsuite-l2sgd"
    algorithm = "l2sgd"

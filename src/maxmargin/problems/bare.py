"""Problems in the form that loops are compiled for: without example weights and without rescaled slacks.

Loops that call the max oracle apply both themselves. So they are compiled once, for problems with weights
and without, whether margins or slacks are rescaled.
"""

from typing import NamedTuple

from maxmargin.arrays import FloatArray
from maxmargin.compiling.addresses import can_call_addresses
from maxmargin.problems.oracles.slack import SlackRescaledOracle
from maxmargin.problems.oracles.weighted import NO_WEIGHTS, WeightedOracle
from maxmargin.problems.problem import AnyProblem


class Bare(NamedTuple):
    """A problem, and what loops must apply to its oracle.

    Attributes
    ----------
    problem : Problem
    weights : array
        Weights of the examples; empty if there are none, or if the problem has them.
    rescales : bool
        Whether loops have to rescale slacks, because the problem does not.
    solves : bool
        Whether loops solve blocks exactly, and do not only search for the best output.
    """

    problem: AnyProblem
    weights: FloatArray = NO_WEIGHTS
    rescales: bool = False
    solves: bool = False


def bared(problem: AnyProblem) -> Bare:
    """Return the problem without example weights and without rescaled slacks.

    Where loops are interpreted, the problem itself rescales slacks.
    """
    oracle, weights, rescales = problem.oracle, NO_WEIGHTS, False
    if isinstance(oracle, WeightedOracle):
        weights, oracle = oracle.weights, oracle.inner
    if isinstance(oracle, SlackRescaledOracle) and can_call_addresses(problem):
        oracle, rescales = oracle.inner, True
    return Bare(problem if oracle is problem.oracle else problem._replace(oracle=oracle), weights, rescales)

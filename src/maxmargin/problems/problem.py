"""A problem: a feature map and an oracle, which meet in output space.

The layout of the statistics is the contract between the two halves: the oracle writes psi in this layout,
and the map turns it into weights. They share nothing else. So example weights and slack rescaling wrap the
oracle, constraints on weights wrap the map, and the order of such wrappers does not matter.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import FloatArray, IntArray, check_memory, plain
from maxmargin.compiling import python_generic
from maxmargin.problems.feature_map import MAP_REQUIRED, is_metric, map_sizes, unpack
from maxmargin.problems.halves import has_implementation, method_name
from maxmargin.problems.oracle import ORACLE_REQUIRED, is_bounded, output_sizes
from maxmargin.problems.subsets import take_half
from maxmargin.wording import described

MapT = TypeVar("MapT", covariant=True)
OracleT = TypeVar("OracleT", covariant=True)

# Kernels index the entries of output space by uint32.
_MOST_STATISTICS = 2**32


class Problem(NamedTuple, Generic[MapT, OracleT]):
    """A problem to solve: a feature map and an oracle.

    Attributes
    ----------
    map : named tuple or PlainMap
        See `maxmargin.problems.feature_map`.
    oracle : named tuple or PlainOracle
        See `maxmargin.problems.oracle`.
    """

    map: MapT
    oracle: OracleT

    def unpack(self, w: FloatArray) -> tuple[FloatArray, ...]:
        """Return the weights in the shapes that users expect, as views of ``w``."""
        parts: tuple[FloatArray, ...] = unpack(self.map, w)
        return parts


AnyProblem = Problem[object, object]


class Sizes(NamedTuple):
    """The sizes of a problem.

    Attributes
    ----------
    examples : int
        n, the number of training examples.
    weights : int
        Length of the vector ``w`` that methods keep.
    statistics : int
        Length of the longest vector in output space.
    output : int
        Length of the longest output.
    parts : int
        Largest number of entries that `psi` writes.
    """

    examples: int
    weights: int
    statistics: int
    output: int
    parts: int


def as_problem(subject: object) -> AnyProblem:
    """Return ``subject`` if it is a problem, else the problem whose two halves are this object."""
    return subject if isinstance(subject, Problem) else Problem(subject, subject)


def sizes(problem: AnyProblem) -> Sizes:
    """Return the sizes of a problem."""
    of_map, of_outputs = map_sizes(problem.map), output_sizes(problem.oracle)
    return Sizes(of_map.examples, of_map.weights, of_map.statistics, of_outputs.output, of_outputs.parts)


@python_generic
def unproved(problem: AnyProblem) -> str | None:
    """Return why the gap of a problem is not a guaranteed bound, or None if it is one."""
    if not is_bounded(problem.oracle):
        return "the oracle is approximate, without a bound on its shortfall"
    return None if is_metric(problem.map) else "the kernel is not known to be positive semidefinite"


def missing_functions(problem: AnyProblem) -> list[str]:
    """Return the names of required functions that a problem does not define."""
    halves = ((problem.map, MAP_REQUIRED), (problem.oracle, ORACLE_REQUIRED))
    missing = [
        f.__name__ if isinstance(half, tuple) else method_name(f)
        for half, required in halves
        for f in required
        if not has_implementation(half, f)
    ]
    return list(dict.fromkeys(missing))


def checked_pair(problem: object, owner: str) -> AnyProblem:
    """Return the problem as a pair; raise unless it defines all required functions."""
    pair = as_problem(problem)
    missing = missing_functions(pair)
    if missing:
        raise TypeError(
            f"{owner}: problem must be a Problem, got {described(problem)}, which does not define "
            f"{', '.join(missing)}."
        )
    return pair


def take(problem: Problem[MapT, OracleT], indices: Sequence[int] | IntArray) -> Problem[MapT, OracleT]:
    """Return the problem of some of the examples, sharing all features.

    Parameters
    ----------
    problem : Problem
    indices : sequence of int
        The examples, in their new order.

    Returns
    -------
    Problem
        Of the same classes, so no new kernels are compiled. A half written as a Python object must define
        ``take(indices)``.
    """
    pair, chosen = checked_pair(problem, "take"), np.asarray(indices)
    n = map_sizes(pair.map).examples
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
        raise ValueError(f"take: indices must be one or more ints, got {described(indices)}.")
    outside = chosen[(chosen < 0) | (chosen >= n)]
    if len(outside):
        raise ValueError(f"take: indices must be from 0 to {n - 1}, got {outside[0]}.")
    chosen = plain(chosen, np.int64)
    of_map = take_half(pair.map, chosen)
    return Problem(of_map, of_map if pair.map is pair.oracle else take_half(pair.oracle, chosen))


def checked_weights(problem: AnyProblem, w: ArrayLike) -> FloatArray:
    """Return a weight vector for kernels; raise unless it has one entry per weight."""
    array, n = np.asarray(w), map_sizes(problem.map).weights
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{type(problem.map).__name__}: w must be {n} real numbers, one per weight, got {described(w)} "
            f"of dtype {array.dtype}; use the w of a result for a problem of the same features and labels."
        )
    found: FloatArray = plain(w, np.float64)
    return found


def fitting(problem: Problem[MapT, OracleT], owner: str) -> Problem[MapT, OracleT]:
    """Return the problem; raise unless kernels can index its statistics and its weights fit into memory."""
    size = map_sizes(problem.map)
    if size.statistics > _MOST_STATISTICS:
        raise ValueError(
            f"{owner}: the largest example must have at most 2**32 statistics, got {size.statistics}; split "
            "it, or use fewer labels."
        )
    check_memory(8 * size.weights, f"{owner}: {size.weights} weights", "use fewer features or labels")
    return problem

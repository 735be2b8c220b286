"""Wrappers of problems: example weights, slack rescaling and sign constraints.

`Weighted` and `SlackRescaled` wrap the oracle of a problem, `SignConstrained` and `Kernelised` (in `kernels`)
wrap its map. So their order does not matter, except that slacks are rescaled before examples are weighted,
and that kernels come before signs.
"""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.problems.feature_map import map_sizes
from maxmargin.problems.halves import has_implementation
from maxmargin.problems.maps.kernelised import KernelisedMap
from maxmargin.problems.maps.signs import SignedMap, layout_order
from maxmargin.problems.oracle import expectation
from maxmargin.problems.oracles.slack import SlackRescaledOracle, check_rescalable
from maxmargin.problems.oracles.weighted import WeightedOracle
from maxmargin.problems.problem import Problem, as_problem, checked_pair
from maxmargin.wording import described


def Weighted(problem: object, weights: object) -> Problem[object, WeightedOracle]:
    """Return the problem with example weights.

    Parameters
    ----------
    problem : Problem
        Any problem, including one with rescaled slacks or a user's own.
    weights : array of shape (n,)
        Factor of the hinge of each example, > 0. Leave out examples that should not count.
    """
    phi, oracle = checked_pair(problem, "Weighted")
    size = map_sizes(phi)
    statistics = size.statistics if has_implementation(oracle, expectation) else 0
    return Problem(phi, WeightedOracle(oracle, _checked_weights(weights, size.examples), statistics))


def _checked_weights(weights: object, n: int) -> FloatArray:
    """Return the weights as an array; raise unless they are n positive numbers."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,):
        raise ValueError(f"Weighted: weights must be {n} numbers, one per example, got {described(weights)}.")
    bad = np.flatnonzero(~((array > 0.0) & (array < np.inf)))
    if len(bad):
        raise ValueError(
            f"Weighted: weights must be finite and > 0, got {array[bad[0]]} for example {bad[0]}; leave out "
            "examples that are not to count."
        )
    return array


def SlackRescaled(problem: object) -> Problem[object, SlackRescaledOracle]:
    """Return the problem with its slacks rescaled instead of its margins.

    Parameters
    ----------
    problem : Problem
        A problem of `Multiclass`; or of `Chain`, `SecondOrderChain`, `Segments` or `Graph` without cycles,
        with a Hamming loss. The oracle is exact for rescaled slacks, too.
    """
    phi, oracle = as_problem(problem)
    check_rescalable(oracle, "SlackRescaled")
    return Problem(phi, SlackRescaledOracle(oracle))


def SignConstrained(problem: object, nonnegative: object) -> Problem[SignedMap, object]:
    """Return the problem with some weights constrained to be at least zero.

    Parameters
    ----------
    problem : Problem
        Any problem.
    nonnegative : array of ints, or of bools with one entry per weight
        Which weights, in the order of ``Result.weights``; not coefficients of a kernel.
    """
    phi, oracle = checked_pair(problem, "SignConstrained")
    base, known = (phi.inner, phi.where) if isinstance(phi, SignedMap) else (phi, np.zeros(0, dtype=np.int64))
    where = np.union1d(known, _chosen_places(base, nonnegative))
    return Problem(SignedMap(base, where), oracle)


def _chosen_places(phi: object, nonnegative: object) -> IntArray:
    """Return the indices of the chosen weights in the layout of the map."""
    order, chosen = layout_order(phi), np.asarray(nonnegative)
    if chosen.dtype == np.bool_ and chosen.shape == order.shape:
        chosen = np.flatnonzero(chosen)
    valid = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or chosen.size == 0)
    if not valid or ((chosen < 0) | (chosen >= len(order))).any():
        raise ValueError(
            f"SignConstrained: nonnegative must be indices of weights, ints from 0 to {len(order) - 1}, or "
            f"{len(order)} bools, got {described(nonnegative)}."
        )
    places: IntArray = order[np.unique(chosen.astype(np.int64))]
    _check_linear(phi, places)
    return places


def _check_linear(phi: object, places: IntArray) -> None:
    """Raise if coefficients of a kernel are among the weights: projecting them does not project scores."""
    if isinstance(phi, KernelisedMap) and (places >= map_sizes(phi.inner).weights).any():
        raise ValueError(
            "SignConstrained: nonnegative must be weights of parts without kernel, got coefficients of the "
            "kernel; leave them out."
        )

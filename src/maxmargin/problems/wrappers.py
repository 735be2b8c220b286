"""Wrappers of problems: example weights, slack rescaling, sign constraints and kernels.

`Weighted` and `SlackRescaled` wrap the oracle of a problem, `SignConstrained` and `Kernelised` wrap its map.
So their order does not matter, except that slacks are rescaled before examples are weighted, and that kernels
come before signs.
"""

from numbers import Real

import numpy as np

from maxmargin.arrays import Features, FloatArray, IntArray
from maxmargin.problems import feature_map
from maxmargin.problems.feature_map import has_implementation, map_sizes
from maxmargin.problems.maps.kernelised import KernelisedMap, kernelised_map
from maxmargin.problems.maps.signs import SignedMap, layout_order
from maxmargin.problems.oracle import expectation
from maxmargin.problems.oracles.slack import SlackRescaledOracle, check_rescalable
from maxmargin.problems.oracles.weighted import WeightedOracle
from maxmargin.problems.problem import Problem, as_problem, checked_pair
from maxmargin.rows.kernel_functions import KernelFunction, PrecomputedKernel
from maxmargin.wording import described, shown


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


def Kernelised(
    problem: object,
    features: Features,
    kernel: KernelFunction | PrecomputedKernel,
    *,
    cache_size: float = 200.0,
    dtype: type[np.floating] = np.float64,
) -> Problem[KernelisedMap, object]:
    """Return the problem with a kernel of its rows: of examples, tokens or nodes.

    Parameters
    ----------
    problem : Problem
        A problem of `Multiclass`, `Chain`, `SecondOrderChain`, `Segments` or `Graph`. Its own features stay
        linear, in addition to the kernel; for none, give ``from_encoded`` an array of shape (n_rows, 0).
    features : array or sparse matrix of shape (n_rows, n_features)
        The arguments of the kernel; for a `PrecomputedKernel`, its matrix of shape (n_rows, n_rows).
    kernel : GaussianKernel, PolynomialKernel, LinearKernel, SigmoidKernel or PrecomputedKernel
    cache_size : float
        Megabytes for the kernel matrix. If it needs more, some of its columns are kept, and the others are
        computed when they are needed; the answer is the same.
    dtype : float64 or float32
        Type of the entries of the kernel matrix.
    """
    phi, oracle = checked_pair(problem, "Kernelised")
    layout = feature_map.row_layout(phi)
    _check_kernel(kernel, dtype, cache_size)
    return Problem(kernelised_map(phi, layout, features, kernel, cache_size, dtype), oracle)


def _check_kernel(kernel: object, dtype: object, cache_size: object) -> None:
    if not isinstance(kernel, KernelFunction | PrecomputedKernel):
        raise TypeError(
            "Kernelised: kernel must be a GaussianKernel, PolynomialKernel, LinearKernel, SigmoidKernel or "
            f"PrecomputedKernel, got {described(kernel)}."
        )
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"Kernelised: dtype must be float64 or float32, got {shown(dtype)}.")
    if not (isinstance(cache_size, Real) and float(cache_size) >= 0.0):
        raise ValueError(f"Kernelised: cache_size must be a number >= 0, got {shown(cache_size)}.")

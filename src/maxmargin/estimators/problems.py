"""The seam between estimators and problems: what estimators need beyond builders, wrappers and `unpack`."""

from typing import cast

import numpy as np

from maxmargin.runtime.arrays import Features, FloatArray
from maxmargin.structures.custom.encode import Joint
from maxmargin.structures.custom.model import IdentityMap
from maxmargin.structures.custom.oracle import CustomOracle
from maxmargin.structures.feature_map import RowLayout, row_layout, unpack
from maxmargin.structures.kernel_functions import KernelFunction, PrecomputedKernel
from maxmargin.structures.kernelised import KernelisedMap, kernel_parts, kernelised_map
from maxmargin.structures.problem import AnyProblem, sizes
from maxmargin.structures.problem import Problem as PairProblem
from maxmargin.structures.segments.oracle import SegmentsOracle
from maxmargin.structures.sequences.oracle import ChainOracle, SecondOrderOracle
from maxmargin.structures.slack import check_rescalable
from maxmargin.structures.wrappers import SignConstrained, SlackRescaled

Problem = AnyProblem
CustomProblem = PairProblem[IdentityMap, CustomOracle]
SequenceProblem = PairProblem[object, ChainOracle | SecondOrderOracle | SegmentsOracle]


def n_weights(problem: Problem) -> int:
    """Return the number of weights in the layout of the problem."""
    return int(sizes(problem).weights)


def joint_features(problem: CustomProblem) -> Joint:
    """Return how the features of a user's function are encoded."""
    return problem.oracle.joint


def kernelised(
    problem: Problem,
    features: Features,
    function: KernelFunction | PrecomputedKernel,
    cache_size: float,
    dtype: type[np.floating],
    by_example: bool,
    owner: str,
) -> Problem:
    """Return the problem with a kernel of its rows, or of examples whose rows all have the same features."""
    layout: RowLayout = row_layout(problem.map)
    if by_example:
        n, per_example = len(layout.spans), int(layout.spans[0, 1] - layout.spans[0, 0])
        numbers = np.arange(n)
        layout = RowLayout(np.column_stack([numbers, numbers + 1]), layout.head, per_example * layout.width)
    phi = kernelised_map(problem.map, layout, features, function, cache_size, dtype, owner)
    return PairProblem(phi, problem.oracle)


def kernel_weights(problem: Problem, w: FloatArray) -> tuple[FloatArray, tuple[FloatArray, ...], FloatArray]:
    """Return the weights without kernel, as a vector and by meaning, and the coefficients of all rows."""
    phi = cast("KernelisedMap", problem.map)
    linear, coefficients, _ = kernel_parts(phi, w)
    return linear, unpack(phi.inner, linear), coefficients


def rescaled(problem: Problem, rescaling: str, owner: str) -> Problem:
    """Return the problem with margins or slacks rescaled; raise if it has no oracle for the latter."""
    if rescaling == "margin":
        return problem
    check_rescalable(problem.oracle, owner)
    return SlackRescaled(problem)


def signed(problem: Problem, nonnegative: object) -> Problem:
    """Return the problem with some weights kept from being negative, or as it is if there are none."""
    return problem if nonnegative is None else SignConstrained(problem, nonnegative)

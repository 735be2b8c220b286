"""The seam between estimators and problems: what estimators need beyond builders, wrappers and `unpack`."""

from typing import cast

import numpy as np

from maxmargin.arrays import Features, FloatArray
from maxmargin.encoding.joint import Joint
from maxmargin.problems import SignConstrained, SlackRescaled
from maxmargin.problems._labels import check_several as check_several
from maxmargin.problems.feature_map import RowLayout, row_layout, unpack
from maxmargin.problems.kernels import kernelised_map
from maxmargin.problems.maps.identity import IdentityMap
from maxmargin.problems.maps.kernelised import KernelisedMap, kernel_parts
from maxmargin.problems.oracles._k_best import KBest as KBest
from maxmargin.problems.oracles._k_best import KBestSegments as KBestSegments
from maxmargin.problems.oracles._k_best import check_k as check_k
from maxmargin.problems.oracles._k_best import k_best_outputs as k_best_outputs
from maxmargin.problems.oracles._means import has_means as has_means
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.custom import CustomOracle
from maxmargin.problems.oracles.custom import checked_loss as checked_loss
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.oracles.segments import SegmentsOracle
from maxmargin.problems.oracles.slack import check_rescalable
from maxmargin.problems.problem import AnyProblem, sizes
from maxmargin.problems.problem import Problem as PairProblem
from maxmargin.problems.segments import check_choice as check_choice
from maxmargin.rows.kernel_functions import KernelFunction, PrecomputedKernel

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

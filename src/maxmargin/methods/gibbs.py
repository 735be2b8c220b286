r"""Passes of the expectation oracle: means over all examples under Gibbs distributions.

Dual variables of the form

.. math:: \alpha_i(y) \propto \exp \left( c \, L_i(y) - \langle v, \psi_i(y) \rangle \right)

follow from one weight vector v and a number c. So a method that moves all examples needs no state for each.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import kernel
from maxmargin.compiling.generics import has_implementation
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import undefined
from maxmargin.runtime.arrays import FloatArray, aligned_zeros
from maxmargin.runtime.limits import Pace
from maxmargin.structures.feature_map import add_entry, map_sizes, push, reset, score, statistics_size
from maxmargin.structures.oracle import expectation
from maxmargin.structures.problem import AnyProblem


class GibbsMean(NamedTuple):
    r"""Means over examples.

    Attributes
    ----------
    g : array
        :math:`\frac1n \sum_i \Phi_i z_i`, which is :math:`\lambda A \alpha`.
    ell : float
        Dual loss, :math:`b^\top \alpha`.
    log_partition : float
    """

    g: FloatArray
    ell: float
    log_partition: float


def gibbs_mean(problem: AnyProblem, v: FloatArray, share: float) -> GibbsMean:
    """Return the means under the distributions of v and c = ``share``; costs one oracle call per example.

    `OutOfTime` is raised at the deadline.
    """
    size, scratch, sums = map_sizes(problem.map), new_scratch(problem), (0.0, 0.0)
    n, g, z = size.examples, aligned_zeros(size.weights), aligned_zeros(size.statistics)
    for first, stop in Pace().pieces(0, n):
        *sums, broken = _sum_means(problem, v, float(share), 1.0 / n, first, stop, *sums, g, z, scratch)
        if broken >= 0:
            raise undefined(problem, broken)
    log_partition, ell = sums
    return GibbsMean(g, ell / n, log_partition / n)


@kernel
def _sum_means(problem, v, share, scale, first, stop, log_partitions, losses, g, z, scratch):
    """``g += scale * sum_i Phi_i z_i``; return both sums, plus those of the examples; a broken one or -1."""
    work = scratch.block
    for i in range(first, stop):
        size = statistics_size(problem.map, i)
        score(problem.map, i, v, work.theta)
        log_partition, loss = expectation(problem.oracle, i, work.theta, share, z[:size], scratch.oracle)
        if not (log_partition < np.inf and loss < np.inf):
            return log_partitions, losses, i
        for p in range(size):
            add_entry(work.move, p, z[p])
        push(problem.map, i, work.move, scale, g, work.map)
        reset(work.move)
        log_partitions += log_partition
        losses += loss
    return log_partitions, losses, -1


def check_expectations(method: object, problem: AnyProblem) -> None:
    """Raise unless the problem has the expectation oracle that the method needs."""
    if not has_implementation(problem.oracle, expectation):
        raise TypeError(
            f"solve: {type(method).__name__} needs a problem with an expectation oracle, Multiclass or "
            f"Chain, got {type(problem.oracle).__name__}; use BlockFrankWolfe or Pairwise."
        )

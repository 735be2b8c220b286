r"""Passes of the expectation oracle: the mean of all examples' corners under Gibbs distributions.

All dual variables of the form

.. math:: \alpha_i(y) \propto \exp \left( c \, L_i(y) - \langle v, \psi_i(y) \rangle \right)

follow from one vector v, as long as the weights, and one number c: a method that moves all examples at once
needs no state of each.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import kernel
from maxmargin.methods._move import add_entry, reset
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import undefined
from maxmargin.problems._protocol import (
    expectation,
    provides,
    push,
    score,
    sizes,
    statistics_size,
)


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


def gibbs_mean(problem: Any, v: FloatArray, share: float) -> GibbsMean:
    """Return the means under the distributions of v and c = ``share``, by one oracle call per example."""
    size = sizes(problem)
    n, g, z = size.examples, aligned_zeros(size.weights), aligned_zeros(size.statistics)
    log_partition, ell, broken = _sum_means(problem, v, float(share), 1.0 / n, g, z, new_scratch(problem))
    if broken >= 0:
        raise undefined(problem, broken)
    return GibbsMean(g, ell / n, log_partition / n)


@kernel
def _sum_means(problem, v, share, scale, g, z, scratch):
    """``g += scale * sum_i Phi_i z_i``; return sums of log-partitions and losses, a broken example or -1."""
    log_partitions, losses = 0.0, 0.0
    for i in range(sizes(problem).examples):
        score(problem, i, v, scratch.theta)
        log_partition, loss = expectation(problem, i, scratch.theta, share, z, scratch.oracle)
        if not (log_partition < np.inf and loss < np.inf):
            return log_partitions, losses, i
        for p in range(statistics_size(problem, i)):
            add_entry(scratch.move, p, z[p])
        push(problem, i, scratch.move, scale, g, scratch.oracle)
        reset(scratch.move)
        log_partitions += log_partition
        losses += loss
    return log_partitions, losses, -1


def check_expectations(method: Any, problem: Any) -> None:
    """Raise unless the problem has the expectation oracle that the method is made of."""
    if not provides(problem, expectation):
        raise TypeError(
            f"solve: {type(method).__name__} needs a problem with an expectation oracle, Multiclass or "
            f"Chain, got {type(problem).__name__}; use BlockFrankWolfe or Pairwise."
        )

"""Step sizes: how far to go towards the corner that the oracle returned."""

from typing import NamedTuple

from maxmargin._compile import generic, helper


class LineSearch(NamedTuple):
    """The step that increases the dual most (the paper's Algorithms 2 and 4)."""


class Predefined(NamedTuple):
    """The step 2 m / (k + 2 m) for m blocks after k steps (Algorithms 1 and 3); blind to the data."""


@generic
def step_size(rule, gap, curvature, k, n_blocks):
    r"""Return :math:`\gamma \in [0, 1]`, for a direction with this gap and curvature."""
    raise NotImplementedError


@step_size.register(LineSearch)
def _(rule, gap, curvature, k, n_blocks):
    if gap <= 0.0:
        return 0.0
    if gap >= curvature:
        return 1.0
    return gap / curvature


@step_size.register(Predefined)
def _(rule, gap, curvature, k, n_blocks):
    return 2.0 * n_blocks / (k + 2.0 * n_blocks)


@helper
def dual_gain(gamma, gap, curvature):
    r"""What the dual gains by a step :math:`\gamma`: :math:`\gamma g - \gamma^2 c / 2`."""
    return gamma * (gap - 0.5 * gamma * curvature)

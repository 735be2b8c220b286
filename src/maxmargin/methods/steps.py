"""Step sizes towards the corner that the oracle returned."""

from numbers import Real
from typing import NamedTuple

from maxmargin.compiling import generic, helper
from maxmargin.runtime.wording import shown


class LineSearch(NamedTuple):
    """Exact line search: the step that increases the dual most (the paper's Algorithms 2 and 4)."""


class _Predefined(NamedTuple):
    nu: float


class Predefined(_Predefined):
    """The step 2 m / (nu k + 2 m) for m blocks after k steps (Algorithms 1 and 3), independent of the data.

    Parameters
    ----------
    nu : float
        Multiplicative quality of the oracle: the fraction of a block's gap that it guarantees, 1 if exact.
        Steps towards answers of an approximate oracle must be longer (the paper's appendix).
    """

    __slots__ = ()

    def __new__(cls, nu: float = 1.0) -> "Predefined":
        if not (isinstance(nu, Real) and 0.0 < float(nu) <= 1.0):
            raise ValueError(f"Predefined: nu must be a number > 0 and at most 1, got {shown(nu)}.")
        return super().__new__(cls, float(nu))


@generic
def step_size(rule, gap, curvature, k, n_blocks):
    r"""Return :math:`\gamma \in [0, 1]` for a direction with this gap and curvature."""
    raise NotImplementedError


@step_size.register(LineSearch)
def line_search_step_size(rule, gap, curvature, k, n_blocks):
    if gap <= 0.0:
        return 0.0
    if gap >= curvature:
        return 1.0
    return gap / curvature


@step_size.register(Predefined)
def predefined_step_size(rule, gap, curvature, k, n_blocks):
    return 2.0 * n_blocks / (rule.nu * k + 2.0 * n_blocks)


@helper
def dual_gain(gamma, gap, curvature):
    r"""Return the increase of the dual by a step :math:`\gamma`: :math:`\gamma g - \gamma^2 c / 2`."""
    return gamma * (gap - 0.5 * gamma * curvature)

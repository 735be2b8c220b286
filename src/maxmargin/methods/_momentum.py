"""The numbers of an accelerated run: the share of each snapshot in the mean, and how kappa adapts."""

from typing import NamedTuple

from maxmargin.methods._walks import share_since

_BAND = 0.15, 0.5  # kappa stays while the smoothed step is between these
_SMOOTHING = 0.4
_FACTOR = 1.5
_BEFORE_RAISING, _BEFORE_LOWERING = 3, 5  # passes before kappa may change again


class Momentum(NamedTuple):
    """The numbers of an accelerated run.

    Attributes
    ----------
    kappa : float
    passes : int
        Passes made.
    visits : int
        Blocks visited in this pass.
    time : float
        When the last snapshot was taken, in passes; zero if there is none.
    ell : float
        Dual loss of the mean dual point.
    step : float
        Smoothed step of its line search.
    falling : bool
        Whether it became smaller in the last pass.
    since : int
        Passes since kappa changed.
    """

    kappa: float
    passes: int = 0
    visits: int = 0
    time: float = 0.0
    ell: float = 0.0
    step: float = 1.0
    falling: bool = False
    since: int = 0


def snapshot_share(momentum: Momentum, n: int) -> float:
    """Return the share of a snapshot taken now: that of the time since the last one, as kernels count it."""
    return float(share_since(round(momentum.time * n), momentum.passes * n + momentum.visits))


def noted(momentum: Momentum, n: int) -> Momentum:
    """Record that a snapshot is taken now."""
    return momentum._replace(time=momentum.passes + momentum.visits / n)


def adapted_kappa(momentum: Momentum, gamma: float) -> Momentum:
    """Record the step of the line search; raise or lower kappa if the smoothed step has left its band.

    Far from the optimum, steps are small but growing, which is no reason to lower kappa.
    """
    low, high = _BAND
    step, since = momentum.step + _SMOOTHING * (gamma - momentum.step), momentum.since + 1
    momentum = momentum._replace(step=step, falling=step < momentum.step, since=since)
    if step > high and since > _BEFORE_RAISING:
        return momentum._replace(kappa=momentum.kappa * _FACTOR, since=0)
    if step < low and momentum.falling and since > _BEFORE_LOWERING:
        return momentum._replace(kappa=momentum.kappa / _FACTOR, since=0)
    return momentum

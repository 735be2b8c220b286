"""The stretches of accelerated passes: how long they are, and what kernels do where they begin."""

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.methods import protocol
from maxmargin.methods._momentum import Momentum
from maxmargin.methods._walks import affordable_walks
from maxmargin.methods.alone import Alone
from maxmargin.methods.sweep import is_swept
from maxmargin.problems.feature_map import is_projected, map_sizes
from maxmargin.problems.problem import AnyProblem

if TYPE_CHECKING:
    from maxmargin.methods.accelerated import Accelerated, AcceleratedState

_IN_KERNELS = 512  # largest number of snapshots in a pass, where kernels take them
# Stretches, each of which ends with a snapshot: the smallest number in the first pass, and the largest where
# kernels take snapshots between them, too, and where they do not; 1/k of these in pass k.
_EARLY = 8, 16, 64
_SNAPSHOTS = 8  # largest number of stretches in later passes, where kernels take no snapshots


def next_stretch(method: "Accelerated", momentum: Momentum, problem: AnyProblem) -> int:
    """Return the number of visits in this pass at which the next stretch begins."""
    length = stretch_length(method, momentum, problem)
    return min(map_sizes(problem.map).examples, (momentum.visits // length + 1) * length)


def stretch_length(method: "Accelerated", momentum: Momentum, problem: AnyProblem) -> int:
    """Return the number of visits in a stretch of this pass."""
    _, few, many = _EARLY
    part = momentum.passes + 1
    most = few // part if has_stretches_inside(method, problem) else max(many // part, _SNAPSHOTS)
    return _length(method, part, affordable_walks(problem, most), problem)


def _length(method: "Accelerated", part: int, walks: int, problem: AnyProblem) -> int:
    """Return the number of visits in a stretch of pass ``part``, which can afford ``walks`` stretches."""
    n = map_sizes(problem.map).examples
    length, grain = -(-n // max(walks, min(_EARLY[0] // part, n))), protocol.grain(method, problem)
    return -(-length // grain) * grain


def stretches_of(method: "Accelerated", state: "AcceleratedState", problem: AnyProblem) -> Alone:
    """Return what kernels do in the rest of this pass, at the beginnings of stretches and between them."""
    momentum, n = state.momentum, map_sizes(problem.map).examples
    part, begin = momentum.passes + 1, momentum.passes * n
    length = _length(method, part, affordable_walks(problem, _EARLY[1] // part), problem)
    last = [round(momentum.time * n), begin + momentum.visits // length * length]
    alone = Alone(
        before=begin + momentum.visits,
        every=-(-n // affordable_walks(problem, _IN_KERNELS)),
        stretch=length,
        end=begin + n,
        examples=n,
        last=np.array(last, dtype=np.int64),
        mean=state.mean,
        kappa=np.array([momentum.kappa]),
    )
    if method.kappa is not None or momentum.passes > 1:
        return alone
    lam = protocol.regularisation(method)
    if momentum.passes == 0:
        return alone._replace(growth=lam)
    pull = momentum.kappa / (lam + momentum.kappa)
    return alone._replace(centre=state.centre, way=state.difference, pull=pull)


def has_stretches_inside(method: "Accelerated", problem: AnyProblem) -> bool:
    """Whether kernels take snapshots and begin stretches: not if weights are projected.

    With projections, the mean is that of their images. Kernels add kappa to the field ``lam`` of a method.
    """
    is_plain = is_swept(method.inner) and "lam" in getattr(method.inner, "_fields", ())
    return method.kappa != 0.0 and is_plain and not is_projected(problem.map)

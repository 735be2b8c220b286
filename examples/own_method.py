"""A method of your own, compiled
==============================

Passive-aggressive updates (Crammer et al. 2006, PA-I).

Each visit moves the weights just far enough to give the oracle's answer its margin, but never further than
C::

    tau = min(C, hinge / |Phi_i psi|^2),    w <- w + tau Phi_i psi,    C = 1 / (lam n)
"""

from typing import NamedTuple

import numpy as np

from maxmargin import Averaged, BlockFrankWolfe, solve
from maxmargin.datasets import load_digit_words
from maxmargin.methods.protocol import (
    BROKEN,
    DONE,
    Traits,
    is_sound,
    point,
    primal_point,
    start,
    step,
    traits,
)
from maxmargin.methods.scratch import add_corner
from maxmargin.problems import Chain
from maxmargin.structures.feature_map import map_sizes, norm2, push


class PassiveAggressive(NamedTuple):
    lam: float


class PassiveState(NamedTuple):
    w: np.ndarray


@traits.register(PassiveAggressive)
def passive_traits(method):  # it moves weights and knows no dual variables
    return Traits(has_dual=False, notes_gaps=False)


@start.register(PassiveAggressive)
def passive_start(method, problem):
    return PassiveState(np.zeros(map_sizes(problem.map).weights))


@step.register(PassiveAggressive)
def passive_step(method, state, phi, i, loss_y, hinge, work):
    if not is_sound(hinge, loss_y + abs(hinge), work):
        return BROKEN
    if hinge > 0.0:
        add_corner(work.corner, work.move)  # the direction: psi of the oracle's answer
        scale = 1.0 / (method.lam * work.sizes.examples)
        square = norm2(phi, i, work.move, work.image, work.map)
        tau = min(scale, hinge / square) if square > 0.0 else 0.0
        push(phi, i, work.move, tau, state.w, work.map)
        work.move.gamma[0] = tau / scale  # so that averages know how far the step went
    return DONE


@point.register(PassiveAggressive)
def passive_point(method, state, problem):
    return primal_point(state.w)


X, y, _, _ = load_digit_words(n_train=300, n_test=1, random_state=0)
problem = Chain.from_sequences(X, y)
lam = 1 / 300
exact = solve(problem, BlockFrankWolfe(lam), tol=0.02, max_passes=200, random_state=0)
print(f"The least objective is between {exact.dual:.3f} and {exact.primal:.3f}.")
for method in (PassiveAggressive(lam), Averaged(PassiveAggressive(lam), "weighted")):
    result = solve(problem, method, max_passes=10, random_state=0)
    print(f"{type(method).__name__}: {result.primal:.3f} after 10 passes")

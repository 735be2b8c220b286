r"""The structured perceptron (Collins 2002): no margin, no regularisation, no step size.

A visit decodes the example at the present weights, without the loss, and where that is wrong

.. math:: w \leftarrow w + \Phi_i \psi_i(\hat y), \qquad
          \hat y = \arg\max_y \langle \Phi_i^\top w, s_i(y) \rangle .
"""

from typing import Any, NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.methods._protocol import (
    BROKEN,
    DONE,
    Carry,
    Point,
    advance,
    carried,
    has_dual,
    has_room,
    is_sound,
    point,
    primal_point,
    seek,
    start,
    step,
)
from maxmargin.methods._scratch import corner_of_answer, push_corner
from maxmargin.methods._sweep import sweep_all
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import decode, score, sizes


class Perceptron(NamedTuple):
    """The structured perceptron; ``Averaged(Perceptron(lam), "uniform")`` is the averaged perceptron.

    `solve` returns the weights of lowest objective among those that it measured: to get those at the end,
    have it measure once, by ``check_every=max_passes``. Where zero weights have a lower one still, they are
    divided by a power of two, which predicts the same; they are zero if a few such powers do not help.

    Parameters
    ----------
    lam : float
        The regularisation of the objective that is reported, > 0; steps do not depend on it.
    """

    lam: float


class PerceptronState(NamedTuple):
    """The weights."""

    w: FloatArray


@start.register(Perceptron)
def perceptron_start(method: Perceptron, problem: Any) -> PerceptronState:
    return PerceptronState(aligned_zeros(sizes(problem).weights))


@has_room.register(Perceptron)
def perceptron_has_room(method, state, problem, i):
    return True


@seek.register(Perceptron)
def perceptron_seek(method, state, problem, i, w, scratch):
    score(problem, i, w, scratch.theta)
    decode(problem, i, scratch.theta, scratch.y, scratch.oracle)
    return corner_of_answer(problem, i, scratch)


@step.register(Perceptron)
def perceptron_step(method, state, problem, i, loss_y, hinge, scratch):
    ahead = hinge - loss_y  # of the truth; the hinge itself is that of no max oracle
    if not is_sound(problem, ahead, loss_y + abs(hinge), scratch):
        return BROKEN
    push_corner(problem, i, method.lam, state.w, scratch)
    return DONE


@advance.register(Perceptron)
def perceptron_advance(
    method: Perceptron, state: PerceptronState, problem: Any, visits: Visits | IntArray
) -> PerceptronState:
    return sweep_all(problem, method, state, visits)


@carried.register(Perceptron)
def perceptron_carried(
    method: Perceptron, state: PerceptronState, problem: Any, carry: Carry
) -> PerceptronState:
    """Whatever lam and n are."""
    w = aligned_zeros(len(state.w))
    w[:] = state.w
    return PerceptronState(w)


@point.register(Perceptron)
def perceptron_point(method: Perceptron, state: PerceptronState, problem: Any) -> Point:
    return primal_point(state.w)


@has_dual.register(Perceptron)
def perceptron_has_dual(method: Perceptron) -> bool:
    return False

r"""The structured perceptron (Collins 2002): no margin, no regularisation, no step size.

A visit decodes the example at the current weights, without the loss. If the output is wrong,

.. math:: w \leftarrow w + \Phi_i \psi_i(\hat y), \qquad
          \hat y = \arg\max_y \langle \Phi_i^\top w, s_i(y) \rangle .
"""

from typing import NamedTuple

from maxmargin.methods import protocol
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.scratch import corner_of_answer, push_corner
from maxmargin.runtime.arrays import FloatArray, aligned_copy, aligned_zeros
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import decode
from maxmargin.structures.problem import AnyProblem, sizes


class Perceptron(NamedTuple):
    """The structured perceptron; ``Averaged(Perceptron(lam), "uniform")`` is the averaged perceptron.

    `solve` returns the weights of lowest objective among those that it measured. To get the last ones, make
    it measure only once, with ``check_every=max_passes``. If zero weights have a lower objective, it divides
    the weights by a power of two, which does not change predictions, or returns zero if that does not help.

    Parameters
    ----------
    lam : float
        Regularisation of the reported objective, > 0; steps do not depend on it.
    """

    lam: float


class PerceptronState(NamedTuple):
    """The weights."""

    w: FloatArray


@protocol.start.register(Perceptron)
def perceptron_start(method: Perceptron, problem: AnyProblem) -> PerceptronState:
    return PerceptronState(aligned_zeros(sizes(problem).weights))


@protocol.seek.register(Perceptron)
def perceptron_seek(method, state, problem, i, w, scratch):
    score(problem.map, i, w, scratch.block.theta)
    decode(problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
    return corner_of_answer(problem, i, scratch)


@protocol.step.register(Perceptron)
def perceptron_step(method, state, phi, i, loss_y, hinge, work):
    ahead = hinge - loss_y  # by how much the output leads the truth; the hinge is not that of a max oracle
    if not protocol.is_sound(ahead, loss_y + abs(hinge), work):
        return protocol.BROKEN
    push_corner(phi, i, method.lam, state.w, work)
    return protocol.DONE


@protocol.carried.register(Perceptron)
def perceptron_carried(
    method: Perceptron, state: PerceptronState, problem: AnyProblem, carry: Carry
) -> PerceptronState:
    """Keep the weights, which depend on neither lam nor n."""
    return PerceptronState(aligned_copy(state.w))


@protocol.point.register(Perceptron)
def perceptron_point(method: Perceptron, state: PerceptronState, problem: AnyProblem) -> Point:
    return protocol.primal_point(state.w)


@protocol.traits.register(Perceptron)
def perceptron_traits(method: Perceptron) -> Traits:
    return Traits(takes_corners=False, searches=False, has_dual=False, notes_gaps=False, weighs=True)

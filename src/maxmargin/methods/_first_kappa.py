r"""The kappa that accelerated runs begin with, from the lengths of the first steps.

.. math:: \kappa_1^2 = c^2 \frac{\lambda}{n \bar s}, \qquad \kappa (\lambda + \kappa) = (2 \kappa_1)^2, \qquad
          \bar s = \text{mean of } \frac{H_i}{R_i^2} \text{ over a few examples,}

where :math:`\kappa_1` is that of the first pass, and :math:`\kappa` that of the second.

This balances two errors of a pass with the centre at zero. What is left to optimise is about :math:`R^2 /
((\lambda + \kappa) n)`, and the term :math:`\frac{\kappa}{2} \|w\|^2` adds a bias, where :math:`\lambda
\|w\|^2` is of the order of the hinges. In the first pass :math:`t \lambda`, which is zero at first, takes the
place of :math:`\lambda`. No centre compensates the bias of this pass, so it weighs more.

Here :math:`H_i` is the hinge of example i and :math:`R_i = \|\Phi_i \psi_i\|` the length of its corner. A
step from the truth to the corner has the size :math:`\min(1, \lambda n H_i / R_i^2)`.

This is measured by taking steps, so that no other kernel is compiled: with a very small :math:`\lambda`, no
step reaches length one, and each takes its example's hinge to zero.
"""

import math
from typing import Any

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import is_wrapper, python_generic
from maxmargin.limits import share_of_time, until
from maxmargin.methods import protocol
from maxmargin.methods.alone import NO_MEETINGS, Alone
from maxmargin.methods.block_exact import BlockExact, squared_lengths
from maxmargin.methods.block_frank_wolfe import BlockFrankWolfe
from maxmargin.methods.pairwise import Away, Pairwise
from maxmargin.methods.sweep import sweep_in_time
from maxmargin.problems.feature_map import map_sizes
from maxmargin.problems.problem import AnyProblem

_FACTOR = 1.25  # the c of the formula
_EXAMPLES = 8, 64  # fewest and most examples that are measured
_PART = 8  # one example in this many is measured, within these limits
_SMALL = 2.0**-100  # factor of lam n, roughly, in the steps that are measured
_SMALLEST = 2.0**-1000  # its inverse is still finite
_ROUNDING = 1e-9
_SHARE = 0.02  # fraction of a time limit for a step of each example


def first_kappa(method: object, problem: AnyProblem) -> float:
    """Return the kappa of the first pass of a method, which may be wrapped."""
    return kappa_of(problem, method)


def second_kappa(lam: float, first: float) -> float:
    """Return the kappa of the second pass, given that of the first: the root of the formula."""
    unit = _power_below(lam)  # as in `_kappa`
    lam, double = lam / unit, 2.0 * first / unit
    return unit * (math.sqrt(0.25 * lam**2 + double**2) - 0.5 * lam)


@python_generic
def kappa_of(problem: AnyProblem, method: object) -> float:
    """Return the first kappa; another kind of problem may measure it elsewhere."""
    return kappa_by_steps(problem, method, map_sizes(problem.map).examples)


def kappa_by_steps(problem: AnyProblem, method: object, n: int) -> float:
    """Return the first kappa for n examples, measured on a problem of some of them.

    A step of each of a few examples is taken, one after another from w = 0, and the later half of them is
    measured: at zero, where all outputs score alike, corners can be many times longer than those that follow.
    Numbers that are not finite give zero: the run will detect them and name the example. With a time limit,
    fewer examples are measured.
    """
    lam, here = protocol.regularisation(method), map_sizes(problem.map).examples
    steps = _block_method(method)
    fewest, most = _EXAMPLES
    number = min(max(here // _PART, fewest), most, here)
    examples = np.arange(number) * (here - 1) // max(number - 1, 1)
    measure = _exact_step_size if isinstance(steps, BlockExact) else _step_size
    try:
        with np.errstate(all="ignore"):
            return _kappa(lam, n, measure(steps, problem, examples, lam))
    except (protocol.BrokenOracle, protocol.ScaleError):
        return 0.0


def _kappa(lam: float, n: int, size: float) -> float:
    """Return the first kappa for the mean size of steps; zero if it is undefined."""
    # In units of a power of two, as squares of lam may be out of range.
    unit = _power_below(lam)
    lam, size = lam / unit, size * unit
    kappa = unit * _FACTOR * math.sqrt(lam / (n * size)) if size > 0.0 else 0.0
    return kappa if 0.0 < kappa < math.inf else 0.0


def _power_below(lam: float) -> float:
    """Return the largest power of two that is not above lam."""
    return math.ldexp(0.5, math.frexp(lam)[1])


def _step_size(method: Any, problem: AnyProblem, examples: IntArray, lam: float) -> float:
    r"""Return the mean of :math:`H_i / R_i^2` over the later examples whose best output is not the truth."""
    n = map_sizes(problem.map).examples
    small, gamma = max(_SMALL * _power_below(lam * n), _SMALLEST), np.zeros(n)
    tiny = protocol.with_lam(method, small / n)
    _, examples = _after_steps(tiny, problem, examples, Alone(gamma=gamma))
    sizes: list[float] = gamma[examples].tolist()  # so few numbers take less time without NumPy
    # An output that ties with the truth may seem the better one by rounding.
    least = _ROUNDING * max(sizes, default=0.0)
    moved = [size for size in sizes if least < size < 1.0]
    later = moved[len(moved) // 2 :]
    return sum(later) / len(later) / small if later else 0.0


def _exact_step_size(method: Any, problem: AnyProblem, examples: IntArray, lam: float) -> float:
    r"""Return :math:`L_i / R_i^2` at w = 0: with lam = inf, exact steps leave the corners in the blocks."""
    corners, examples = _after_steps(protocol.with_lam(method, np.inf), problem, examples)
    squares = squared_lengths(corners, problem, examples)
    return float(corners.ell[examples].sum()) / squares if squares > 0.0 else 0.0


def _after_steps(
    method: object, problem: AnyProblem, examples: IntArray, alone: Alone = NO_MEETINGS
) -> tuple[Any, IntArray]:
    """Return the state after a step of some blocks, from the truth, and which."""
    with until(share_of_time(_SHARE)):
        state, done = sweep_in_time(problem, method, protocol.start(method, problem), examples, alone=alone)
    return state, examples[:done]


def _block_method(method: Any) -> Any:
    """Return the method of the steps within its wrappers, or another one if its steps have no line search."""
    while is_wrapper(type(method)):
        method = method.inner
    return method if isinstance(method, Pairwise | Away | BlockExact) else BlockFrankWolfe(1.0)

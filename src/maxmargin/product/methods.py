r"""Frank-Wolfe on one set (the paper's Algorithm 1) and block-coordinate Frank-Wolfe (Algorithm 3).

With the block gap :math:`g_i = \max_{s \in D_i} \langle x_i - s, \nabla_i f(x) \rangle`, attained at
:math:`s_i`, a step moves :math:`x_i` to :math:`x_i + \gamma (s_i - x_i)`. As f is convex, the sum of the
block gaps bounds the distance from the minimum: :math:`f(x) - f(x^*) \le g(x) = \sum_i g_i`.

The weighted average of the iterates is :math:`\bar x_k = \frac{2}{k (k + 1)} \sum_{t \le k} t \, x_t`. As in
`maxmargin.methods.averaged`, it follows from the moves, each times the sum of the weights before it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import python_generic
from maxmargin.methods.averaged import SCHEMES, next_weight
from maxmargin.methods.protocol import BATCH, ROUNDING, BrokenOracle, Carry, Traits, carried, regularisation
from maxmargin.methods.sampling import Visits, as_visits, n_visits, note_gap, visited
from maxmargin.methods.steps import LineSearch, Predefined, step_size
from maxmargin.product.domains import Domain
from maxmargin.product.objectives import Followed, Line, follow
from maxmargin.product.problem import ProductProblem
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.solving.objective import Certificate, certificate

_LINE_SEARCH = LineSearch()


@dataclass
class ProductState:
    """The iterate, and sums from which its average follows.

    Attributes
    ----------
    at : Followed
        The objective at the iterate ``at.x``.
    moves : array
        Sum of the moves, each times the weight before it.
    weight : float
        Sum of the weights of the iterates so far.
    steps : int
        k, the number of steps taken.
    """

    at: Followed
    moves: FloatArray
    weight: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class ConditionalGradient:
    """Frank-Wolfe (Algorithm 1): a pass asks the oracles of all blocks, and makes one step of all blocks.

    Parameters
    ----------
    step : LineSearch() or Predefined()
        Step size: line search, or 2 / (nu k + 2).
    average : {"weighted", "suffix", "uniform"}, optional
        The answer is this average of the iterates, see `Averaged`; by default it is the last iterate.
    """

    step: LineSearch | Predefined = _LINE_SEARCH
    average: str | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.step, LineSearch | Predefined):
            raise ValueError(f"{name}: step must be LineSearch() or Predefined(), got {shown(self.step)}.")
        if self.average is not None and self.average not in SCHEMES:
            known = ", ".join(map(repr, SCHEMES))
            raise ValueError(f"{name}: average must be one of {known}, or None, got {shown(self.average)}.")

    def traits(self) -> Traits:
        """Return how the driver may run the method."""
        return BATCH

    def start(self, problem: ProductProblem) -> ProductState:
        """Return the state at the starting point."""
        x = problem.x0.copy()
        return ProductState(follow(problem.objective, x), np.zeros_like(x))

    def n_moved(self, problem: ProductProblem) -> int:
        """Return n, the number of blocks that steps move one by one."""
        return 1

    def advance(
        self, state: ProductState, problem: ProductProblem, visits: Visits | IntArray
    ) -> ProductState:
        """Make one step of all blocks, for all visits of a pass."""
        _step(self, state, problem, problem.domain, slice(0, problem.domain.size), "the domain")
        return state


class BlockConditionalGradient(ConditionalGradient):
    """Block-coordinate Frank-Wolfe (Algorithm 3): a visit asks one block's oracle, and moves that block.

    Parameters
    ----------
    step : LineSearch() or Predefined()
        Step size: line search, or 2n / (nu k + 2n) for n blocks.
    average : {"weighted", "suffix", "uniform"}, optional
        The answer is this average of the iterates, see `Averaged`; by default it is the last iterate.
    """

    def traits(self) -> Traits:
        return Traits(has_step=False)

    def n_moved(self, problem: ProductProblem) -> int:
        return len(problem.domain.blocks)

    def advance(
        self, state: ProductState, problem: ProductProblem, visits: Visits | IntArray
    ) -> ProductState:
        """Make one step for each visit."""
        visits, domain = as_visits(visits), problem.domain
        for t in range(n_visits(visits)):
            i = int(visited(visits, t))
            note_gap(visits, i, _step(self, state, problem, domain.blocks[i], domain.where[i], f"block {i}"))
        return state


def _step(
    method: ConditionalGradient,
    state: ProductState,
    problem: ProductProblem,
    domain: Domain,
    where: slice,
    name: str,
) -> float:
    """Make a step of a part of the point; return its gap."""
    at, n = state.at, method.n_moved(problem)
    found = ask(domain, at.gradient(where), at.x[where], _predefined(method, state, problem), name)
    line = at.line(where, found.d)
    gamma = step_along(method.step, line, found.gap, state.steps, n)
    line.move(gamma)
    state.steps += 1
    if method.average is not None:
        _average(SCHEMES[method.average], state, where, gamma * found.d)
    return found.gap


def _predefined(method: ConditionalGradient, state: ProductState, problem: ProductProblem) -> float:
    r"""Return :math:`\gamma_k = 2n / (\nu k + 2n)`, to which errors of approximate oracles are relative."""
    return float(step_size(problem.predefined, 0.0, 0.0, state.steps, method.n_moved(problem)))


def _average(scheme: object, state: ProductState, where: slice, move: FloatArray) -> None:
    """Take the iterate after a move into the average."""
    weight = next_weight(scheme, state.steps)
    if weight == 0.0:  # a new average begins
        state.moves[:] = state.weight = 0.0
        weight = 1.0
    state.moves[where] += state.weight * move
    state.weight += weight


@python_generic
def step_along(rule: object, line: Line, gap: float, k: int, n: int) -> float:
    """Return the step of a rule on a line."""
    return float(step_size(rule, gap, line.curvature(gap), k, n))


@step_along.register(Predefined)
def predefined_step_along(rule: Predefined, line: Line, gap: float, k: int, n: int) -> float:
    return float(step_size(rule, gap, 0.0, k, n))


class Answer(NamedTuple):
    """An oracle's answer: the direction to it, the gap there, and an upper bound on the gap of the block."""

    d: FloatArray
    gap: float
    bound: float


def ask(domain: Domain, gradient: FloatArray, x: FloatArray, gamma: float, name: str) -> Answer:
    """Ask the oracle of a set at a block's gradient and point; raise if the answer cannot be right."""
    shape, error = domain.shape, 0.5 * gamma * domain.slack
    s = domain.candidate(gradient.reshape(shape), x.reshape(shape), gamma)
    if np.shape(s) != shape:
        raise ValueError(
            f"solve: the lmo of {name} must return an array of shape {shape}, got {np.shape(s)}."
        )
    d = np.ravel(s) - x
    terms = np.abs(gradient) @ (np.abs(x) + np.abs(d))
    gap = 0.0 - float(gradient @ d)
    if not -error - ROUNDING * terms <= gap < math.inf:
        raise BrokenOracle(
            f"solve: {name} has a negative or undefined gap, {gap:g}: its lmo returned a point that is not "
            f"the best, or the gradient is not finite; check lmo and gradient."
        )
    return Answer(d, gap, max(gap + error, 0.0) / domain.nu)


@certificate.register(ConditionalGradient)
def product_certificate(
    method: ConditionalGradient, state: ProductState, problem: ProductProblem, compare: bool
) -> Certificate:
    """Measure f and the sum of the block gaps at the answer, from the point alone."""
    x, domain = state.at.x.copy(), problem.domain
    if state.weight > 0.0:
        x -= state.moves / state.weight
    at, gamma = follow(problem.objective, x), _predefined(method, state, problem)
    value, gradient = at.value(), at.gradient(slice(0, domain.size))
    gap = sum(
        ask(block, gradient[where], x[where], gamma, f"block {i}").bound
        for i, (block, where) in enumerate(zip(domain.blocks, domain.where, strict=True))
    )
    return Certificate(x, value, value - gap, math.inf, False)


@regularisation.register(ConditionalGradient)
def product_regularisation(method: ConditionalGradient) -> float:
    raise TypeError(
        f"solve: method must be one for structural SVMs, such as BlockFrankWolfe(lam=0.01), "
        f"got {type(method).__name__}, which is for a ProductProblem."
    )


@carried.register(ConditionalGradient)
def product_carried(
    method: ConditionalGradient, state: ProductState, problem: ProductProblem, carry: Carry
) -> ProductState:
    at = follow(problem.objective, state.at.x.copy())
    return ProductState(at, state.moves.copy(), state.weight, state.steps)

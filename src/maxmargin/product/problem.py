r"""Minimising a smooth convex function over a product of sets: the problem, and its two methods.

Frank-Wolfe on one set (the paper's Algorithm 1) and block-coordinate Frank-Wolfe (Algorithm 3).

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
from numpy.typing import ArrayLike

from maxmargin.encoding.kinds import checked_floats
from maxmargin.methods import protocol
from maxmargin.methods.averaged import SCHEMES, next_weight
from maxmargin.methods.protocol import BATCH, ROUNDING, BrokenOracle, Carry, Traits, carried, regularisation
from maxmargin.methods.rules import (
    LineSearch,
    Predefined,
    Visits,
    as_visits,
    n_visits,
    note_gap,
    step_size,
    visited,
)
from maxmargin.product.domains import Domain, Product
from maxmargin.product.objectives import Followed, Line, Smooth, follow
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described, errors_of, shown
from maxmargin.solving.kinds import Kind, kind_of
from maxmargin.solving.objective import Certificate, certificate
from maxmargin.solving.resume import Beginning, UnfitStart, WarmStart
from maxmargin.structures.problem import essence, unproved


class ProductProblem:
    r"""Minimise a smooth convex function over a product of compact convex sets.

    .. math:: \min_{x \in D_1 \times \dots \times D_n} f(x)

    In a `Result` of `solve`, ``w`` is x, ``primal`` is f(x) and ``dual`` the largest lower bound
    :math:`f(x) - g(x)` seen.

    Parameters
    ----------
    objective : Quadratic, LeastSquares or any object with ``value(x)`` and ``gradient(x, where)``
        See `Smooth`. All points x are flat. Results are certified if its attribute ``convex`` is true.
    domain : Domain
        A `Product`, or one set.
    x0 : array, optional
        Starting point; by default what the oracles answer to a zero gradient.
    """

    @errors_of("ProductProblem")
    def __init__(self, objective: Smooth, domain: Domain, x0: ArrayLike | None = None) -> None:
        self.objective = objective
        self.domain = domain if isinstance(domain, Product) else Product([domain])
        _check_objective(objective, self.domain.size)
        self.predefined = Predefined(self.domain.nu)
        zero = np.zeros(self.domain.size)
        point = np.ravel(self.domain.lmo(zero) if x0 is None else checked_floats(x0, "x0"))
        if point.shape != zero.shape or not self.domain.contains(point):
            raise ValueError(
                f"ProductProblem: x0 must be a point of the domain, of {self.domain.size} numbers, "
                f"got {described(x0)}; leave it out."
            )
        self.x0: FloatArray = point.copy()

    def blocks(self, x: FloatArray) -> list[FloatArray]:
        """Return the blocks of a point, such as the ``w`` of a result, in the shapes of their sets."""
        return self.domain.parts(x)


def _check_objective(objective: object, size: int) -> None:
    if not all(callable(getattr(objective, name, None)) for name in ("value", "gradient")):
        raise TypeError(
            f"ProductProblem: objective must have value(x) and gradient(x, where), got {shown(objective)}."
        )
    found = getattr(objective, "size", size)
    if found != size:
        raise ValueError(
            f"ProductProblem: objective must be a function of {size} numbers, got one of {found}; give the "
            f"domain the same size."
        )


@essence.register(ProductProblem)
def product_problem_essence(problem: ProductProblem) -> tuple[object, ...]:
    return problem.objective, problem.domain, problem.x0


class ProductKind(Kind):
    """A `ProductProblem` and a method for it."""

    problem: ProductProblem  # type: ignore[assignment]
    certifies_during_passes = False
    notes = ()

    def __init__(self, problem: ProductProblem, method: object) -> None:
        certify = certificate.dispatch(type(method))
        if not protocol.is_method(method) or certify is certificate.dispatch(object):
            raise TypeError(
                f"solve: method must be ConditionalGradient() or BlockConditionalGradient() of "
                f"maxmargin.product for a ProductProblem, got {shown(method)}."
            )
        step, nu = getattr(method, "step", None), problem.domain.nu
        if isinstance(step, Predefined) and step.nu > nu:
            raise ValueError(
                f"solve: the method's step must be Predefined({nu:g}) for this oracle, got {step}."
            )
        self.problem, self.method = problem, method

    @property
    def n_blocks(self) -> int:
        return len(self.problem.domain.blocks)

    def begin(self, warm: WarmStart | None) -> Beginning:
        """Return the starting point, or the state of a run on the same problem."""
        if warm is None:
            return Beginning(protocol.start(self.method, self.problem), self.problem.x0, None, -math.inf)
        result, before = warm.result, warm.result.stopped
        known: object = before.problem
        if known is not self.problem or type(before.method) is not type(self.method):
            raise UnfitStart(
                "solve: start must come from the same problem and the same kind of method, got another; "
                "give the point as x0 of a new ProductProblem."
            )
        state = protocol.carried(self.method, before.state, self.problem, Carry(1.0, 1.0, 1.0, 1))
        return Beginning(state, result.w, result.primal, result.dual)

    def first_certificate(self, beginning: Beginning) -> Certificate:
        """Return what is known of the point."""
        primal = math.inf if beginning.primal is None else beginning.primal
        return Certificate(beginning.w, primal, beginning.dual, math.inf, False)

    def check_bounds(self, primal: float, dual: float) -> None:
        """Raise if the lower bound is above the objective."""
        if dual - primal > ROUNDING * (1.0 + abs(primal) + abs(dual)):
            raise BrokenOracle(
                f"solve: the lower bound must be at most the objective, got {dual:.9g} above {primal:.9g}: "
                f"the objective is not convex, its gradient is wrong, or some lmo's answer is not the best."
            )

    def no_worse(self, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
        """Return the answer as it is: zero may not be in the domain."""
        return w, primal

    def rebuilt(self, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
        """Return the answer as it is: no entry is redundant."""
        return w, primal

    def as_weights(self, w: FloatArray) -> FloatArray:
        """Return the point."""
        return w

    def warning(self, w: FloatArray, primal: float, dual: float) -> str | None:
        """Return None: zero may well be the minimum."""


@kind_of.register(ProductProblem)
def product_kind(problem: ProductProblem, method: object) -> ProductKind:
    return ProductKind(problem, method)


@unproved.register(ProductProblem)
def product_unproved(problem: ProductProblem) -> str | None:
    is_convex = bool(getattr(problem.objective, "convex", False))
    return None if is_convex else "the objective is not known to be convex"


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


def step_along(rule: object, line: Line, gap: float, k: int, n: int) -> float:
    """Return the step of a rule on a line; predefined steps do not need its curvature."""
    curvature = 0.0 if isinstance(rule, Predefined) else line.curvature(gap)
    return float(step_size(rule, gap, curvature, k, n))


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

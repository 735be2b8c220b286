"""The problem that the driver solves: an objective and a product of sets."""

import math

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.encoding.kinds import checked_floats
from maxmargin.methods import protocol
from maxmargin.methods.protocol import ROUNDING, BrokenOracle, Carry
from maxmargin.methods.steps import Predefined
from maxmargin.product.domains import Domain, Product
from maxmargin.product.objectives import Smooth
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import described, shown
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

    def __init__(self, objective: Smooth, domain: Domain, x0: ArrayLike | None = None) -> None:
        self.objective = objective
        self.domain = domain if isinstance(domain, Product) else Product([domain])
        _check_objective(objective, self.domain.size)
        self.predefined = Predefined(self.domain.nu)
        zero = np.zeros(self.domain.size)
        point = np.ravel(self.domain.lmo(zero) if x0 is None else checked_floats(x0, "ProductProblem", "x0"))
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

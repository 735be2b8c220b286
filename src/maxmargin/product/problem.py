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
from maxmargin.solving import kinds
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


@kinds.checked.register(ProductProblem)
def product_checked(problem: ProductProblem, method: object) -> tuple[ProductProblem, object]:
    certify = certificate.dispatch(type(method))
    if not protocol.is_method(method) or certify is certificate.dispatch(object):
        raise TypeError(
            f"solve: method must be ConditionalGradient() or BlockConditionalGradient() of "
            f"maxmargin.product for a ProductProblem, got {shown(method)}."
        )
    step, nu = getattr(method, "step", None), problem.domain.nu
    if isinstance(step, Predefined) and step.nu > nu:
        raise ValueError(f"solve: the method's step must be Predefined({nu:g}) for this oracle, got {step}.")
    return problem, method


@kinds.n_blocks.register(ProductProblem)
def product_n_blocks(problem: ProductProblem) -> int:
    return len(problem.domain.blocks)


@kinds.begin.register(ProductProblem)
def product_begin(problem: ProductProblem, method: object, warm: WarmStart | None) -> Beginning:
    if warm is None:
        return Beginning(protocol.start(method, problem), problem.x0, None, -math.inf)
    result, before = warm.result, warm.result.stopped
    known: object = before.problem
    if known is not problem or type(before.method) is not type(method):
        raise UnfitStart(
            "solve: start must come from the same problem and the same kind of method, got another; "
            "give the point as x0 of a new ProductProblem."
        )
    state = protocol.carried(method, before.state, problem, Carry(1.0, 1.0, 1.0, 1))
    return Beginning(state, result.w, result.primal, result.dual)


@kinds.notes.register(ProductProblem)
def product_notes(problem: ProductProblem) -> tuple[FloatArray, ...]:
    return ()


@kinds.can_be_beside.register(ProductProblem)
def product_can_be_beside(problem: ProductProblem) -> bool:
    return False


@kinds.first_certificate.register(ProductProblem)
def product_first_certificate(problem: ProductProblem, method: object, beginning: Beginning) -> Certificate:
    primal = math.inf if beginning.primal is None else beginning.primal
    return Certificate(beginning.w, primal, beginning.dual, math.inf, False)


@kinds.check_bounds.register(ProductProblem)
def product_check_bounds(problem: ProductProblem, primal: float, dual: float) -> None:
    if dual - primal > ROUNDING * (1.0 + abs(primal) + abs(dual)):
        raise BrokenOracle(
            f"solve: the lower bound must be at most the objective, got {dual:.9g} above {primal:.9g}: the "
            f"objective is not convex, its gradient is wrong, or some lmo's answer is not the best."
        )


@kinds.no_worse.register(ProductProblem)
def product_no_worse(
    problem: ProductProblem, method: object, w: FloatArray, primal: float
) -> tuple[FloatArray, float]:
    return w, primal


@kinds.rebuilt.register(ProductProblem)
def product_rebuilt(
    problem: ProductProblem, method: object, w: FloatArray, primal: float
) -> tuple[FloatArray, float]:
    """Return the answer as it is: no entry is redundant."""
    return w, primal


@kinds.as_weights.register(ProductProblem)
def product_as_weights(problem: ProductProblem, w: FloatArray) -> FloatArray:
    return w


@unproved.register(ProductProblem)
def product_unproved(problem: ProductProblem) -> str | None:
    is_convex = bool(getattr(problem.objective, "convex", False))
    return None if is_convex else "the objective is not known to be convex"


@kinds.doubt.register(ProductProblem)
def product_doubt(problem: ProductProblem, x: FloatArray, primal: float, dual: float) -> None:
    """Return None: zero may well be the minimum."""

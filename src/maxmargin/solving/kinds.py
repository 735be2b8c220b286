"""What the driver asks of a problem, of whatever kind.

The methods of `Kind` are for structural SVMs. Another kind of problem has a subclass, and registers `kind_of`
and `maxmargin.structures.problem.unproved` for its class, and `maxmargin.solving.objective.certificate` for
its methods. `maxmargin.product` is such a kind.

An error says in one line what was expected and what was got. Warnings after a run call no oracle: the bounds
alone show that something is wrong.
"""

import math
from numbers import Integral, Real
from typing import cast

import numpy as np

from maxmargin.compiling import can_compile, is_wrapper, python_generic
from maxmargin.compiling.places import is_ours
from maxmargin.methods.protocol import (
    ROUNDING,
    NamedMethod,
    Point,
    check_penalty,
    is_method,
    point,
    regularisation,
    scale_error,
    start,
)
from maxmargin.methods.rules import SAMPLINGS, Sampler, step_size
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import caller, shown
from maxmargin.solving import objective, resume
from maxmargin.solving.objective import Certificate, exceeds
from maxmargin.solving.resume import Beginning, WarmStart
from maxmargin.structures import feature_map
from maxmargin.structures.custom.model import CustomOracle
from maxmargin.structures.feature_map import MapSizes, map_sizes
from maxmargin.structures.oracle import OutputSizes, output_sizes
from maxmargin.structures.problem import AnyProblem, Problem, as_problem, missing_functions, sizes

_LEAST_LAM = 1e-305


class Kind:
    """A problem and a method that fit each other; the constructor raises unless they do.

    Attributes
    ----------
    problem, method
        As the driver uses them.
    """

    problem: AnyProblem
    method: object

    def __init__(self, problem: object, method: object) -> None:
        self.problem, self.method = checked_problem(problem), checked_method(method)
        check_scale(self.problem, self.method)
        check_penalty(self.problem.map, self.method)

    @property
    def n_blocks(self) -> int:
        """The number of blocks, which are examples or sets; a pass makes as many visits."""
        return sizes(self.problem).examples

    @property
    def notes(self) -> tuple[FloatArray, ...]:
        """The arrays of the problem to which a run writes."""
        return feature_map.notes(self.problem.map)

    @property
    def certifies_during_passes(self) -> bool:
        """Whether certificates can be computed during a pass: compiled code only reads the problem."""
        return can_compile(self.problem) and not self.notes

    def sampler(self, sampling: str) -> Sampler:
        """Return the sampler that draws the visits of passes; ``sampling`` is the user's name for it."""
        return named_sampler(sampling, self.n_blocks)

    def begin(self, warm: WarmStart | None) -> Beginning:
        """Return the initial state, carried over from ``warm`` if it is given."""
        if warm is not None:
            return resume.begin_from(warm, self.problem, self.method)
        return Beginning(start(self.method, self.problem), np.zeros(sizes(self.problem).weights))

    def first_certificate(self, beginning: Beginning) -> Certificate:
        """Return the certificate of a warm-started state, without oracle calls if its objective is known."""
        problem, method, w = self.problem, self.method, beginning.w
        lam = regularisation(method)
        if beginning.primal is not None:
            answer: Point = point(method, beginning.state, problem)
            return Certificate(w, beginning.primal, objective.dual(answer, lam), answer.ell, False)
        found: Certificate = objective.certificate(method, beginning.state, problem, True)
        carried_over = objective.primal(problem, w, lam)
        return found._replace(w=w, primal=carried_over) if carried_over <= found.primal else found

    def check_bounds(self, primal: float, dual: float) -> None:
        """Raise if the lower bound is above the objective, which no correct problem allows."""
        objective.check_bounds(self.problem, primal, dual)

    def no_worse(self, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
        """Return an answer and its objective, or a better one that is known in advance, such as zero."""
        return objective.no_worse_than_zero(self.problem, w, primal, regularisation(self.method))

    def rebuilt(self, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
        """Return an answer and its objective, measured again if redundant entries have rounding errors."""
        fresh = feature_map.rebuilt(self.problem.map, w)
        if fresh is w:
            return w, primal
        return fresh, objective.primal(self.problem, fresh, regularisation(self.method))

    def as_weights(self, w: FloatArray) -> FloatArray:
        """Return an answer as one vector in the order that users expect."""
        parts = [np.asarray(part) for part in self.problem.unpack(w)]
        weights = np.empty(sum(part.size for part in parts))
        first = 0
        for part in parts:  # copied once, although most are not contiguous
            weights[first : first + part.size].reshape(part.shape)[...] = part
            first += part.size
        return weights

    def warning(self, w: FloatArray, primal: float, dual: float) -> str | None:
        """Return a warning if the answer indicates that the user's functions are wrong, else None."""
        if exceeds(dual, primal):
            return _missed_maxima(self.problem, primal, dual)
        return _nothing_learnt(self.problem, primal) if is_idle(w, primal, dual) else None


@python_generic
def kind_of(problem: object, method: object) -> Kind:
    """Return the problem and the method as one `Kind`; raise unless they fit each other."""
    return Kind(problem, method)


def checked_problem(problem: object) -> AnyProblem:
    """Return the problem as a pair; raise unless it is complete and has an example."""
    pair = as_problem(problem)
    missing = ", ".join(missing_functions(pair))
    if isinstance(problem, tuple) and type(problem) not in (tuple, Problem):
        expect(not missing, "problem", f"of a class for which {missing} are registered", problem)
    expect(not missing, "problem", f"made by maxmargin.problems or define {missing}", problem)
    names = ("Sizes", "Sizes") if pair.map is pair.oracle else ("MapSizes", "OutputSizes")
    for size, kind, name in (
        (map_sizes(pair.map), MapSizes, names[0]),
        (output_sizes(pair.oracle), OutputSizes, names[1]),
    ):
        is_known = all(hasattr(size, field) for field in kind._fields)
        expect(is_known, "sizes(problem)", f"a maxmargin.problems.{name}", size)
    expect(sizes(pair).examples >= 1, "problem", "of one example or more", sizes(pair).examples)
    return pair


def checked_method(method: object) -> NamedMethod:
    """Return ``method`` with its numbers in the types that kernels expect; raise if it is not a method."""
    if not is_method(method):
        raise TypeError(
            f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
            f"got {shown(method)}."
        )
    if is_wrapper(type(method)):
        return method._replace(inner=checked_method(method.inner))  # type: ignore[attr-defined]
    if hasattr(method, "step"):
        known = step_size.dispatch(type(method.step)) is not step_size.dispatch(object)
        expect(known, "the method's step", "LineSearch() or Predefined()", method.step)
    numbers = _checked_numbers(method)
    return cast("NamedMethod", method._replace(**numbers) if hasattr(method, "_replace") else method)


def _checked_numbers(method: object) -> dict[str, float]:
    """Return the method with its numbers in the types that kernels expect; raise if one is out of range."""
    lam: float = method.lam if hasattr(method, "lam") else regularisation(method)
    expect(is_positive(lam), "the method's lam", "a number > 0", lam)
    numbers: dict[str, float] = {"lam": float(lam)} if hasattr(method, "lam") else {}
    for name in ("inner_steps", "budget"):
        if hasattr(method, name):
            count = getattr(method, name)
            expect(is_count(count), f"the method's {name}", "an int >= 1", count)
            numbers[name] = int(count)
    return numbers


def check_scale(problem: AnyProblem, method: object) -> None:
    """Raise unless lam n and its inverse are in the range of float64, with a margin for the methods."""
    lam, n = regularisation(method), sizes(problem).examples
    if not (lam >= _LEAST_LAM and lam * n <= 1.0 / _LEAST_LAM):
        raise scale_error(f"lam = {lam:g} for {n} examples, and its inverse,")


def named_sampler(sampling: str, n: int) -> Sampler:
    """Return the sampler that draws the visits of passes over n examples."""
    known = isinstance(sampling, str) and sampling in SAMPLINGS
    expect(known, "sampling", f"one of {', '.join(map(repr, SAMPLINGS))}", sampling)
    return SAMPLINGS[sampling](n)


def is_positive(value: object) -> bool:
    """Whether a value is a finite number > 0."""
    return isinstance(value, Real) and 0 < float(value) < math.inf


def is_count(value: object) -> bool:
    """Whether a value is an int >= 1."""
    return isinstance(value, Integral) and int(value) >= 1


def expect(holds: bool, name: str, expected: str, value: object) -> None:
    """Raise unless an argument is as expected."""
    if not holds:
        raise ValueError(message(name, expected, value))


def message(name: str, expected: str, value: object) -> str:
    """Return the one line of an error: what was expected, and what was got."""
    return f"{caller('solve')}: {name} must be {expected}, got {shown(value)}."


def _missed_maxima(problem: AnyProblem, primal: float, dual: float) -> str:
    """Return the warning that the lower bound is above the objective that an approximate oracle shows.

    The objective is at least every lower bound, so the oracle's answers are below the maxima by at least the
    difference, in the mean over examples.
    """
    who, least = _users_oracle(problem.oracle) or "solve", dual - primal
    return (
        f"{who}: answers of argmax are below the maxima by at least {least:.3g} in the mean, as the "
        f"objective that they show, {primal:.6g}, is below its lower bound, {dual:.6g}; the distance from "
        "the optimum is not known: improve argmax."
    )


def _nothing_learnt(problem: AnyProblem, primal: float) -> str | None:
    """Return a warning if a run that found nothing to learn had a user's oracle, else None.

    No oracle is called: the bounds alone indicate which function may be wrong.
    """
    who = _users_oracle(problem.oracle)
    if who is None:
        return None
    cause = "argmax never returned an output of loss above 0; it must return one of largest loss plus score"
    if primal > 0.0:
        cause = "features do not tell the truths from the outputs that argmax returned"
    found = f"all weights are zero after training (gap 0), as {cause}"
    return f"{who}: {found}: run check_problem to find out whether a function is wrong."


def is_idle(w: FloatArray, primal: float, dual: float) -> bool:
    """Whether a run ended where it began: zero weights are optimal, and its gap is zero."""
    return primal - dual <= ROUNDING * abs(primal) < np.inf and not w.any()


def _users_oracle(oracle: object) -> str | None:
    """Return the name that messages about a user's oracle begin with; None if it is the package's own."""
    while is_wrapper(type(oracle)):
        oracle = oracle.inner  # type: ignore[attr-defined]
    if isinstance(oracle, CustomOracle):
        return oracle.owner
    return None if is_ours(type(oracle)) else type(oracle).__name__

"""The interface between the driver and problems of any kind.

These are generic functions of the problem. Their bodies are for structural SVMs; another kind of problem
registers all of them and `maxmargin.structures.problem.unproved` for its class, and
`maxmargin.solving.objective.certificate` for its methods.
`maxmargin.product` is such a kind.
"""

import numpy as np

from maxmargin.compiling import can_compile, python_generic
from maxmargin.methods.protocol import regularisation
from maxmargin.methods.sampling import Sampler
from maxmargin.runtime.arrays import FloatArray
from maxmargin.solving import arguments, objective, resume, spot_check
from maxmargin.solving.objective import Certificate
from maxmargin.solving.resume import Beginning, WarmStart
from maxmargin.structures import feature_map
from maxmargin.structures.problem import AnyProblem, sizes


@python_generic
def checked(problem: object, method: object) -> tuple[AnyProblem, object]:
    """Return problem and method as the driver uses them; raise unless they fit each other."""
    pair, method = arguments.checked_problem(problem), arguments.checked_method(method)
    arguments.check_scale(pair, method)
    arguments.check_projection(pair, method)
    return pair, method


@python_generic
def n_blocks(problem: AnyProblem) -> int:
    """Return the number of blocks, which are examples or sets; a pass makes as many visits."""
    return sizes(problem).examples


@python_generic
def sampler(problem: AnyProblem, sampling: str) -> Sampler:
    """Return the sampler that draws the visits of passes; ``sampling`` is the user's name for it."""
    return arguments.named_sampler(sampling, n_blocks(problem))


@python_generic
def begin(problem: AnyProblem, method: object, warm: WarmStart | None) -> Beginning:
    """Return the initial state, carried over from ``warm`` if it is given."""
    return resume.begin_anew(problem, method) if warm is None else resume.begin_from(warm, problem, method)


@python_generic
def notes(problem: AnyProblem) -> tuple[FloatArray, ...]:
    """Return the arrays of the problem to which a run writes."""
    found: tuple[FloatArray, ...] = feature_map.notes(problem.map)
    return found


@python_generic
def first_certificate(problem: AnyProblem, method: object, beginning: Beginning) -> Certificate:
    """Return the certificate of a warm-started state."""
    return resume.first_certificate(beginning, problem, method)


@python_generic
def can_be_beside(problem: AnyProblem) -> bool:
    """Whether certificates can be computed during a pass: by compiled code that only reads the problem."""
    return can_compile(problem) and not notes(problem)


@python_generic
def check_bounds(problem: AnyProblem, primal: float, dual: float) -> None:
    """Raise if the lower bound is above the objective, which no correct problem allows."""
    objective.check_bounds(problem, primal, dual)


@python_generic
def no_worse(problem: AnyProblem, method: object, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
    """Return the best answer and its objective, or those of a better one known in advance, such as zero."""
    return objective.no_worse_than_zero(problem, w, primal, regularisation(method))


@python_generic
def rebuilt(problem: AnyProblem, method: object, w: FloatArray, primal: float) -> tuple[FloatArray, float]:
    """Return an answer and its objective, measured again if redundant entries have rounding errors."""
    fresh = feature_map.rebuilt(problem.map, w)
    return (w, primal) if fresh is w else (fresh, objective.primal(problem, fresh, regularisation(method)))


@python_generic
def as_weights(problem: AnyProblem, w: FloatArray) -> FloatArray:
    """Return an answer as one vector in the order that users expect."""
    parts = [np.asarray(part) for part in problem.unpack(w)]
    weights = np.empty(sum(part.size for part in parts))
    start = 0
    for part in parts:  # copied once, although most are not contiguous
        weights[start : start + part.size].reshape(part.shape)[...] = part
        start += part.size
    return weights


@python_generic
def doubt(problem: AnyProblem, w: FloatArray, primal: float, dual: float) -> str | None:
    """Return a warning if the answer indicates that the user's functions are wrong, else None."""
    missed = spot_check.missed_maxima(problem, primal, dual)
    return missed or spot_check.nothing_learnt(problem, w, primal, dual)

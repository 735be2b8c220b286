"""What the driver asks of a problem, of whatever kind.

The methods of `Kind` are for structural SVMs. Another kind of problem has a subclass, and registers `kind_of`
and `maxmargin.structures.problem.unproved` for its class, and `maxmargin.solving.objective.certificate` for
its methods. `maxmargin.product` is such a kind.
"""

import numpy as np

from maxmargin.compiling import can_compile, python_generic
from maxmargin.methods.protocol import regularisation, start
from maxmargin.methods.sampling import Sampler
from maxmargin.runtime.arrays import FloatArray
from maxmargin.solving import arguments, objective, resume, spot_check
from maxmargin.solving.objective import Certificate
from maxmargin.solving.resume import Beginning, WarmStart
from maxmargin.structures import feature_map
from maxmargin.structures.problem import AnyProblem, sizes


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
        self.problem, self.method = arguments.checked_problem(problem), arguments.checked_method(method)
        arguments.check_scale(self.problem, self.method)
        arguments.check_projection(self.problem, self.method)

    @property
    def n_blocks(self) -> int:
        """The number of blocks, which are examples or sets; a pass makes as many visits."""
        return sizes(self.problem).examples

    @property
    def notes(self) -> tuple[FloatArray, ...]:
        """The arrays of the problem to which a run writes."""
        found: tuple[FloatArray, ...] = feature_map.notes(self.problem.map)
        return found

    @property
    def certifies_during_passes(self) -> bool:
        """Whether certificates can be computed during a pass: compiled code only reads the problem."""
        return can_compile(self.problem) and not self.notes

    def sampler(self, sampling: str) -> Sampler:
        """Return the sampler that draws the visits of passes; ``sampling`` is the user's name for it."""
        return arguments.named_sampler(sampling, self.n_blocks)

    def begin(self, warm: WarmStart | None) -> Beginning:
        """Return the initial state, carried over from ``warm`` if it is given."""
        if warm is not None:
            return resume.begin_from(warm, self.problem, self.method)
        return Beginning(start(self.method, self.problem), np.zeros(sizes(self.problem).weights))

    def first_certificate(self, beginning: Beginning) -> Certificate:
        """Return the certificate of a warm-started state."""
        return resume.first_certificate(beginning, self.problem, self.method)

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
        missed = spot_check.missed_maxima(self.problem, primal, dual)
        return missed or spot_check.nothing_learnt(self.problem, w, primal, dual)


@python_generic
def kind_of(problem: object, method: object) -> Kind:
    """Return the problem and the method as one `Kind`; raise unless they fit each other."""
    return Kind(problem, method)

"""A cheap check of a user's oracle: a few answers, compared with each other.

`check_problem` is thorough, and users must ask for it. These checks run with every fit, so they cost a few
calls of the oracle, and they raise only if the oracle is certainly wrong.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maxmargin.methods.protocol import BrokenOracle
from maxmargin.methods.scratch import corner_of_answer, new_scratch
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import now
from maxmargin.runtime.wording import caller
from maxmargin.solving.checks import Judged
from maxmargin.structures.feature_map import map_sizes, projected, rebuilt, score, unconstrained
from maxmargin.structures.oracle import argmax, decode, is_exact
from maxmargin.structures.problem import AnyProblem
from maxmargin.structures.slack import is_rescaled

_EXAMPLES = 5
_SEED = 0
# No further example is checked after this many seconds, or after this fraction of a time limit.
_PATIENCE, _SHARE = 1.0, 0.03
# The fraction of the oracle calls and of the time of training that comparisons after training may take.
_AFTERWARDS = 0.05
_LARGEST = "argmax must return an output of largest loss plus score"
_BEST = "argmax without the truth must return an output of largest score"
_TRUTH = "the truth", Judged(0.0, np.zeros(0, dtype=np.int64), np.zeros(0))
# Relative to the terms of the values compared, so that rounding in a user's sums raises no alarm.
_ROUNDING = 1e-6


class Beaten(NamedTuple):
    """An answer that is not the best.

    Attributes
    ----------
    rule : str
        The condition that answers must meet.
    example : int
    by : str
        What is better: the truth, a prediction, or another answer.
    amount : float
        By how much it is better.
    is_truth : bool
        Whether the answer has the features of the truth.
    """

    rule: str
    example: int
    by: str
    amount: float
    is_truth: bool

    def __str__(self) -> str:
        answer = "the truth, an output" if self.is_truth else "an output"
        return (
            f"{self.rule}, but for example {self.example} it returned {answer} that {self.by} exceeds by "
            f"{self.amount:.3g}"
        )


def patience(time_limit: float | None, trained: float = 0.0) -> float:
    """Return the seconds after which no further example is checked, in a fit with this limit.

    Without a limit, more time is allowed after long training, which took ``trained`` seconds.
    """
    if time_limit is None:
        return max(_PATIENCE, _AFTERWARDS * trained)
    return min(_PATIENCE, _SHARE * time_limit)


def check_oracle(problem: AnyProblem, advice: str, seconds: float = _PATIENCE) -> None:
    """Raise `BrokenOracle` if a few examples show that the max oracle, or the loss, is wrong.

    The oracle is called at zero weights and at two random weights. Neither the truth, nor a prediction, nor
    another of its answers may beat an answer. Predictions are compared with each other only, as they may be
    restricted to fewer outputs. At zero weights, some answer must have a loss: otherwise zero weights are
    optimal, and training ends before it has begun. After ``seconds``, no further example is checked.
    """
    if not is_exact(problem.oracle) or is_rescaled(problem.oracle):
        return
    inquiry, n, largest, seen = _Inquiry(problem), map_sizes(problem.map).examples, 0.0, 0
    for i in _until(seconds, _few(n)):
        beaten, loss = inquiry.compare(i)
        if beaten is not None:
            raise BrokenOracle(f"{caller()}: {beaten}; {advice}.")
        largest = max(largest, loss)
    for i in _until(seconds, range(n if largest == 0.0 else 0)):
        largest, seen = inquiry.loss_at_zero(i), i + 1
        if largest > 0.0:
            break
    if largest == 0.0 and seen == n:
        raise BrokenOracle(
            f"{caller()}: loss must be above 0 for wrong outputs, but at zero weights the answers of argmax "
            f"for all {n} examples have loss 0, so there is nothing to learn; {advice}."
        )


def beaten_answer(problem: AnyProblem, w: FloatArray, seconds: float, calls: int = 0) -> Beaten | None:
    """Return an answer at w that the truth or the prediction beats.

    A few examples are checked, or more after long training, which called the oracle ``calls`` times: an
    oracle may be wrong on some examples only.
    """
    if not is_exact(problem.oracle) or is_rescaled(problem.oracle):
        return None
    inquiry, n = _Inquiry(problem), map_sizes(problem.map).examples
    for i in _until(seconds, _some(n, int(_AFTERWARDS * calls) // 2)):  # an example takes two calls
        theta = inquiry.scores(i, w)
        others = [_TRUTH, ("the prediction", inquiry.answer(decode, i, theta))]
        found = _beaten(_LARGEST, i, theta, inquiry.answer(argmax, i, theta), others)
        if found is not None:
            return found
    return None


class Doubtful(NamedTuple):
    """A prediction that shows that nothing was learnt.

    Attributes
    ----------
    example : int
    loss : float
        Its loss; if it is 0, the features are not those of the truth.
    """

    example: int
    loss: float

    def __str__(self) -> str:
        other = "" if self.loss > 0.0 else ", whose features are not those of the truth,"
        return f"the prediction for example {self.example}{other} has loss {self.loss:.6g}"


def doubtful_prediction(problem: AnyProblem, w: FloatArray, seconds: float) -> Doubtful | None:
    """Return the first prediction that has a loss, or else one that is not the truth, if found in time."""
    inquiry, other = _Inquiry(problem), None
    for i in _until(seconds, range(map_sizes(problem.map).examples)):
        answer = inquiry.answer(decode, i, inquiry.scores(i, w))
        if answer.loss > 0.0:
            return Doubtful(i, answer.loss)
        if other is None and len(answer.where):
            other = Doubtful(i, 0.0)
    return other


def _few(n: int) -> list[int]:
    """Return the indices of a few of n examples, the first and the last among them."""
    chosen: list[int] = np.unique(np.linspace(0, n - 1, _EXAMPLES).astype(np.int64)).tolist()
    return chosen


def _some(n: int, count: int) -> list[int]:
    """Return the indices of a few of n examples, or of ``count`` random ones if these are more."""
    if count <= _EXAMPLES:
        return _few(n)
    chosen: list[int] = np.random.default_rng(_SEED).permutation(n)[:count].tolist()
    return chosen


def _until(seconds: float, examples: Iterable[int]) -> Iterator[int]:
    """Yield examples until some time has passed, but at least one: slow oracles are checked on fewer."""
    end = now() + seconds
    for i in examples:
        yield i
        if now() > end:
            return


class _Inquiry:
    """Calls of both oracles of a problem."""

    def __init__(self, problem: AnyProblem) -> None:
        self.problem, self.scratch = problem, new_scratch(problem)
        self.map = unconstrained(problem.map)
        self.rng = np.random.default_rng(_SEED)

    def scores(self, i: int, w: FloatArray) -> FloatArray:
        """Return the scores of example i at w."""
        theta = self.scratch.block.theta
        score(self.problem.map, i, w, theta)
        return theta.copy()

    def answer(self, oracle: object, i: int, theta: FloatArray) -> Judged:
        """Return the plane of an oracle's answer at these scores."""
        scratch = self.scratch
        scratch.block.theta[:] = theta
        oracle(self.problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)  # type: ignore[operator]
        loss, _ = corner_of_answer(self.problem, i, scratch)
        corner = scratch.block.corner
        count = corner.size[0]
        return Judged(float(loss), corner.where[:count].copy(), corner.value[:count].copy())

    def loss_at_zero(self, i: int) -> float:
        """Return the loss of the max oracle's answer at zero weights."""
        return self.answer(argmax, i, np.zeros_like(self.scratch.block.theta)).loss

    def compare(self, i: int) -> tuple[Beaten | None, float]:
        """Return an answer of example i that another one beats, if any, and the largest loss seen."""
        zero = np.zeros_like(self.scratch.block.theta)
        asked, predicted = [(zero, self.answer(argmax, i, zero))], []
        phi, w = self.problem.map, self.rng.normal(size=map_sizes(self.map).weights)
        for sign in (1.0, -1.0):
            theta = self.scores(i, projected(phi, rebuilt(self.map, sign * w)))
            found = self.answer(decode, i, theta)
            # Scores of the size of the losses show best whether the oracle takes both into account.
            theta *= max(found.loss, 1.0) / (abs(found.score(theta)) or 1.0)
            asked.append((theta, self.answer(argmax, i, theta)))
            predicted.append((theta, found))
        others = [("a prediction", plane) for _, plane in predicted]
        others += [("another of its answers", plane) for _, plane in asked]
        scores = [("the prediction at other weights", plane._replace(loss=0.0)) for _, plane in predicted]
        checks = [_beaten(_LARGEST, i, *answer, [_TRUTH, *others]) for answer in asked]
        checks += [_beaten(_BEST, i, theta, plane._replace(loss=0.0), scores) for theta, plane in predicted]
        return next(filter(None, checks), None), max(plane.loss for _, plane in others)


def _beaten(
    rule: str, i: int, theta: FloatArray, answer: Judged, others: list[tuple[str, Judged]]
) -> Beaten | None:
    """Return the answer if one of the others has a larger loss plus score."""
    found, size = _value(answer, theta)
    best, its_size, by = max((*_value(plane, theta), name) for name, plane in others)
    if found >= best - _ROUNDING * (1.0 + size + its_size):
        return None
    return Beaten(rule, i, by, best - found, not len(answer.where))


def _value(plane: Judged, theta: FloatArray) -> tuple[float, float]:
    """Return loss plus score of an output, minus those of the truth, and the size of the terms."""
    terms = plane.value * theta[plane.where]
    return plane.loss - float(terms.sum()), plane.loss + float(np.abs(terms).sum())

"""A cheap check of a user's oracle: a few answers, compared with each other.

`check_problem` is thorough, and users must ask for it. These checks run with every fit, so they cost a few
calls of the oracle, and they only speak if the oracle is surely wrong.
"""

import time
from typing import NamedTuple

import numpy as np

from maxmargin._probe import Judged
from maxmargin.arrays import FloatArray
from maxmargin.methods.protocol import BrokenOracle
from maxmargin.methods.scratch import corner_of_answer, new_scratch
from maxmargin.problems.feature_map import map_sizes, projected, rebuilt, score
from maxmargin.problems.oracle import argmax, decode, is_exact
from maxmargin.problems.oracles.slack import is_rescaled
from maxmargin.problems.problem import AnyProblem

_EXAMPLES = 5
_SEED = 0
# Seconds after which no further example is looked at.
_PATIENCE = 1.0
# Relative to the terms of the values compared, so that rounding in a user's sums raises no alarm.
_ROUNDING = 1e-6


class Beaten(NamedTuple):
    """An answer of the max oracle that is not the best.

    Attributes
    ----------
    example : int
    by : str
        What is better: the truth, a prediction, or another answer.
    amount : float
        By how much its loss plus score is larger.
    is_truth : bool
        Whether the answer has the features of the truth.
    """

    example: int
    by: str
    amount: float
    is_truth: bool

    def __str__(self) -> str:
        answer = "the truth, an output" if self.is_truth else "an output"
        return (
            f"argmax must return an output of largest loss plus score, but for example {self.example} it "
            f"returned {answer} that {self.by} exceeds by {self.amount:.3g}"
        )


def check_oracle(problem: AnyProblem, owner: str, advice: str) -> None:
    """Raise `BrokenOracle` if a few examples show that the max oracle, or the loss, is wrong.

    The oracle is called at zero weights and at two random weights, which it and the prediction must answer
    by outputs that no other answer beats. At zero weights, some answer must have a loss: otherwise zero
    weights are optimal, and training ends before it has begun.
    """
    if not is_exact(problem.oracle) or is_rescaled(problem.oracle):
        return
    inquiry, end = _Inquiry(problem), time.monotonic() + _PATIENCE
    n = map_sizes(problem.map).examples
    chosen = np.unique(np.linspace(0, n - 1, _EXAMPLES).astype(np.int64)).tolist()
    largest = 0.0
    for i in chosen:
        beaten, loss = inquiry.compare(i)
        if beaten is not None:
            raise BrokenOracle(f"{owner}: {beaten}; {advice}.")
        largest = max(largest, loss)
        if time.monotonic() > end:
            return
    for i in range(n):
        if largest > 0.0 or time.monotonic() > end:
            return
        largest = inquiry.loss_at_zero(i)
    if largest == 0.0:
        raise BrokenOracle(
            f"{owner}: loss must be above 0 for wrong outputs, but at zero weights the answers of argmax for "
            f"all {n} examples have loss 0, so there is nothing to learn; {advice}."
        )


def beaten_answer(problem: AnyProblem, w: FloatArray) -> Beaten | None:
    """Return an answer at w, among those to a few examples, that the truth or the prediction beats."""
    inquiry, n = _Inquiry(problem), map_sizes(problem.map).examples
    if not is_exact(problem.oracle) or is_rescaled(problem.oracle):
        return None
    for i in np.unique(np.linspace(0, n - 1, _EXAMPLES).astype(np.int64)).tolist():
        theta = inquiry.scores(i, w)
        others = [("the prediction", inquiry.answer(decode, i, theta))]
        found = _beaten(i, theta, inquiry.answer(argmax, i, theta), others)
        if found is not None:
            return found
    return None


def wrong_prediction(problem: AnyProblem, w: FloatArray, most: int = 20) -> tuple[int, float] | None:
    """Return the first of a few examples whose prediction has a loss, and this loss."""
    inquiry = _Inquiry(problem)
    for i in range(min(most, map_sizes(problem.map).examples)):
        loss = inquiry.answer(decode, i, inquiry.scores(i, w)).loss
        if loss > 0.0:
            return i, loss
    return None


class _Inquiry:
    """Calls of both oracles of a problem."""

    def __init__(self, problem: AnyProblem) -> None:
        self.problem, self.scratch = problem, new_scratch(problem)
        self.weights = map_sizes(problem.map).weights
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
        asked, others = [(zero, self.answer(argmax, i, zero))], []
        phi, w = self.problem.map, self.rng.normal(size=self.weights)
        for sign in (1.0, -1.0):
            theta = self.scores(i, projected(phi, rebuilt(phi, sign * w)))
            predicted = self.answer(decode, i, theta)
            # Scores as large as losses show best whether both count.
            theta *= max(predicted.loss, 1.0) / (abs(predicted.score(theta)) or 1.0)
            asked.append((theta, self.answer(argmax, i, theta)))
            others.append(("a prediction", predicted))
        others += [("another of its answers", plane) for _, plane in asked]
        found = (_beaten(i, theta, plane, others) for theta, plane in asked)
        return next(filter(None, found), None), max(plane.loss for _, plane in others)


def _beaten(i: int, theta: FloatArray, answer: Judged, others: list[tuple[str, Judged]]) -> Beaten | None:
    """Return the answer if the truth, or one of the other outputs, has a larger loss plus score."""
    found, size = _value(answer, theta)
    values = [(0.0, 0.0, "the truth")]
    values += [(*_value(plane, theta), name) for name, plane in others]
    best, its_size, by = max(values)
    if found >= best - _ROUNDING * (1.0 + size + its_size):
        return None
    return Beaten(i, by, best - found, not len(answer.where))


def _value(plane: Judged, theta: FloatArray) -> tuple[float, float]:
    """Return loss plus score of an output, minus those of the truth, and the size of the terms."""
    terms = plane.value * theta[plane.where]
    return plane.loss - float(terms.sum()), plane.loss + float(np.abs(terms).sum())

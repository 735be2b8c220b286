"""Oracles of known quality: all outputs are listed, and the worst one is returned that the quality allows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import BlockFrankWolfe
from maxmargin.methods.protocol import mean_margin, start
from maxmargin.structures.oracle import loss, output_sizes, psi
from support.catalogue import Case
from support.naive import Array
from support.plain import Plain

# From the largest gap of a block, its example and the number of the step, the least gap that is allowed.
Quality = Callable[[float, int, int], float]


class Approximate(Plain):
    """A problem as a plain Python object, whose oracle falls short as far as it may.

    The gap of an output is how far its margin is above the mean of its block, so that the oracle must know
    the state of the method: ``state`` is set by whoever makes the steps.
    """

    def __init__(self, case: Case, method: BlockFrankWolfe, least: Quality) -> None:
        super().__init__(case.problem)
        self.data, self.method, self.least = case.data, method, least
        self.state = start(method, case.problem)
        self.shortfalls: list[float] = []

    def is_exact(self) -> bool:
        return False

    def argmax(self, i: int, theta: Array, y: Array, work: Any) -> None:
        """Return the output of least gap among those that are good enough."""
        margins = np.array([self._margin(i, output, theta) for output in self.data.outputs[i]])
        gaps = margins - mean_margin(self.method, self.state, i, theta)
        least = self.least(float(gaps.max()), i, int(self.state.steps[0]))
        allowed = np.where(gaps >= min(least, gaps.max()), gaps, np.inf)
        self.shortfalls.append(float(gaps.max() - allowed.min()))
        y[: len(self.data.outputs[i][0])] = self.data.outputs[i][int(np.argmin(allowed))]

    def _margin(self, i: int, output: tuple[int, ...], theta: Array) -> float:
        parts = output_sizes(self.problem.oracle).parts
        y, where, value = np.array(output), np.zeros(parts, dtype=np.int64), np.zeros(parts)
        count = psi(self.problem.oracle, i, y, where, value)
        return float(loss(self.problem.oracle, i, y) - value[:count] @ theta[where[:count]])

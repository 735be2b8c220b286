"""Predictions for all examples of a problem, their margins, and the best outputs that differ from them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import can_compile, kernel
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.threads import n_threads, run_all
from maxmargin.structures.feature_map import score, score_buffer, statistics_size
from maxmargin.structures.oracle import decode, loss, oracle_workspace, output_size, output_sizes
from maxmargin.structures.problem import AnyProblem, checked_weights, sizes
from maxmargin.structures.questions import (
    decode_differing,
    decode_with_margins,
    find_means,
    margin_workspace,
    means_space,
    n_parts,
    part_rows,
)


class WithMargins(NamedTuple):
    """Outputs and the margins of their parts, one example after another.

    Attributes
    ----------
    outputs, margins : arrays
    """

    outputs: IntArray
    margins: FloatArray


def decode_all(problem: AnyProblem, w: FloatArray) -> IntArray:
    """Return the outputs of largest score for all examples, one after another."""
    w, stops = checked_weights(problem, w), _stops(problem, output_size)
    out = np.empty(stops[-1], dtype=np.int64)

    def write(first: int, stop: int) -> None:
        predictions(problem, w, first, stop, out[stops[first] : stops[stop]], *decoding_work(problem))

    share_out(problem, write)
    return out


@kernel
def predictions(problem, w, first, stop, out, theta, y, work):
    """Decode the examples first, ..., stop - 1; write their outputs one after another to ``out``."""
    end = 0
    for i in range(first, stop):
        score(problem.map, i, w, theta)
        decode(problem.oracle, i, theta, y, work)
        for t in range(output_size(problem.oracle, i)):
            out[end] = y[t]
            end += 1


def losses(problem: AnyProblem, w: FloatArray) -> FloatArray:
    """Return the loss of the output of largest score of each example; the oracle knows the truth."""
    w, out = checked_weights(problem, w), np.empty(sizes(problem).examples)
    share_out(
        problem,
        lambda first, stop: write_losses(problem, w, first, out[first:stop], *decoding_work(problem)),
    )
    return out


@kernel
def write_losses(problem, w, first, out, theta, y, work):
    """Write the loss of the prediction for example first + t to ``out[t]``."""
    for t in range(out.shape[0]):
        score(problem.map, first + t, w, theta)
        decode(problem.oracle, first + t, theta, y, work)
        out[t] = loss(problem.oracle, first + t, y)


def decoding_work(
    problem: AnyProblem, of_oracle: Callable[[object], object] = oracle_workspace
) -> tuple[FloatArray, IntArray, object]:
    """Return the workspace of predictions: for scores, an output, and the oracle."""
    size = output_sizes(problem.oracle).output
    return score_buffer(problem.map, None), np.zeros(size, dtype=np.int64), of_oracle(problem.oracle)


def decode_all_with_margins(problem: AnyProblem, w: FloatArray) -> WithMargins:
    """Return the outputs of largest score for all examples, and the margins of their parts."""
    w, stops, ends = checked_weights(problem, w), _stops(problem, output_size), _stops(problem, n_parts)
    found = WithMargins(np.empty(stops[-1], dtype=np.int64), np.empty(ends[-1]))

    def write(first: int, stop: int) -> None:
        share = WithMargins(
            found.outputs[stops[first] : stops[stop]], found.margins[ends[first] : ends[stop]]
        )
        work = decoding_work(problem, margin_workspace)
        _predictions_with_margins(problem, w, first, stop, share, *work)

    share_out(problem, write)
    return found


@kernel
def _predictions_with_margins(problem, w, first, stop, out, theta, y, work):
    """Decode the examples first, ..., stop - 1; write outputs and margins one after another to ``out``."""
    end = begin = 0
    for i in range(first, stop):
        score(problem.map, i, w, theta)
        margins = out.margins[begin : begin + n_parts(problem.oracle, i)]
        begin += margins.shape[0]
        decode_with_margins(problem.oracle, i, theta[: statistics_size(problem.map, i)], y, margins, work)
        for t in range(output_size(problem.oracle, i)):
            out.outputs[end] = y[t]
            end += 1


class Decoded:
    """The output of largest score of a problem's only example, and the next best outputs.

    Parameters
    ----------
    problem : Problem
    w : array

    Attributes
    ----------
    output, margins : arrays
        The output, and the margin of each of its parts.
    """

    def __init__(self, problem: AnyProblem, w: FloatArray) -> None:
        self._oracle, theta = problem.oracle, score_buffer(problem.map, None)
        score(problem.map, 0, checked_weights(problem, w), theta)
        self._theta = theta[: statistics_size(problem.map, 0)]
        self.output = np.zeros(output_size(self._oracle, 0), dtype=np.int64)
        self.margins = np.zeros(n_parts(self._oracle, 0))
        work = margin_workspace(self._oracle)
        decode_with_margins(self._oracle, 0, self._theta, self.output, self.margins, work)

    def other(self, p: int) -> IntArray:
        """Return the best output that differs in part p, whose margin is finite.

        An approximate oracle may return one that does not differ.
        """
        margin, work = float(self.margins[p]), oracle_workspace(self._oracle)
        found: IntArray = decode_differing(self._oracle, 0, self._theta, self.output, p, margin, work)
        return found


def _stops(problem: AnyProblem, size: Callable[[object, int], int]) -> IntArray:
    """Return where the entries of each example begin, and where the last end."""
    return np.cumsum([0, *(size(problem.oracle, i) for i in range(sizes(problem).examples))])


def share_out(problem: AnyProblem, run: Callable[[int, int], None]) -> None:
    """Call ``run(first, stop)`` for ranges of the examples, one for each thread."""
    n = sizes(problem).examples
    shares = min(n_threads(), n) if can_compile(problem) else 1
    bounds = np.linspace(0, n, shares + 1).astype(np.int64).tolist()
    run_all(lambda share: run(bounds[share], bounds[share + 1]), range(shares))


def part_shapes(problem: AnyProblem) -> IntArray:
    """Return the number of parts of each example and of their states, an array of shape (n, 2).

    A part of an output is what takes one of several states: a token or a node its label, a word its head.
    """
    rows = (part_rows(problem.oracle, i) for i in range(sizes(problem).examples))
    return np.array([(part.n_rows, part.n_columns) for part in rows], dtype=np.int64)


def marginals_all(problem: AnyProblem, w: FloatArray, temperature: float, shapes: IntArray) -> FloatArray:
    r"""Return the probabilities of the states of all parts, one part after another, at temperature t.

    .. math:: p(y) \propto e^{\langle w, \phi(x_i, y) \rangle / t}

    ``shapes`` is what `part_shapes` returns.
    """
    w, stops = checked_weights(problem, w), np.append(0, np.cumsum(shapes.prod(axis=1)))
    out = np.empty(stops[-1])

    def find(first: int, stop: int) -> None:
        theta, mean = (aligned_zeros(sizes(problem).statistics) for _ in range(2))
        works = oracle_workspace(problem.oracle), means_space(problem.oracle)
        share = out[stops[first] : stops[stop]]
        _write_marginals(problem, w, 1.0 / temperature, first, stop, theta, mean, *works, share)

    share_out(problem, find)
    return out


@kernel
def _write_marginals(problem, w, scale, first, stop, theta, mean, work, own, out):
    """Write the marginals of the examples first, ..., stop - 1 one after another to ``out``."""
    end = 0
    for i in range(first, stop):
        size = statistics_size(problem.map, i)
        score(problem.map, i, w, theta)
        for p in range(size):
            theta[p] *= scale
        find_means(problem.oracle, i, theta, work, own, mean[:size])
        rows = part_rows(problem.oracle, i)
        for r in range(rows.n_rows):
            for k in range(rows.n_columns):
                out[end] = mean[rows.first + r * rows.step + k]
                end += 1


def score_range(problem: AnyProblem, w: FloatArray) -> float:
    """Return the largest difference of two scores of one example."""
    theta = aligned_zeros(sizes(problem).statistics)
    return float(_largest_range(problem, checked_weights(problem, w), sizes(problem).examples, theta))


@kernel
def _largest_range(problem, w, n, theta):
    largest = 0.0
    for i in range(n):
        score(problem.map, i, w, theta)
        low, high = theta[0], theta[0]
        for p in range(statistics_size(problem.map, i)):
            low = theta[p] if theta[p] < low else low
            high = theta[p] if theta[p] > high else high
        largest = high - low if high - low > largest else largest
    return largest

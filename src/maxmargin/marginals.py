"""Probabilities of the parts of outputs, for all examples of a problem."""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import kernel
from maxmargin.decoding import share_out
from maxmargin.problems.feature_map import score, statistics_size
from maxmargin.problems.oracle import oracle_workspace
from maxmargin.problems.oracles._means import find_means, means_space, part_rows
from maxmargin.problems.problem import AnyProblem, checked_weights, sizes


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

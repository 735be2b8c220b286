"""The k best outputs for sequences, and their margins to the best."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import generic, kernel
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import score
from maxmargin.structures.means import answers_of
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import AnyProblem, checked_weights, sizes
from maxmargin.structures.recursions import LEAST


class KBest(NamedTuple):
    """The best labellings of a sequence, best first.

    Attributes
    ----------
    labels : array of shape (at most k, length)
    margins : array of shape (at most k,)
        Score of the best minus the score of each.
    """

    labels: IntArray
    margins: FloatArray


def check_k(k: object, owner: str) -> int:
    """Return k; raise unless it is an int >= 1."""
    if not (isinstance(k, Integral) and int(k) >= 1):
        raise ValueError(f"{owner}: k must be an int >= 1, got {shown(k)}.")
    return int(k)


@generic
def find_k_best(oracle, i, theta, work, search, y, scores):
    """Write the k best outputs of sequence i to ``y``, and their scores to ``scores``, which has length k.

    ``work`` is the workspace of the oracle, ``search`` that of `search_space`.
    """
    raise NotImplementedError


@kernel
def _find(problem, i, w, theta, work, search, y, scores):
    """Score sequence i and write its best outputs."""
    score(problem.map, i, w, theta)
    find_k_best(problem.oracle, i, theta, work, search, y, scores)


def _most_outputs(oracle: Any) -> int:
    """Return an upper bound on the number of outputs of a sequence.

    Each token has one of the labels, and may start a segment.
    """
    labelled = getattr(oracle, "inner", oracle)  # of second order
    return (2 * int(labelled.n_labels)) ** int(labelled.longest)


def search_space(oracle: object, k: int) -> object:
    """Return a workspace for the k best outputs of a sequence, in addition to that of the oracle."""
    known, make = answers_of(oracle)
    if make.k_best is None:
        raise NotImplementedError
    return make.k_best(known, k)


def k_best_outputs(problem: AnyProblem, w: FloatArray, k: int) -> list[KBest]:
    """Return the k best outputs for each sequence, or all outputs if there are fewer."""
    oracle, size, found = problem.oracle, sizes(problem), []
    k, w = min(k, _most_outputs(oracle)), checked_weights(problem, w)
    theta, work, search = np.zeros(size.statistics), oracle_workspace(oracle), search_space(oracle, k)
    y, scores = np.zeros((k, size.output), dtype=np.int64), np.zeros(k)
    for i in range(size.examples):
        _find(problem, i, w, theta, work, search, y, scores)
        count, length = int((scores > LEAST).sum()), output_size(oracle, i)
        found.append(KBest(y[:count, :length].copy(), scores[0] - scores[:count]))
    return found

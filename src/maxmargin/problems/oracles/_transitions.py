"""Transitions of a chain: all are allowed, or some are forbidden."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import generic, helper
from maxmargin.inference.forward_backward import forward_backward
from maxmargin.inference.viterbi import viterbi
from maxmargin.loops import add_scaled, copy, weighted_sum

# Score of a forbidden transition: finite, so that sums are finite, but too low for other scores to offset.
_BARRIER = -1e30
# Scores below this include a barrier.
LEAST = _BARRIER / 2


class AllTransitions(NamedTuple):
    """Every label may follow every other."""


class SomeTransitions(NamedTuple):
    """Some transitions are forbidden.

    Attributes
    ----------
    pairs : array of shape (n_labels, width)
        Zero where label k may follow label j, else the barrier.
    start, end : arrays of shape (width,)
        Zero where a label may be the first or the last of a sequence, else the barrier.
    """

    pairs: FloatArray
    start: FloatArray
    end: FloatArray


Transitions = AllTransitions | SomeTransitions


def as_transitions(forbidden: Any, width: int) -> Transitions:
    """Return the transitions allowed by a matrix that marks forbidden pairs of labels.

    Its last row is for the start of a sequence, its last column for the end.
    """
    if forbidden is None:
        return AllTransitions()
    K = len(forbidden) - 1
    barrier = np.zeros((K + 2, width))
    barrier[: K + 1, :K] = np.where(forbidden[:, :K], _BARRIER, 0.0)
    barrier[K + 1, :K] = np.where(forbidden[:K, K], _BARRIER, 0.0)
    return SomeTransitions(barrier[:K].copy(), barrier[K].copy(), barrier[K + 1].copy())


@generic
def best_path(transitions, unary, pairs, n_labels, work, y):
    """Write the best labelling to ``y``; see `viterbi`."""
    raise NotImplementedError


@best_path.register(AllTransitions)
def all_transitions_best_path(transitions, unary, pairs, n_labels, work, y):
    viterbi(unary, pairs, n_labels, work.value, y)


@best_path.register(SomeTransitions)
def some_transitions_best_path(transitions, unary, pairs, n_labels, work, y):
    lay_out(transitions, unary, pairs, n_labels, work)
    viterbi(work.unary[: unary.shape[0]], work.pairs, n_labels, work.value, y)


@generic
def path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    """Write the means over all labellings, and return the log-partition; see `forward_backward`."""
    raise NotImplementedError


@path_means.register(AllTransitions)
def all_transitions_path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    return forward_backward(unary, pairs, n_labels, work.value, work.joint, marginals, counts)


@path_means.register(SomeTransitions)
def some_transitions_path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    lay_out(transitions, unary, pairs, n_labels, work)
    inner = work.unary[: unary.shape[0]]
    return forward_backward(inner, work.pairs, n_labels, work.value, work.joint, marginals, counts)


@generic
def lay_out(transitions, unary, pairs, n_labels, work):
    """Write the scores to ``work``, with barriers; ``unary`` may be there already."""
    raise NotImplementedError


@lay_out.register(AllTransitions)
def all_transitions_lay_out(transitions, unary, pairs, n_labels, work):
    _copy_rows(unary, work.unary)
    _copy_rows(pairs, work.pairs)


@lay_out.register(SomeTransitions)
def some_transitions_lay_out(transitions, unary, pairs, n_labels, work):
    _copy_rows(unary, work.unary)
    add_scaled(1.0, transitions.start, work.unary[0])
    add_scaled(1.0, transitions.end, work.unary[unary.shape[0] - 1])
    for j in range(n_labels):
        weighted_sum(1.0, pairs[j], 1.0, transitions.pairs[j], work.pairs[j])


@helper
def _copy_rows(rows, out):
    for t in range(rows.shape[0]):
        copy(rows[t], out[t])

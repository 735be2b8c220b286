"""Maximum projective trees, in which no two arcs cross (Eisner's O(n^3) algorithm)."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper

_RIGHT, _LEFT = 0, 1


class EisnerWork(NamedTuple):
    """Workspace for sentences of up to a given number of words. Node 0 is the root, node j is word j.

    Attributes
    ----------
    right, left : arrays of shape (n_words + 1, n_words + 1)
        ``right[i, j]`` and ``left[j, i]``, for i <= j: the best score of a tree on the nodes i, ..., j whose
        root is i, or j.
    right_arc, left_arc : arrays of shape (n_words + 1, n_words + 1)
        ``right_arc[i, j]`` and ``left_arc[j, i]``: the best score of a span with the arc from i to j, or from
        j to i, in which j, or i, has no children on its far side.
    arc_split, right_split, left_split : int arrays of shape (n_words + 1, n_words + 1)
        The best places to join two spans.
    stack : int array of shape (n_words + 2, 3)
        Spans whose arcs are still to be read off: first node, last node, and which of them is the root.
    """

    right: FloatArray
    left: FloatArray
    right_arc: FloatArray
    left_arc: FloatArray
    arc_split: IntArray
    right_split: IntArray
    left_split: IntArray
    stack: IntArray


def eisner_work(n_words: int) -> EisnerWork:
    """Return a workspace for up to ``n_words`` words."""
    square = (n_words + 1, n_words + 1)
    right, left, right_arc, left_arc = (np.zeros(square) for _ in range(4))
    arc_split, right_split, left_split = (np.zeros(square, dtype=np.int64) for _ in range(3))
    stack = np.zeros((n_words + 2, 3), dtype=np.int64)
    return EisnerWork(right, left, right_arc, left_arc, arc_split, right_split, left_split, stack)


@helper
def eisner(scores, single_root, work, y):
    """Find the projective tree of largest score; the arguments are those of `arborescence`.

    Ties between ways to join spans go to the first.
    """
    n_words = scores.shape[0]
    first = 1 if single_root else 0
    for i in range(first, n_words + 1):
        work.right[i, i] = work.left[i, i] = 0.0
    for width in range(1, n_words + 1 - first):
        for i in range(first, n_words + 1 - width):
            _join(scores, i, i + width, work)
    if single_root:
        root = _best_root(scores, work)
        y[root - 1] = 0
        depth = _push(work.stack, 0, 1, root, _LEFT)
        depth = _push(work.stack, depth, root, n_words, _RIGHT)
    else:
        depth = _push(work.stack, 0, 0, n_words, _RIGHT)
    _read_arcs(work, depth, y)


@helper
def _join(scores, i, j, work):
    """Fill the tables for the span from i to j."""
    k, inner = _best_split(work.right[i, i:j], work.left[j, i + 1 : j + 1])
    work.arc_split[i, j] = i + k
    work.right_arc[i, j] = inner + scores[j - 1, i]
    work.left_arc[j, i] = inner + scores[i - 1, j] if i > 0 else -np.inf
    k, best = _best_split(work.right_arc[i, i + 1 : j + 1], work.right[i + 1 : j + 1, j])
    work.right_split[i, j], work.right[i, j] = i + 1 + k, best
    k, best = _best_split(work.left_arc[j, i:j], work.left[i:j, i])
    work.left_split[i, j], work.left[j, i] = i + k, best


@helper
def _best_split(a, b):
    """Return ``argmax(a + b)`` and the maximum."""
    best, value = 0, -np.inf
    for k in range(a.shape[0]):
        candidate = a[k] + b[k]
        if candidate > value:
            best, value = k, candidate
    return best, value


@helper
def _best_root(scores, work):
    """Return the best only child of the root; ties go to the first."""
    n_words = scores.shape[0]
    root, best = 1, -np.inf
    for r in range(1, n_words + 1):
        candidate = work.left[r, 1] + work.right[r, n_words] + scores[r - 1, 0]
        if candidate > best:
            root, best = r, candidate
    return root


@helper
def _push(stack, depth, i, j, side):
    """Push a span onto the stack, unless it has only one node; return the new depth."""
    stack[depth, 0], stack[depth, 1], stack[depth, 2] = i, j, side
    return depth + (1 if i < j else 0)


@helper
def _read_arcs(work, depth, y):
    """Write the arcs of the spans on the stack: each consists of one arc and up to three inner spans."""
    while depth > 0:
        depth -= 1
        i, j, side = work.stack[depth, 0], work.stack[depth, 1], work.stack[depth, 2]
        if side == _RIGHT:
            k = work.right_split[i, j]
            y[k - 1] = i
            split = work.arc_split[i, k]
            depth = _push(work.stack, depth, k, j, _RIGHT)
            depth = _push(work.stack, depth, i, split, _RIGHT)
            depth = _push(work.stack, depth, split + 1, k, _LEFT)
        else:
            k = work.left_split[i, j]
            y[k - 1] = j
            split = work.arc_split[k, j]
            depth = _push(work.stack, depth, i, k, _LEFT)
            depth = _push(work.stack, depth, k, split, _RIGHT)
            depth = _push(work.stack, depth, split + 1, j, _LEFT)

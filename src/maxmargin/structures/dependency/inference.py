"""The best dependency trees: projective ones by Eisner, others by Chu, Liu and Edmonds; and margins."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper
from maxmargin.compiling.loops import fill
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.structures.dependency.expectations import (
    ProjectiveSums,
    TreeSums,
    projective_means,
    projective_sums,
    spanning_tree_means,
    tree_sums,
)
from maxmargin.structures.recursions import lead

_UNSEEN, _ON_PATH, _DONE, _FIXED = 0, 1, 2, 3
_ROOT = -1


class DependencyWork(NamedTuple):
    """Workspace for sentences of up to a given number of words.

    Cycles of words are contracted to components. Components are numbered in the order in which they are made;
    the first ones are the words themselves.

    Attributes
    ----------
    gains, enters : arrays of shape (n_words, n_words + 1)
        For a component and a head outside of it: the gain of the best arc from that head to a word of the
        component over the inner arc that it replaces, and that word.
    row : int array
        The row of ``gains`` and ``enters`` that belongs to each component.
    component : int array of shape (n_words + 1,)
        The component of each head.
    parent : int array
        The component into which each one was contracted.
    head, word, gain : arrays
        The arc chosen to enter each component, and its gain.
    state, path : int arrays
        The status of each component, and the components of the current walk from head to head.
    """

    gains: FloatArray
    enters: IntArray
    row: IntArray
    component: IntArray
    parent: IntArray
    head: IntArray
    word: IntArray
    gain: FloatArray
    state: IntArray
    path: IntArray


def arborescence_work(n_words: int) -> DependencyWork:
    """Return a workspace for up to ``n_words`` words."""

    def ints(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int64)

    cells, nodes = (n_words, n_words + 1), 2 * n_words
    return DependencyWork(
        np.zeros(cells),
        ints(*cells),
        ints(nodes),
        ints(n_words + 1),
        ints(nodes),
        ints(nodes),
        ints(nodes),
        np.zeros(nodes),
        ints(nodes),
        ints(nodes),
    )


@helper
def arborescence(scores, single_root, work, y):
    r"""Find the tree of largest score that is rooted at node 0 and spans all words.

    .. math:: \max_y \; \sum_j \text{scores}_{j y_j}

    A walk goes from each word to its best head, from there to the best head of that head, and so on, until it
    reaches the root or an earlier walk. A cycle is contracted to one component, and the walk continues from
    there. If the root may have only one arc, walks reach it last, when all words are one component: its arcs
    are treated as if they cost more than all others together. Ties go to the first head.

    Parameters
    ----------
    scores : array of shape (n_words, n_words + 1)
        ``scores[j, h]`` is the score of the arc to word j from word h - 1, or from the root for h = 0. The
        entries with h = j + 1 are ignored.
    single_root : bool
        Whether exactly one word has the root as its head.
    work : DependencyWork
    y : int array of length at least n_words
        Receives the head of each word, 0 for the root, 1 for the first word.
    """
    n_words = scores.shape[0]
    _begin(scores, work)
    n_nodes = n_words
    for j in range(n_words):
        if work.state[work.component[j + 1]] == _UNSEEN:
            n_nodes = _walk(work, work.component[j + 1], n_words, n_nodes, single_root)
    _unfold(work, n_nodes, y)


@helper
def _begin(scores, work):
    """Make each word a separate component."""
    n_words = scores.shape[0]
    work.component[0] = _ROOT
    for j in range(n_words):
        work.component[j + 1] = work.row[j] = j
        work.parent[j], work.state[j] = -1, _UNSEEN
        for h in range(n_words + 1):
            work.gains[j, h], work.enters[j, h] = scores[j, h], j


@helper
def _walk(work, first, n_words, n_nodes, single_root):
    """Choose arcs from component ``first`` back to the root or a finished one; return ``n_nodes``."""
    work.path[0], length = first, 1
    work.state[first] = _ON_PATH
    while True:
        _choose(work, work.path[length - 1], n_words, 1 if single_root else 0)
        source = work.component[work.head[work.path[length - 1]]]
        if source == _ROOT or work.state[source] == _DONE:
            break
        if work.state[source] == _ON_PATH:
            length = _contract(work, source, length, n_nodes, n_words)
            n_nodes += 1
        else:
            work.path[length] = source
            work.state[source] = _ON_PATH
            length += 1
    for c in range(length):
        work.state[work.path[c]] = _DONE
    return n_nodes


@helper
def _choose(work, node, n_words, first):
    """Choose the arc that enters the component, from head ``first`` on, or else from the root."""
    row, best, gain = work.row[node], 0, -np.inf
    for h in range(first, n_words + 1):
        candidate = work.gains[row, h]
        if candidate > gain and work.component[h] != node:
            best, gain = h, candidate
    work.head[node], work.gain[node] = best, gain
    work.word[node] = work.enters[row, best]


@helper
def _contract(work, source, length, node, n_words):
    """Contract the end of the path, from ``source`` on, to one component; return the path's new length."""
    first = length - 1
    while work.path[first] != source:
        first -= 1
    row = work.row[node] = work.row[source]
    for h in range(n_words + 1):
        work.gains[row, h] -= work.gain[source]
    for c in range(first, length):
        member = work.path[c]
        work.parent[member] = node
        if c > first:
            _absorb(work, row, work.row[member], work.gain[member], n_words)
    for h in range(1, n_words + 1):
        if work.parent[work.component[h]] == node:
            work.component[h] = node
    work.path[first], work.parent[node], work.state[node] = node, -1, _ON_PATH
    return first + 1


@helper
def _absorb(work, row, other, gain, n_words):
    """Let arcs also enter at the words of another component, in place of its arc with this gain."""
    for h in range(n_words + 1):
        candidate = work.gains[other, h] - gain
        if candidate > work.gains[row, h]:
            work.gains[row, h], work.enters[row, h] = candidate, work.enters[other, h]


@helper
def _unfold(work, n_nodes, y):
    """Keep, from the last component to the first, the arcs that no arc into a larger component replaced."""
    for c in range(n_nodes):
        node = n_nodes - 1 - c
        if work.state[node] != _FIXED:
            inner = work.word[node]
            y[inner] = work.head[node]
            while inner != node:
                work.state[inner] = _FIXED
                inner = work.parent[inner]


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


class AnyTrees(NamedTuple):
    """All trees; with ``single_root`` only those in which exactly one word is attached to the root."""

    single_root: bool


class ProjectiveTrees(NamedTuple):
    """Trees without crossing arcs; with ``single_root`` exactly one word is attached to the root."""

    single_root: bool


Trees = AnyTrees | ProjectiveTrees


def tree_work(trees: Trees, n_words: int) -> DependencyWork | EisnerWork:
    """Return a workspace of `best_tree`, for sentences of up to ``n_words`` words."""
    return eisner_work(n_words) if isinstance(trees, ProjectiveTrees) else arborescence_work(n_words)


@generic
def best_tree(trees, scores, work, y):
    """Write the heads of the tree of largest score to ``y``; see `arborescence`."""
    raise NotImplementedError


@best_tree.register(AnyTrees)
def any_trees_best_tree(trees, scores, work, y):
    arborescence(scores, trees.single_root, work, y)


@best_tree.register(ProjectiveTrees)
def projective_trees_best_tree(trees, scores, work, y):
    eisner(scores, trees.single_root, work, y)


def arc_sums(trees: Trees, n_words: int) -> ProjectiveSums | TreeSums:
    """Return a workspace of `arc_means`, for sentences of up to ``n_words`` words."""
    return projective_sums(n_words) if isinstance(trees, ProjectiveTrees) else tree_sums(n_words)


@generic
def arc_means(trees, scores, work, mean):
    """Write the probability of each arc to ``mean``, return the log-partition; see `projective_means`."""
    raise NotImplementedError


@arc_means.register(AnyTrees)
def any_trees_arc_means(trees, scores, work, mean):
    return spanning_tree_means(scores, trees.single_root, work, mean)


@arc_means.register(ProjectiveTrees)
def projective_trees_arc_means(trees, scores, work, mean):
    return projective_means(scores, trees.single_root, work, mean)


class Outside(NamedTuple):
    """Workspace: the best scores of everything outside a span.

    Attributes
    ----------
    right, left, right_arc, left_arc : arrays of shape (n_words + 1, n_words + 1)
        For the spans of `EisnerWork`; they become -inf where no tree has the span.
    heads : array of shape (n_words + 1, n_words + 1)
        ``heads[j, h]``, for j >= 1, is the best score of a tree in which word j has head h.
    """

    right: FloatArray
    left: FloatArray
    right_arc: FloatArray
    left_arc: FloatArray
    heads: FloatArray


def outside_work(n_words: int) -> Outside:
    """Return a workspace for up to ``n_words`` words."""
    return Outside(*np.zeros((5, n_words + 1, n_words + 1)))


@helper
def eisner_margins(scores, single_root, inside, outside, y, margins):
    """Write by how much the score of the tree that `eisner` found falls if a word must have another head.

    Parameters
    ----------
    scores, single_root, y
        As for `eisner`.
    inside : EisnerWork
        As `eisner` leaves it.
    outside : Outside
    margins : array of shape (n_words,)
        Receives the margins.
    """
    n_words = scores.shape[0]
    _begin_outside(scores, single_root, inside, outside)
    first = 1 if single_root else 0
    for width in range(n_words - first, 0, -1):
        for i in range(first, n_words + 1 - width):
            _divide(scores, i, i + width, inside, outside)
    for j in range(1, n_words + 1):
        margins[j - 1] = lead(outside.heads[j], n_words + 1, y[j - 1])


@helper
def _begin_outside(scores, single_root, inside, outside):
    """Clear the tables, and enter the spans that make up a whole tree."""
    n_words = scores.shape[0]
    for i in range(n_words + 1):
        fill(outside.right[i, : n_words + 1], -np.inf)
        fill(outside.left[i, : n_words + 1], -np.inf)
        fill(outside.right_arc[i, : n_words + 1], -np.inf)
        fill(outside.left_arc[i, : n_words + 1], -np.inf)
        fill(outside.heads[i, : n_words + 1], -np.inf)
    if not single_root:
        outside.right[0, n_words] = 0.0
        return
    for r in range(1, n_words + 1):
        outside.left[r, 1] = inside.right[r, n_words] + scores[r - 1, 0]
        outside.right[r, n_words] = inside.left[r, 1] + scores[r - 1, 0]
        outside.heads[r, 0] = outside.left[r, 1] + inside.left[r, 1]


@helper
def _divide(scores, i, j, inside, outside):
    """Pass the scores outside the spans from i to j on to the spans that they are made of.

    The spans of an arc are the last to be divided: they may be parts of the others.
    """
    above = outside.right[i, j]
    for k in range(i + 1, j + 1):
        _raise_to(outside.right_arc[i], k, above + inside.right[k, j])
        _raise_to(outside.right[k], j, above + inside.right_arc[i, k])
    above = outside.left[j, i]
    for k in range(i, j):
        _raise_to(outside.left_arc[j], k, above + inside.left[k, i])
        _raise_to(outside.left[k], i, above + inside.left_arc[j, k])
    outside.heads[j, i] = inside.right_arc[i, j] + outside.right_arc[i, j]
    above = outside.right_arc[i, j] + scores[j - 1, i]
    if i > 0:
        outside.heads[i, j] = inside.left_arc[j, i] + outside.left_arc[j, i]
        above = max(above, outside.left_arc[j, i] + scores[i - 1, j])
    for k in range(i, j):
        _raise_to(outside.right[i], k, above + inside.left[j, k + 1])
        _raise_to(outside.left[j], k + 1, above + inside.right[i, k])


@helper
def _raise_to(row, k, value):
    """``row[k] = max(row[k], value)``"""
    row[k] = value if value > row[k] else row[k]

"""Maximum spanning arborescences (Chu-Liu, Edmonds; Tarjan's O(n^2) algorithm for dense graphs)."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper

_UNSEEN, _ON_PATH, _DONE, _FIXED = 0, 1, 2, 3
_ROOT = -1


class ArborescenceWork(NamedTuple):
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


def arborescence_work(n_words: int) -> ArborescenceWork:
    """Return a workspace for up to ``n_words`` words."""

    def ints(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int64)

    cells, nodes = (n_words, n_words + 1), 2 * n_words
    return ArborescenceWork(
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
    work : ArborescenceWork
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

r"""How sure a set of labels is of each label: differences of max-marginals.

Zeros and ones y score :math:`\sum_l y_l s_l + \sum_{e = (a, b)} T_e(y_a, y_b)`. The margin of label l is
:math:`\max_{y:\, y_l = 1} - \max_{y:\, y_l = 0}`: positive if the best set has the label, and as large as the
loss of score if it had to do without. All examples have the same pairs, so each function is vectorised over
examples.
"""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray

# Scores of sets that are held at a time.
_BLOCK = 4_000_000


def tree_margins(scores: FloatArray, edges: IntArray, tables: FloatArray) -> FloatArray:
    """Return the margins of labels whose pairs form a forest.

    Parameters
    ----------
    scores : array of shape (n, n_labels)
        What a label adds to the score of each example.
    edges : int array of shape (n_edges, 2)
    tables : array of shape (n_edges, 2, 2)
        ``tables[e, j, k]`` is the score of j at the first label of pair e and k at its second.

    Returns
    -------
    array of shape (n, n_labels)
    """
    belief = np.stack([np.zeros_like(scores), scores], axis=2)
    walk = _walked(scores.shape[1], edges, tables)
    sent = []
    for child, parent, table in reversed(walk):
        message = (belief[:, child, :, None] + table).max(axis=1)
        belief[:, parent] += message
        sent.append(message)
    for child, parent, table in walk:
        others = belief[:, parent] - sent.pop()
        belief[:, child] += (others[:, None, :] + table).max(axis=2)
    return belief[:, :, 1] - belief[:, :, 0]


def _walked(n_labels: int, edges: IntArray, tables: FloatArray) -> list[tuple[int, int, FloatArray]]:
    """Return (child, parent, table) of all pairs, from the roots outwards; rows of tables are of children."""
    neighbours: list[list[tuple[int, FloatArray]]] = [[] for _ in range(n_labels)]
    for (a, b), table in zip(edges.tolist(), tables, strict=True):
        neighbours[a].append((b, table.T))
        neighbours[b].append((a, table))
    walk: list[tuple[int, int, FloatArray]] = []
    seen: set[int] = set()
    for root in range(n_labels):
        waiting = [] if root in seen else [root]
        while waiting:
            parent = waiting.pop()
            seen.add(parent)
            fresh = [(child, parent, table) for child, table in neighbours[parent] if child not in seen]
            walk += fresh
            waiting += [child for child, _, _ in fresh]
    return walk


def subset_margins(scores: FloatArray, edges: IntArray, tables: FloatArray) -> FloatArray:
    """Return the margins of a few labels with any pairs, from the scores of all sets; see `tree_margins`."""
    n_labels = scores.shape[1]
    sets = (np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1
    pairs = np.zeros(len(sets))
    for (a, b), table in zip(edges, tables, strict=True):
        pairs += table[sets[:, a], sets[:, b]]
    out, step = np.zeros_like(scores), max(1, _BLOCK // len(sets))
    for first in range(0, len(scores), step):
        totals = scores[first : first + step] @ sets.T + pairs
        for label in range(n_labels):
            has = sets[:, label] == 1
            out[first : first + step, label] = totals[:, has].max(axis=1) - totals[:, ~has].max(axis=1)
    return out


def change_margins(scores: FloatArray, edges: IntArray, tables: FloatArray, y: IntArray) -> FloatArray:
    """Return what each label adds to the score where all other labels are those of ``y``; see `tree_margins`.

    For as many labels as `subset_margins` cannot enumerate.
    """
    out = scores.copy()
    for (a, b), table in zip(edges, tables, strict=True):
        out[:, a] += (table[1] - table[0])[y[:, b]]
        out[:, b] += (table[:, 1] - table[:, 0])[y[:, a]]
    return out

"""Which labels of a set are joined, and the graph of labels that each row of a table becomes."""

from itertools import combinations

import numpy as np
import scipy.sparse

from maxmargin.arrays import FloatArray, IntArray, frozen
from maxmargin.encoding.graphs import Graphs
from maxmargin.estimators._tables import Table, with_constant
from maxmargin.inference.chow_liu import chow_liu
from maxmargin.inference.subsets import MOST_NODES

STRUCTURES = {"auto", "independent", "tree", "full"}
# The feature of a pair of labels. A pair has only this feature, while a label has all those of X, so with a
# value of one the weights of pairs would be regularised too much. On the data of benchmarks/multilabel.py,
# three is best or nearly so, and ten needs three times as many passes.
PAIR = 3.0
# The names of the entries of a pair's table, row by row.
PAIR_STATES = ("neither", "second", "first", "both")


def chosen_structure(
    structure: str, n_labels: int, is_slack: bool, probability: bool, owner: str
) -> tuple[str, str]:
    """Return which labels are joined, and how the best set is found; raise if there is no oracle for it."""
    is_small = n_labels <= MOST_NODES
    if structure == "auto":
        # Up to two labels, a tree has all pairs.
        has_oracle = n_labels > 2 and is_small and not is_slack and not probability
        structure = "full" if has_oracle else "tree"
    if is_slack and structure == "full":
        raise ValueError(
            f"{owner}: structure must be 'independent' or 'tree' where rescaling is 'slack', got "
            "'full'; use one of these, or rescaling='margin'."
        )
    if structure != "full":
        return structure, "tree"
    return structure, "subsets" if is_small else "messages"


def joined_labels(structure: str, y: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the pairs of labels that are joined."""
    if structure == "tree":
        return chow_liu(y, weights)
    pairs = combinations(range(y.shape[1]), 2) if structure == "full" else ()
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def label_graphs(table: Table, n_labels: int, edges: IntArray) -> Graphs:
    """Return one graph per row: a node per label, with the row's features and a one in a place of its own."""
    n, n_edges = table.shape[0], len(edges)
    rows = with_constant(scipy.sparse.csr_array(table))
    by_label = scipy.sparse.kron(scipy.sparse.eye_array(n_labels, dtype=rows.dtype), rows, format="csr")
    nodes = by_label[(np.arange(n)[:, None] + n * np.arange(n_labels)).ravel()]
    by_edge = scipy.sparse.eye_array(max(n_edges, 1), format="csr")
    features = scipy.sparse.csr_array(PAIR * by_edge[np.tile(np.arange(n_edges), n)])
    ends = np.tile(edges, (n, 1))
    return Graphs(frozen(nodes), n_labels * np.arange(n + 1), features, n_edges * np.arange(n + 1), ends)

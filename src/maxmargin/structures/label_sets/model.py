r"""Sets of labels: graphs with a node of two labels for each label of a set, absent or present.

.. math:: \langle w, \phi(x, y) \rangle = \sum_l \langle W_{l y_l}, x \rangle
          + \sum_{(l, m)} c V_{lm}(y_l, y_m)

All examples have the same graph, which is stored once. All nodes of an example have the same features, each
with weights of its own; these are stored once too. So a problem takes the memory of its features and of its
true sets.
"""

from collections.abc import Iterable, Set
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from maxmargin.encoding.kinds import pieces
from maxmargin.encoding.labels import Labels, checked_numbers
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, freeze
from maxmargin.runtime.limits import OutOfTime, Pace
from maxmargin.runtime.wording import quoted
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.graphs.loopy import MOST_NODES
from maxmargin.structures.graphs.model import Graph, GraphProblem
from maxmargin.structures.problem import Problem, builder, fitting, spans
from maxmargin.structures.rows import Rows, SharedRows, as_rows, n_rows, shared_rows


class LabelGraph(NamedTuple):
    """The graph of all examples.

    Attributes
    ----------
    n_labels : int
    edges : array of shape (n_edges, 2)
        The pairs of labels that are joined.
    feature : float
        c, the one feature of a pair.
    inference : str
        As for `Graph`.
    """

    n_labels: int
    edges: IntArray
    feature: float
    inference: str


class LabelSets:
    """Builders of problems over sets of labels."""

    @staticmethod
    @builder("LabelSets")
    def from_encoded(X: Features, y: IntArray, labels: LabelGraph, *, loss: str = "hamming") -> GraphProblem:
        """Build a problem from a row of features for each example, and sets as rows of zeros and ones."""
        none = np.zeros(labels.n_labels, dtype=np.int64)
        one = Graph.from_encoded(_graph(labels), none, 2, inference=labels.inference, loss=loss)
        rows = as_rows(X)
        return _examples(one, shared_rows(rows, labels.n_labels), n_rows(rows), y)

    @staticmethod
    @builder("LabelSets")
    def for_prediction(X: Features, labels: LabelGraph) -> GraphProblem:
        """Build a problem that can be decoded but not trained on."""
        rows = as_rows(X)
        return _unlabelled(shared_rows(rows, labels.n_labels), n_rows(rows), labels)

    @staticmethod
    @builder("LabelSets")
    def for_scores(scores: FloatArray, labels: LabelGraph) -> GraphProblem:
        """Build a problem to decode whose features of nodes are scores, such as a kernel's, and a constant.

        ``scores`` has one row per example, with as many columns for each label in turn. The constant of each
        label is a feature of its own.
        """
        n, n_labels = len(scores), labels.n_labels
        by_node = csr_array(scores.reshape(n * n_labels, -1))
        constants = csr_array(
            (np.ones(n * n_labels), np.tile(np.arange(n_labels), n), np.arange(n * n_labels + 1))
        )
        nodes = freeze(csr_array(scipy.sparse.hstack([by_node, constants])))
        return _unlabelled(as_rows(nodes), n, labels)


def _unlabelled(rows: Rows | SharedRows, n: int, labels: LabelGraph) -> GraphProblem:
    one = Graph.for_prediction(_graph(labels), 2, labels.inference)
    return _examples(one, rows, n, None)


def _graph(labels: LabelGraph) -> Graphs:
    """Return the one graph; its nodes have no features yet."""
    n_labels, n_edges = labels.n_labels, len(labels.edges)
    ones = scipy.sparse.eye_array(max(n_edges, 1), format="csr")
    features = csr_array(labels.feature * ones[:n_edges])
    nodes = np.zeros((n_labels, 0))
    return Graphs(nodes, np.array([0, n_labels]), features, np.array([0, n_edges]), labels.edges)


def _examples(one: GraphProblem, rows: Rows | SharedRows, n: int, y: IntArray | None) -> GraphProblem:
    """Return the problem of n examples with the graph of the one, with these rows of nodes and labels."""
    nodes = spans(one.map.most_nodes * np.arange(n + 1))
    edges = np.repeat(one.map.edges, n, axis=0)
    phi = one.map._replace(rows=rows, nodes=nodes, edges=edges)
    fitting(Problem(phi, phi))
    known = one.oracle.labels
    graph = one.oracle._replace(
        nodes=np.repeat(one.oracle.nodes, n, axis=0),
        edges=edges,
        truth=nodes[:, 0].copy(),
        labels=known if y is None else checked_numbers(np.ravel(y), n * one.map.most_nodes, 2),
    )
    return Problem(phi, graph)


def column_names(y: object) -> Labels | None:
    """Return the names of the columns of a DataFrame if all are strings; raise if two are the same."""
    columns = list(getattr(y, "columns", ()))
    repeated = next((name for k, name in enumerate(columns) if name in columns[:k]), None)
    if repeated is not None:
        raise ValueError(f"two columns of y are called {quoted(repeated)}; give each label one column.")
    return np.array(columns) if columns and all(isinstance(name, str) for name in columns) else None


def check_column_names(y: object, known: Labels) -> None:
    """Raise if the columns of y have names, but not these in their order."""
    names = column_names(y)
    if names is not None and names.tolist() != known.tolist():
        raise ValueError(
            f"y has the columns {quoted(names.tolist())}, expected {quoted(known.tolist())}, as in the first "
            "call; give them in this order."
        )


def check_sets(y: NDArray[np.generic]) -> None:
    """Raise unless y consists of zeros and ones."""
    known = np.isin(y, (0, 1))
    if not known.all():
        raise ValueError(
            f"y must be zeros and ones, one column per label, got {y[~known].tolist()[0]!r}; use "
            "MultiLabelBinarizer for sets of labels."
        )


def check_no_lists(y: object) -> None:
    """Raise if y lists the labels of each example instead of being an indicator matrix."""
    kind = getattr(y, "dtype", None)
    is_list = isinstance(y, list | tuple) or (kind is not None and kind == np.dtype(object))
    if not is_list or getattr(y, "ndim", 1) != 1:
        return
    items = list(cast("Iterable[object]", y))
    lists = [item for item in items if isinstance(item, list | tuple)]
    has_names = any(isinstance(label, str) for item in lists for label in item)
    is_ragged = len({len(item) for item in lists}) > 1
    if has_names or is_ragged or any(isinstance(item, Set) for item in items):
        raise ValueError(
            "y must be zeros and ones, one column per label, got labels such as "
            f"{quoted(items[0])}; use MultiLabelBinarizer().fit_transform(y)."
        )


def chosen_structure(structure: str, n_labels: int, is_slack: bool, probability: bool) -> tuple[str, str]:
    """Return which labels are joined, and how the best set is found; raise if there is no oracle for it."""
    is_small = n_labels <= MOST_NODES
    if structure == "auto":
        # Up to two labels, a tree has all pairs.
        has_oracle = n_labels > 2 and is_small and not is_slack and not probability
        structure = "full" if has_oracle else "tree"
    if is_slack and structure == "full":
        raise ValueError(
            "structure must be 'independent' or 'tree' where rescaling is 'slack', got "
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


# The smallest mutual information of two labels, above zero so that the tree spans all labels.
_LEAST = 1e-9


def mutual_information(y: ArrayLike, row_weights: FloatArray | None = None) -> FloatArray:
    """Return the mutual information, in nats, of each pair of columns of zeros and ones."""
    both = _joint_counts(np.asarray(y), row_weights)
    n, ones = both[-1, -1], both[-1]
    total = np.zeros(both.shape)
    # The last column of ``both`` is of ones: the counts of a label with it are those of the label alone.
    absent = ones[:, None] - both
    for joint, a, b in (
        (both, ones, ones),
        (absent, ones, n - ones),
        (absent.T, n - ones, ones),
        (n - ones - absent, n - ones, n - ones),
    ):
        seen, apart = joint > 0.0, np.outer(a / n, b / n)
        total[seen] += joint[seen] / n * np.log(joint[seen] / n / apart[seen])
    return total[:-1, :-1]


def _joint_counts(y: NDArray[np.generic], row_weights: FloatArray | None) -> FloatArray:
    """Return how often each pair of columns is one in the same row; the last column is a constant.

    Rows are counted piece by piece, as y may be large. If time is up, those so far have to do.
    """
    width, pace = y.shape[1] + 1, Pace()
    total = np.zeros((width, width))
    for piece in pieces(len(y), width):
        ones = np.column_stack([y[piece], np.ones(len(y[piece]))])
        total += (ones.T if row_weights is None else ones.T * row_weights[piece]) @ ones
        try:
            pace.check()
        except OutOfTime:
            break
    return total


def chow_liu(y: ArrayLike, row_weights: FloatArray | None = None) -> IntArray:
    """Return the edges of the spanning tree with the largest mutual information between columns.

    This tree best approximates the joint distribution of labels (Chow and Liu 1968).

    Parameters
    ----------
    y : array of shape (n, n_labels)
        Zeros and ones.
    row_weights : array of shape (n,), optional
        Weight of each row; one by default.

    Returns
    -------
    array of shape (n_labels - 1, 2)
    """
    shared = np.maximum(mutual_information(y, row_weights), _LEAST)
    edges = np.argwhere(minimum_spanning_tree(-np.triu(shared, 1)).toarray() < 0.0)
    return edges.astype(np.int64)

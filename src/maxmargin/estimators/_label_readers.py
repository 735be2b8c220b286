"""What contributes to a score: the readers of labels of nodes, classes and sets of labels."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._explaining import Part
from maxmargin.estimators._explanation import Contribution
from maxmargin.estimators._readers import RowReader, row_entries, single


class GraphReader(NamedTuple):
    """Reads labels of nodes.

    Attributes
    ----------
    nodes, edges : RowReader
    ends : array of shape (n_edges, 2)
    classes : array
    weights, edge_weights : arrays
        In the shapes of `GraphSVC.coef_` and `GraphSVC.edge_coef_`.
    """

    nodes: RowReader
    edges: RowReader
    ends: IntArray
    classes: Labels
    weights: FloatArray
    edge_weights: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(v, v) for v in range(self.nodes.rows.shape[0])]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.classes[codes[part.number]].item()

    def output(self, codes: IntArray) -> object:
        return self.classes[codes[: self.nodes.rows.shape[0]]]

    def contributions(self, codes: IntArray) -> list[Contribution]:
        labels = self.classes.tolist()
        found: list[Contribution] = []
        for v in range(self.nodes.rows.shape[0]):
            found += self.nodes.contributions(v, v, labels[codes[v]], self.weights[codes[v]])
        for e, (a, b) in enumerate(self.ends.tolist()):
            weights = self._edge_weights(e, int(codes[a]), int(codes[b]))
            if weights is not None:
                pair = labels[codes[a]], labels[codes[b]]
                found += self.edges.contributions(e, (a, b), pair, weights)
        return found

    def _edge_weights(self, e: int, j: int, k: int) -> FloatArray | None:
        """Return the weights of edge e between these labels; None if a bond is not made."""
        if self.edge_weights.ndim == 3:
            return self.edge_weights[:, j, k]
        columns, values = row_entries(self.edges.rows, e)
        is_bond = j == k and values @ self.edge_weights[columns] > 0.0
        return self.edge_weights if is_bond else None


class ClassReader(NamedTuple):
    """Reads the class of an example."""

    example: RowReader
    classes: Labels
    coef: FloatArray
    intercept: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(0, None)]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.classes[codes[0]].item()

    def output(self, codes: IntArray) -> object:
        return self.classes[codes[0]].item()

    def contributions(self, codes: IntArray) -> list[Contribution]:
        k, label = int(codes[0]), self.classes[codes[0]].item()
        constant = single(None, "intercept", None, label, self.intercept[k])
        return [*self.example.contributions(0, None, label, self.coef[k]), *constant]


class LabelSetReader(NamedTuple):
    """Reads a set of labels.

    Attributes
    ----------
    example : RowReader
    labels : list
    classes : array or None
        Both classes, if outputs are one of them.
    coef, intercept, edges, edge_coef : arrays
        The weights, as `MultilabelSVC` has them.
    states : tuple of str
        The names of the entries of a pair's table.
    """

    example: RowReader
    labels: list[object]
    classes: Labels | None
    coef: FloatArray
    intercept: FloatArray
    edges: IntArray
    edge_coef: FloatArray
    states: tuple[str, ...]

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(k, label) for k, label in enumerate(self.labels)]

    def state(self, codes: IntArray, part: Part) -> object:
        return int(codes[part.number])

    def output(self, codes: IntArray) -> object:
        return codes if self.classes is None else self.classes[codes[0]].item()

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for k in np.flatnonzero(codes).tolist():
            label = self.labels[k]
            found += self.example.contributions(0, label, label, self.coef[k])
            found += single(label, "intercept", None, label, self.intercept[k])
        return [*found, *self._pairs(codes)]

    def _pairs(self, codes: IntArray) -> Iterator[Contribution]:
        """Yield the contributions of pairs of labels that are joined."""
        for (a, b), table in zip(self.edges.tolist(), self.edge_coef, strict=True):
            pair, state = (self.labels[a], self.labels[b]), self.states[2 * codes[a] + codes[b]]
            yield from single(pair, "pair", state, pair, table[codes[a], codes[b]])

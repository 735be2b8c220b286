"""Estimators over lists of examples, made to take a table: each row becomes one small example.

scikit-learn's checks know tables only. Behind these classes they reach `fit`, `predict`, parameters, pickles,
weights and state of the estimators themselves.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from maxmargin import ChainSVC, DependencySVC, GraphSVC, MatchingSVC, SegmentSVC, StructuredSVC

NO_EDGES = np.zeros((0, 2), dtype=int)
HEADS = {0: [0, 1], 1: [2, 0]}


class Rows:
    """A table as a list of examples, and a vector of numbers as a list of outputs of two kinds."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(*self._made(X, y, reset=True), sample_weight=sample_weight)  # type: ignore[misc]

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().partial_fit(  # type: ignore[misc]
            *self._made(X, y, reset=not hasattr(self, "n_features_in_")), sample_weight=sample_weight
        )

    def predict(self, X: Any) -> Any:
        if hasattr(self, "history_"):
            X = [self.example(row) for row in validate_data(self, X, reset=False)]
        return np.array([self.number(output) for output in super().predict(X)])  # type: ignore[misc]

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _made(self, X: Any, y: Any, *, reset: bool) -> tuple[list[Any], list[Any]]:
        X, y = validate_data(self, X, y, reset=reset, y_numeric=True)
        return [self.example(row) for row in X], [self.output(round(number) % 2) for number in y]

    def example(self, row: Any) -> Any:
        return row[None, :]

    def output(self, number: int) -> Any:
        return [number]

    def number(self, output: Any) -> int:
        return int(output[0])


class ChainRows(Rows, ChainSVC):
    pass


class SegmentRows(Rows, SegmentSVC):
    def output(self, number: int) -> Any:
        return [(0, 1, number)]

    def number(self, output: Any) -> int:
        return int(output[0][2])


class GraphRows(Rows, GraphSVC):
    def example(self, row: Any) -> Any:
        return row[None, :], NO_EDGES


class MatchingRows(Rows, MatchingSVC):
    """One source and one target, which are linked or not."""

    def example(self, row: Any) -> Any:
        return row[None, None, :]

    def output(self, number: int) -> Any:
        return [number - 1]

    def number(self, output: Any) -> int:
        return int(output[0]) + 1


class DependencyRows(Rows, DependencySVC):
    """Two words, one of which is the root; the row has the features of the first word's arc from the root."""

    def example(self, row: Any) -> Any:
        arcs = np.zeros((2, 3, len(row)))
        arcs[0, 0] = row
        return arcs

    def output(self, number: int) -> Any:
        return HEADS[number]

    def number(self, output: Any) -> int:
        return int(output[0] > 0)


def features_of_row(x: Any, y: int) -> Any:
    return x if y else -x


def zero_one(y_true: int, y: int) -> float:
    return float(y_true != y)


def best_of_two(x: Any, w: Any, y_true: int | None = None) -> int:
    return int(w @ x + 0.5 * (0.0 if y_true is None else 1.0 - 2.0 * y_true) > 0.0)


class StructuredRows(Rows, StructuredSVC):
    def __init__(self, C: float = 1.0, *, tol: float = 1e-2, max_iter: int = 100, random_state: Any = None):
        super().__init__(
            features_of_row, zero_one, best_of_two, C, tol=tol, max_iter=max_iter, random_state=random_state
        )

    def example(self, row: Any) -> Any:
        return row

    def output(self, number: int) -> Any:
        return number

    def number(self, output: Any) -> int:
        return int(output)


ADAPTED = (ChainRows, SegmentRows, GraphRows, MatchingRows, DependencyRows, StructuredRows)

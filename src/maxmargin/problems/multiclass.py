r"""Multiclass classification (Crammer and Singer): one label per example."""

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import Features, value_dtypes
from maxmargin.encoding.checked import checked_count, checked_numbers
from maxmargin.encoding.matrices import sound
from maxmargin.problems._labels import cost_matrix, pad_columns
from maxmargin.problems.layouts import padded
from maxmargin.problems.maps.multiclass import MulticlassMap
from maxmargin.problems.oracles.multiclass import MulticlassOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.rows import as_rows, n_rows, squared_norms
from maxmargin.wording import on_one_line

MulticlassProblem = Problem[MulticlassMap, MulticlassOracle]


class Multiclass:
    """Builders of multiclass problems."""

    @staticmethod
    def from_arrays(X: object, y: object, *, loss: object = "zero_one") -> MulticlassProblem:
        """Build a problem from features and labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any sortable kind; classes are numbered in sorted order.
        loss : "zero_one" or array of shape (n_classes, n_classes)
            ``loss[a, b]`` is the cost of predicting class b where the truth is a.
        """
        from sklearn.utils.validation import check_X_y

        features = sound(X, "Multiclass: X")
        try:
            features, truth = check_X_y(
                features, y, accept_sparse="csr", dtype=value_dtypes(X), estimator="Multiclass"
            )
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(on_one_line(f"Multiclass: {error}")) from None
        classes, labels = np.unique(truth, return_inverse=True)
        return Multiclass.from_encoded(features, labels, len(classes), loss=loss)

    @staticmethod
    def from_encoded(
        X: Features, labels: ArrayLike, n_labels: int, *, loss: object = "zero_one", owner: str = "Multiclass"
    ) -> MulticlassProblem:
        """Build a problem from features and labels 0, ..., n_labels - 1."""
        rows = as_rows(X, owner)
        n, width = n_rows(rows), padded(checked_count(n_labels, owner, "n_labels"))
        labels = checked_numbers(labels, checked_count(n, owner, "the number of rows"), n_labels, owner)
        cost = pad_columns(cost_matrix(loss, ("zero_one",), n_labels, owner), width)
        problem = Problem(
            MulticlassMap(rows, np.arange(n), squared_norms(rows), int(n_labels), width),
            MulticlassOracle(labels, cost, int(n_labels)),
        )
        return fitting(problem, owner)

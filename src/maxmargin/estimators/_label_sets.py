"""Sets of labels as y: a table of zeros and ones with a column per label, or a vector of two classes."""

from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from maxmargin.arrays import IntArray, frozen
from maxmargin.encoding.label_sets import check_no_lists, column_names
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._base import Call, Output
from maxmargin.estimators._examples import Data, Parts
from maxmargin.estimators._fields import FLAG, NAMES, Fields, scalar
from maxmargin.estimators._problems import check_several
from maxmargin.estimators._scores import check_kind
from maxmargin.estimators._state import transaction
from maxmargin.estimators._tables import TableEstimator, Targets
from maxmargin.wording import quoted


class LabelSetEstimator(TableEstimator[Data, Output]):
    """Base of the classifiers of sets of labels; if y is a vector, the second of its classes is the label."""

    _is_vector: bool
    _n_labels: int
    _names: Labels | None

    _fitted: ClassVar[Fields] = {"classes_": NAMES, "_is_vector": FLAG, "_n_labels": scalar(int, 1)}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, sample_weight: object = None, classes: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    def _validate(self, parts: Parts, call: Call) -> Parts:
        if call.first:
            self._names = column_names(parts[1], self._owner)
        else:
            self._check_columns(parts[1])
        check_no_lists(parts[1], self._owner)
        return super()._validate(parts, call)

    def _check_columns(self, y: object) -> None:
        """Raise if the columns of y have names, but not those of `fit` in their order."""
        names = column_names(y, self._owner)
        has_names = not self._is_vector and self.classes_.dtype.kind in "OUT"
        if names is not None and has_names and names.tolist() != self.classes_.tolist():
            raise ValueError(
                f"{self._owner}: y has the columns {quoted(names.tolist())}, expected "
                f"{quoted(self.classes_.tolist())}, as in the first call; give them in this order."
            )

    def _known_targets(self, y: object) -> Targets:
        self._check_columns(y)
        return self._targets(y)

    def _targets(self, y: object) -> Targets:
        check_no_lists(y, self._owner)
        targets: Targets = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if targets.ndim == 1:
            check_classification_targets(targets)
            return targets
        known = np.isin(targets, (0, 1))
        if not known.all():
            raise ValueError(
                f"{self._owner}: y must be zeros and ones, one column per label, got "
                f"{targets[~known].tolist()[0]!r}; use MultiLabelBinarizer for sets of labels."
            )
        return targets

    def _learn_labels(self, y: Targets, call: Call) -> None:
        """Learn the labels: the columns of y or, if y is a vector of two classes, the second of them."""
        self._is_vector = y.ndim == 1
        if not self._is_vector:
            self._n_labels = y.shape[1]
            self.classes_ = np.arange(y.shape[1]) if self._names is None else self._names
            return
        known = self._known_classes(call)
        self._n_labels, self.classes_ = 1, cast("Labels", np.unique(y)) if known is None else known
        check_several(len(self.classes_), self._owner)
        if len(self.classes_) > 2:
            raise ValueError(
                f"{self._owner}: Only binary classification is supported where y is a vector, got "
                f"{len(self.classes_)} classes; give one column of zeros and ones per label, or use "
                "MulticlassSVC."
            )

    def _sets(self, y: Targets) -> IntArray:
        """Return y as zeros and ones, one column for each label of `fit`."""
        if self._is_vector != (y.ndim == 1) or (y.ndim == 2 and y.shape[1] != self._n_labels):
            expected = "none, a vector" if self._is_vector else f"{self._n_labels}, one for each label"
            raise ValueError(
                f"{self._owner}: y has {'no' if y.ndim == 1 else y.shape[1]} columns, expected {expected}, "
                f"as {self._owner} was fitted with."
            )
        sets = self._codes(y)[:, None] if self._is_vector else np.array(y, dtype=np.int64, order="C")
        return frozen(sets)

    def _check_restored(self) -> None:
        super()._check_restored()
        n_classes = len(self.classes_)
        if (n_classes, self._n_labels) != ((2, 1) if self._is_vector else (n_classes, n_classes)):
            raise ValueError("labels must have a class each, or two if y is a vector")

    def _label_names(self) -> list[object]:
        """Return the names of the labels; a vector has one label, the second of its two classes."""
        return self.classes_.tolist()[-self._n_labels :]

    def _is_right(self, predicted: Targets, truth: Targets) -> NDArray[np.bool_]:
        if self._is_vector and truth.ndim == 1:
            check_kind(truth[0], self.classes_, self._owner)
            return np.asarray(predicted == truth)
        return np.all(predicted == self._sets(truth), axis=1)

"""Tasks whose data are files of SVM^light: rows of numbered features."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.arrays import IntArray
from maxmargin.commands.tasks import (
    BLOCK,
    Batch,
    ItemT,
    Labels,
    Margins,
    MarginsT,
    Task,
    TrainingSet,
    margin_texts,
    with_margins,
)
from maxmargin.formats.detection import SVMHMM, SVMLIGHT
from maxmargin.formats.sources import Source


class RowTask(Task[ItemT, ItemT, MarginsT]):
    """Base of the tasks over rows.

    Parameters
    ----------
    features : int
        The number of columns; features of larger numbers are unknown. By default that of the first file.
    """

    nouns = ("example", "row")
    kinds: ClassVar = {"features": int}

    def __init__(self, features: int = 0) -> None:
        self.features = features

    @property
    def note(self) -> str:
        return "features by their numbers"

    def _fitted(self, X: csr_array) -> csr_array:
        """Return the features with as many columns as those of the first file."""
        from maxmargin.formats.svmlight import with_columns

        self.features = self.features or X.shape[1]
        return with_columns(X, self.features)


class SequenceRows(RowTask[Labels, Margins]):
    """Sequences of rows with the same ``qid``, as SVM^hmm has them."""

    name = SVMHMM
    estimators = ("chain",)
    nouns = ("sequence", "row")

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[Labels, Labels]]:
        from maxmargin.formats.svmlight import one_label, read_queries, sequences

        for examples in read_queries(source, size=None if whole else BLOCK):
            labels = one_label(source, examples) if labelled else [0] * len(examples.y)
            X, y = sequences(self._fitted(examples.X), labels, examples.queries)
            yield Batch(X, y, y, len(labels))

    def lines(self, item: Labels, output: Labels, margins: Margins | None) -> list[str]:
        return with_margins(output, margins)


class Classes(RowTask[int, float]):
    """Examples with a class each."""

    name = SVMLIGHT
    estimators = ("multiclass",)
    outcome = "classes"

    def batches(self, source: Source, *, labelled: bool, whole: bool = False) -> Iterator[Batch[int, int]]:
        from maxmargin.formats.svmlight import one_label, read_svmlight

        for examples in read_svmlight(source, size=None if whole else BLOCK):
            y = one_label(source, examples) if labelled else [0] * len(examples.y)
            yield Batch(self._fitted(examples.X), y, y, len(y))

    def lines(self, item: int, output: int, margins: float | None) -> list[str]:
        return with_margins([output], None if margins is None else [margins])


class LabelSets(RowTask[frozenset[int], Margins]):
    """Examples with a set of labels each.

    Parameters
    ----------
    features : int
        As in `RowTask`.
    labels : list of int
        The labels that sets are of, by the columns of outputs. By default those of the first file.
    """

    name = SVMLIGHT
    estimators = ("multilabel",)
    outcome = "sets"
    kinds: ClassVar = {"features": int, "labels": list}

    def __init__(self, features: int = 0, labels: Sequence[int] = ()) -> None:
        super().__init__(features)
        self.labels = list(labels)

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[frozenset[int], frozenset[int]]]:
        from maxmargin.formats.svmlight import read_svmlight

        for examples in read_svmlight(source, size=None if whole else BLOCK):
            y = list(map(frozenset, examples.y))
            yield Batch(self._fitted(examples.X), y, y, len(y))

    def training(self, source: Source) -> TrainingSet:
        batch = self._all(source)
        self.labels = sorted(frozenset().union(*batch.y))
        column = {label: k for k, label in enumerate(self.labels)}
        y = np.zeros((len(batch.y), len(column)), dtype=np.int64)
        for row, labels in zip(y, batch.y, strict=True):
            row[[column[label] for label in labels]] = 1
        return TrainingSet(batch.X, y, len(y), batch.size)

    def outputs(self, predicted: object) -> list[frozenset[int]]:
        labels = np.array(self.labels)
        return [frozenset(labels[row > 0].tolist()) for row in cast("IntArray", predicted)]

    def lines(self, item: frozenset[int], output: frozenset[int], margins: Margins | None) -> list[str]:
        text = ",".join(map(str, sorted(output)))
        return [text if margins is None else "\t".join([text, *margin_texts(margins)])]

"""Scores of predictions, which compare labels of one kind only."""

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import IntArray
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._examples import weighed
from maxmargin.wording import described


def check_kind(label: object, classes: Labels, owner: str) -> None:
    """Raise if a true label is a string and the predicted labels are numbers, or the other way round."""
    label, known = label.item() if isinstance(label, np.generic) else label, classes.tolist()[0]
    if isinstance(label, str) != isinstance(known, str):
        raise TypeError(
            f"{owner}: y has the label {described(label)}, but {owner} was fitted with labels such as "
            f"{described(known)}; give labels of the same kind."
        )


def mean_right(right: NDArray[np.bool_], sample_weight: object, owner: str) -> float:
    """Return the share of predictions that are right, by weight."""
    (kept,), weights = weighed((right,), sample_weight, owner)
    return float(np.average(np.asarray(kept), weights=weights))


def share_right(
    predicted: list[Labels], codes: IntArray, classes: Labels, known: Labels, owner: str
) -> float:
    """Return the share of labels that are predicted, of true labels ``classes[codes]``."""
    check_kind(classes[0], known, owner)
    return mean_right(classes[codes] == np.concatenate(predicted), None, owner)


def f1(right: int, total: int) -> float:
    """Return twice the number that is right over all predicted and all true ones; 1 if there are none."""
    return 2.0 * right / total if total else 1.0

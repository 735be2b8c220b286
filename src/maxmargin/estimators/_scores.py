"""Scores of predictions: nothing is compared that is not alike."""

from typing import Any

import numpy as np

from maxmargin.estimators._examples import weighed
from maxmargin.wording import described


def check_kind(label: Any, classes: Any, owner: str) -> None:
    """Raise if a true label is a string and those that are predicted are numbers, or the other way round."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, str) != isinstance(classes.tolist()[0], str):
        raise TypeError(
            f"{owner}: y has the label {described(label)}, but {owner} was fitted with labels such as "
            f"{described(classes.tolist()[0])}; give labels of the same kind."
        )


def mean_right(right: Any, sample_weight: Any, owner: str) -> float:
    """Return the share of predictions that are right, by weight."""
    (right,), weights = weighed((right,), sample_weight, owner)
    return float(np.average(right, weights=weights))

"""Mark the weights that must not be negative, given by features or by masks."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.wording import described


class Marks(NamedTuple):
    """One mark per weight, in the shape that users see, and the axis of that array that holds features."""

    array: NDArray[np.float64]
    axis: int


def mark_weights(nonnegative: Mapping[str, object], marks: Mapping[str, Marks], *, owner: str) -> None:
    """Set the marks of the weights that must not be negative to one, for each group of weights."""
    unknown = [name for name in nonnegative if name not in marks]
    if unknown:
        raise ValueError(
            f"{owner}: keys of nonnegative must be among {', '.join(map(repr, marks))}, got {unknown[0]!r}."
        )
    for name, chosen in nonnegative.items():
        if not _mark(chosen, *marks[name]):
            shape = marks[name].array.shape
            n_features = shape[marks[name].axis]
            raise ValueError(
                f"{owner}: nonnegative[{name!r}] must be indices of features, ints from 0 to "
                f"{n_features - 1}, or bools of shape {shape}, got {described(chosen)}."
            )


def _mark(chosen: object, array: NDArray[np.float64], axis: int) -> bool:
    """Mark the weights of features given by indices or by a mask; return False if it is neither."""
    try:
        found = np.asarray(chosen)
    except ValueError:  # lists of unequal lengths
        return False
    if found.dtype == np.bool_ and found.shape == array.shape:
        array[found] = 1.0
        return True
    are_indices = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    if not are_indices or ((found < 0) | (found >= array.shape[axis])).any():
        return False
    np.moveaxis(array, axis, 0)[found.astype(np.int64)] = 1.0
    return True

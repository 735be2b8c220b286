"""Sets of labels: the names of columns, and a check that y is not a list of labels."""

from collections.abc import Iterable, Set
from typing import cast

import numpy as np

from maxmargin.encoding.labels import Labels
from maxmargin.wording import quoted


def column_names(y: object, owner: str) -> Labels | None:
    """Return the names of the columns of a DataFrame if all are strings; raise if two are the same."""
    columns = list(getattr(y, "columns", ()))
    repeated = next((name for k, name in enumerate(columns) if name in columns[:k]), None)
    if repeated is not None:
        raise ValueError(
            f"{owner}: two columns of y are called {quoted(repeated)}; give each label one column."
        )
    return np.array(columns) if columns and all(isinstance(name, str) for name in columns) else None


def check_no_lists(y: object, owner: str) -> None:
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
            f"{owner}: y must be zeros and ones, one column per label, got labels such as "
            f"{quoted(items[0])}; use MultiLabelBinarizer().fit_transform(y)."
        )

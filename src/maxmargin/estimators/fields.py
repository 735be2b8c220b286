"""The fitted attributes in a model file: how each is written, and how it is read and checked."""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.sequences import as_objects
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import IntArray
from maxmargin.runtime.wording import quoted
from maxmargin.solving.result import History, Measurement

# The value of an attribute whose part is not in the file: None, or not set at all.
NONE, UNSET = "none", "unset"


class Field(NamedTuple):
    """How an attribute is stored, under its name, and its value if it is not in the file."""

    write: Callable[[Draft, str, Any], None]
    read: Callable[[Stored, str], Any]
    absent: str = ""

    def or_none(self) -> "Field":
        """Return the field of an attribute that may be None."""
        return self._replace(absent=NONE)

    def or_unset(self) -> "Field":
        """Return the field of an attribute that some models lack."""
        return self._replace(absent=UNSET)


Fields = Mapping[str, Field]


def write_fields(draft: Draft, fields: Fields, model: object) -> None:
    """Store the attributes of a model; None is stored as nothing."""
    for name, field in fields.items():
        value = vars(model).get(name)
        if value is not None:
            field.write(draft, name, value)


def read_fields(stored: Stored, fields: Fields, model: object) -> None:
    """Set the attributes of a model."""
    for name, field in fields.items():
        if stored.has(name) or not field.absent:
            setattr(model, name, field.read(stored, name))
        elif field.absent == NONE:
            setattr(model, name, None)


def scalar(kind: type, least: float = -math.inf) -> Field:
    """Return the field of a bool, an int or a float that is not below ``least``."""

    def read(stored: Stored, name: str) -> object:
        value = stored.take(name)
        if type(value) is not kind or not least <= value < math.inf:  # type: ignore[operator]
            stored.fail(f"{name!r} to be {_article(kind)} >= {least}", quoted(value))
        return value

    return Field(Draft.put, read)


def _article(kind: type) -> str:
    return f"{'an' if kind is int else 'a'} {kind.__name__}"


def choice(*options: str | int) -> Field:
    """Return the field of one of several texts or ints."""

    def read(stored: Stored, name: str) -> object:
        value = stored.take(name)
        if type(value) is not type(options[0]) or value not in options:
            stored.fail(f"{name!r} to be one of {', '.join(map(repr, options))}", quoted(value))
        return value

    return Field(Draft.put, read)


def _write_array(draft: Draft, name: str, value: NDArray[np.generic]) -> None:
    draft.arrays[name] = value


def ints(*sides: int | None, least: int = 0) -> Field:
    """Return the field of an array of ints that are not below ``least``."""
    return Field(_write_array, lambda stored, name: stored.take_ints(name, *sides, least=least))


def flags(*sides: int | None) -> Field:
    """Return the field of an array of bools."""
    return Field(_write_array, lambda stored, name: stored.take_array(name, "b", *sides))


def _write_labels(draft: Draft, name: str, labels: NDArray[np.generic]) -> None:
    items = labels.tolist()
    if labels.dtype.kind in "biuf":
        draft.put(name, "numbers")
        draft.arrays[name] = labels
    elif all(isinstance(item, str) for item in items):
        draft.put(name, "objects" if labels.dtype == object else "texts")
        draft.reserve(_text_bytes(items))
        draft.put_texts(name, items)
    else:
        raise ValueError(f"{name} must be texts or numbers, got {quoted(items)}")


def _text_bytes(texts: list[str]) -> int:
    """Return the size of an array of texts: each takes as much space as the longest."""
    return 4 * len(texts) * max(map(len, texts), default=0)


def _read_labels(stored: Stored, name: str, *, in_order: bool) -> NDArray[np.generic]:
    kind = stored.take(name)
    if kind == "numbers":
        labels = stored.take_array(name, "biuf", None)
    else:
        texts = stored.take_texts(name)
        stored.check_room(_text_bytes(texts), repr(name))
        labels = as_objects(texts) if kind == "objects" else np.array(texts, dtype=np.str_)
        if kind not in ("texts", "objects") or labels.tolist() != texts:  # NumPy drops NULs at ends
            stored.fail(f"{name!r} to be 'numbers', 'texts' or 'objects'", quoted(kind))
    if not len(labels) or (in_order and not (labels[1:] > labels[:-1]).all()):  # type: ignore[operator]
        stored.fail(f"{name!r} to be one or more labels in order", quoted(labels.tolist()))
    return labels


def _write_history(draft: Draft, name: str, history: History) -> None:
    draft.arrays[name] = np.array([list(row) for row in history.rows], dtype=np.float64)


def _read_history(stored: Stored, name: str) -> History:
    table = stored.take_array(name, "f", None, len(Measurement._fields)).astype(np.float64)
    calls: IntArray = np.nan_to_num(table[:, Measurement._fields.index("oracle_calls")]).astype(np.int64)
    if not len(table):
        stored.fail(f"{name!r} to have a row", "none")
    rows = zip(table.tolist(), calls.tolist(), strict=True)
    return History(tuple(Measurement(*row)._replace(oracle_calls=n) for row, n in rows))


# Columns of `cv_results_`, whose parameters are listed again in "params".
_PARAMETER = "param_"
_COLUMNS = re.compile(
    r"param_[A-Za-z]\w*|(mean|std)_(fit|score)_time|split\d+_test_score|(mean|std|rank)_test_score"
)


def _write_trials(draft: Draft, name: str, table: dict[str, Any]) -> None:
    columns = [column for column in table if column != "params"]
    draft.put(name, columns)
    draft.arrays[name + ".values"] = np.array([table[column] for column in columns], dtype=np.float64)


def _read_trials(stored: Stored, name: str) -> dict[str, Any]:
    columns = stored.take(name)
    if not isinstance(columns, list) or not all(
        isinstance(column, str) and _COLUMNS.fullmatch(column) for column in columns
    ):
        stored.fail(f"{name!r} to be names of columns", quoted(columns))
    values = stored.take_array(name + ".values", "f", len(columns), None).astype(np.float64)
    table: dict[str, Any] = dict(zip(columns, values, strict=True))
    if "rank_test_score" in table:
        table["rank_test_score"] = np.nan_to_num(table["rank_test_score"]).astype(np.int64)
    found = {column: part.tolist() for column, part in table.items() if column.startswith(_PARAMETER)}
    rows = zip(*found.values(), strict=True)
    table["params"] = [
        dict(zip((key.removeprefix(_PARAMETER) for key in found), row, strict=True)) for row in rows
    ]
    return table


def _read_float(stored: Stored, name: str) -> float:
    """Return a float, which may be infinite or NaN."""
    value = stored.take(name)
    if type(value) is not float:
        stored.fail(f"{name!r} to be a float", quoted(value))
    return value


COUNT, FLAG, NUMBER = scalar(int, 0), scalar(bool), Field(Draft.put, _read_float)
LABELS = Field(_write_labels, partial(_read_labels, in_order=True))
NAMES = Field(_write_labels, partial(_read_labels, in_order=False))
HISTORY = Field(_write_history, _read_history)
TRIALS = Field(_write_trials, _read_trials)

"""The certificates of a run, as columns of measurements."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import states
from maxmargin.arrays import FloatArray
from maxmargin.wording import counted


class Measurement(NamedTuple):
    """One certificate.

    Attributes
    ----------
    passes : float
        Passes over the data so far: oracle calls / n.
    oracle_calls : int
        Calls of the max oracle by the method: one for each visit of an example, none if a cache served it,
        two if the corner found in a batch was out of date. Calls for certificates are not counted; those
        that a warm start needs to compare examples are.
    seconds : float
        Time spent on optimisation, without certificates.
    primal, dual, gap : float
        Objective, its lower bound, and their difference.
    """

    passes: float
    oracle_calls: int
    seconds: float
    primal: float
    dual: float
    gap: float


def certificate_text(row: Measurement) -> str:
    """Return primal, dual and gap in a few words.

    Parameters
    ----------
    row : Measurement
        One row of a `History`.

    Returns
    -------
    str

    Examples
    --------
    >>> certificate_text(Measurement(10, 1000, 0.5, primal=0.25, dual=0.2, gap=0.05))
    'primal 0.25 dual 0.2 gap 0.05'
    """
    return f"primal {row.primal:.5g} dual {row.dual:.5g} gap {row.gap:.3g}"


class History:
    """The certificates of a run, oldest first. Columns are arrays: ``history.gap`` or ``history["gap"]``."""

    columns = Measurement._fields

    def __init__(self, rows: tuple[Measurement, ...] = ()) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> FloatArray:
        if column not in self.columns:
            raise KeyError(f"History: column must be one of {', '.join(self.columns)}, got {column!r}.")
        return np.array([getattr(row, column) for row in self.rows])

    def __getattr__(self, column: str) -> FloatArray:
        if column not in self.columns:
            raise AttributeError(column)
        return self[column]

    def __repr__(self) -> str:
        last = f", last gap {self.rows[-1].gap:.3g}" if self.rows else ""
        return f"History({counted(len(self.rows), 'certificate')}{last})"

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per certificate."""
        return as_frame(list(self.rows), list(self.columns), "History.to_frame")


@states.parts.register(History)
def history_parts(history: History) -> list[FloatArray]:
    return [np.array(history.rows, dtype=np.float64).reshape(-1, len(Measurement._fields))]


@states.with_parts.register(History)
def history_with_parts(history: History, new: Sequence[FloatArray]) -> History:
    rows = (Measurement(*row)._replace(oracle_calls=int(row[1])) for row in new[0].tolist())
    return History(tuple(rows))


def as_frame(
    rows: Sequence[object], columns: Sequence[str], caller: str, *, names: Sequence[str] = ()
) -> Any:
    """Return a pandas DataFrame; raise a one-line error that names the caller if pandas is not installed.

    The columns ``names`` hold objects, which stay as they are: ints beside None do not become floats.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{caller} needs pandas, which is not installed; run: pip install maxmargin[frame]"
        ) from error
    if not names:
        return pd.DataFrame(rows, columns=list(columns))
    numbers = {name: float for name in columns if name not in names}
    return pd.DataFrame(rows, columns=list(columns), dtype=object).astype(numbers)

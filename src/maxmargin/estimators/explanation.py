"""The result of `explain`: contributions to the score of a prediction, and what would change it."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators.state import snapshot
from maxmargin.runtime.arrays import CsrMatrix, FloatArray, IntArray, ValueArray
from maxmargin.runtime.wording import shown
from maxmargin.solving.decoding import Decoded
from maxmargin.solving.result import as_frame

if TYPE_CHECKING:
    from pandas import DataFrame

    from maxmargin.estimators.structure import AnyEstimator


# Rows of a table, and contributions in a row, that are shown.
_ROWS, _TERMS = 15, 3
# Characters of a name that are shown.
_LONGEST = 50
# Kinds that go without saying.
_PLAIN = {"token", "node", "example", "link", "arc", "output", "transition", "start", "end", "trigram"}


_Cells = list[tuple[str, ...]]


class Contribution(NamedTuple):
    """The contribution of one feature, or of labels that occur together, to the score of an output.

    Attributes
    ----------
    part : object
        Where: the index of a token or node, the start and stop of a segment, the ends of a link or edge, the
        index of a word, or a label.
    kind, feature, label : object
        The weight, named as in `top_features`; or as in `top_transitions`, with a tuple of labels.
    value : float
        The value of the feature.
    weight : float
    contribution : float
        Their product.
    """

    part: object
    kind: str
    feature: object
    label: object
    value: float
    weight: float
    contribution: float

    def __str__(self) -> str:
        kind = "" if self.kind in _PLAIN else self.kind
        text, label = f"{kind} {_written(self.feature)}".strip(), _written_label(self.label)
        name = f"{text} ({label})" if text and label else text or label
        shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        return f"{shown} {_signed(self.contribution)}"


class Change(NamedTuple):
    """What it would take to change a part of a prediction.

    Attributes
    ----------
    part : object
        Which part.
    state, other : object
        What it is in the prediction, and in the best output in which it differs.
    margin : float
        The score of the prediction less that of this output.
    output : object
        This output, in the form of predictions.
    contributions : tuple of Contribution
        What the two outputs do not have in common, the largest first: for each weight, the values that it
        multiplies in the prediction less those in the other output. The part is None where there are several.
        The sum is the margin.
    """

    part: object
    state: object
    other: object
    margin: float
    output: object
    contributions: tuple[Contribution, ...]

    def to_frame(self) -> "DataFrame":
        """Return the contributions as a pandas DataFrame, one row for each."""
        return _contribution_frame(self.contributions, "Change.to_frame")


class Explanation(NamedTuple):
    """The contributions to the score of a prediction, and what would change it.

    Attributes
    ----------
    output : object
        The prediction.
    score : float
        Its score, the sum of all contributions.
    contributions : tuple of Contribution
        What features and transitions add to the score, without those that add zero.
    changes : tuple of Change
        For each part, or those of smallest margin, the best output in which it differs.
    """

    output: object
    score: float
    contributions: tuple[Contribution, ...]
    changes: tuple[Change, ...]

    def to_frame(self) -> "DataFrame":
        """Return the contributions as a pandas DataFrame, one row for each."""
        return _contribution_frame(self.contributions, "Explanation.to_frame")

    def changes_to_frame(self) -> "DataFrame":
        """Return the changes as a pandas DataFrame, one row for each part."""
        columns = Change._fields[:4]
        rows = [change[:4] for change in self.changes]
        return as_frame(rows, columns, "Explanation.changes_to_frame", names=columns[:3])

    def __repr__(self) -> str:
        tables = [_text_table(*table) for table in self._tables()]
        return "\n".join([f"Explanation: score {self.score:.6g}", *tables])

    def _repr_html_(self) -> str:
        """Return the tables for notebooks."""
        tables = "".join(_html_table(*table) for table in self._tables())
        return f"<div><p>Explanation: score {self.score:.6g}</p>{tables}</div>"

    def _tables(self) -> list[tuple[tuple[str, ...], _Cells, int]]:
        """Return the header, the rows and the number of all rows of each table."""
        by_part: dict[object, list[Contribution]] = {}
        for row in self.contributions:
            by_part.setdefault(row.part, []).append(row)
        parts: _Cells = [
            (_written(part), _signed(math.fsum(row.contribution for row in rows)), _terms(rows))
            for part, rows in itertools.islice(by_part.items(), _ROWS)
        ]
        closest = sorted(each.margin for each in self.changes)[:_ROWS]
        changes: _Cells = [
            (*map(_written, each[:3]), f"{each.margin:.4g}", _terms(each.contributions))
            for each in self.changes
            if each.margin <= closest[-1]
        ]
        tables = [
            (("part", "score", "largest contributions"), parts, len(by_part)),
            (("part", "is", "could be", "margin", "what separates the two"), changes, len(self.changes)),
        ]
        return [table for table in tables if table[1]]


def by_size(rows: Iterable[Contribution]) -> tuple[Contribution, ...]:
    """Return contributions, the largest by absolute value first."""
    return tuple(sorted(rows, key=lambda row: -abs(row.contribution)))


def _contribution_frame(rows: Sequence[Contribution], caller: str) -> "DataFrame":
    columns = Contribution._fields
    return as_frame(list(rows), columns, caller, names=columns[:4])


def _signed(value: float) -> str:
    """Return a number with a sign, shortened."""
    return f"{value:+.3g}".replace("-", "−")


def _written(value: object) -> str:
    """Return a name as text; that of nothing is empty."""
    return "" if value is None else str(value)


def _written_label(label: object) -> str:
    """Return a label, or labels that occur together, as text."""
    if not isinstance(label, tuple):
        return _written(label)
    ends = {0: "start", len(label) - 1: "end"}
    return " → ".join(ends[k] if each is None else str(each) for k, each in enumerate(label))


def _terms(rows: Sequence[Contribution]) -> str:
    """Return the largest contributions in a line."""
    texts = [str(row) for row in by_size(rows)[:_TERMS]]
    return ", ".join(texts) + (", …" if len(rows) > _TERMS else "")


def _text_table(header: tuple[str, ...], rows: _Cells, total: int) -> str:
    """Return a table as text, with columns of equal widths."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    more = [f"... and {total - len(rows)} more"] if total > len(rows) else []
    return "\n".join([*lines, *more])


def _html_table(header: tuple[str, ...], rows: _Cells, total: int) -> str:
    """Return a table as HTML; what comes from users is escaped."""
    head = "".join(f"<th>{name}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>... and {total - len(rows)} more</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Part(NamedTuple):
    """A part of an output: its index among the margins, and its name."""

    number: int
    name: object


class Reader(Protocol):
    """Reads the codes of the outputs of one example."""

    def parts(self, codes: IntArray) -> list[Part]:
        """Return the parts of an output."""

    def state(self, codes: IntArray, part: Part) -> object:
        """Return the state in this output of a part, which may be a part of another output."""

    def contributions(self, codes: IntArray) -> list[Contribution]:
        """Return the contributions to the score of an output."""

    def output(self, codes: IntArray) -> object:
        """Return the output in the form of predictions."""


@snapshot
def predict_single(self: "AnyEstimator", x: object) -> object:
    """Return the output of highest score for one %(example)s.

    Parameters
    ----------
    x : %(example)s
        In the form that `predict` takes in a list.

    Returns
    -------
    object
        The item that `predict` returns for it.
    """
    return next(iter(self._predict([x])))


@snapshot
def explain(self: "AnyEstimator", x: object, changes: int = 50) -> Explanation:
    """Explain the prediction for one %(example)s: what adds to its score, and what would change it.

    The contributions of features and transitions add up to the score of the prediction. To change a part
    of it, another output must get the largest score. For each part, this is the best output in which the
    part differs. The contributions that the two outputs do not share add up to the margin of the part.

    Parameters
    ----------
    x : %(example)s
        In the form that `predict` takes in a list.
    changes : int, default=50
        Largest number of parts for which to find the best other output: those of smallest margin. Each
        takes one more prediction.

    Returns
    -------
    Explanation
        With the attributes output, score, contributions and changes, and the method to_frame.
    """
    _check_number(changes)
    found = self._structure.reader(self, x)
    if found is None:
        return Explanation(next(iter(self._predict([x]))), 0.0, (), ())
    problem, reader = found
    return _explained(Decoded(problem, self._w), reader, int(changes))


def _check_number(changes: object) -> None:
    if not (isinstance(changes, Integral) and int(changes) >= 0):
        raise ValueError(f"changes must be an int >= 0, got {shown(changes)}.")


def _explained(decoded: Decoded, reader: Reader, most: int) -> Explanation:
    """Return the explanation of an output."""
    codes, margins = decoded.output, decoded.margins
    rows = reader.contributions(codes)
    possible = [part for part in reader.parts(codes) if np.isfinite(margins[part.number])]
    chosen = {part.number for part in sorted(possible, key=lambda part: margins[part.number])[:most]}
    changes = []
    for part in possible:
        if part.number in chosen:
            other, state = decoded.other(part.number), reader.state(codes, part)
            # An approximate search may find no output that differs.
            if reader.state(other, part) != state:
                changes.append(_changed(reader, part, rows, codes, other))
    return Explanation(reader.output(codes), total(rows), tuple(rows), tuple(changes))


def _changed(
    reader: Reader, part: Part, rows: Sequence[Contribution], codes: IntArray, other: IntArray
) -> Change:
    """Return the change from an output to another one."""
    apart = by_size(_difference(rows, reader.contributions(other)))
    states = reader.state(codes, part), reader.state(other, part)
    return Change(part.name, *states, total(apart), reader.output(other), apart)


def _difference(rows: Sequence[Contribution], others: Sequence[Contribution]) -> list[Contribution]:
    """Return the contributions of each weight to one score less those to another, unless they cancel."""
    apart: dict[tuple[object, ...], Contribution] = {}
    for sign, some in ((1.0, rows), (-1.0, others)):
        for row in some:
            weight = row[1:4]  # its name
            known = apart.get(weight, row._replace(value=0.0))
            value = known.value + sign * row.value
            part = row.part if known.part == row.part else None
            apart[weight] = row._replace(part=part, value=value, contribution=value * row.weight)
    return [row for row in apart.values() if row.value != 0.0]


def total(rows: Sequence[Contribution]) -> float:
    """Return the sum of contributions."""
    return math.fsum(row.contribution for row in rows)


class Indicators(Protocol):
    """Rows of features that are one: the features of row t are ``columns[start[t] : start[t + 1]]``."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of features."""

    @property
    def start(self) -> IntArray:
        """Where the columns of each row begin, and the last ones end."""

    @property
    def columns(self) -> NDArray[np.integer]:
        """The features of all rows."""


Rows = ValueArray | CsrMatrix | Indicators
Entries = tuple[IntArray, ValueArray]
Names = Callable[[list[int]], Sequence[object]]


def named_by(names: Sequence[object] | Mapping[int, object]) -> Names:
    """Return a function that returns the names of columns."""
    return lambda columns: [names[column] for column in columns]


def row_entries(rows: Rows, t: int) -> Entries:
    """Return the columns and values of the nonzero features of a row."""
    if isinstance(rows, np.ndarray):
        columns = np.flatnonzero(rows[t])
        return columns, rows[t, columns]
    if hasattr(rows, "indptr"):
        matrix = cast("CsrMatrix", rows)
        entries = slice(matrix.indptr[t], matrix.indptr[t + 1])
        return np.asarray(matrix.indices[entries], dtype=np.int64), np.asarray(matrix.data[entries])
    columns = rows.columns[rows.start[t] : rows.start[t + 1]].astype(np.int64)
    return columns, np.ones(len(columns))


def single(part: object, kind: str, feature: object, label: object, weight: float) -> Iterator[Contribution]:
    """Yield the contribution of a weight that multiplies no feature, unless it is zero."""
    if weight != 0.0:
        yield Contribution(part, kind, feature, label, 1.0, float(weight), float(weight))


class RowReader(NamedTuple):
    """Reads the features of rows.

    Attributes
    ----------
    rows : matrix or Indicators
    kind : str
        What the rows are.
    names : callable
        Returns the names of some columns.
    """

    rows: Rows
    kind: str
    names: Names

    def contributions(
        self, t: int, part: object, label: object, weights: FloatArray
    ) -> Iterator[Contribution]:
        """Yield the contributions of the features of row t with these weights, unless they are zero."""
        return self.sums([t], part, label, weights)

    def sums(
        self, chosen: Sequence[int], part: object, label: object, weights: FloatArray
    ) -> Iterator[Contribution]:
        """Yield the contributions of the features of some rows together."""
        entries = [row_entries(self.rows, t) for t in chosen]
        columns, places = np.unique(np.concatenate([where for where, _ in entries]), return_inverse=True)
        values = np.bincount(places, np.concatenate([value for _, value in entries]), len(columns))
        kept = np.flatnonzero(values * weights[columns])
        names = self.names(columns[kept].tolist())
        for name, value, weight in zip(names, values[kept], weights[columns[kept]], strict=True):
            yield Contribution(
                part, self.kind, name, label, float(value), float(weight), float(value * weight)
            )

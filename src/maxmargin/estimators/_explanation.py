"""The result of `explain`: contributions to the score of a prediction, and what would change it."""

import itertools
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from maxmargin.history import as_frame

if TYPE_CHECKING:
    from pandas import DataFrame

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

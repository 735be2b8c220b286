"""`explain`: a prediction taken apart, and compared with the outputs that come closest to it."""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.decoding import Decoded
from maxmargin.estimators._explanation import Change, Contribution, Explanation, by_size
from maxmargin.estimators._problems import Problem
from maxmargin.estimators._state import snapshot
from maxmargin.wording import shown


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


class _Explains(Protocol):
    """An estimator with an `Explainer`."""

    _w: FloatArray

    def _reader(self, x: object) -> tuple[Problem, Reader] | None: ...

    def _predict(self, X: object) -> Iterable[object]: ...


class Explainer:
    """Adds `explain` to an estimator, which defines `_reader`; its `_texts` have "example"."""

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        """Hook: return the problem of predicting the output of one example, and a reader of its outputs.

        None if the example is empty.
        """
        raise NotImplementedError

    @snapshot
    def explain(self: _Explains, x: object, changes: int = 50) -> Explanation:
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
        _check_number(changes, type(self).__name__)
        found = self._reader(x)
        if found is None:
            return Explanation(next(iter(self._predict([x]))), 0.0, (), ())
        problem, reader = found
        return _explained(Decoded(problem, self._w), reader, int(changes))


def _check_number(changes: object, owner: str) -> None:
    if not (isinstance(changes, Integral) and int(changes) >= 0):
        raise ValueError(f"{owner}: changes must be an int >= 0, got {shown(changes)}.")


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

"""What contributes to a score: the readers of sequences, segments, heads and links."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from maxmargin.arrays import CsrMatrix, FloatArray, IntArray, ValueArray
from maxmargin.encoding.arcs import Indicators
from maxmargin.estimators._explaining import Part
from maxmargin.estimators._explanation import Contribution
from maxmargin.problems import SegmentWeights

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
    if isinstance(rows, Indicators):
        columns = rows.columns[rows.start[t] : rows.start[t + 1]].astype(np.int64)
        return columns, np.ones(len(columns))
    entries = slice(rows.indptr[t], rows.indptr[t + 1])
    return np.asarray(rows.indices[entries], dtype=np.int64), np.asarray(rows.data[entries])


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


class ChainReader(NamedTuple):
    """Reads labels of tokens.

    Attributes
    ----------
    tokens : RowReader
    labels : list
    weights : ChainWeights or SecondOrderWeights
    """

    tokens: RowReader
    labels: list[object]
    weights: tuple[FloatArray, ...]
    gives_arrays: bool

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(t, t) for t in range(len(codes))]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.labels[codes[part.number]]

    def output(self, codes: IntArray) -> object:
        found = [self.labels[code] for code in codes.tolist()]
        return np.array(found) if self.gives_arrays else found

    def contributions(self, codes: IntArray) -> list[Contribution]:
        labels = [self.labels[code] for code in codes.tolist()]
        found: list[Contribution] = []
        for t, label in enumerate(labels):
            found += self.tokens.contributions(t, t, label, self.weights[0][codes[t]])
            found += self._transitions(codes, labels, t)
        return found

    def _transitions(self, codes: IntArray, labels: list[object], t: int) -> Iterator[Contribution]:
        """Yield the contributions of the label of token t together with those before it."""
        _, start, end, pairs, *trigrams = self.weights
        if t == 0:
            yield from single(t, "start", None, (None, labels[t]), start[codes[t]])
        else:
            weight = pairs[codes[t - 1], codes[t]]
            yield from single(t, "transition", None, (labels[t - 1], labels[t]), weight)
        if t > 1 and trigrams:
            weight = trigrams[0][tuple(codes[t - 2 : t + 1])]
            yield from single(t, "trigram", None, tuple(labels[t - 2 : t + 1]), weight)
        if t == len(codes) - 1:
            yield from single(t, "end", None, (labels[t], None), end[codes[t]])


class SegmentReader(NamedTuple):
    """Reads segments, those of single tokens outside of all segments included.

    Attributes
    ----------
    tokens : RowReader
    labels : list
        The last may be that of tokens outside.
    weights : SegmentWeights
    n_classes : int
        Number of labels without that of tokens outside.
    """

    tokens: RowReader
    labels: list[object]
    weights: SegmentWeights
    n_classes: int

    def _segments(self, codes: IntArray) -> list[tuple[int, int, int]]:
        """Return start, stop and number of the label of all segments."""
        starts = np.flatnonzero(codes & 1)
        bounds = [*starts.tolist(), len(codes)]
        return [(a, b, int(codes[a]) >> 1) for a, b in itertools.pairwise(bounds)]

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(start, (start, stop)) for start, stop, _ in self._segments(codes)]

    def state(self, codes: IntArray, part: Part) -> object:
        first, end = cast("tuple[int, int]", part.name)
        touched = [each for each in self._segments(codes) if each[0] < end and each[1] > first]
        if [each[:2] for each in touched] == [(first, end)]:
            return self.labels[touched[0][2]]
        return tuple((start, stop, self.labels[k]) for start, stop, k in touched)

    def output(self, codes: IntArray) -> object:
        return [
            (start, stop, self.labels[k]) for start, stop, k in self._segments(codes) if k < self.n_classes
        ]

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        before: int | None = None
        for start, stop, k in self._segments(codes):
            found += self._segment(start, stop, k)
            found += self._transition((start, stop), before, k)
            before = k
        return found

    def _segment(self, start: int, stop: int, k: int) -> Iterator[Contribution]:
        """Yield the contributions of the tokens and of the length of a segment."""
        part, label, w = (start, stop), self.labels[k], self.weights
        yield from self.tokens.sums(range(start, stop), part, label, w.inside[k])
        for kind, t, weights in (("first", start, w.first), ("last", stop - 1, w.last)):
            yield from self.tokens._replace(kind=kind).contributions(t, part, label, weights[k])
        yield from single(part, "length", stop - start, label, w.lengths[k, stop - start - 1])

    def _transition(self, part: object, before: int | None, k: int) -> Iterator[Contribution]:
        """Yield the contributions of the label of a segment after the label before it."""
        if before is None:
            return single(part, "start", None, (None, self.labels[k]), self.weights.start[k])
        labels = self.labels[before], self.labels[k]
        return single(part, "transition", None, labels, self.weights.transitions[before, k])


class HeadReader(NamedTuple):
    """Reads heads of words, which count from 1."""

    arcs: RowReader
    weights: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(j, j + 1) for j in range(len(codes))]

    def state(self, codes: IntArray, part: Part) -> object:
        return int(codes[part.number])

    def output(self, codes: IntArray) -> object:
        return codes

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for j, head in enumerate(codes.tolist()):
            found += self.arcs.contributions(j * (len(codes) + 1) + head, j + 1, None, self.weights)
        return found


class LinkReader(NamedTuple):
    """Reads links between sources and targets.

    Attributes
    ----------
    links : RowReader
        A row for each possible link, source by source.
    targets : int
        Number of targets.
    coef, intercept, places : array, float, array
        The weights.
    """

    links: RowReader
    targets: int
    coef: FloatArray
    intercept: float
    places: FloatArray

    @property
    def fertility(self) -> int:
        return len(self.places) + 1

    def parts(self, codes: IntArray) -> list[Part]:
        sources = len(codes) // self.fertility
        pairs = itertools.product(range(sources), range(self.targets))
        return [Part(p, pair) for p, pair in enumerate(pairs)]

    def state(self, codes: IntArray, part: Part) -> object:
        return part.name in {(source, target) for source, target, _ in self._made(codes)}

    def _made(self, codes: IntArray) -> list[tuple[int, int, int]]:
        """Return source, target and place of all links."""
        places = np.flatnonzero(codes >= 0).tolist()
        return [(p // self.fertility, int(codes[p]), p % self.fertility) for p in places]

    def output(self, codes: IntArray) -> object:
        return codes if self.fertility == 1 else sorted(link[:2] for link in self._made(codes))

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for source, target, place in self._made(codes):
            part = source, target
            found += self.links.contributions(source * self.targets + target, part, None, self.coef)
            found += single(part, "intercept", None, None, self.intercept)
            if place:
                found += single(part, "place", place + 1, None, self.places[place - 1])
        return found

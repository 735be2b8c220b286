"""Files of SVM^light: an example per line, its label and its features as ``number:value``.

Sequences are consecutive lines with the same ``qid``, as SVM^hmm has them. Several labels of an example are
separated by commas. What follows ``#`` is a comment. Column k of the features is that of feature number k, so
that column 0 is empty in files that count from 1.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from maxmargin.files.sources import Malformed, Source
from maxmargin.runtime.arrays import IntArray
from maxmargin.runtime.wording import quoted

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WHOLE = r"[-+]?\d+(?:\.0*)?"
_LABELS = re.compile(rf"{_WHOLE}(?:,{_WHOLE})*")
_QUERY = re.compile(r"qid:(\d+)")
_FEATURE = re.compile(rf"(\d+):({_NUMBER})")
# Feature numbers are columns of int32 indices.
_MOST = 2**31 - 2


class Examples(NamedTuple):
    """Examples.

    Attributes
    ----------
    X : csr_array
        Their features.
    y : list of tuples of int
        Their labels.
    queries : ndarray of int64
        Their query numbers; 0 where there are none.
    first : int
        How many examples of the file come before.
    """

    X: csr_array
    y: list[tuple[int, ...]]
    queries: IntArray
    first: int = 0


def read_svmlight(source: Source, *, size: int | None = None) -> Iterator[Examples]:
    """Yield the examples of a file, some at a time.

    Parameters
    ----------
    source : Source
    size : int, optional
        About how many bytes to read at a time; by default all of them at once.

    Raises
    ------
    Malformed
        If a line is not an example.
    """
    n_lines = n_examples = 0
    for block in source.line_blocks(size):
        found = _parsed(source, block, n_lines)
        if len(found.y):
            yield found._replace(first=n_examples)
        n_examples += len(found.y)
        n_lines += block.count(b"\n")


def read_queries(source: Source, *, size: int | None = None) -> Iterator[Examples]:
    """Yield the examples of a file, some at a time, so that all of a query come together."""
    kept: Examples | None = None
    for found in read_svmlight(source, size=size):
        found = found if kept is None else _joined(kept, found)
        last = int(np.flatnonzero(np.append(True, np.diff(found.queries) != 0))[-1])
        if last:
            yield _part(found, 0, last)
        kept = _part(found, last, len(found.y))
    if kept is not None:
        yield kept


def sequences(X: csr_array, y: list[int], queries: IntArray) -> tuple[list[csr_array], list[list[int]]]:
    """Return the features and labels of each run of examples with the same query."""
    edges = np.flatnonzero(np.diff(queries)) + 1
    places = list(pairwise([0, *edges.tolist(), len(y)]))
    return [X[a:b] for a, b in places], [y[a:b] for a, b in places]


def one_label(source: Source, examples: Examples) -> list[int]:
    """Return the label of each example; raise if one has none or several."""
    for number, labels in enumerate(examples.y, start=examples.first + 1):
        if len(labels) != 1:
            raise Malformed(
                f"{source.name}: expected one label of example {number}, got {len(labels)}; "
                "if examples have sets of labels, train with --estimator multilabel"
            )
    return [label for (label,) in examples.y]


def _parsed(source: Source, block: bytes, n_before: int) -> Examples:
    """Return the examples of some lines. A fast parser reads them, and a slow one finds the line at fault."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, queries = load_svmlight_file(BytesIO(block), multilabel=True, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        raise _fault(source, block, n_before, str(error)) from None
    whole = all(label.is_integer() for labels in y for label in labels)
    if not whole or not np.isfinite(X.data).all():
        raise _fault(source, block, n_before, "a number that is not finite")
    found = np.asarray(queries, dtype=np.int64)
    queries = found if len(found) == len(y) else np.zeros(len(y), dtype=np.int64)
    return Examples(csr_array(X), [tuple(map(int, labels)) for labels in y], queries)


def _fault(source: Source, block: bytes, n_before: int, reason: str) -> Malformed:
    """Return the error for the first line that is not an example."""
    for number, raw in enumerate(block.split(b"\n"), start=n_before + 1):
        fields = raw.decode("utf-8", "replace").partition("#")[0].split()
        last = -1
        if fields and ":" not in fields[0] and not _LABELS.fullmatch(fields[0]):
            return source.error(number, "a label that is a whole number", quoted(fields[0]))
        rest = fields[1:] if fields and ":" not in fields[0] else fields
        for field in rest[1:] if rest and _QUERY.fullmatch(rest[0]) else rest:
            match = _FEATURE.fullmatch(field)
            if match is None or not np.isfinite(float(match[2])):
                return source.error(number, "number:value", quoted(field))
            if not last < int(match[1]) <= _MOST:
                return source.error(number, f"feature numbers that increase, up to {_MOST}", quoted(field))
            last = int(match[1])
    return Malformed(f"{source.name}: expected examples in the format of SVM^light, got {reason}")


def _part(examples: Examples, start: int, stop: int) -> Examples:
    X, y, queries, first = examples
    return Examples(X[start:stop], y[start:stop], queries[start:stop], first + start)


def _joined(first: Examples, second: Examples) -> Examples:
    from scipy.sparse import vstack

    width = max(first.X.shape[1], second.X.shape[1])
    X = csr_array(vstack([with_columns(each.X, width) for each in (first, second)]))
    return Examples(X, first.y + second.y, np.concatenate([first.queries, second.queries]), first.first)


def with_columns(X: csr_array, width: int) -> csr_array:
    """Return a matrix with this many columns: empty ones are added, or the last ones left out."""
    if X.shape[1] > width:
        return X[:, :width]
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))

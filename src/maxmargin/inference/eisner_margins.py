"""Margins of the heads of a best projective tree: max inside-outside on the tables of Eisner's algorithm."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper
from maxmargin.inference.margins import lead
from maxmargin.loops import fill


class Outside(NamedTuple):
    """Workspace: the best scores of everything outside a span.

    Attributes
    ----------
    right, left, right_arc, left_arc : arrays of shape (n_words + 1, n_words + 1)
        For the spans of `EisnerWork`; they become -inf where no tree has the span.
    heads : array of shape (n_words + 1, n_words + 1)
        ``heads[j, h]``, for j >= 1, is the best score of a tree in which word j has head h.
    """

    right: FloatArray
    left: FloatArray
    right_arc: FloatArray
    left_arc: FloatArray
    heads: FloatArray


def outside_work(n_words: int) -> Outside:
    """Return a workspace for up to ``n_words`` words."""
    return Outside(*np.zeros((5, n_words + 1, n_words + 1)))


@helper
def eisner_margins(scores, single_root, inside, outside, y, margins):
    """Write by how much the score of the tree that `eisner` found falls if a word must have another head.

    Parameters
    ----------
    scores, single_root, y
        As for `eisner`.
    inside : EisnerWork
        As `eisner` leaves it.
    outside : Outside
    margins : array of shape (n_words,)
        Receives the margins.
    """
    n_words = scores.shape[0]
    _begin(scores, single_root, inside, outside)
    first = 1 if single_root else 0
    for width in range(n_words - first, 0, -1):
        for i in range(first, n_words + 1 - width):
            _divide(scores, i, i + width, inside, outside)
    for j in range(1, n_words + 1):
        margins[j - 1] = lead(outside.heads[j], n_words + 1, y[j - 1])


@helper
def _begin(scores, single_root, inside, outside):
    """Clear the tables, and enter the spans that make up a whole tree."""
    n_words = scores.shape[0]
    for i in range(n_words + 1):
        fill(outside.right[i, : n_words + 1], -np.inf)
        fill(outside.left[i, : n_words + 1], -np.inf)
        fill(outside.right_arc[i, : n_words + 1], -np.inf)
        fill(outside.left_arc[i, : n_words + 1], -np.inf)
        fill(outside.heads[i, : n_words + 1], -np.inf)
    if not single_root:
        outside.right[0, n_words] = 0.0
        return
    for r in range(1, n_words + 1):
        outside.left[r, 1] = inside.right[r, n_words] + scores[r - 1, 0]
        outside.right[r, n_words] = inside.left[r, 1] + scores[r - 1, 0]
        outside.heads[r, 0] = outside.left[r, 1] + inside.left[r, 1]


@helper
def _divide(scores, i, j, inside, outside):
    """Pass the scores outside the spans from i to j on to the spans that they are made of.

    The spans of an arc are the last to be divided: they may be parts of the others.
    """
    above = outside.right[i, j]
    for k in range(i + 1, j + 1):
        _raise_to(outside.right_arc[i], k, above + inside.right[k, j])
        _raise_to(outside.right[k], j, above + inside.right_arc[i, k])
    above = outside.left[j, i]
    for k in range(i, j):
        _raise_to(outside.left_arc[j], k, above + inside.left[k, i])
        _raise_to(outside.left[k], i, above + inside.left_arc[j, k])
    outside.heads[j, i] = inside.right_arc[i, j] + outside.right_arc[i, j]
    above = outside.right_arc[i, j] + scores[j - 1, i]
    if i > 0:
        outside.heads[i, j] = inside.left_arc[j, i] + outside.left_arc[j, i]
        above = max(above, outside.left_arc[j, i] + scores[i - 1, j])
    for k in range(i, j):
        _raise_to(outside.right[i], k, above + inside.left[j, k + 1])
        _raise_to(outside.left[j], k + 1, above + inside.right[i, k])


@helper
def _raise_to(row, k, value):
    """``row[k] = max(row[k], value)``"""
    row[k] = value if value > row[k] else row[k]

"""Margins of the parts of an output, and the best output that differs in a part."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, generic_with_default, is_wrapper, subroutine
from maxmargin.compiling.generics import InnerWork
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.structures.means import ANSWERS, Answers, part_rows
from maxmargin.structures.oracle import decode, oracle_workspace, output_size, output_sizes


class DecodingAgain(NamedTuple):
    """Workspace of the default: the workspace of the oracle, and a second output."""

    oracle: object
    y: IntArray


def decoding_again(oracle: object) -> DecodingAgain:
    """Return the workspace of the default of `decode_with_margins`."""
    return DecodingAgain(oracle_workspace(oracle), np.zeros(output_sizes(oracle).output, dtype=np.int64))


def margin_workspace(oracle: object) -> object:
    """Return work arrays for `decode_with_margins`; each thread has its own."""
    if type(oracle) not in ANSWERS and is_wrapper(type(oracle)):
        return InnerWork(margin_workspace(oracle.inner))  # type: ignore[attr-defined]
    return (ANSWERS.get(type(oracle), Answers()).margins or decoding_again)(oracle)


@generic_with_default
def n_parts(oracle, i):
    """Return the number of margins of example i; by default the length of its output."""
    return output_size(oracle, i)


@generic
def output_score(oracle, i, theta, y):
    r"""Return :math:`\langle \theta, s_i(y) \rangle`; the default of `decode_with_margins` needs it."""
    return oracle.output_score(i, theta, y)


@generic
def forbid(oracle, i, theta, y, p):
    """Lower an entry of ``theta`` so far that every best output differs from y in entry p, if any can.

    The default of `decode_with_margins` needs it. The entry should not be lowered by much more than that, as
    large numbers cost digits.

    Returns
    -------
    index : int
        The index of the lowered entry of ``theta``.
    before : float
        Its value before.
    """
    return oracle.forbid(i, theta, y, p)


@generic_with_default
def decode_with_margins(oracle, i, theta, y, margins, work):
    """Write the best output to ``y``, as `decode` does, and the margin of each of its parts to ``margins``.

    ``theta`` has the scores of example i and no more, ``margins`` has `n_parts` entries.
    """
    decode_again(oracle, i, theta, y, margins, work)


@generic_with_default
def margins_by(kind, oracle, i, theta, y, margins, work):
    """Do the same by a kind of inference, for an oracle that has several; most of them decode again."""
    decode_again(oracle, i, theta, y, margins, work)


@subroutine
def decode_again(oracle, i, theta, y, margins, work):
    """Find the margins by decoding once more for each part.

    The first decoding, of ``y`` itself, is done in the same loop: a second call would be compiled again.
    """
    best = 0.0
    for p in range(-1, margins.shape[0]):
        answer = y if p < 0 else work.y
        index, before = forbid(oracle, i, theta, y, p) if p >= 0 else (0, theta[0])
        decode(oracle, i, theta, answer, work.oracle)
        theta[index] = before
        score = output_score(oracle, i, theta, answer)
        if p < 0:
            best = score
        else:
            # An approximate oracle may find a better output now than at first.
            margins[p] = np.inf if answer[p] == y[p] else max(best - score, 0.0)


def enough(theta: FloatArray, margin: float) -> float:
    """Return a change above the margin, of the magnitude of the scores, so that adding it loses no digits."""
    return 2.0 * margin + (float(np.abs(theta).max(initial=0.0)) or 1.0)


def decode_differing(
    oracle: object, i: int, theta: FloatArray, y: IntArray, p: int, margin: float, work: object
) -> IntArray:
    """Return the best output that differs from the prediction y in part p, whose margin is finite."""
    own = ANSWERS.get(type(oracle), Answers()).differing
    if own is not None:
        return own(oracle, i, theta, y, p, margin, work)
    rows = part_rows(oracle, i)
    index = rows.first + p * rows.step + int(y[p])
    return decode_rescored(oracle, i, theta, y, index, -enough(theta, margin), work)


def decode_rescored(
    oracle: object, i: int, theta: FloatArray, y: IntArray, index: int, change: float, work: object
) -> IntArray:
    """Return the best output if one score changes."""
    before, other = theta[index], y.copy()
    theta[index] += change
    decode(oracle, i, theta, other, work)
    theta[index] = before
    return other

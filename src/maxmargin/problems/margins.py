r"""Margins: by how much the best score falls if one part of the output has to differ.

.. math:: m_i(p) = \max_y \langle \theta, s_i(y) \rangle - \max_{y:\, y_p \ne \hat y_p} \langle \theta, s_i(y)
          \rangle \ge 0,

where :math:`\hat y` is the prediction; infinite if no output differs in part p. This is an optional function
of an oracle. By default the parts are the entries of the output, and each margin costs one more prediction,
in which the entry is forbidden; for this, an oracle registers `output_score` and `forbid`. An oracle with a
faster algorithm registers `decode_with_margins`.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import generic, generic_with_default, is_wrapper, python_generic, subroutine
from maxmargin.problems.halves import InnerWork
from maxmargin.problems.oracle import decode, oracle_workspace, output_size, output_sizes


class DecodingAgain(NamedTuple):
    """Workspace of the default: the workspace of the oracle, and a second output."""

    oracle: object
    y: IntArray


@python_generic
def margin_workspace(oracle):
    """Return work arrays for `decode_with_margins`; each thread has its own."""
    if is_wrapper(type(oracle)):
        return InnerWork(margin_workspace(oracle.inner))
    return DecodingAgain(oracle_workspace(oracle), np.zeros(output_sizes(oracle).output, dtype=np.int64))


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

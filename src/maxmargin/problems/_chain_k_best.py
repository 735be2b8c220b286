"""The k best labellings of a chain, and how far they fall short of the best."""

from typing import NamedTuple

import numpy as np

from maxmargin._compile import kernel
from maxmargin.inference.k_best import k_best_paths, k_best_work
from maxmargin.problems._protocol import score, sizes, workspace
from maxmargin.problems._transitions import LEAST, lay_out
from maxmargin.problems.chain import Chain
from maxmargin.rows import FloatArray, IntArray


class KBest(NamedTuple):
    """The best labellings of a sequence, from the best on.

    Attributes
    ----------
    labels : array of shape (at most k, length)
    margins : array of shape (at most k,)
        By how much the score of each is below that of the first.
    """

    labels: IntArray
    margins: FloatArray


@kernel
def _find(problem, i, w, theta, work, search, y, scores):
    """Write the best labellings of sequence i and their scores."""
    length, K = problem.offsets[i + 1] - problem.offsets[i], problem.n_labels
    score(problem, i, w, theta)
    parts = theta.reshape((-1, problem.width))
    lay_out(problem.transitions, parts[K : K + length], parts[:K], K, work)
    k_best_paths(work.unary[:length], work.pairs, search, y, scores)


def k_best_labellings(problem: Chain, w: FloatArray, k: int) -> list[KBest]:
    """Return the k best labellings of each sequence, or all that there are."""
    size, found = sizes(problem), []
    theta, work = np.zeros(size.statistics), workspace(problem)
    search = k_best_work(size.output, problem.n_labels, k)
    y, scores = np.zeros((k, size.output), dtype=np.int64), np.zeros(k)
    for i, length in enumerate(np.diff(problem.offsets).tolist()):
        _find(problem, i, w, theta, work, search, y, scores)
        count = int((scores > LEAST).sum())
        found.append(KBest(y[:count, :length].copy(), scores[0] - scores[:count]))
    return found

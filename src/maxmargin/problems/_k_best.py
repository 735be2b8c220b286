"""The k best outputs for sequences, and how far they fall short of the best."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, kernel
from maxmargin.encoding.segments import Segment
from maxmargin.inference.k_best import KBestWork, k_best_paths, k_best_second_order, k_best_work
from maxmargin.inference.k_best_segments import KBestTrellis, k_best_segmentations, k_best_trellis
from maxmargin.inference.segments import PARTS
from maxmargin.problems._checked import checked_weights
from maxmargin.problems._protocol import output_size, score, sizes, workspace
from maxmargin.problems._segment_oracles import lay_out_segments
from maxmargin.problems._transitions import LEAST, lay_out
from maxmargin.problems.chain import Chain
from maxmargin.problems.second_order import SecondOrderChain, first_trigram, n_trigrams
from maxmargin.problems.segments import Segments, head_size


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


class KBestSegments(NamedTuple):
    """The best segmentations of a sequence, from the best on.

    Attributes
    ----------
    segments : list of lists of tuples
        The segments ``(start, stop, label)`` of each of them.
    margins : array of shape (at most k,)
        By how much the score of each is below that of the first.
    """

    segments: list[list[Segment]]
    margins: FloatArray


def check_k(k: Any, owner: str) -> int:
    """Return k, if it is a number of outputs."""
    if not (isinstance(k, Integral) and int(k) >= 1):
        raise ValueError(f"{owner}: k must be an int >= 1, got {k!r}.")
    return int(k)


@generic
def search_space(problem, k):
    """Return work space for the k best outputs of a sequence."""
    raise NotImplementedError


@search_space.register(Chain)
def chain_search_space(problem: Chain, k: int) -> KBestWork:
    return k_best_work(problem.longest, problem.n_labels, k)


@search_space.register(SecondOrderChain)
def second_order_chain_search_space(problem: SecondOrderChain, k: int) -> KBestWork:
    return k_best_work(problem.chain.longest, problem.chain.n_labels**2, k)


@search_space.register(Segments)
def segments_search_space(problem: Segments, k: int) -> KBestTrellis:
    return k_best_trellis(problem.longest, problem.n_labels, problem.n_lengths, k)


@generic
def find_k_best(problem, i, theta, work, search, y, scores):
    """Write the best outputs of sequence i and their scores."""
    raise NotImplementedError


@find_k_best.register(Chain)
def chain_find_k_best(problem, i, theta, work, search, y, scores):
    length, K = output_size(problem, i), problem.n_labels
    parts = theta.reshape((-1, problem.width))
    lay_out(problem.transitions, parts[K : K + length], parts[:K], K, work)
    k_best_paths(work.unary[:length], work.pairs, search, y, scores)


@find_k_best.register(SecondOrderChain)
def second_order_chain_find_k_best(problem, i, theta, work, search, y, scores):
    chain, length, K = problem.chain, output_size(problem, i), problem.chain.n_labels
    parts, (first, _) = theta.reshape((-1, chain.width)), first_trigram(problem, i)
    triples = theta[first : first + n_trigrams(problem)].reshape((K, K, chain.width))
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, work.chain)
    k_best_second_order(work.chain.unary[:length], work.chain.pairs, triples, K, search, y, scores)


@find_k_best.register(Segments)
def segments_find_k_best(problem, i, theta, work, search, y, scores):
    width, K = problem.width, problem.n_labels
    pairs = theta[: K * width].reshape((-1, width))
    parts = theta[head_size(problem) :].reshape((-1, PARTS * width))
    lay_out_segments(problem, i, theta, work)
    k_best_segmentations(parts[: output_size(problem, i)], pairs, K, work.trellis, search, y, scores)


@kernel
def _find(problem, i, w, theta, work, search, y, scores):
    """Score sequence i and write its best outputs."""
    score(problem, i, w, theta)
    find_k_best(problem, i, theta, work, search, y, scores)


def _most_outputs(problem: Chain | SecondOrderChain | Segments) -> int:
    """Return what no sequence has more outputs than: a token has a label, and may start a segment."""
    chain = problem.chain if isinstance(problem, SecondOrderChain) else problem
    return (2 * int(chain.n_labels)) ** int(sizes(problem).output)


def k_best_outputs(problem: Chain | SecondOrderChain | Segments, w: FloatArray, k: int) -> list[KBest]:
    """Return the k best outputs for each sequence, or all that there are."""
    size, found = sizes(problem), []
    k, w = min(k, _most_outputs(problem)), checked_weights(problem, w)
    theta, work = np.zeros(size.statistics), workspace(problem)
    search = search_space(problem, k)
    y, scores = np.zeros((k, size.output), dtype=np.int64), np.zeros(k)
    for i, length in enumerate(np.diff(problem.offsets).tolist()):
        _find(problem, i, w, theta, work, search, y, scores)
        count = int((scores > LEAST).sum())
        found.append(KBest(y[:count, :length].copy(), scores[0] - scores[:count]))
    return found

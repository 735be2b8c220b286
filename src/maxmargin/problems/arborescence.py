r"""Dependency trees: every word of a sentence has one head, another word or the root.

.. math:: \langle w, \phi(x, y) \rangle = \sum_j \langle w, x_{j y_j} \rangle

with features :math:`x_{jh}` of the arc to word j from head h.
"""

import numpy as np

from maxmargin.arrays import Features, IntArray
from maxmargin.encoding.arcs import Arcs, Indicators, encode_arcs, encode_heads
from maxmargin.encoding.checked import checked_heads, checked_offsets
from maxmargin.inference.dependency_trees import AnyTrees, ProjectiveTrees
from maxmargin.problems.maps.arborescence import ArborescenceMap
from maxmargin.problems.oracles.arborescence import ArborescenceOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.problems.subsets import spans
from maxmargin.rows import Rows, as_indicators, as_rows, n_rows
from maxmargin.wording import shown

ArborescenceProblem = Problem[ArborescenceMap, ArborescenceOracle]
LOSSES = ("normalized_hamming", "hamming")


class Arborescence:
    """Builders of dependency-tree problems."""

    @staticmethod
    def from_arcs(
        X: object,
        y: object,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
        owner: str = "Arborescence",
    ) -> ArborescenceProblem:
        """Build a problem from features of arcs and true heads.

        Parameters
        ----------
        X : list of arrays of shape (n_words, n_words + 1, n_features)
            ``X[i][j, h]`` has the features of the arc to word j of sentence i from head h: 0 is the root,
            1 the first word. Or sparse matrices with one row per arc, in this order.
        y : list of sequences of ints
            The head of each word.
        projective : bool
            Whether to choose only among trees without crossing arcs.
        single_root : bool
            Whether exactly one word must have the root as its head.
        loss : "normalized_hamming" or "hamming"
            Fraction of wrong heads, or their number.
        owner : str
            The name that errors begin with.
        """
        arcs = encode_arcs(X, owner=owner)
        heads = encode_heads(y, arcs.offsets, owner=owner, projective=projective, single_root=single_root)
        return Arborescence.from_encoded(
            arcs, heads, projective=projective, single_root=single_root, loss=loss, owner=owner
        )

    @staticmethod
    def from_encoded(
        arcs: Arcs,
        heads: IntArray,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
        owner: str = "Arborescence",
    ) -> ArborescenceProblem:
        """Build a problem from arcs and heads."""
        if loss not in LOSSES:
            raise ValueError(f"{owner}: loss must be {' or '.join(map(repr, LOSSES))}, got {shown(loss)}.")
        phi, sentences = Arborescence.for_prediction(
            arcs, projective=projective, single_root=single_root, owner=owner
        )
        words = sentences.words
        lengths, offsets = words[:, 1] - words[:, 0], np.append(0, words[:, 1])
        scale = np.ones(len(lengths)) if loss == "hamming" else 1.0 / lengths
        sentences = sentences._replace(heads=checked_heads(heads, offsets, owner), scale=scale)
        return Problem(phi, sentences)

    @staticmethod
    def for_prediction(
        arcs: Arcs, *, projective: bool = False, single_root: bool = True, owner: str = "Arborescence"
    ) -> ArborescenceProblem:
        """Build a problem that can be decoded but not trained on: it has no heads."""
        rows, offsets = _as_rows(arcs.features, owner), checked_offsets(arcs.offsets, None, owner)
        lengths = np.diff(offsets)
        _check_arcs(n_rows(rows), lengths, owner)
        trees = ProjectiveTrees(bool(single_root)) if projective else AnyTrees(bool(single_root))
        arc_offsets, longest = np.append(0, np.cumsum(lengths * (lengths + 1))), int(lengths.max())
        heads, scale = np.zeros(0, dtype=np.int64), np.zeros(len(lengths))
        problem = Problem(
            ArborescenceMap(rows, spans(arc_offsets), longest),
            ArborescenceOracle(trees, spans(offsets), heads, scale, longest),
        )
        return fitting(problem, owner)


def _as_rows(features: Features | Indicators, owner: str) -> Rows:
    """Return the rows; indicators are kept, as a sparse matrix would store a number for each of them."""
    if isinstance(features, Indicators):
        return as_indicators(*features, owner)
    return as_rows(features, owner)


def _check_arcs(n_arcs: int, lengths: IntArray, owner: str) -> None:
    """Raise unless each word has an arc from each word of its sentence and from the root."""
    expected = sum(m * (m + 1) for m in lengths.tolist())
    if n_arcs != expected:
        raise ValueError(
            f"{owner}: features must have {expected} rows, m (m + 1) for each sentence of m words, got "
            f"{n_arcs}."
        )

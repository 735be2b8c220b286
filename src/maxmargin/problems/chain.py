r"""First-order chains: one label per position, and a weight for each pair of neighbours.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t}

with feature weights W of each label, start and end biases b, e and transitions A, as in the paper's code.
"""

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import Features, FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.checked import checked_count, checked_forbidden, checked_numbers, checked_offsets
from maxmargin.encoding.forbidden import check_allowed, encode_forbidden
from maxmargin.problems._labels import cost_matrix, pad_columns
from maxmargin.problems.layouts import padded
from maxmargin.problems.maps._products import no_products, tabulated
from maxmargin.problems.maps.chain import ChainMap
from maxmargin.problems.oracles._transitions import as_transitions
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.problems.subsets import spans
from maxmargin.rows import as_rows, n_rows

ChainProblem = Problem[ChainMap, ChainOracle]
LOSSES = ("normalized_hamming", "hamming")


class Chain:
    """Builders of sequence-labelling problems."""

    @staticmethod
    def from_sequences(
        X: object,
        y: object,
        *,
        loss: object = "normalized_hamming",
        forbidden: object = None,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem from sequences of features and of labels.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of sequences of labels
            Strings or ints; labels are numbered in sorted order.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Fraction of wrong labels (default, as in the paper; `ChainSVC` has "hamming"), number of wrong
            labels, or ``loss[a, b]`` for the cost of label b where the truth is a. Costs are averaged over
            the sequence, unlike "hamming", which adds them up.
        forbidden : list of pairs (before, after) of labels, or "bio", optional
            Transitions that no output may have; None means the start or the end. "bio" forbids ``I-x`` that
            does not continue ``B-x`` or ``I-x``.
        owner : str
            The name that errors begin with.
        """
        tokens = SequenceEncoder(owner=owner).fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets, owner=owner)
        matrix = encode_forbidden(forbidden, classes, owner=owner)
        if matrix is not None:
            check_allowed(labels, tokens.offsets, matrix, classes, owner=owner)
        return Chain.from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=loss, forbidden=matrix, owner=owner
        )

    @staticmethod
    def from_encoded(
        features: Features,
        offsets: IntArray,
        labels: IntArray,
        n_labels: int,
        *,
        loss: object = "normalized_hamming",
        forbidden: ArrayLike | None = None,
        class_costs: FloatArray | None = None,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem from the tokens' features and labels 0, ..., n_labels - 1.

        ``forbidden`` is a matrix from `encode_forbidden`, or None. If label k is true, a wrong token costs
        ``class_costs[k]`` times as much.
        """
        problem = Chain.for_prediction(features, offsets, n_labels, forbidden, owner=owner)
        phi, chain = problem
        cost = cost_matrix(loss, LOSSES, n_labels, owner)
        cost = cost if class_costs is None else cost * class_costs[:, None]
        unscaled = isinstance(loss, str) and loss == "hamming"
        lengths = phi.tokens[:, 1] - phi.tokens[:, 0]
        chain = chain._replace(
            labels=checked_numbers(labels, n_rows(phi.rows), n_labels, owner),
            cost=pad_columns(cost, phi.width),
            scale=np.ones(len(lengths)) if unscaled else 1.0 / lengths,
        )
        values, places, room = tabulated(phi.rows, phi.tokens)
        return Problem(phi._replace(products=values, product_spans=places, table_room=room), chain)

    @staticmethod
    def for_prediction(
        features: Features,
        offsets: IntArray,
        n_labels: int,
        forbidden: ArrayLike | None = None,
        *,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        width, rows = padded(checked_count(n_labels, owner, "n_labels")), as_rows(features, owner)
        tokens = spans(checked_offsets(offsets, n_rows(rows), owner))
        matrix = None if forbidden is None else checked_forbidden(forbidden, n_labels, owner)
        sizes = int(n_labels), width, int((tokens[:, 1] - tokens[:, 0]).max())
        labels, cost, scale = np.zeros(0, dtype=np.int64), np.zeros((0, width)), np.zeros(len(tokens))
        problem = Problem(
            ChainMap(rows, tokens, *no_products(rows, tokens), *sizes),
            ChainOracle(tokens, labels, cost, scale, as_transitions(matrix, width), *sizes),
        )
        return fitting(problem, owner)

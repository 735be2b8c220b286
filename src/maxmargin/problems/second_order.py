r"""Second-order chains: a chain that also has a weight for each trigram of labels.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t} + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

Both halves wrap those of a chain, which do everything except B.
"""

from numpy.typing import ArrayLike

from maxmargin.arrays import Features, FloatArray, IntArray
from maxmargin.problems.chain import Chain, ChainProblem
from maxmargin.problems.maps.second_order import SecondOrderMap
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.problem import Problem, fitting

SecondOrderProblem = Problem[SecondOrderMap, SecondOrderOracle]


class SecondOrderChain:
    """Builders of sequence-labelling problems with trigram weights."""

    @staticmethod
    def from_sequences(
        X: object,
        y: object,
        *,
        loss: object = "normalized_hamming",
        forbidden: object = None,
        owner: str = "SecondOrderChain",
    ) -> SecondOrderProblem:
        """Build a problem from sequences of features and of labels.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of sequences of labels
            Strings or ints; labels are numbered in sorted order.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Share of wrong labels (default), number of wrong labels, or ``loss[a, b]`` for the
            cost of label b where the truth is a, averaged over the sequence.
        forbidden : list of pairs (before, after) of labels, or "bio", optional
            Transitions that no output may have; None means the start or the end. "bio" forbids ``I-x`` that
            does not continue ``B-x`` or ``I-x``.
        owner : str
            The name that errors begin with.
        """
        chain = Chain.from_sequences(X, y, loss=loss, forbidden=forbidden, owner=owner)
        return _with_trigrams(chain, owner)

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
        owner: str = "SecondOrderChain",
    ) -> SecondOrderProblem:
        """Build a problem from the tokens' features and labels, as `Chain.from_encoded` does."""
        chain = Chain.from_encoded(
            features,
            offsets,
            labels,
            n_labels,
            loss=loss,
            forbidden=forbidden,
            class_costs=class_costs,
            owner=owner,
        )
        return _with_trigrams(chain, owner)

    @staticmethod
    def for_prediction(
        features: Features,
        offsets: IntArray,
        n_labels: int,
        forbidden: ArrayLike | None = None,
        *,
        owner: str = "SecondOrderChain",
    ) -> SecondOrderProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        return _with_trigrams(
            Chain.for_prediction(features, offsets, n_labels, forbidden, owner=owner), owner
        )


def _with_trigrams(chain: ChainProblem, owner: str) -> SecondOrderProblem:
    """Return the problem of a chain with trigram weights, if they fit into memory."""
    return fitting(Problem(SecondOrderMap(chain.map), SecondOrderOracle(chain.oracle)), owner)

"""What the estimators over sequences share: the encoding of tokens, and the parts of the weights."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.tokens import Tokens
from maxmargin.estimators._base import Call, MaxMarginEstimator, Output
from maxmargin.estimators._examples import Data
from maxmargin.estimators._problems import SequenceProblem, check_k, k_best_outputs
from maxmargin.estimators._state import snapshot

X_TEXT = """
X : list of sequences
    Each is a 2-D array or sparse matrix with one row per token, or a list with one dict or one iterable of
    strings per token. All sequences of all calls are of the same kind.
"""


class SequenceEstimator(MaxMarginEstimator[Data, Output]):
    """Base of the estimators over sequences of tokens. A subclass defines `_unlabelled`."""

    min_count: int
    feature_names_: list[str] | None
    _encoder: SequenceEncoder

    def _tokens(self, X: object, call: Call) -> Tokens:
        """Return the tokens encoded; the first call learns the features."""
        if not call.first:
            return self._encoder.transform(X)
        self._encoder = SequenceEncoder(min_count=self.min_count, owner=self._owner)
        tokens = self._encoder.fit_transform(X)
        self.n_features_in_, self.feature_names_ = self._encoder.n_features_in_, self._encoder.feature_names_
        return tokens

    def _unlabelled(self, tokens: Tokens) -> SequenceProblem:
        """Hook: return the problem of predicting the outputs of encoded sequences."""
        raise NotImplementedError

    def _read(self, X: object) -> Tokens:
        """Return the tokens of sequences whose outputs are to be predicted."""
        return self._encoder.transform(X)

    def _k_best(self, X: object, k: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Return the codes of the k best outputs of each sequence, and their margins."""
        checked = check_k(k, self._owner)
        yield from k_best_outputs(self._unlabelled(self._read(X)), self._w, checked)

    @property
    @snapshot
    def _weights(self) -> tuple[FloatArray, ...]:
        """The weights by what they mean. Any sequence will do: one token without features."""
        blank = Tokens(csr_array((1, self.n_features_in_)), np.array([0, 1]))
        return self._unlabelled(blank).unpack(self._w)


def weights_part(name: str, meaning: str) -> property:
    """Return a property of an estimator: one part of its weights, by its name in the problem."""

    def part(self: SequenceEstimator[Data, Output]) -> FloatArray:
        found: FloatArray = getattr(self._weights, name)
        return found

    return property(part, doc=meaning)

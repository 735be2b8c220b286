"""What the estimators over sequences share: the encoding of tokens, and the parts of the weights."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.objects import ObjectEncoder, holds_arrays
from maxmargin.encoding.tokens import Tokens
from maxmargin.estimators._base import Call, Output
from maxmargin.estimators._examples import Data
from maxmargin.estimators._kernels import KernelEstimator
from maxmargin.estimators._problems import SequenceProblem, check_k, k_best_outputs
from maxmargin.estimators._state import snapshot

X_TEXT = """
X : list of sequences
    Each is a 2-D array or sparse matrix with one row per token, or a list with one dict or one iterable of
    strings per token. All sequences of all calls are of the same kind.
"""


class SequenceEstimator(KernelEstimator[Data, Output]):
    """Base of the estimators over sequences of tokens. A subclass defines `_unlabelled`."""

    min_count: int
    feature_names_: list[str] | None
    _encoder: SequenceEncoder | ObjectEncoder

    def _tokens(self, X: object, call: Call) -> Tokens:
        """Return the tokens encoded; the first call learns the features."""
        if not call.first:
            return self._encoder.transform(X)
        if callable(self.kernel) and not holds_arrays(X):
            self._encoder = ObjectEncoder(self._owner)
        else:
            self._encoder = SequenceEncoder(min_count=self.min_count, owner=self._owner)
        tokens = self._encoder.fit_transform(X)
        self.n_features_in_, self.feature_names_ = self._encoder.n_features_in_, self._encoder.feature_names_
        self._learn_kernel(tokens.rows)
        return tokens

    def _unlabelled(self, tokens: Tokens) -> SequenceProblem:
        """Hook: return the problem of predicting the outputs of encoded sequences."""
        raise NotImplementedError

    def _read(self, X: object) -> Tokens:
        """Return the tokens of sequences whose outputs are to be predicted."""
        tokens = self._encoder.transform(X)
        return tokens._replace(rows=self._prediction_rows(tokens.rows))

    def _k_best(self, X: object, k: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Return the codes of the k best outputs of each sequence, and their margins."""
        checked = check_k(k, self._owner)
        yield from k_best_outputs(self._unlabelled(self._read(X)), self._w, checked)

    @property
    @snapshot
    def _weights(self) -> tuple[FloatArray, ...]:
        """The weights by what they mean. Any sequence will do: one token without features."""
        n_columns = self.n_features_in_ if self._is_linear else self._support.coefficients.shape[1]
        blank = Tokens(csr_array((1, n_columns)), np.array([0, 1]))
        return self._unlabelled(blank).unpack(self._w)


def weights_part(name: str, meaning: str) -> property:
    """Return a property of an estimator: one part of its weights, by its name in the problem."""

    def part(self: SequenceEstimator[Data, Output]) -> FloatArray:
        found: FloatArray = getattr(self._weights, name)
        return found

    return property(part, doc=meaning)


def feature_part(name: str, attribute: str, meaning: str) -> property:
    """Return a property like `weights_part`, of weights that only a linear model has."""

    def part(self: SequenceEstimator[Data, Output]) -> FloatArray:
        found: FloatArray = getattr(self._weights, name)
        self._check_linear(attribute)
        return found

    return property(part, doc=meaning)

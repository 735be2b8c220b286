"""Feature hashing: the column of a name is a hash of it, so that no vocabulary is learnt or kept.

Two names may share a column, and names cannot be told from columns. The hash is MurmurHash3, as in
scikit-learn's `FeatureHasher`, but without signs: indicators stay indicators, which take less memory.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import murmurhash3_32

from maxmargin.encoding.kinds import as_sequences, find_kind, is_empty
from maxmargin.encoding.numbered import NumberedSequences, numbered
from maxmargin.encoding.sparse_rows import assemble, sparse_rows
from maxmargin.encoding.tokens import Tokens

MOST_BITS = 30  # numbers of columns are int32


class HashingEncoder:
    """Turn sequences of named features into one matrix with ``2**bits`` columns.

    Tokens are dicts or collections of strings, as `SequenceEncoder` takes them. A column that several names
    of a token share has the sum of their values, or one if all names are without values.

    Parameters
    ----------
    bits : int
        From 1 to 30.
    owner : str
        The name to use in error messages.

    Attributes
    ----------
    n_features_in_ : int
        ``2**bits``.
    feature_names_ : None

    Examples
    --------
    >>> rows, offsets = HashingEncoder(4, "ChainSVC").transform([[["w=the", "det"], ["w=dog"]]])
    >>> rows.shape, offsets.tolist(), rows.sum(axis=1).tolist()
    ((2, 16), [0, 2], [2.0, 1.0])
    """

    feature_names_ = None

    def __init__(self, bits: int, owner: str) -> None:
        self.bits, self.owner, self.n_features_in_ = bits, owner, 1 << bits

    def transform(self, X: object) -> Tokens:
        """Return the rows of all tokens of all sequences, and the offsets of the sequences."""
        if not isinstance(X, NumberedSequences):
            X = self._numbered(as_sequences(X, self.owner))
        return Tokens(hashed_rows(X, self.bits), X.offsets)

    def _numbered(self, sequences: list[object]) -> NumberedSequences:
        kind = "strings" if all(map(is_empty, sequences)) else find_kind(sequences, self.owner)
        if kind not in ("dicts", "strings"):
            raise TypeError(
                f"{self.owner}: X must have tokens that are dicts or lists of strings, whose names are "
                f"hashed, got {kind} matrices; pass names."
            )
        return numbered(sequences, kind, self.owner)


def hashed_rows(X: NumberedSequences, bits: int) -> csr_array:
    """Return the matrix of all tokens, whose columns are hashes of the names."""
    rows = sparse_rows(hashes(X.names, bits)[X.codes], X.counts, X.values, 1 << bits)
    if X.values is not None:
        return rows
    return assemble(np.ones(len(rows.indices)), rows.indices, rows.indptr, rows.shape[1])


def hashes(names: list[str], bits: int) -> NDArray[np.int32]:
    """Return the columns of names."""
    encoded = (name.encode("utf-8", "surrogatepass") for name in names)
    found = np.fromiter((murmurhash3_32(name) for name in encoded), np.int64, len(names))
    return (np.abs(found) & ((1 << bits) - 1)).astype(np.int32)

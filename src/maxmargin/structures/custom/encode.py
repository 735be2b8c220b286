"""Convert joint features (arrays, sparse rows, pairs, dicts) to the indices and values of their nonzeros."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import is_numeric
from maxmargin.runtime.arrays import FloatArray, IntArray, is_sparse
from maxmargin.runtime.wording import described, quoted

Entries = tuple[IntArray, FloatArray]

_Scalar = TypeVar("_Scalar", bound=np.generic)
_INDEX, _NUMBER = np.dtype(np.int64), np.dtype(np.float64)

EXPECTED = "a 1-D array, a sparse row, a dict {name: number} or a pair (indices, values)"


class NamedWeights:
    """Weights by feature name; features without a weight count as zero."""

    __slots__ = ("_names", "_w")

    def __init__(self, names: Mapping[Hashable, int], w: FloatArray) -> None:
        self._names, self._w = names, w

    def __getitem__(self, name: Hashable) -> float:
        place = self._names.get(name)
        return 0.0 if place is None else float(self._w[place])

    def dot(self, features: Mapping[Hashable, float]) -> float:
        """Return the score of features given as a dict."""
        return sum(self[name] * value for name, value in features.items())


class DenseJoint:
    """Features as 1-D arrays of a fixed length."""

    def __init__(self, size: int) -> None:
        self.size = size

    def entries(self, features: object) -> Entries:
        """Return the nonzeros; raise if the features are not of this kind."""
        array = np.asarray(features)
        if array.shape != (self.size,) or not is_numeric(array.dtype):
            raise ValueError(f"expected a 1-D array of {self.size} numbers, got {described(features)}")
        (where,) = array.nonzero()
        return where, array[where].astype(np.float64, copy=False)

    def given(self, w: FloatArray) -> FloatArray:
        """Return the weights as users see them."""
        view = w.view()
        view.flags.writeable = False
        return view


class SparseJoint(DenseJoint):
    """Features as sparse rows, of shape (1, size) or (size,)."""

    def entries(self, features: object) -> Entries:
        """Return the nonzeros; raise if the features are not of this kind."""
        if not is_sparse(features) or features.shape not in ((1, self.size), (self.size,)):
            raise ValueError(f"expected a sparse row of {self.size} numbers, got {described(features)}")
        row = features.tocsr() if features.format == "csr" else csr_array(features.reshape(1, self.size))
        if not row.indptr[-1] == len(row.indices) == len(row.data):
            raise ValueError(
                f"expected as many indices as values, got {len(row.indices)} and {len(row.data)}, and "
                f"an indptr that ends with {row.indptr[-1]}"
            )
        return row.indices.astype(np.int64), row.data.astype(np.float64, copy=False)


class PairJoint(DenseJoint):
    """Features as pairs of indices and values."""

    def entries(self, features: object) -> Entries:
        """Return the nonzeros; raise if the features are not of this kind."""
        if not _is_pair(features):
            raise ValueError(f"expected a pair of indices and values, got {described(features)}")
        where, value = features
        if _is_plain(where, _INDEX) and _is_plain(value, _NUMBER) and len(where) == len(value):
            return where, value
        return self._converted(np.asarray(where), np.asarray(value))

    def _converted(self, where: NDArray[np.generic], value: NDArray[np.generic]) -> Entries:
        """Return the nonzeros given by arrays that need a conversion."""
        if where.ndim != 1 or where.shape != value.shape or not is_numeric(value.dtype):
            raise ValueError(
                f"expected as many indices as values, got {described(where)} and {described(value)}"
            )
        if where.dtype.kind not in "iu" and len(where):
            raise ValueError(f"expected indices that are ints, got {described(where)} of {where.dtype}")
        return where.astype(np.int64, copy=False), value.astype(np.float64, copy=False)


class NamedJoint:
    """Features as dicts; unknown names have no weight and are ignored."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names = {name: k for k, name in enumerate(dict.fromkeys(names))}
        self.size = len(self.names)

    def entries(self, features: object) -> Entries:
        """Return the nonzeros; raise if the features are not of this kind."""
        if not isinstance(features, Mapping):
            raise ValueError(f"expected a dict {{name: number}}, got {described(features)}")
        known = [(self.names[name], value) for name, value in features.items() if name in self.names]
        try:
            value = np.array([value for _, value in known], dtype=np.float64)
        except (TypeError, ValueError):
            bad = next(v for v in features.values() if not isinstance(v, int | float | np.number))
            raise ValueError(f"expected numbers as values of the dict, got {described(bad)}") from None
        return np.array([place for place, _ in known], dtype=np.int64), value

    def given(self, w: FloatArray) -> NamedWeights:
        """Return the weights as users see them."""
        return NamedWeights(self.names, w)


Joint = DenseJoint | NamedJoint


def joint_of(truths: list[object], n_features: int | None, feature_names: Iterable[Hashable] | None) -> Joint:
    """Return the kind of joint features, judged by the first truth; names of dicts come from all truths."""
    first = truths[0]
    if isinstance(first, Mapping):
        if feature_names is None:
            feature_names = (name for truth in truths if isinstance(truth, Mapping) for name in truth)
        return NamedJoint(feature_names)
    if feature_names is not None:
        raise ValueError(f"feature_names are for features that are dicts, got {described(first)}.")
    if _is_pair(first):
        if n_features is None:
            raise ValueError("n_features must be given where features are pairs (indices, values), got None.")
        return PairJoint(n_features)
    if is_sparse(first):
        return SparseJoint(first.shape[-1] if n_features is None else n_features)
    return DenseJoint(_length(first) if n_features is None else n_features)


def _length(first: object) -> int:
    """Return the length of dense features."""
    array = np.asarray(first) if hasattr(first, "__array__") or isinstance(first, list) else None
    if array is None or array.ndim != 1 or not is_numeric(array.dtype):
        raise TypeError(f"features must return {EXPECTED}, got {described(first)} for example 0.")
    return len(array)


def _is_pair(features: object) -> TypeGuard[tuple[ArrayLike, ArrayLike]]:
    """Return whether these are indices and values, rather than a tuple of numbers."""
    return (
        isinstance(features, tuple)
        and len(features) == 2
        and all(hasattr(side, "__len__") and not isinstance(side, str) for side in features)
    )


def _is_plain(array: object, dtype: np.dtype[_Scalar]) -> TypeGuard[NDArray[_Scalar]]:
    """Return whether this is a vector that needs no conversion."""
    return type(array) is np.ndarray and array.dtype is dtype and array.ndim == 1


def flaw(entries: Entries, size: int) -> str | None:
    """Return what is wrong with entries, an index out of range or a value that is not finite, or None."""
    where, value = entries
    outside = where[(where < 0) | (where >= size)]
    if len(outside):
        return f"expected indices below {size}, got {outside[0]}"
    infinite = ~np.isfinite(value)
    if infinite.any():
        at = int(np.argmax(infinite))
        return f"expected finite numbers, got {quoted(float(value[at]))} for feature {where[at]}"
    return None

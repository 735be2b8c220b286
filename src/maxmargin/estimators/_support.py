"""Support rows of models with a kernel, and how they and the kernel are stored."""

from typing import Any, NamedTuple, TypeAlias, cast, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.matrices import checked_csr
from maxmargin.encoding.objects import as_objects
from maxmargin.estimators._fields import Field
from maxmargin.persistence.parts import Draft, Stored
from maxmargin.problems import (
    GaussianKernel,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    SigmoidKernel,
)
from maxmargin.wording import quoted

# Numbers of columns are uint32.
_MOST_FEATURES = 2**32

# Features of rows: a matrix, or an array of users' objects for a kernel of their own.
RowFeatures: TypeAlias = np.ndarray[Any, Any] | csr_array
Function = LinearKernel | PolynomialKernel | GaussianKernel | SigmoidKernel | PrecomputedKernel

_KERNELS: dict[str, type[Function]] = {
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "rbf": GaussianKernel,
    "sigmoid": SigmoidKernel,
    "callable": PrecomputedKernel,
}


class Support(NamedTuple):
    """The training rows with nonzero coefficients.

    Attributes
    ----------
    rows : matrix, or array of objects
    numbers : array of shape (n_support,)
        Which training rows they are.
    coefficients : array of shape (n_support, n_columns)
    """

    rows: RowFeatures
    numbers: IntArray
    coefficients: FloatArray


def _write_kernel(draft: Draft, name: str, function: Function) -> None:
    kind = next(kind for kind, known in _KERNELS.items() if type(function) is known)
    draft.put(name, [kind, *function])


def _read_kernel(stored: Stored, name: str) -> Function:
    found = stored.take(name)
    kind, *values = found if isinstance(found, list) and found else [None]
    known = _KERNELS.get(kind) if isinstance(kind, str) else None
    if known is None:
        stored.fail(f"{name!r} to be one of {', '.join(_KERNELS)}", quoted(found))
    types = list(get_type_hints(known).values())
    fits = [type(value) for value in values] == types
    if not fits or not np.isfinite(np.array(values, dtype=np.float64)).all():
        stored.fail(f"the numbers of a kernel for {name!r}", quoted(found))
    return known(*values)


def _write_support(draft: Draft, name: str, support: Support) -> None:
    rows, place = cast("Any", support.rows), name + ".rows"
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        kind, n_features = "dense", rows.shape[1]
        draft.put_floats(place, rows)
    elif issparse(rows):
        kind, n_features = "sparse", rows.shape[1]
        draft.put_floats(place, rows.data)
        draft.arrays |= {place + ".indices": rows.indices, place + ".indptr": rows.indptr}
    elif all(isinstance(item, str) for item in rows.tolist()):
        kind, n_features = "texts", 0
        draft.put_texts(place, rows.tolist())
    else:
        raise ValueError(
            "the kernel has training examples that are neither arrays nor texts, which files do not hold; "
            "pickle the model, or give texts or arrays to fit"
        )
    draft.put(name, [kind, n_features, support.coefficients.shape[1]])
    draft.arrays[name + ".numbers"] = support.numbers
    draft.reserve(support.coefficients.nbytes)
    draft.put_sparse(name + ".coefficients", support.coefficients)


def _read_support(stored: Stored, name: str) -> Support:
    found = stored.take(name)
    types = [type(item) for item in found] if isinstance(found, list) else None
    if types != [str, int, int] or min(cast("list[int]", found)[1:]) < 0:
        stored.fail(f"a kind of rows and two counts for {name!r}", quoted(found))
    kind, n_features, n_columns = cast("tuple[str, int, int]", found)
    if n_features > _MOST_FEATURES:
        stored.fail(f"at most 2**32 features for {name!r}", quoted(n_features))
    numbers = stored.take_ints(name + ".numbers", None)
    stored.check_room(8 * len(numbers) * n_columns, f"{name!r} to be coefficients")
    coefficients = np.zeros((len(numbers), n_columns))
    stored.take_sparse(name + ".coefficients", coefficients)
    rows = _read_rows(stored, name + ".rows", kind, len(numbers), n_features)
    return Support(rows, numbers, coefficients)


def _read_rows(stored: Stored, name: str, kind: str, n: int, n_features: int) -> RowFeatures:
    if kind == "dense":
        return stored.take_floats(name, n, n_features)
    if kind == "sparse":
        data = stored.take_floats(name, None)
        indices = stored.take_ints(name + ".indices", len(data))
        indptr = stored.take_ints(name + ".indptr", n + 1)
        matrix = csr_array((n, n_features))
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        found = checked_csr(matrix, repr(name))
        return csr_array((found.data, found.indices, found.indptr), shape=(n, n_features))
    texts = as_objects(stored.take_texts(name), name)
    if kind != "texts" or len(texts) != n:
        stored.fail(f"{n} 'dense' or 'sparse' rows or 'texts' for {name!r}", f"{len(texts)} {quoted(kind)}")
    return texts


KERNEL = Field(_write_kernel, _read_kernel)
SUPPORT = Field(_write_support, _read_support)

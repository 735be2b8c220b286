"""Whatever arrays users pass, kernels see one type; another type would need another compilation."""

import numba
import numpy as np
import pytest
import scipy.sparse

from maxmargin.problems import Chain, Multiclass


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def read_only_sparse(array):
    matrix = scipy.sparse.csr_array(array)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


DENSE = {
    "list": lambda a: np.asarray(a).tolist(),
    "float32": lambda a: np.asarray(a, dtype=np.float32),
    "int": lambda a: np.asarray(a, dtype=np.int16),
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "slice": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big-endian": lambda a: np.asarray(a, dtype=">f8"),
}
SPARSE = {
    "csc": scipy.sparse.csc_array,
    "matrix": scipy.sparse.csr_matrix,
    "float32": lambda a: scipy.sparse.csr_array(a, dtype=np.float32),
    "coo": scipy.sparse.coo_array,
    "read-only": read_only_sparse,
}
SOME = np.array([[2.0, 3.0, 4.0], [5.0, 6.0, 7.0], [8.0, 9.0, 3.0], [2.0, 5.0, 3.0]])
FEW = np.array([[2.0, 0.0, 0.0], [0.0, 6.0, 0.0], [8.0, 0.0, 0.0], [0.0, 0.0, 3.0]])


def assert_one_type(X, plain):
    y = [0, 1, 0, 1]
    assert numba.typeof(Multiclass.from_arrays(X, y)) == numba.typeof(Multiclass.from_arrays(plain, y))
    assert numba.typeof(Chain.from_sequences([X], [y])) == numba.typeof(Chain.from_sequences([plain], [y]))


@pytest.mark.parametrize("convert", DENSE.values(), ids=DENSE)
def test_kernels_see_one_type_of_dense_features(convert):
    assert_one_type(convert(SOME), SOME)


@pytest.mark.parametrize("convert", SPARSE.values(), ids=SPARSE)
def test_kernels_see_one_type_of_sparse_features(convert):
    assert_one_type(convert(FEW), scipy.sparse.csr_array(FEW))


@pytest.mark.parametrize(
    "y",
    [["a", "b", "a", "b"], np.array([0, 1, 0, 1], dtype=np.int8), read_only([3, 7, 3, 7]), [True, False] * 2],
)
def test_kernels_see_one_type_of_labels(y):
    plain = Multiclass.from_arrays(SOME, [0, 1, 0, 1]), Chain.from_sequences([SOME], [[0, 1, 0, 1]])
    assert numba.typeof(Multiclass.from_arrays(SOME, y)) == numba.typeof(plain[0])
    assert numba.typeof(Chain.from_sequences([SOME], [y])) == numba.typeof(plain[1])

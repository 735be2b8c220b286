"""Whatever arrays users pass, kernels see one of two types; each type needs a compilation of its own."""

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
    "int": lambda a: np.asarray(a, dtype=np.int16),
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "slice": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big-endian": lambda a: np.asarray(a, dtype=">f8"),
}
SINGLE = {
    "half": lambda a: np.asarray(a, dtype=np.float16),
    "fortran": lambda a: np.asfortranarray(a, dtype=np.float32),
    "read-only": lambda a: read_only(np.asarray(a, dtype=np.float32)),
    "slice": lambda a: np.repeat(np.asarray(a, dtype=np.float32), 2, axis=1)[:, ::2],
    "big-endian": lambda a: np.asarray(a, dtype=">f4"),
}
SPARSE = {
    "csc": scipy.sparse.csc_array,
    "matrix": scipy.sparse.csr_matrix,
    "int": lambda a: scipy.sparse.csr_array(a, dtype=np.int16),
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


@pytest.mark.parametrize("convert", SINGLE.values(), ids=SINGLE)
def test_kernels_see_one_more_type_of_dense_features(convert):
    assert_one_type(convert(SOME), SOME.astype(np.float32))


def test_kernels_see_one_more_type_of_sparse_features():
    single = scipy.sparse.csr_array(FEW, dtype=np.float32)
    for other in (scipy.sparse.csr_matrix(single), read_only_sparse(single), single.tocoo()):
        assert_one_type(other, single)
    assert numba.typeof(Multiclass.from_arrays(single, [0, 1, 0, 1]).map.rows.values).dtype == numba.float32


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

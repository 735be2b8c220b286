"""Arrays as rows of a given width, compiled as in the interpreter."""

import numba
import numpy as np
import pytest

from maxmargin.compiling import helper
from maxmargin.compiling.loops import table


@helper
def change(array, width, row, column, value):
    rows = table(array, width)
    rows[row, column] += value
    return rows.shape[0], rows.shape[1], rows[row].sum()


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize(("size", "width", "first"), [(12, 4, 0), (12, 12, 0), (10, 2, 3), (7, 1, 0)])
def test_a_table_is_a_view_of_the_array(compiled, dtype, size, width, first):
    if compiled and numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    run = change.compiled() if compiled else change.__wrapped__
    whole = np.arange(first + size).astype(dtype)
    array, expected = whole[first:], whole[first:].copy()
    row, column = size // width - 1, width - 1
    n_rows, n_columns, total = run(array, width, row, column, 5)
    expected[-1] += 5
    assert (array == expected).all()
    assert (n_rows, n_columns) == (size // width, width)
    assert total == expected[-width:].sum()


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_views_hold_what_they_show():
    @numba.njit
    def total(array, width):
        return table(array, width).sum()

    array = np.arange(6.0)
    array.flags.writeable = False
    assert total(array, 2) == 15.0
    assert total(np.zeros(0), 3) == 0.0

    @numba.njit
    def kept(array, width):
        return table(array, width)

    rows = kept(np.arange(6.0), 3)  # the array itself is freed unless the view holds it
    assert (np.ones(6).sum(), rows.tolist()) == (6.0, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])

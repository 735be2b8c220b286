"""Functions that kernels call by their address."""

from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from maxmargin.compiling import kernel
from maxmargin.compiling.interpreting import interpreted
from maxmargin.compiling.loops import addressed, can_call_addresses


class Table(NamedTuple):
    """Numbers in a named tuple."""

    values: np.ndarray
    scale: float


@addressed
def _add_row(table, i, out):
    for k in range(out.shape[0]):
        out[k] += table.scale * table.values[i, k]


@kernel
def _add_rows(table, first, address, out):
    for i in range(first, table.values.shape[0]):
        _add_row(address, table, i, out)


@kernel
def _add_row_of_a_small_number(table, numbers, address, out):
    _add_row(address, table, numbers[0], out)


@pytest.mark.compiled
def test_a_kernel_calls_a_function_by_its_address():
    table, out = Table(np.random.default_rng(0).normal(size=(5, 3)), 0.1), np.zeros(3)
    address = _add_row.address(table, 0, out)
    assert address == _add_row.address(table, 1, np.zeros(7)) != 0
    _add_rows(table, 1, address, out)
    assert _add_rows.mode(table) == "compiled"
    same = np.zeros(3)
    with interpreted():
        _add_rows(table, 1, address, same)
    assert out.tobytes() == same.tobytes()
    np.testing.assert_allclose(out, 0.1 * table.values[1:].sum(axis=0))


@pytest.mark.compiled
def test_numbers_that_the_function_was_not_compiled_for_are_refused():
    table, out = Table(np.zeros((5, 3)), 0.1), np.zeros(3)
    with pytest.raises(TypingError):
        _add_row_of_a_small_number(table, np.zeros(1, dtype=np.int8), _add_row.address(table, 0, out), out)


def test_interpreted_loops_call_no_addresses():
    with interpreted():
        assert not can_call_addresses(Table(np.zeros((1, 1)), 1.0))
    assert not can_call_addresses([1])

"""Prefetching: memory is requested, and nothing else happens."""

from inspect import unwrap

import numba
import numpy as np
import pytest

from maxmargin.compiling.loops import _MOST_LINES, prefetch

pytestmark = pytest.mark.compiled


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiled_code_prefetches():
    compiled = numba.njit(unwrap(prefetch))
    compiled(np.zeros(20), 3, 17)
    (code,) = compiled.inspect_llvm().values()
    assert "@llvm.prefetch" in code


@pytest.mark.parametrize(("first", "stop"), [(0, 0), (5, 5), (0, 20), (19, 20), (7, 3)])
def test_nothing_is_read_or_written(first, stop):
    array = np.arange(20, dtype=np.uint32)
    assert prefetch(array, first, stop) is None
    assert unwrap(prefetch)(array, first, stop) is None
    assert (array == np.arange(20)).all()


def test_each_line_is_requested_once_up_to_a_limit(monkeypatch):
    requested = []
    monkeypatch.setitem(unwrap(prefetch).__globals__, "_request", lambda array, p: requested.append(p))
    unwrap(prefetch)(np.zeros(100), 4, 30)
    assert requested == [4, 12, 20, 28]
    requested.clear()
    unwrap(prefetch)(np.zeros(10**5), 0, 10**5)
    assert len(requested) == _MOST_LINES

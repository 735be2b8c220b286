"""The compiler of kernels does less than Numba's, and compiles the same functions."""

import itertools

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags

from maxmargin.compiling import apart, helper, kernel
from maxmargin.compiling.numba_private.compilers import KernelFlags

SETTINGS = [{}, {"nrt": True}, {"nrt": False}, {"nrt": True, "fastmath": True}, {"boundscheck": True}]


def flags_with(settings, cls=Flags):
    flags = cls()
    for name, value in settings.items():
        setattr(flags, name, value)
    return flags


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SETTINGS, repeat=2)))
def test_flags_compare_as_those_of_numba(a, b):
    """Also where one sets an option to its default, as Numba compares values."""
    ours, theirs = flags_with(a, KernelFlags), flags_with(b)
    assert (ours == theirs) == (theirs == ours) == (flags_with(a) == theirs)
    assert (ours == flags_with(b, KernelFlags)) == (flags_with(a) == theirs)
    assert hash(ours) == hash(theirs)
    assert type(ours.copy()) is KernelFlags
    assert ours != "flags"


def of_two_loops(a, total):
    for k in range(a.shape[0]):
        total[0] += a[k]
    for k in range(a.shape[0]):
        total[0] *= 1.0 + a[k]
    return total[0]


apart_helper = helper(apart(of_two_loops))


@kernel
def calls_apart(arrays, total):
    return apart_helper(arrays[0], total) + apart_helper(arrays[1], total)


@kernel
def has_a_closure(arrays, total):
    def add(value):
        total[0] += value

    for k in range(arrays[0].shape[0]):
        add(arrays[0][k])
    return total[0]


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("loop", [calls_apart, has_a_closure])
def test_compiled_as_interpreted(loop):
    arrays = (np.linspace(0.1, 0.7, 7), np.linspace(0.2, 0.3, 5))
    assert loop.mode(arrays, np.ones(1)) != "interpreted"
    assert loop.compiled(arrays, np.ones(1)) == loop.interpreted(arrays, np.ones(1))

"""The switch by which tests do without the compiler."""

import threading

import numba
import numba.extending
import numpy as np
import pytest

from maxmargin import BlockFrankWolfe
from maxmargin.compiling import helper
from maxmargin.compiling.interpreting import interpreted
from maxmargin.methods.sweep import sweep
from support.catalogue import multiclass_case


def _runs_compiled():
    return False


@numba.extending.overload(_runs_compiled)
def _runs_compiled_in_compiled_code():
    return lambda: True


@helper
def _is_compiled():
    return _runs_compiled()


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_and_helpers_are_interpreted_in_the_block_alone():
    problem, method = multiclass_case(1).problem, BlockFrankWolfe(0.1)
    assert sweep.mode(problem, method) == "cached"
    assert _is_compiled()
    with interpreted():
        with interpreted():
            assert sweep.mode(problem, method) == "interpreted"
        assert sweep.mode(problem, method) == "interpreted"
        assert not _is_compiled()
    assert sweep.mode(problem, method) == "cached"
    assert _is_compiled()


@helper
def _square(x):
    return x * x


@helper
def _fourth_power(x):
    return _square(_square(x))


def test_interpreted_helpers_do_not_warn_and_what_surrounds_them_does():
    """Like compiled ones; warnings are errors in tests."""
    large, found = np.array([1e200]), []
    with interpreted():
        for function in (_square, _fourth_power):
            assert function(large)[0] == np.inf
            with pytest.raises(TypeError):
                function(None)
            with pytest.raises(RuntimeWarning, match="overflow"):
                large * large
        thread = threading.Thread(target=lambda: found.append(_fourth_power(large)[0]))
        thread.start()
        thread.join()
    assert found == [np.inf]


@pytest.mark.compiled
def test_an_error_ends_the_block():
    before = sweep.mode(multiclass_case(1).problem, BlockFrankWolfe(0.1))
    with pytest.raises(ZeroDivisionError), interpreted():
        raise ZeroDivisionError
    assert sweep.mode(multiclass_case(1).problem, BlockFrankWolfe(0.1)) == before


def test_tests_interpret_unless_they_are_marked(request):
    expected = "cached" if request.config.getoption("--compiled") else "interpreted"
    assert sweep.mode(multiclass_case(1).problem, BlockFrankWolfe(0.1)) == expected

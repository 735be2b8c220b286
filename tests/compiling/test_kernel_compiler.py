"""The compiler of kernels does less than Numba's, and compiles the same functions."""

import itertools
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags, run_frontend

from maxmargin.compiling import apart, helper, kernel, not_inlined
from maxmargin.compiling.numba_private import IS_TESTED
from maxmargin.compiling.numba_private.pipeline import KernelFlags, values_of
from maxmargin.structures.feature_map import Move, add_entry, new_move

SETTINGS = [{}, {"nrt": True}, {"nrt": False}, {"nrt": True, "fastmath": True}, {"boundscheck": True}]


def test_this_version_of_numba_is_among_those_tested():
    """If not: `.ci/versions newest`, `pytest -m slow tests/compiling/test_bitwise.py`; add it to `TESTED`."""
    assert IS_TESTED


@pytest.mark.parametrize("version", ["0.60.0", "0.6.1", "0.99.0", "1.61.0", "0.100.0dev0+3.g1"])
def test_other_versions_of_numba_compile_by_themselves(version):
    program = (
        f"import numba; numba.__version__ = {version!r}\n"
        "from maxmargin.compiling.numba_private.instructions import CAN_KEEP\n"
        "from maxmargin.compiling.numba_private.pipeline import ARE_WHOLE, KERNEL, PART\n"
        "from maxmargin.compiling.numba_private import IS_TESTED\n"
        "assert CAN_KEEP and not IS_TESTED and not ARE_WHOLE and 'pipeline_class' not in {*KERNEL, *PART}\n"
        "from maxmargin.tagging.making import made_code\n"
        "assert made_code() is None"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=100)


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


apart_helper = helper(not_inlined(of_two_loops))


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


@kernel
def of_many_paths(arrays, total):
    """Variables of one branch, of a loop, of the pass before, and used long after they were assigned."""
    a, b = arrays
    n, last, kept = a.shape[0], 0.0, b[0]
    for k in range(n):
        square = a[k] * a[k]
        if k % 3 == 0:
            step = square
        elif k % 3 == 1:
            step, kept = kept, square
        else:
            continue
        while step > last:
            last += 0.25 * step
            step -= last
        total[0] += last - step + square * n
    return total[0] + kept + b[n % b.shape[0]]


def test_the_old_name_of_parts_that_are_not_inlined_warns():
    with pytest.warns(FutureWarning, match="apart is now called not_inlined, .* write not_inlined[.]$"):
        marked = apart(of_two_loops)
    assert marked is not_inlined(of_two_loops)


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("loop", [calls_apart, has_a_closure, of_many_paths])
def test_loops_return_the_same_compiled_as_interpreted(loop):
    arrays = (np.linspace(0.1, 0.7, 7), np.linspace(0.2, 0.3, 5))
    assert loop.mode(arrays, np.ones(1)) != "interpreted"
    assert loop.compiled(arrays, np.ones(1)) == loop.interpreted(arrays, np.ones(1))


def with_two_paths(flag, n):
    early = n + 1
    if flag:
        inside = n * 2
        late = inside + 1
    else:
        late = early
    total = 0
    for k in range(n):
        total = total + early * k
    return total + late


def test_variables_that_every_path_assigns_once_need_no_memory():
    found = values_of(run_frontend(with_two_paths))
    assert {"flag", "n", "early", "inside"} <= found  # n and early are used in other blocks, too
    assert not {"late", "total"} & found  # assigned in both branches, and in every pass of the loop


def generator(n):
    yield n


def test_generators_keep_all_variables():
    assert values_of(run_frontend(generator)) == set()


class Pair(NamedTuple):
    """A user's named tuple, which has one of the package's in it."""

    move: Move
    scale: float


@helper
def add_twice(move, k, value):
    add_entry(move, k, value)
    add_entry(move, k, value)


@helper
@not_inlined
def add_pair(pair, k):
    add_twice(pair.move, k, pair.scale)


@kernel
def fill(pair, n):
    """Pass tuples of the package and of others, inlined and called."""
    for k in range(n):
        add_pair(pair, k)
        add_twice(pair.move, k, 0.5)
    return pair.scale


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_named_tuples_are_passed_whole_and_field_by_field():
    compiled, interpreted = Pair(new_move(6), 3.0), Pair(new_move(6), 3.0)
    assert fill.mode(compiled, 5) == "compiled"
    assert fill.compiled(compiled, 5) == fill.interpreted(interpreted, 5) == 3.0
    for mine, other in zip(compiled.move, interpreted.move, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert interpreted.move.delta[:5].tolist() == [7.0] * 5


@kernel
def of_items(arrays, integers, flags, table):
    """Numbers of several types, at indices of several types, counted from the start and from the end."""
    a, small = arrays
    n = table.shape[0]
    for k in range(n):
        a[k] = integers[k]  # an integer becomes a float
        a[-1 - k] += table[k, -1] - table[-k - 1, np.uint32(k)]
        small[np.uint8(k)] = a[k] + 0.1  # float64 becomes float32
        flags[k] = integers[k] > 0
        table[k, k - n] = small[k]
        integers[k] += flags[k - n]
    return a[-1] + small[0]


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_items_are_the_same_compiled_as_interpreted():
    def data():
        arrays = np.linspace(0.0, 1.0, 9), np.zeros(4, dtype=np.float32)
        integers, flags = np.array([3, -1, 4, -1], dtype=np.int32), np.zeros(4, dtype=bool)
        return arrays, integers, flags, np.linspace(1.0, 2.0, 20).reshape(4, 5)

    compiled, interpreted = data(), data()
    assert of_items.mode(*compiled) != "interpreted"
    assert of_items.compiled(*compiled) == of_items.interpreted(*interpreted)
    for mine, other in zip((*compiled[0], *compiled[1:]), (*interpreted[0], *interpreted[1:]), strict=True):
        assert mine.tobytes() == other.tobytes()

"""The pool of sparse vectors, against a matrix; and what a million steps leave of the weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BlockFrankWolfe
from maxmargin.methods import blocks as pool
from maxmargin.methods.blocks import (
    ROOM,
    SIZE,
    Blocks,
    add_to_block,
    clear_blocks,
    dot_block,
    empty_blocks,
    enlarged,
    has_slack,
    load_block,
    scaled_blocks,
    shrink_blocks,
    state_bytes,
)
from maxmargin.methods.protocol import start
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import advance, push_blocks
from maxmargin.structures.feature_map import new_move
from maxmargin.structures.problem import sizes
from support.catalogue import chain_case, dense_block, multiclass_case
from support.maps import as_move
from support.naive import Array
from support.runs import random_order

N_BLOCKS, LENGTH = 3, 24


def guarded(blocks: Blocks) -> Blocks:
    """Return the same pool at the head of longer arrays, so that to write beyond its end harms nothing."""
    n = len(blocks.where)
    where, value = np.zeros(n + 50 * LENGTH, dtype=blocks.where.dtype), np.zeros(n + 50 * LENGTH)
    where[:n], value[:n] = blocks.where, blocks.value
    return blocks._replace(where=where[:n], value=value[:n])


def random_delta(rng: np.random.Generator) -> Array:
    return rng.normal(size=LENGTH) * (rng.random(LENGTH) < rng.random())


@pytest.mark.parametrize("large", [1, 1 << 21])
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_a_pool_holds_what_was_added(large: int, seed: int, n_moves: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_MANY", large)  # large pools are closed up in place
        check_moves(seed, n_moves)


def check_moves(seed: int, n_moves: int) -> None:
    """Add random vectors to the blocks, and compare."""
    rng = np.random.default_rng(seed)
    blocks, expected = guarded(empty_blocks(N_BLOCKS, LENGTH)), np.zeros((N_BLOCKS, LENGTH))
    for _ in range(n_moves):
        i, scale, delta = int(rng.integers(N_BLOCKS)), rng.normal(), random_delta(rng)
        if not has_slack(blocks, i, LENGTH):
            blocks = guarded(enlarged(blocks, LENGTH))
            assert has_slack(blocks, i, LENGTH)
        add_to_block(blocks, i, scale, as_move(delta))
        expected[i] += scale * delta
        assert blocks.used[0] <= len(blocks.where)
        assert (blocks.extent[:, SIZE] <= blocks.extent[:, ROOM]).all()
    a = rng.normal(size=LENGTH)
    for i in range(N_BLOCKS):
        assert dense_block(blocks, i, LENGTH) == pytest.approx(expected[i], abs=1e-13)
        assert dot_block(blocks, i, a) == pytest.approx(expected[i] @ a, abs=1e-12)
        move = new_move(LENGTH)
        load_block(blocks, i, -0.5, move)
        assert move.delta == pytest.approx(-0.5 * expected[i], abs=1e-13)


def test_one_move_fits_wherever_there_is_slack() -> None:
    """A vector of one entry becomes full by a move whose support begins with another index."""
    blocks = guarded(empty_blocks(1, LENGTH))
    only, full = np.zeros(LENGTH), np.ones(LENGTH)
    only[-1] = 1.0
    add_to_block(blocks, 0, 1.0, as_move(only))
    assert has_slack(blocks, 0, LENGTH)
    add_to_block(blocks, 0, 1.0, as_move(full))
    assert blocks.used[0] <= len(blocks.where)
    assert (dense_block(blocks, 0, LENGTH) == only + full).all()


def test_clearing_leaves_zero_vectors() -> None:
    blocks = empty_blocks(N_BLOCKS, LENGTH)
    add_to_block(blocks, 1, 1.0, as_move(np.ones(LENGTH)))
    clear_blocks(blocks)
    assert not np.any([dense_block(blocks, i, LENGTH) for i in range(N_BLOCKS)])


def test_bytes_in_use_are_those_of_the_room_of_blocks() -> None:
    blocks = empty_blocks(N_BLOCKS, LENGTH)
    empty = state_bytes(blocks)
    add_to_block(blocks, 0, 1.0, as_move(np.ones(LENGTH)))
    room = int(blocks.extent[0, ROOM])
    assert LENGTH <= room <= 1.25 * LENGTH
    assert state_bytes(blocks) - empty == room * (4 + 8)


@pytest.mark.slow
def test_a_million_steps_do_not_drift() -> None:
    case, method = multiclass_case(30, n=20, n_labels=5, n_features=6), BlockFrankWolfe(0.05)
    size = sizes(case.problem)
    order = random_order(case.problem, 10**6, seed=0)
    state = advance(method, start(method, case.problem), case.problem, order)
    assert state.steps[0] == 10**6
    rebuilt = np.zeros(size.weights)
    work, scale = new_scratch(case.problem).block, 1.0 / (0.05 * size.examples)
    push_blocks(case.problem.map, state.z, scale, rebuilt, work)
    assert np.abs(state.w).max() > 0.1
    assert state.w == pytest.approx(rebuilt, abs=1e-9)
    mu = np.eye(case.problem.map.width)[case.data.truths]
    mu -= [dense_block(state.z, i, case.problem.map.width) for i in range(size.examples)]
    assert mu.min() >= -1e-12
    assert mu.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_an_enlarged_pool_holds_no_zeros() -> None:
    rng, blocks, expected = np.random.default_rng(3), empty_blocks(2, LENGTH), np.zeros((2, LENGTH))
    for i in range(2):
        expected[i] = random_delta(rng)
        expected[i, ::3] = 0.0
        gone = np.where(expected[i] == 0.0, 1.0, 0.0)
        for delta in (gone, expected[i], -gone):
            add_to_block(blocks, i, 1.0, as_move(delta))
    assert blocks.extent[:, SIZE].tolist() == [LENGTH, LENGTH]
    shrunk = Blocks(*(array.copy() for array in blocks))
    shrink_blocks(shrunk)
    assert len(shrunk.where) == len(shrunk.value) == shrunk.used[0] == np.count_nonzero(expected)
    assert [dense_block(shrunk, i, LENGTH).tolist() for i in range(2)] == expected.tolist()
    longer = enlarged(blocks, LENGTH)
    assert longer.extent[:, SIZE].tolist() == np.count_nonzero(expected, axis=1).tolist()
    assert [dense_block(longer, i, LENGTH).tolist() for i in range(2)] == expected.tolist()


def test_pools_grow_under_way() -> None:
    """Enlarging a pool in the middle of a sweep changes no number."""
    case, method = chain_case(31, (4, 4, 4), 4), BlockFrankWolfe(0.05)
    order = random_order(case.problem, 400, seed=1)
    whole = advance(method, start(method, case.problem), case.problem, order)
    roomy = start(method, case.problem)
    roomy = roomy._replace(z=empty_blocks(3, 10**4))
    roomy = advance(method, roomy, case.problem, order)
    assert len(whole.z.where) < len(roomy.z.where)
    assert (whole.w == roomy.w).all()
    assert (whole.ell == roomy.ell).all()


def _spoil(length: int) -> None:
    """Leave signalling NaNs in memory that NumPy hands out again; any arithmetic on them warns."""
    arrays = [np.full(length, 0x7FF4000000000001, dtype=np.uint64) for _ in range(8)]
    del arrays


@pytest.mark.parametrize("length", [2, 5])
def test_what_is_not_in_use_is_zero(length: int) -> None:
    """So that scaling a pool, which a warm start does, never multiplies what was in memory before."""
    for size in range(1, 200):
        _spoil(size)
    blocks = empty_blocks(length, 3)
    assert not blocks.value.any()
    for size in range(1, 200):
        _spoil(size)
    larger = enlarged(blocks, 7)
    assert not larger.value.any()
    with np.errstate(all="raise"):
        scaled = scaled_blocks(larger, length + 1, 0.5)
    assert not scaled.value.any()

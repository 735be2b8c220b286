"""Pools of parts: packing them keeps their entries, however many are copied at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.methods import blocks
from maxmargin.methods.blocks import ROOM, SIZE, START, closed_up, new_extents, packed

parts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=12)


def scattered(sizes: list[tuple[int, int]], random: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the extents of parts that lie in any order, with gaps, and a pool of different numbers."""
    extent, end = new_extents(len(sizes)), 0
    order = list(range(len(sizes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for i in order:
        size, gap = sizes[i]
        extent[i], end = (end, size, size + gap), end + size + gap
    return extent, np.arange(100, 100 + end)


@given(parts, st.integers(1, 12), st.integers(0, 5), st.randoms(use_true_random=False))
def test_packing_keeps_every_part(
    sizes: list[tuple[int, int]], piece: int, slack: int, random: object
) -> None:
    """Some parts are longer than a piece, some are empty."""
    extent, pool = scattered(sizes, random)
    held = [pool[a : a + size].tolist() for a, size, _ in extent]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_PIECE", piece)
        new, used, copy, halves = packed(extent, slack, pool, pool / 2)
    assert [copy[a : a + size].tolist() for a, size, _ in new] == held
    assert [halves[a : a + size].tolist() for a, size, _ in new] == [[p / 2 for p in part] for part in held]
    assert used[0] == sum(map(len, held))
    assert (new[:, SIZE] == new[:, ROOM]).all()
    assert (new[:, START] == np.cumsum(extent[:, SIZE]) - extent[:, SIZE]).all()
    assert len(copy) >= used[0] + slack + max(map(len, held), default=0)


@given(parts, st.integers(0, 5), st.integers(0, 200), st.randoms(use_true_random=False))
def test_large_pools_are_closed_up_in_place(
    sizes: list[tuple[int, int]], slack: int, free: int, random: object
) -> None:
    """The same arrays are returned, longer if they were short, and no part overlaps another."""
    extent, pool = scattered(sizes, random)
    held = [pool[a : a + size].tolist() for a, size, _ in extent]
    pool = np.concatenate([pool, np.zeros(free, dtype=pool.dtype)])
    halves = pool / 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MANY", 0)
        new, used, same, other = closed_up(extent, slack, pool, halves)
    assert same is pool
    assert other is halves
    assert [same[a : a + size].tolist() for a, size, _ in new] == held
    assert [other[a : a + size].tolist() for a, size, _ in new] == [[p / 2 for p in part] for part in held]
    assert used[0] == sum(map(len, held))
    assert sorted(k for a, size, _ in new for k in range(a, a + size)) == list(range(used[0]))
    assert len(same) == len(other) >= used[0] + slack + max(map(len, held), default=0)


def test_views_are_not_enlarged_in_place() -> None:
    """Others may look at the same memory."""
    extent, pool = new_extents(1), np.arange(10)
    extent[0] = 2, 6, 6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MANY", 0)
        new, _, copy = closed_up(extent, 20, pool[:8])
    assert not np.shares_memory(copy, pool)
    assert copy[new[0, START] :][:6].tolist() == [2, 3, 4, 5, 6, 7]
    assert pool.tolist() == list(range(10))


@pytest.mark.parametrize(("used", "free"), [(0, 0), (10, 20), (1 << 20, 1 << 21), (1 << 23, 1 << 22)])
def test_large_pools_get_less_room_in_proportion(used: int, free: int) -> None:
    assert blocks._free(used) == free

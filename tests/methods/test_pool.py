"""Pools of parts: packing them keeps their entries, however many are copied at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.methods import _pool
from maxmargin.methods._pool import ROOM, SIZE, START, new_extents, packed

parts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=12)


@given(parts, st.integers(1, 12), st.integers(0, 5), st.randoms(use_true_random=False))
def test_packing_keeps_every_part(
    sizes: list[tuple[int, int]], piece: int, slack: int, random: object
) -> None:
    """Parts lie in any order, with gaps; some are longer than a piece, some are empty."""
    extent, end = new_extents(len(sizes)), 0
    order = list(range(len(sizes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for i in order:
        size, gap = sizes[i]
        extent[i], end = (end, size, size + gap), end + size + gap
    pool = np.arange(100, 100 + end)
    held = [pool[a : a + size].tolist() for a, size, _ in extent]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pool, "_PIECE", piece)
        new, used, copy, halves = packed(extent, slack, pool, pool / 2)
    assert [copy[a : a + size].tolist() for a, size, _ in new] == held
    assert [halves[a : a + size].tolist() for a, size, _ in new] == [[p / 2 for p in part] for part in held]
    assert used[0] == sum(map(len, held))
    assert (new[:, SIZE] == new[:, ROOM]).all()
    assert (new[:, START] == np.cumsum(extent[:, SIZE]) - extent[:, SIZE]).all()
    assert len(copy) >= used[0] + slack + max(map(len, held), default=0)


@pytest.mark.parametrize(("used", "free"), [(0, 0), (10, 20), (1 << 20, 1 << 21), (1 << 23, 1 << 22)])
def test_large_pools_get_less_room_in_proportion(used: int, free: int) -> None:
    assert _pool._free(used) == free

"""The pool of active sets, against lists of planes."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxmargin.methods import blocks
from maxmargin.methods.blocks import ROOM, SIZE, START, enlarged
from maxmargin.methods.planes import (
    Planes,
    PlaneWork,
    add_plane,
    dot_plane,
    drop_planes,
    fit_planes,
    has_plane_room,
    include_corner,
    measure_planes,
    plane_bytes,
    shift_margins,
    truth_planes,
)
from maxmargin.methods.scratch import Corner
from maxmargin.structures.feature_map import new_move
from support.active_sets import Plane, dense, planes_of
from support.naive import Array

N_BLOCKS, LENGTH, PARTS = 3, 24, 10
TRUTH = Plane(1.0, 0.0, ())
POOLS = ("alpha", "loss", "stop", "where", "value")
GUARD, BEYOND = 77, 400


class Guarded:
    """Active sets at the head of longer arrays, whose rest tells whether it was written to."""

    def __init__(self, planes: Planes) -> None:
        self.longer: list[tuple[Array, int]] = []
        work = PlaneWork(*map(self._guarded, planes.work))
        self.planes = planes._replace(
            work=work, **{name: self._guarded(getattr(planes, name)) for name in POOLS}
        )

    def _guarded(self, pool: Array) -> Array:
        longer = np.full(len(pool) + BEYOND, GUARD, dtype=pool.dtype)
        longer[: len(pool)] = pool
        self.longer.append((longer, len(pool)))
        return longer[: len(pool)]

    def assert_whole(self) -> None:
        assert all((longer[end:] == GUARD).all() for longer, end in self.longer)
        for extent, used, pool in (
            (self.planes.extent, self.planes.used, self.planes.alpha),
            (self.planes.entries, self.planes.used_entries, self.planes.where),
        ):
            assert used[0] <= len(pool)
            assert (extent[:, SIZE] <= extent[:, ROOM]).all()
            assert_apart(extent)


def assert_apart(extent: Array) -> None:
    """No two parts share an entry of the pool."""
    owned = sorted((int(a), int(a + room)) for a, _, room in extent if room > 0)
    assert all(stop <= begin for (_, stop), (begin, _) in pairwise(owned))


def corner_of(plane: Plane) -> Corner:
    """Return the plane as an oracle's answer stands in the work arrays: at the head of longer ones."""
    where, value = np.full(PARTS, 5, dtype=np.uint32), np.full(PARTS, 9.0)
    for c, (p, v) in enumerate(plane.entries):
        where[c], value[c] = p, v
    return Corner(where, value, np.array([len(plane.entries)]))


def random_plane(seed: int) -> Plane:
    """Return one of a few hundred planes: with few or many entries, some that differ in one number only."""
    rng = np.random.default_rng(seed // 3)
    size = int(rng.integers(PARTS + 1))
    where = rng.integers(LENGTH, size=size)
    entries = [(int(p), float(v)) for p, v in zip(where, rng.normal(size=size), strict=True)]
    if seed % 3 == 1 and entries:
        entries[-1] = entries[-1][0], -entries[-1][1]
    return Plane(0.0, 1.0 + seed % 3 // 2, tuple(entries))


def included(held: list[Plane], plane: Plane) -> list[Plane]:
    known = any(other.loss == plane.loss and other.entries == plane.entries for other in held)
    return held if known else [*held, plane]


def apply(guarded: Guarded, held: list[list[Plane]], what: str, i: int, seed: int) -> Guarded:
    """Do the same to the pool and to the lists."""
    planes, rng = guarded.planes, np.random.default_rng(seed)
    if what == "include":
        if not has_plane_room(planes, i, PARTS):
            guarded = Guarded(enlarged(planes, PARTS))
            assert has_plane_room(guarded.planes, i, PARTS)
        plane = random_plane(seed)
        include_corner(guarded.planes, i, plane.loss, 0.0, corner_of(plane))
        held[i] = included(held[i], plane)
    elif what == "move":
        alpha = rng.random(len(held[i])) * (rng.random(len(held[i])) < 0.6)
        first = planes.extent[i, START]
        planes.alpha[first : first + len(alpha)] = alpha
        held[i] = [plane._replace(alpha=a) for plane, a in zip(held[i], alpha, strict=True)]
    elif what == "drop":
        drop_planes(planes, i)
        held[i] = [plane for plane in held[i] if plane.alpha != 0.0]
    else:
        guarded = Guarded(enlarged(planes, PARTS))
    return guarded


kinds = st.sampled_from(["include"] * 3 + ["move", "drop", "enlarge"])
ROUND = ("include", "include", "include", "move", "drop")
operations = st.lists(st.tuples(kinds, st.integers(0, N_BLOCKS - 1), st.integers(0, 299)), max_size=60)


@pytest.mark.parametrize("large", [1, 1 << 21])
@given(operations)
@example([("include", 0, seed) for seed in range(60)])  # one block outgrows everything
@example([(what, turn % 3, 5 * turn + k) for turn in range(40) for k, what in enumerate(ROUND)])
def test_a_pool_holds_what_it_was_given(large: int, done: list[tuple[str, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MANY", large)  # large pools are closed up in place
        check_operations(done)


def check_operations(done: list[tuple[str, int, int]]) -> None:
    """Do the same to the pools and to lists of planes, and compare."""
    guarded, held = Guarded(truth_planes(N_BLOCKS, PARTS)), [[TRUTH] for _ in range(N_BLOCKS)]
    for what, i, seed in done:
        guarded = apply(guarded, held, what, i, seed)
        guarded.assert_whole()
        assert [planes_of(guarded.planes, j) for j in range(N_BLOCKS)] == held


@pytest.fixture
def planes() -> Planes:
    """Return active sets of several planes each, with random variables."""
    guarded, held = Guarded(truth_planes(N_BLOCKS, PARTS)), [[TRUTH] for _ in range(N_BLOCKS)]
    for seed in range(18):
        guarded = apply(guarded, held, "include", seed % N_BLOCKS, 7 * seed)
    for i in range(N_BLOCKS):
        guarded = apply(guarded, held, "move", i, i)
    return guarded.planes


def test_products_with_planes_are_those_of_psi(planes: Planes) -> None:
    rng = np.random.default_rng(0)
    theta, image = rng.normal(size=LENGTH), rng.normal(size=LENGTH)
    for i in range(N_BLOCKS):
        held, size = planes_of(planes, i), int(planes.extent[i, SIZE])
        psi = np.array([dense(plane, LENGTH) for plane in held])
        alpha, loss, _ = (np.array(column, dtype=object) for column in zip(*held, strict=True))
        assert size >= 5
        assert [dot_plane(planes, i, c, theta) for c in range(size)] == pytest.approx(psi @ theta, abs=1e-12)
        mean = measure_planes(planes, i, theta)
        margins = np.array(loss - psi @ theta, dtype=float)
        assert planes.work.margin[:size] == pytest.approx(margins, abs=1e-12)
        assert (planes.work.before[:size] == np.array(alpha, dtype=float)).all()
        assert mean == pytest.approx(float(alpha @ margins), abs=1e-12)
        shift_margins(planes, i, 0.3, image)
        assert planes.work.margin[:size] == pytest.approx(margins - 0.3 * psi @ image, abs=1e-12)


def test_a_move_is_the_sum_of_the_planes_added_to_it(planes: Planes) -> None:
    move, expected = new_move(LENGTH), np.zeros(LENGTH)
    for i, c, scale in ((0, 1, 0.5), (1, 3, -2.0), (2, 0, 4.0), (0, 4, 0.25)):
        add_plane(planes, i, c, scale, move)
        expected += scale * dense(planes_of(planes, i)[c], LENGTH)
    assert move.delta == pytest.approx(expected, abs=1e-14)
    assert set(np.flatnonzero(expected)) <= set(move.support[: move.size[0]].tolist())


@pytest.mark.parametrize("most", [0, 8, 15, 1000])
def test_merging_keeps_the_dual_point(planes: Planes, most: int) -> None:
    move = new_move(LENGTH)
    for i in range(N_BLOCKS):
        before, others = planes_of(planes, i), [planes_of(planes, j) for j in range(N_BLOCKS) if j != i]
        fit_planes(planes, i, most, move)
        after = planes_of(planes, i)
        assert sums(after) == pytest.approx(sums(before), abs=1e-14)
        assert planes.entries[i, SIZE] <= most or len(after) == 1
        assert [planes_of(planes, j) for j in range(N_BLOCKS) if j != i] == others
        fits = sum(len(plane.entries) for plane in before) <= most
        assert after == before if fits else all(plane.alpha > 0.0 for plane in after)
        assert (move.size[0], move.delta.any()) == (0, False)
    assert (planes.merges[0] > 0) == (most < 1000)


def test_the_planes_of_largest_weight_stay_as_they_are(planes: Planes) -> None:
    before = sorted((plane for plane in planes_of(planes, 0) if plane.alpha > 0.0), reverse=True)
    assert len(before) >= 3
    fit_planes(planes, 0, sum(len(plane.entries) for plane in before) - 1, new_move(LENGTH))
    after = planes_of(planes, 0)
    assert len(after) == len(before) - planes.merges[0] < len(before)
    assert before[0] in after


def sums(held: list[Plane]) -> Array:
    """Return the sums of alpha, of the losses and of psi under alpha."""
    terms = [plane.alpha * np.array([1.0, plane.loss, *dense(plane, LENGTH)]) for plane in held]
    return np.sum(terms, axis=0)


def test_a_new_plane_has_its_margin_and_no_weight() -> None:
    planes, plane = truth_planes(N_BLOCKS, PARTS), random_plane(30)
    include_corner(planes, 1, plane.loss, 0.7, corner_of(plane))
    assert planes_of(planes, 1) == [TRUTH, plane]
    assert (planes.work.margin[1], planes.work.before[1]) == (0.7, 0.0)
    include_corner(planes, 1, plane.loss, 0.9, corner_of(plane))
    assert planes_of(planes, 1) == [TRUTH, plane]
    assert planes.work.margin[1] == 0.7


def test_a_block_that_outgrows_its_room_moves_to_the_end() -> None:
    planes, held = truth_planes(N_BLOCKS, PARTS), [TRUTH, *(random_plane(seed) for seed in (30, 33, 36))]
    for plane in held[1:]:
        assert has_plane_room(planes, 0, PARTS)
        include_corner(planes, 0, plane.loss, 0.0, corner_of(plane))
    assert planes.extent[0, :ROOM].tolist() == [0, 4]
    planes, plane = enlarged(planes, PARTS), random_plane(39)
    end, end_of_entries = int(planes.used[0]), int(planes.used_entries[0])
    include_corner(planes, 0, plane.loss, 0.0, corner_of(plane))
    assert planes.extent[0].tolist() == [end, 5, 6]
    assert planes.entries[0, START] == end_of_entries
    assert [planes_of(planes, i) for i in range(N_BLOCKS)] == [[*held, plane], [TRUTH], [TRUTH]]


def test_room_is_refused_only_for_want_of_it() -> None:
    """A pool for planes, one for entries and the work arrays: each can be full by itself."""
    planes = enlarged(truth_planes(N_BLOCKS, PARTS), PARTS)
    need = int(planes.extent[0, SIZE]) + 1
    assert has_plane_room(planes, 0, PARTS)
    short: dict[str, Any] = {
        "alpha": planes.alpha[: planes.used[0] + need - 1],
        "where": planes.where[: planes.used_entries[0] + PARTS + PARTS // 4 - 1],
        "work": PlaneWork(*(array[: need - 1] for array in planes.work)),
    }
    for name, value in short.items():
        assert not has_plane_room(planes._replace(**{name: value}), 0, PARTS)
    enough: dict[str, Any] = {
        "alpha": planes.alpha[: planes.used[0] + need],
        "where": planes.where[: planes.used_entries[0] + PARTS + PARTS // 4],
        "work": PlaneWork(*(array[:need] for array in planes.work)),
    }
    assert has_plane_room(planes._replace(**enough), 0, PARTS)


def test_bytes_in_use_are_those_of_the_room_of_planes() -> None:
    planes = truth_planes(N_BLOCKS, PARTS)
    before, plane = plane_bytes(planes), random_plane(30)
    include_corner(planes, 0, plane.loss, 0.0, corner_of(plane))
    assert len(plane.entries) > 0
    assert plane_bytes(planes) - before == int(planes.entries[0, ROOM]) * (4 + 8)

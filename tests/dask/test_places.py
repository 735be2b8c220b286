"""Where partitions go, and how often parts meet: without a cluster."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.dask.fleet import Round, moves, shared
from maxmargin.dask.method import best_rounds

WORKERS = "abcdef"


@given(
    st.lists(st.sampled_from(WORKERS[:4]), min_size=1, max_size=12),
    st.dictionaries(st.sampled_from(WORKERS), st.integers(1, 3), min_size=1),
)
def test_partitions_move_to_idle_workers_only(at: list[str], threads: dict[str, int]) -> None:
    threads |= {address: threads.get(address, 1) for address in at}
    places = dict(enumerate(at))
    moved = moves(places, threads)
    idle = set(threads) - set(at)
    assert set(moved.values()) <= idle
    after = Counter((places | moved).values())
    assert set(at) <= set(after)  # nobody is left without
    busiest = max(at.count(address) / threads[address] for address in threads)
    assert max(after[address] / threads[address] for address in threads) <= busiest


def test_a_worker_that_joins_gets_its_share() -> None:
    assert moves({0: "a", 1: "a", 2: "a", 3: "a"}, {"a": 1, "b": 1}) == {3: "b", 2: "b"}
    assert moves({0: "a", 1: "b"}, {"a": 1, "b": 1, "c": 1}) == {}


def test_the_threads_of_a_worker_share_its_partitions() -> None:
    parts = shared({"b": [1, 3], "a": [0, 2, 4]}, {"a": 2, "b": 4})
    assert [tuple(part) for part in parts] == [
        ("a", 0, (0, 4)),
        ("a", 1, (2,)),
        ("b", 0, (1,)),
        ("b", 1, (3,)),
    ]


@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize("cost", [0.001, 0.01, 0.1, 1.0])
def test_parts_meet_as_often_as_it_pays(cost: float, parts: int) -> None:
    # 50 visits a second and part, so a pass of 100 takes 2 seconds of a part.
    log = [Round(25 * parts, parts, 0.5 + cost, 0.5, 0, 0, 0), Round(50 * parts, parts, 1 + cost, 1, 0, 0, 0)]

    def seconds(rounds: int) -> float:
        return (1.0 + 0.6 * parts / rounds) * (2.0 + cost * rounds)

    assert seconds(best_rounds(log, 100 * parts)) <= 1.001 * min(map(seconds, range(1, 257)))


def test_rounds_that_cost_nothing() -> None:
    assert best_rounds([Round(50, 2, 0.5, 0.5, 0, 0, 0)], 100) == 256

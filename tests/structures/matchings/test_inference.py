"""Partial matchings against all of them, scipy's assignment, and an integer program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from maxmargin.structures.matchings.inference import assignment, assignment_work
from support.naive import Array, all_matchings


def run(scores: Array, bonus: Array) -> list[int]:
    """Return the target of each place; the work arrays are longer than need be and full of nonsense."""
    n_places = len(scores) * len(bonus)
    work = assignment_work(n_places + 2, scores.shape[1] + 3)
    for array in work:
        array[:] = -5
    y = np.full(n_places + 2, -7)
    assignment(scores, bonus, work, y)
    assert (y[n_places:] == -7).all()
    return y[:n_places].tolist()


def table(scores: Array, bonus: Array) -> Array:
    """Return the score of each target at each place."""
    return (scores[:, None] + bonus[None, :, None]).reshape(-1, scores.shape[1])


def value(places: Array, y: list[int]) -> float:
    """Return the score of a matching, after a look whether it is one."""
    used = [k for k in y if k >= 0]
    assert len(used) == len(set(used))
    return sum(places[place, k] for place, k in enumerate(y) if k >= 0)


def random_scores(seed: int, m: int, n: int, n_slots: int, whole: bool) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    scores, bonus = rng.normal(size=(m, n)), np.append(0.0, rng.normal(size=n_slots - 1))
    return (np.round(2 * scores), np.round(bonus)) if whole else (scores, bonus)


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.booleans())
def test_the_matching_found_is_the_best_of_all(seed: int, m: int, n: int, n_slots: int, whole: bool) -> None:
    m = m if n_slots == 1 else min(m, 2)
    scores, bonus = random_scores(seed, m, n, n_slots, whole)
    places = table(scores, bonus)
    best = max(value(places, list(y)) for y in all_matchings(m * n_slots, n))
    assert value(places, run(scores, bonus)) == pytest.approx(best, abs=1e-12)


@given(seeds, st.integers(1, 12), st.integers(1, 12), st.integers(1, 3), st.booleans())
def test_against_assignment_with_negative_scores_cut(
    seed: int, m: int, n: int, n_slots: int, whole: bool
) -> None:
    scores, bonus = random_scores(seed, m, n, n_slots, whole)
    places = table(scores, bonus)
    gain = np.maximum(places, 0.0)
    best = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert value(places, run(scores, bonus)) == pytest.approx(best, abs=1e-11)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_matching_is_that_of_an_integer_program(seed: int) -> None:
    """Each row has so many links, each column one; further links of a row count as further places."""
    rng = np.random.default_rng(seed)
    m, n = (int(size) for size in rng.integers(3, 9, 2))
    scores, extra = rng.normal(size=(m, n)) + 0.5, -float(rng.random())
    # Variables: all links, then one per row that says whether it has a second one.
    objective = -np.append(scores.ravel(), np.full(m, extra))
    rows = np.hstack([np.kron(np.eye(m), np.ones(n)), -np.eye(m)])
    columns = np.hstack([np.kron(np.ones(m), np.eye(n)), np.zeros((n, m))])
    program = milp(
        objective,
        constraints=LinearConstraint(np.vstack([rows, columns]), ub=1.0),
        bounds=Bounds(0.0, 1.0),
        integrality=np.ones(len(objective)),
    )
    bonus = np.array([0.0, extra])
    assert value(table(scores, bonus), run(scores, bonus)) == pytest.approx(-program.fun, abs=1e-9)


def test_links_that_add_nothing_are_not_made() -> None:
    assert run(np.array([[0.0, -1.0], [-2.0, 0.0]]), np.zeros(1)) == [-1, -1]


def test_a_row_gives_way_to_a_better_one() -> None:
    # The second row gains more by the only column; the third then loses it again to nobody.
    assert run(np.array([[1.0], [3.0], [2.0]]), np.zeros(1)) == [-1, 0, -1]


def test_a_row_moves_on_to_make_room() -> None:
    assert run(np.array([[5.0, 4.0], [5.0, 1.0]]), np.zeros(1)) == [1, 0]


def test_ties_are_broken_in_order() -> None:
    assert run(np.ones((2, 3)), np.zeros(1)) == [0, 1]
    assert run(np.ones((3, 2)), np.zeros(1)) == [0, 1, -1]
    assert run(np.ones((2, 4)), np.zeros(2)) == [0, 1, 2, 3]


def test_further_links_of_a_row_have_their_price() -> None:
    scores = np.array([[3.0, 2.0, 1.0]])
    assert run(scores, np.array([0.0, -1.5, -1.5])) == [0, 1, -1]
    assert run(scores, np.array([0.0, -2.0, -2.0])) == [0, -1, -1]

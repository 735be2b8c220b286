"""The matching's oracle, loss and statistics against a list of all matchings, and what it refuses."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    Cached,
    Divided,
    FrankWolfe,
    Pairwise,
    Status,
    solve,
)
from maxmargin.problems import Matching
from maxmargin.structures.oracle import loss
from support import naive
from support.catalogue import Case, flat, matching_case, matching_cases
from support.model_checks import (
    assert_compiled_hinges,
    assert_compiled_predictions,
    assert_loss_and_statistics,
    assert_oracles_maximise,
    draw_weights,
)
from support.naive import Array, Output

LAM = 0.1


def written_out_score(case: Case, i: int, w: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, link by link."""
    links, places = case.problem.unpack(w)
    fertility, total = case.problem.map.fertility, 0.0
    for place, k in enumerate(y):
        if k >= 0:
            total += float(case.X[i][place // fertility, k] @ links)
            total += float(places[place % fertility - 1]) if place % fertility else 0.0
    return total


@given(matching_cases(), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_matchings(case: Case, seed: int, whole: bool) -> None:
    w = draw_weights(case, seed, whole)
    assert_oracles_maximise(case, w, written_out_score)
    assert_compiled_predictions(case, w)


@given(matching_cases(), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    assert_compiled_hinges(case, draw_weights(case, seed, whole=False))


@given(matching_cases())
def test_loss_and_statistics_are_those_of_every_matching(case: Case) -> None:
    assert_loss_and_statistics(case)


def test_the_truth_costs_nothing_at_all() -> None:
    for seed in range(20):
        case = matching_case(seed, ((3, 3), (4, 4)), fertility=1)
        for i, t in enumerate(case.data.truths):
            assert loss(case.problem.oracle, i, np.array(case.data.outputs[i][t])) == 0.0


METHODS = [
    FrankWolfe(LAM),
    BlockFrankWolfe(LAM),
    Averaged(BlockFrankWolfe(LAM)),
    Divided(Pairwise(LAM)),
    Accelerated(Cached(Pairwise(LAM), oracle_cost=8.0)),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_methods_come_close_to_the_optimum(method: Any) -> None:
    case = matching_case(3, ((2, 2), (1, 3), (2, 3), (3, 1)), fertility=2)
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, method, tol=0.02 * best.primal, max_passes=3000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= 1.02 * best.primal + 1e-9
    assert result.primal == pytest.approx(naive.primal(case.data, flat(case.problem, result.w), LAM))


X = [np.arange(12.0).reshape(2, 3, 2), np.ones((1, 2, 2))]


def test_wrong_links_cost_one_and_missed_ones_three() -> None:
    problem = Matching.from_links(X, [[2, -1], [0]])
    assert [loss(problem.oracle, 0, np.array(y)) for y in ([2, -1], [-1, -1], [2, 0], [0, 1])] == [0, 3, 1, 5]
    problem = Matching.from_links(X, [[2, -1], [0]], wrong=0.5, missed=2.0, possible=[[(1, 0)], []])
    assert [loss(problem.oracle, 0, np.array(y)) for y in ([2, 0], [-1, 1], [1, 0])] == [0, 2.5, 2.5]


def test_matchings_have_many_forms() -> None:
    expected = Matching.from_links(X, [[2, -1], [0]])
    others = [
        [np.array([2, -1], dtype=np.int8), np.array([0])],
        [[(0, 2)], [(0, 0)]],
        [{(0, 2)}, [[0, 0]]],
        [np.array([[0, 0, 1], [0, 0, 0]]), np.array([[True, False]])],
    ]
    for y in others:
        problem = Matching.from_links(X, y)
        assert numba.typeof(problem) == numba.typeof(expected)
        for half, same_half in zip(problem, expected, strict=True):
            for field, same in zip(half, same_half, strict=True):
                np.testing.assert_array_equal(field, same)
    assert Matching.from_links(X, [[], [-1]]).oracle.n_true.tolist() == [0, 0]


@pytest.mark.parametrize(
    "convert", [np.ndarray.tolist, np.asfortranarray, lambda x: x.astype(np.int16)], ids=["list", "F", "int"]
)
def test_features_have_many_forms(convert: Any) -> None:
    problem = Matching.from_links([convert(x) for x in X], [[2, -1], [0]])
    assert numba.typeof(problem) == numba.typeof(Matching.from_links(X, [[2, -1], [0]]))
    assert problem.map.features[:6].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_links_of_a_source_take_its_first_places() -> None:
    problem = Matching.from_links(X, [[(0, 2), (0, 0), (1, 1)], []], fertility=2)
    assert problem.oracle.partners.tolist() == [0, 2, 1, -1, -1, -1]


Y = [[2, -1], [0]]
NAN = [np.full((2, 3, 2), 1.0), np.where(np.arange(4).reshape(1, 2, 2) == 3, np.nan, 1.0)]
REFUSED = [
    ([], Y, "X has no pair, expected at least one"),
    (X[0], Y, r"X must be a list of arrays of shape .*; if it is one pair pass \[X\]"),
    ([X[0], np.ones((1, 2, 3))], Y, "links of pair 1 of X have 3 features, but those of pair 0 have 2"),
    ([X[0], np.ones((1, 2))], Y, r"pair 1 of X is an ndarray of shape \(1, 2\), expected numbers of shape"),
    ([X[0], [[[1.0], [2.0, 3.0]]]], Y, "pair 1 of X is a list, expected numbers of shape"),
    (
        [X[0], np.ones((1, 0, 2))],
        [[2, -1], []],
        "offsets must rise by at least 1, .* leave out empty examples",
    ),
    ([X[0], np.ones((1, 2, 0))], Y, "links of pair 1 of X have 0 features, expected at least 1"),
    (NAN, Y, r"feature 1 of link \(0, 1\) of pair 1 of X is nan, expected a finite number"),
    (X, Y[:1], "y must be a list of 2 matchings, got 1 items"),
    (X, 3, r"y must be a list of 2 matchings, got 3 \(int\)"),
    (X, [[2, 3], [0]], "matching 0 of y has target 3, but the pair has 3 targets; use -1 for none"),
    (X, [[2, -2], [0]], "matching 0 of y has target -2"),
    (X, [[2], [0]], "matching 0 of y has 1 entries of dtype int64, expected 2 ints"),
    (X, [["a", "b"], [0]], "matching 0 of y has 2 entries|matching 0 of y has items"),
    (X, [[0.5, 1.0], [0]], "matching 0 of y has 2 entries of dtype float64, expected 2 ints"),
    (X, [7, [0]], r"matching 0 of y is 7 \(int\), expected the target of each source"),
    (X, [[(0, 3)], [0]], r"matching 0 of y has the link \(0, 3\), but the pair has 2 sources and 3 targets"),
    (X, [[(0, 1, 2)], [0]], "matching 0 of y has items that are not pairs"),
    (X, [np.ones((3, 2)), [0]], r"matching 0 of y is an ndarray of shape \(3, 2\), expected zeros and ones"),
    (X, [[2, 2], [0]], "target 2 of pair 0 of y has 2 links, expected at most 1; drop the others"),
    (X, [[(1, 0), (1, 2)], [0]], "source 1 of pair 0 of y has 2 links, .* or set fertility=2"),
]


@pytest.mark.parametrize(("features", "y", "message"), REFUSED)
def test_wrong_features_and_links_are_refused(features: Any, y: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^Matching: ({message})") as caught:
        Matching.from_links(features, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("costs", [{"wrong": -1.0}, {"missed": np.nan}, {"missed": np.inf}, {"wrong": "1"}])
def test_wrong_costs_are_refused(costs: dict[str, Any]) -> None:
    (name,) = costs
    with pytest.raises(ValueError, match=f"^Matching: {name} must be a finite number >= 0, got "):
        Matching.from_links(X, Y, **costs)


@pytest.mark.parametrize("fertility", [0, 1.5, None])
def test_wrong_fertilities_are_refused(fertility: Any) -> None:
    with pytest.raises(ValueError, match=r"^Matching: fertility must be an int >= 1, got "):
        Matching.from_links(X, Y, fertility=fertility)

"""The oracle, loss and statistics of dependency trees against a list of all trees, and what they refuse."""

from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse
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
from maxmargin.problems import Dependency
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import loss
from support import naive
from support.catalogue import Case, flat, tree_case, tree_cases
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
    """Return <w, phi(x, y)> as the model's definition has it, arc by arc."""
    return float(sum(case.X[i][j, h] @ w for j, h in enumerate(y)))


@given(tree_cases(("dense", "whole")), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_trees(case: Case, seed: int, whole: bool) -> None:
    w = draw_weights(case, seed, whole)
    assert_oracles_maximise(case, w, written_out_score)
    assert_compiled_predictions(case, w)


@given(tree_cases(("dense", "whole")), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    assert_compiled_hinges(case, draw_weights(case, seed, whole=False))


@given(tree_cases(("dense",)))
def test_loss_and_statistics_are_those_of_every_tree(case: Case) -> None:
    assert_loss_and_statistics(case)


METHODS = [
    FrankWolfe(LAM),
    BlockFrankWolfe(LAM),
    Averaged(BlockFrankWolfe(LAM)),
    Divided(Pairwise(LAM)),
    Accelerated(Cached(Pairwise(LAM), oracle_cost=8.0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_methods_come_close_to_the_optimum(method: Any) -> None:
    case = tree_case(3, (2, 3, 1, 4))
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, method, tol=0.02 * best.primal, max_passes=3000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= 1.02 * best.primal + 1e-9
    assert result.primal == pytest.approx(naive.primal(case.data, flat(case.problem, result.w), LAM))


X = [np.arange(12.0).reshape(2, 3, 2), np.ones((1, 2, 2))]
Y = [[2, 0], [0]]


def test_losses_count_wrong_heads() -> None:
    for name, expected in (("hamming", [0, 1, 2]), ("normalized_hamming", [0, 0.5, 1])):
        problem = Dependency.from_arcs(X, Y, loss=name)
        assert [loss(problem.oracle, 0, np.array(y)) for y in ([2, 0], [0, 0], [0, 1])] == expected


@pytest.mark.parametrize(
    "convert",
    [np.ndarray.tolist, np.asfortranarray, lambda x: x.astype(np.int16)],
    ids=["list", "F", "int"],
)
def test_features_have_many_forms(convert: Any) -> None:
    problem, expected = Dependency.from_arcs([convert(x) for x in X], Y), Dependency.from_arcs(X, Y)
    assert numba.typeof(problem) == numba.typeof(expected)
    assert problem.map.rows.values.tolist() == expected.map.rows.values.tolist()


def test_sparse_features_score_as_dense() -> None:
    matrices = [scipy.sparse.coo_array(x.reshape(-1, 2)) for x in X]
    problem = Dependency.from_arcs(matrices, Y)
    w, theta = np.array([1.0, -2.0]), np.zeros(6)
    score(problem.map, 0, w, theta)
    assert theta == pytest.approx((X[0] @ w).ravel())


CROSSING = [np.ones((4, 5, 1))]
REFUSED = [
    ([], Y, {}, "X has no sentence, expected at least one"),
    (X[0], Y, {}, r"X must be a list of sentences, got .*; if it is one sentence pass \[X\]"),
    ([X[0], np.ones((1, 2, 3))], Y, {}, "arcs of sentence 1 of X have 3 features, but those of sentence 0"),
    (
        [X[0], np.ones((2, 2, 2))],
        Y,
        {},
        r"sentence 1 of X is an ndarray of shape \(2, 2, 2\), expected numbers",
    ),
    ([X[0], np.ones((1, 2, 0))], Y, {}, "sentence 1 of X is .* expected at least one feature"),
    ([scipy.sparse.eye_array(5)], Y[:1], {}, "sentence 0 of X is .* expected at least one feature"),
    (
        [X[0], scipy.sparse.eye_array(2)],
        Y,
        {},
        "sentence 1 of X is a dia_array .*, but the first is an array",
    ),
    ([X[0], [[[1.0], [2.0, 3.0]]]], Y, {}, "sentence 1 of X is a list, expected numbers of shape"),
    ([X[0], np.full((1, 2, 2), np.nan)], Y, {}, "sentence 1 of X has a feature that is not a finite number"),
    (X, Y[:1], {}, "y must be a list of the heads of 2 sentences, got 1 items"),
    (X, 3, {}, r"y must be a list of the heads of 2 sentences, got 3 \(int\)"),
    (X, [[2, 0], [0, 1]], {}, "sentence 1 of y must have 1 ints, .* got 2 of dtype int64"),
    (X, [[2, 0], ["a"]], {}, "sentence 1 of y must have 1 ints"),
    (X, [[2, 0], 7], {}, r"sentence 1 of y must have 1 ints, .* got 7 \(int\)"),
    (X, [[3, 0], [0]], {}, "sentence 0 of y has the head 3 for word 1 of 2, expected another word or 0"),
    (X, [[1, 0], [0]], {}, "sentence 0 of y has the head 1 for word 1 of 2"),
    (X, [[2, 1], [0]], {}, "sentence 0 of y has a cycle above word 1, expected a tree"),
    (X, [[0, 0], [0]], {}, "sentence 0 of y has 2 words whose head is the root, .* set single_root=False"),
    (
        CROSSING,
        [[3, 4, 0, 3]],
        {"projective": True},
        "sentence 0 of y has crossing arcs, to the words 1 and 2",
    ),
    (X, Y, {"loss": "zero_one"}, "loss must be 'normalized_hamming' or 'hamming', got 'zero_one'"),
]


@pytest.mark.parametrize(("features", "y", "options", "message"), REFUSED)
def test_wrong_arcs_and_heads_are_refused(
    features: Any, y: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^Dependency: ({message})") as caught:
        Dependency.from_arcs(features, y, **options)
    assert "\n" not in str(caught.value)


def test_allowed_trees_are_accepted() -> None:
    assert Dependency.from_arcs(X, [[0, 0], [0]], single_root=False).oracle.heads.tolist() == [0, 0, 0]
    assert Dependency.from_arcs(CROSSING, [[3, 4, 0, 3]]).oracle.heads.tolist() == [3, 4, 0, 3]

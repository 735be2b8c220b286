"""Runs do not depend on the basis of the weights: only `inner` measures them, and only maps know it."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import maxmargin.methods
from maxmargin import (
    BMRM,
    Accelerated,
    Anchored,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    NSlackCuttingPlane,
    Pairwise,
    Perceptron,
    Predefined,
    Result,
    Subgradient,
    WarmStart,
    solve,
)
from maxmargin.methods import cutting_plane, pairwise
from maxmargin.methods.blocks import SIZE, START
from maxmargin.problems import SignConstrained, SlackRescaled, Weighted
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.feature_map import inner, map_sizes
from support.bases import Rotation, Scaling, interpreted, rebased
from support.bitwise_runs import bits
from support.catalogue import (
    chain_case,
    graph_case,
    matching_case,
    multiclass_case,
    segment_case,
    tree_case,
)
from support.own_functions import custom

pytestmark = pytest.mark.long

LAM = 0.1
BLOCK = BlockFrankWolfe(LAM)
METHODS: dict[str, Any] = {
    "fw": FrankWolfe(LAM),
    "averaged fw": Averaged(FrankWolfe(LAM)),
    "bcfw": BLOCK,
    "predefined steps": BlockFrankWolfe(LAM, Predefined()),
    "pairwise": Pairwise(LAM),
    "away": Away(LAM),
    "averaged": Averaged(BLOCK),
    "averaged pairwise": Averaged(Pairwise(LAM), "suffix"),
    "accelerated": Accelerated(Pairwise(LAM)),
    "accelerated bcfw": Accelerated(BLOCK, kappa=0.1),
    "cached": Cached(BLOCK, oracle_cost=8.0),
    "accelerated and cached": Accelerated(Cached(Pairwise(LAM), oracle_cost=8.0)),
    "divided": Divided(BLOCK),
    "accelerated and divided": Accelerated(Divided(Pairwise(LAM))),
    "ssg": Subgradient(LAM),
    "averaged ssg": Averaged(Subgradient(LAM)),
    "perceptron": Perceptron(LAM),
    "averaged perceptron": Averaged(Perceptron(LAM), "uniform"),
    "1-slack": CuttingPlane(LAM),
    "n-slack": NSlackCuttingPlane(LAM),
    "bmrm": BMRM(LAM),
    "exponentiated gradient": ExponentiatedGradient(LAM),
    "extragradient": Extragradient(LAM),
    "excessive gap": ExcessiveGap(LAM),
}
# Methods for one model: exact block steps need columns of one length, and blocks of sequences a chain.
FOR_A_MODEL: dict[str, Any] = {
    "exact blocks": (BlockExact(LAM), multiclass_case(19).problem),
    "averaged exact blocks": (Averaged(BlockExact(LAM)), multiclass_case(20).problem),
    "accelerated exact blocks": (Accelerated(BlockExact(LAM)), multiclass_case(21).problem),
    "divided exact blocks": (Divided(BlockExact(LAM)), multiclass_case(22).problem),
    "anchored": (Anchored(BLOCK, 2), chain_case(23, (9, 6, 4), 2).problem),
    "anchored, weighted": (Anchored(BLOCK, 2), Weighted(chain_case(24, (9, 6), 2).problem, [0.5, 2.0])),
}
NEEDS_MEANS = ("exponentiated gradient", "extragradient", "excessive gap")
REFUSES_SIGNS = (*NEEDS_MEANS, "divided", "accelerated and divided", "perceptron", "averaged perceptron")
REFUSES_SIGNS += ("1-slack", "n-slack", "bmrm")
# Random costs and features leave no ties.
PROBLEMS: dict[str, Any] = {
    "chain": chain_case(7, (2, 1, 3)).problem,
    "multiclass": multiclass_case(8).problem,
    "weighted chain": Weighted(chain_case(9, (2, 1, 3)).problem, [0.5, 2.0, 1.5]),
    "rescaled classes": SlackRescaled(multiclass_case(10).problem),
    "rescaled and weighted": Weighted(SlackRescaled(multiclass_case(11).problem), [0.5, 2.0, 1.5, 0.7, 1.1]),
}
MODELS: dict[str, Any] = {
    "second-order chain": chain_case(12, (3, 1, 4), 2, order=2).problem,
    "segments": segment_case(13).problem,
    "matching": matching_case(14, fertility=2).problem,
    "trees": tree_case(15).problem,
    "graph": graph_case(16).problem,
    "cut": graph_case(17, (3, 4), 2, inference="cut").problem,
    "three functions": custom(multiclass_case(18)),
}


def can_run(method: str, problem: str) -> bool:
    """Whether the method runs; slack rescaling has no expectation oracle."""
    return not (method in NEEDS_MEANS and problem.startswith("rescaled"))


PAIRS = [(method, problem) for method in METHODS for problem in PROBLEMS if can_run(method, problem)]


def ran(problem: Any, method: Any, **options: Any) -> Result:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 20, "check_every": 4, "random_state": 3} | options
    )


def numbers(problem: Any, result: Result) -> list[list[str]]:
    """Return the bits of all that does not depend on the basis."""
    history = [result.history[column] for column in ("passes", "oracle_calls", "primal", "dual", "gap")]
    return [bits(column) for column in (*history, [result.primal, result.dual, result.gap])] + [
        decode_all(problem, result.w).tolist()
    ]


def test_no_method_is_left_out() -> None:
    def names(method: Any) -> set[str]:
        return {type(method).__name__} | (names(method.inner) if hasattr(method, "inner") else set())

    steps = {"LineSearch", "Predefined"}
    methods = [*METHODS.values(), *(method for method, _ in FOR_A_MODEL.values())]
    assert set().union(*map(names, methods)) == {*maxmargin.methods.__all__} - steps


@cache
def plain_run(method: str, problem: str) -> tuple[Any, Result]:
    """Return a problem in its own basis, and the run that those in others are compared with."""
    plain = interpreted(PROBLEMS[problem])
    return plain, ran(plain, METHODS[method])


def assert_same_run(plain: Any, expected: Result, method: Any) -> None:
    other = rebased(plain, Scaling)
    found = ran(other, method)
    assert numbers(other, found) == numbers(plain, expected)
    assert bits(other.map.basis.back(found.w)) == bits(expected.w)
    assert found.w.any()
    assert (found.w != expected.w).any()


@pytest.mark.parametrize(("method", "problem"), PAIRS)
def test_powers_of_two_change_no_bit(method: str, problem: str) -> None:
    assert_same_run(*plain_run(method, problem), METHODS[method])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["bcfw", "pairwise", "fw"])
def test_powers_of_two_change_no_bit_of_other_models(method: str, model: str) -> None:
    plain = interpreted(MODELS[model])
    assert_same_run(plain, ran(plain, METHODS[method]), METHODS[method])


@pytest.mark.parametrize("method", FOR_A_MODEL)
def test_powers_of_two_change_no_bit_of_methods_for_a_model(method: str) -> None:
    chosen, problem = FOR_A_MODEL[method]
    plain = interpreted(problem)
    assert_same_run(plain, ran(plain, chosen), chosen)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in REFUSES_SIGNS])
def test_powers_of_two_change_no_bit_of_weights_with_signs(method: str) -> None:
    """Factors above zero keep signs. The constraints are around the other basis: they cut its coordinates."""
    plain, where = interpreted(multiclass_case(3, n=5).problem), np.arange(0, 9, 2)
    other = SignConstrained(rebased(plain, Scaling), where)
    plain = SignConstrained(plain, where)
    expected, found = ran(plain, METHODS[method]), ran(other, METHODS[method])
    assert numbers(other, found) == numbers(plain, expected)
    d = map_sizes(plain.map.inner).weights
    assert bits(other.map.inner.basis.back(found.w[:d])) == bits(expected.w[:d])
    weights = np.concatenate([part.ravel() for part in other.unpack(found.w)])
    assert (weights[where] >= 0.0).all()
    assert (weights[where] == 0.0).any()


@pytest.mark.parametrize("method", ["bcfw", "pairwise", "averaged", "accelerated", "fw"])
@pytest.mark.parametrize("keep", ["best", "weights", "dual"])
def test_runs_that_go_on_change_no_bit(method: str, keep: str) -> None:
    plain = interpreted(PROBLEMS["chain"])
    other = rebased(plain, Scaling)
    found = []
    for problem in (plain, other):
        first = ran(problem, METHODS[method], max_passes=5)
        found.append(numbers(problem, ran(problem, METHODS[method], start=WarmStart(first, keep))))
    assert found[0] == found[1]


# Steps between two planes of an active set end where both have the same margin. If the example is visited
# again before its scores change, the two tie, and rounding decides which of them gives weight to a third
# plane or takes some from it. Its scores do not change if it ends a pass and begins the next, or if the
# visits between move nothing. That is likely with three to five examples, and where passes are repeated
# without the oracle, by replays of a cache or in the program of n-slack. So these methods run on problems of
# eight examples, and in an order, for which that does not happen: found by search, in four bases. Data alone
# do not decide it.
MEET_TIES = ("pairwise", "averaged pairwise", "accelerated and cached", "n-slack")
LENGTHS, WEIGHTS = (2, 1, 3, 1, 2, 1, 2, 1), [0.5, 2.0, 1.5, 0.7, 1.1, 0.9, 1.3, 0.8]
UNTIED: dict[str, Any] = {
    "chain": chain_case(8, LENGTHS, 2).problem,
    "multiclass": multiclass_case(1, 8).problem,
    "weighted chain": Weighted(chain_case(1, LENGTHS, 2).problem, WEIGHTS),
    "rescaled classes": SlackRescaled(multiclass_case(0, 8).problem),
    "rescaled and weighted": Weighted(SlackRescaled(multiclass_case(3, 8).problem), WEIGHTS),
}
ORDER = 10


def assert_close(
    plain: Any,
    expected: Result,
    method: str,
    *,
    weights: float = 1e-9,
    values: float = 1e-9,
    **options: Any,
) -> None:
    """Assert that runs agree to 1e-9; weights, and the values at them, to tolerances of their own."""
    other = rebased(plain, Rotation)
    found = ran(other, METHODS[method], **options)
    for column in ("passes", "oracle_calls", "dual"):
        assert found.history[column] == pytest.approx(expected.history[column], rel=1e-9, abs=1e-9)
    for column in ("primal", "gap"):
        assert found.history[column] == pytest.approx(expected.history[column], rel=1e-9, abs=values)
    assert other.map.basis.back(found.w) == pytest.approx(expected.w, rel=1e-9, abs=weights)
    assert (decode_all(other, found.w) == decode_all(plain, expected.w)).all()


@pytest.mark.parametrize(
    ("method", "problem"), [(m, p) for m, p in PAIRS if m not in (*MEET_TIES, "1-slack")]
)
def test_a_dense_basis_changes_roundings_alone(method: str, problem: str) -> None:
    """Signs are left out: they belong to coordinates."""
    assert_close(*plain_run(method, problem), method)


@pytest.mark.parametrize("problem", UNTIED)
@pytest.mark.parametrize("method", MEET_TIES)
def test_a_dense_basis_changes_roundings_alone_where_there_are_no_ties(method: str, problem: str) -> None:
    plain = interpreted(UNTIED[problem])
    expected = ran(plain, METHODS[method], random_state=ORDER)
    assert_close(plain, expected, method, random_state=ORDER)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_dense_basis_changes_roundings_alone_of_programs(
    problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1-slack solves its program to 1e-11, and its planes are soon dependent, as it adds copies of some.

    Where the solver stops depends on roundings, and moves the weights: the objective differed by 2e-8
    once the gap was as small. Here the solver goes on.
    """
    monkeypatch.setattr(cutting_plane, "_ACCURACY", 1e-13)
    plain = interpreted(PROBLEMS[problem])
    assert_close(plain, ran(plain, METHODS["1-slack"]), "1-slack")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_dense_basis_changes_programs_by_their_tolerance(problem: str) -> None:
    r"""A dual value :math:`\epsilon` below the best has weights within :math:`\sqrt{2 \epsilon / \lambda}`.

    The solver's unit is the largest loss, below four here with weights, and a risk changes by less than
    twenty times as much as the weights. Duals still agree to 1e-9.
    """
    apart = 2.0 * np.sqrt(2.0 * 4.0 * cutting_plane._ACCURACY / LAM)
    assert_close(*plain_run("1-slack", problem), "1-slack", weights=apart, values=20.0 * apart)


def closest_choice(problem: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return by how little a plane was chosen before another one, in sets of three or more."""
    found, choose = [], pairwise._best_and_worst

    def watched(planes: Any, i: int) -> tuple[int, int]:
        chosen = choose(planes, i)
        first, size = planes.extent[i, START], planes.extent[i, SIZE]
        margin, positive = planes.work.margin[:size], planes.alpha[first : first + size] > 0.0
        for c, others in zip(chosen, (np.ones(size, dtype=bool), positive), strict=True):
            apart = np.abs(margin - margin[c])[others & (np.arange(size) != c)]
            found.extend(apart if size > 2 else [])
        return chosen

    with monkeypatch.context() as patch:
        patch.setattr(pairwise, "_best_and_worst", watched)
        ran(problem, METHODS["pairwise"], random_state=seed)
    return min(found)


def test_ties_are_met_where_they_were_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert closest_choice(interpreted(PROBLEMS["chain"]), 3, monkeypatch) < 1e-14
    for problem in UNTIED.values():
        assert closest_choice(interpreted(problem), ORDER, monkeypatch) > 1e-9


@pytest.mark.parametrize("kind", [Scaling, Rotation])
def test_the_inner_product_is_that_of_the_weights(kind: Any) -> None:
    problem, rng = rebased(PROBLEMS["chain"], kind), np.random.default_rng(0)
    w, v = rng.normal(size=(2, map_sizes(problem.map).weights))
    forth = problem.map.basis.forth
    assert inner(problem.map, forth(w), forth(v)) == pytest.approx(w @ v)
    assert forth(w) @ forth(v) != pytest.approx(w @ v)
    assert problem.map.basis.back(forth(w)) == pytest.approx(w)

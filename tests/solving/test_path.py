"""Paths over C, against the optimum of a QP for every C and runs from nothing."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    CPath,
    FrankWolfe,
    Pairwise,
    Status,
    c_path,
    solve,
)
from maxmargin.problems import Multiclass
from support import naive
from support.catalogue import Case
from support.growing import KINDS, growing
from support.naive import Array

METHODS = {
    "default": None,
    "bcfw": BlockFrankWolfe(7.0),
    "bcfw-wavg": Averaged(BlockFrankWolfe(7.0)),
    "pairwise": Pairwise(7.0),
    "away": Away(7.0),
    "accelerated bcfw": Accelerated(BlockFrankWolfe(7.0)),
    "fw": FrankWolfe(7.0),
}
CS, TOL = [3.0, 0.1, 1.0, 0.3], 0.02


@cache
def examples(kind: str) -> Case:
    return growing(kind, 3).first(8)


@cache
def optimum(kind: str, C: float) -> naive.Optimum:
    return naive.optimum(examples(kind).data, 1.0 / (8 * C))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_every_result_is_certified_for_its_own_c(name: str, kind: str) -> None:
    case = examples(kind)
    limits = {"tol": TOL, "max_passes": 5000, "random_state": 0}
    path = c_path(case.problem, iter(CS), method=METHODS[name], **limits)
    assert isinstance(path, CPath)
    assert path.Cs == (0.1, 0.3, 1.0, 3.0)
    for C, result in zip(path.Cs, path.results, strict=True):
        lam, best = 1.0 / (8 * C), optimum(kind, C)
        assert result.status is Status.CONVERGED
        assert result.gap <= TOL
        assert result.dual - 1e-7 <= best.dual <= best.primal <= result.primal + 1e-7
        assert result.primal == pytest.approx(naive.primal(case.data, result.weights, lam), abs=1e-9)
        assert result.stopped.problem is case.problem


def blobs() -> Multiclass:
    """Five classes that overlap."""
    rng = np.random.default_rng(1)
    y = np.arange(120) % 5
    return Multiclass.from_arrays(1.2 * rng.normal(size=(5, 6))[y] + rng.normal(size=(120, 6)), y)


def oracle_calls(method: Any) -> tuple[Array, Array]:
    """Return the oracle calls for every point of a path, and for the same points from nothing."""
    problem, limits = blobs(), {"tol": 0.005, "check_every": 1, "random_state": 0}
    path = c_path(problem, np.geomspace(1e-3, 1.0, 10), method=method, **limits)
    alone = [c_path(problem, [C], method=method, **limits).results[0] for C in path.Cs]
    assert all(result.gap <= 0.005 for result in (*path.results, *alone))
    on_path, from_nothing = (
        np.array([result.history.oracle_calls[-1] for result in results]) for results in (path.results, alone)
    )
    return on_path, from_nothing


@pytest.mark.slow
@pytest.mark.parametrize("method", [BlockFrankWolfe(1.0), Pairwise(1.0)], ids=["bcfw", "pairwise"])
def test_a_path_costs_little_more_than_its_hardest_point(method: Any) -> None:
    on_path, from_nothing = oracle_calls(method)
    assert on_path.sum() <= 2 * from_nothing.max()
    assert on_path[-1] < from_nothing[-1]


@pytest.mark.slow
def test_an_accelerated_path_costs_less_than_its_points() -> None:
    # From nothing it needs so few passes that there is less to gain.
    on_path, from_nothing = oracle_calls(None)
    assert on_path.sum() <= 0.9 * from_nothing.sum()
    assert on_path[-1] < from_nothing[-1]


def test_the_first_point_is_a_run_from_nothing() -> None:
    case = growing("multiclass", 9).first(6)
    limits = {"tol": 1e-3, "random_state": 4}
    path = c_path(case.problem, [0.5, 2.0], **limits)
    expected = solve(case.problem, Accelerated(Pairwise(1.0 / (0.5 * 6))), **limits)
    np.testing.assert_array_equal(path.results[0].weights, expected.weights)
    assert path.results[1].history.oracle_calls[0] == 0  # the second is not


def test_equal_values_cost_nothing() -> None:
    case = growing("multiclass", 9).first(6)
    path = c_path(case.problem, [1.0, 1.0], tol=1e-3, random_state=0)
    assert path.results[1].history.oracle_calls.tolist() == [0]
    np.testing.assert_array_equal(path.results[0].weights, path.results[1].weights)


def test_to_frame_has_a_row_for_each_C() -> None:
    case = growing("multiclass", 9).first(6)
    path = c_path(case.problem, [2, 0.5], tol=1e-2, random_state=0)
    frame = path.to_frame()
    assert list(frame.columns) == ["C", "primal", "dual", "gap", "passes", "oracle_calls", "seconds"]
    assert frame["C"].tolist() == [0.5, 2.0]
    for k, result in enumerate(path.results):
        assert frame["primal"][k] == result.primal
        assert frame["dual"][k] == result.dual
        assert frame["gap"][k] == result.primal - result.dual
        assert frame["oracle_calls"][k] == result.history.oracle_calls[-1] == 6 * frame["passes"][k]
        assert frame["seconds"][k] == result.history.seconds[-1]


@pytest.mark.parametrize(
    ("Cs", "got"),
    [
        ([], "none"),
        (iter(()), "none"),
        ([1.0, 0.0], "0.0"),
        ([1.0, -2], "-2"),
        ([np.nan, 1.0], "nan"),
        ([1.0, np.inf], "inf"),
        ([1.0, "10"], "'10'"),
        (["a", 1.0], "'a'"),
        ("0.1", "'0.1'"),
        ([None], "None"),
        (1.0, "1.0"),
        (None, "None"),
        ([[0.1, 1.0]], "a list"),
        (np.ones((2, 3)), "an ndarray of shape (3,)"),
    ],
)
def test_values_of_c_must_be_positive(Cs: Any, got: str) -> None:
    with pytest.raises(ValueError, match=r"^c_path: ") as caught:
        c_path(growing("multiclass", 9).first(6).problem, Cs)
    assert str(caught.value) == f"c_path: Cs must be a list of one or more numbers > 0, got {got}."


@pytest.mark.parametrize("method", ["bcfw", BlockFrankWolfe, 0.1])
def test_methods_that_are_none(method: Any) -> None:
    with pytest.raises(TypeError, match=r"^solve: method must be one of maxmargin's methods, [^\n]*$"):
        c_path(growing("multiclass", 9).first(6).problem, [1.0], method=method)


def test_a_problem_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"^solve: problem must be made by maxmargin.problems [^\n]*$"):
        c_path(None, [1.0])

"""Runs that continue from files, against runs that never stopped: every method, wrapper and sampling."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import (
    BMRM,
    Accelerated,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    Checkpoint,
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
    Status,
    Subgradient,
    solve,
)
from maxmargin.methods.protocol import BATCH, Point, Traits, point, primal_point, start, traits
from maxmargin.methods.sweep import advance
from maxmargin.problems import (
    GaussianKernel,
    Kernelised,
    SigmoidKernel,
    SignConstrained,
    SlackRescaled,
    Weighted,
)
from maxmargin.product import (
    BlockConditionalGradient,
    Box,
    ConditionalGradient,
    L2Ball,
    LeastSquares,
    Product,
    ProductProblem,
    Quadratic,
    Simplex,
)
from maxmargin.structures.problem import sizes
from support.catalogue import chain_case, multiclass_case
from support.checkpoints import SETTINGS, Killed, assert_same_run, files_of, killed_at, run
from support.naive import Array
from support.own_problems import own_problems

LAM = 0.05
BLOCK = BlockFrankWolfe(LAM)
METHODS = {
    "bcfw": BLOCK,
    "bcfw, predefined": BlockFrankWolfe(LAM, Predefined()),
    "bcfw-wavg": Averaged(BLOCK),
    "bcfw-tavg": Averaged(BLOCK, "suffix"),
    "pairwise": Pairwise(LAM),
    "pairwise-avg": Averaged(Pairwise(LAM), "uniform"),
    "away": Away(LAM, inner_steps=3),
    "exact": BlockExact(LAM),
    "fw": FrankWolfe(LAM),
    "fw-wavg": Averaged(FrankWolfe(LAM)),
    "subgradient": Subgradient(LAM),
    "subgradient-wavg": Averaged(Subgradient(LAM)),
    "perceptron-avg": Averaged(Perceptron(LAM), "uniform"),
    "exponentiated gradient": ExponentiatedGradient(LAM),
    "excessive gap": ExcessiveGap(LAM),
    "extragradient": Extragradient(LAM),
    "cutting plane": CuttingPlane(LAM),
    "cutting plane-avg": Averaged(CuttingPlane(LAM)),
    "bmrm": BMRM(LAM),
    "n-slack": NSlackCuttingPlane(LAM),
    "cached": Cached(BLOCK, oracle_cost=8.0),
    "cached, timed": Cached(Pairwise(LAM)),
    "cached, off": Cached(BLOCK, oracle_cost=0.0),
    "cached average": Cached(Averaged(BLOCK), oracle_cost=8.0),
    "divided": Divided(BLOCK, 3),
    "accelerated": Accelerated(Pairwise(LAM)),
    "accelerated, fixed": Accelerated(BLOCK, kappa=0.1),
    "accelerated cached": Accelerated(Cached(Away(LAM), oracle_cost=8.0)),
    "accelerated divided": Accelerated(Divided(Pairwise(LAM), 2)),
    "accelerated exact": Accelerated(BlockExact(LAM)),
}
SAMPLINGS = ("permutation", "uniform", "gap")
RUNS = [
    pytest.param(name, sampling, marks=[pytest.mark.long] * (place != k % len(possible) and k > 3))
    for k, (name, method) in enumerate(METHODS.items())
    for possible in [SAMPLINGS if traits(method).notes_gaps else SAMPLINGS[:2]]
    for place, sampling in enumerate(possible)
]


def problem_of(name: str) -> Any:
    """Return a small problem: of chains, or of classes for exact blocks."""
    return multiclass_case(3, n=7).problem if "exact" in name else chain_case(3, (2, 3, 1, 2)).problem


@pytest.mark.parametrize(("name", "sampling"), RUNS)
def test_a_run_continues_bit_for_bit(name: str, sampling: str, tmp_path: Path) -> None:
    problem, method, rng = problem_of(name), METHODS[name], np.random.default_rng(len(name))
    expected, files = files_of(problem, method, tmp_path, sampling=sampling)
    if name != "cached, timed":
        assert_same_run(run(problem, method, sampling=sampling), expected)
    assert len(files) >= 4
    for moment in {int(rng.integers(len(files))), len(files) - 1}:
        found = run(problem_of(name), method, sampling=sampling, start=str(files[moment]), random_state=None)
        assert_same_run(found, expected)


def product_problems() -> dict[str, Any]:
    """Return problems over products of sets: a dense and a sparse quadratic, and a smooth function."""
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(8, 6)), rng.normal(size=8)
    domain = Product([Simplex(3), L2Ball(2), Box([0.0], [1.0])])
    return {
        "least squares": ProductProblem(LeastSquares(A, b), domain),
        "sparse": ProductProblem(Quadratic(scipy.sparse.csr_array(A.T @ A), b[:6]), domain),
        "smooth": ProductProblem(Quartic(), domain),
    }


class Quartic:
    """A smooth function that is known by its values and gradients."""

    def value(self, x: Array) -> float:
        return float(((x - 0.3) ** 4).sum())

    def gradient(self, x: Array, where: slice) -> Array:
        return np.asarray(4.0 * (x[where] - 0.3) ** 3)

    def fingerprint(self) -> str:
        return "quartic"


@pytest.mark.parametrize("kind", ["least squares", "sparse", "smooth"])
@pytest.mark.parametrize(
    "method", [ConditionalGradient(average="weighted"), BlockConditionalGradient(Predefined())]
)
def test_products_continue_too(kind: str, method: Any, tmp_path: Path) -> None:
    sampling = "gap" if isinstance(method, BlockConditionalGradient) else "permutation"
    expected, files = files_of(product_problems()[kind], method, tmp_path, sampling=sampling)
    for file in files[:: len(files) - 1]:
        found = run(product_problems()[kind], method, sampling=sampling, start=file)
        assert_same_run(found, expected)


@pytest.mark.parametrize("name", ["chain", "classes", "kernel", "weights", "signs", "own tuple"])
def test_every_kind_of_problem_continues(name: str, tmp_path: Path) -> None:
    method = Accelerated(Pairwise(LAM))
    expected, files = files_of(kinds_of_problems()[name], method, tmp_path)
    found = run(kinds_of_problems()[name], method, start=files[len(files) // 2])
    assert_same_run(found, expected)


def kinds_of_problems() -> dict[str, Any]:
    """Return problems of several models and wrappers, and a user's own."""
    chain, classes = chain_case(3).problem, multiclass_case(3, n=6).problem
    X = np.random.default_rng(1).normal(size=(6, 4))
    return {
        "chain": chain_case(3, rows="indicator", order=2).problem,
        "classes": SlackRescaled(classes),
        "kernel": Kernelised(classes, X, GaussianKernel(0.5), cache_size=0.0),
        "weights": Weighted(chain, [0.5, 2.0, 1.5, 0.7]),
        "signs": SignConstrained(classes, [0, 2, 4]),
        "own tuple": own_problems()["compiled"],
    }


def test_what_a_kernel_notes_is_kept(tmp_path: Path) -> None:
    """A squared length that was negative is still known in another process."""

    def problem() -> Any:
        classes = multiclass_case(3, n=6).problem
        return Kernelised(classes, np.eye(6), SigmoidKernel(0.1, 1.0))

    noted, fresh = problem(), problem()
    noted.map.curvature[0] = -1e-12
    _, files = files_of(noted, BLOCK, tmp_path)
    run(fresh, BLOCK, start=files[0])
    assert fresh.map.curvature[0] == noted.map.curvature[0] == -1e-12


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_every_generator_continues(bits: Any, tmp_path: Path) -> None:
    problem = problem_of("bcfw")
    whole, rng = np.random.Generator(bits(3)), np.random.Generator(bits(4))
    expected, files = files_of(problem, BLOCK, tmp_path, random_state=whole)
    assert_same_run(run(problem, BLOCK, start=files[5], random_state=rng), expected)
    assert rng.random() == whole.random()


def test_a_warm_start_continues(tmp_path: Path) -> None:
    problem, method = problem_of("pairwise"), Pairwise(LAM)
    before = run(problem, Pairwise(2.0 * LAM))
    expected, files = files_of(problem, method, tmp_path, start=before)
    assert len(expected.history) == 3
    for file in files[1::4]:
        assert_same_run(run(problem, method, start=file), expected)


def test_limits_may_change_when_a_run_continues(tmp_path: Path) -> None:
    """A run that ended, for whatever reason, continues as one with other limits would have gone."""
    problem, expected = problem_of("bcfw"), run(problem_of("bcfw"), BLOCK, max_passes=7)
    file = tmp_path / "run"
    run(problem, BLOCK, max_passes=3, checkpoint=file)  # ends between two certificates
    never = [lambda progress: False]
    stopped = run(problem, BLOCK, start=file, checkpoint=file, max_passes=7, callbacks=never)
    assert stopped.status is Status.STOPPED
    late = run(problem, BLOCK, start=file, checkpoint=file, time_limit=1.0, max_passes=7)
    assert late.status is Status.TIME_LIMIT
    assert_same_run(run(problem, BLOCK, start=file, checkpoint=file, max_passes=7), expected)
    again = run(problem, BLOCK, start=file, max_passes=7, callbacks=[pytest.fail])
    assert_same_run(again, expected)
    assert run(problem, BLOCK, start=file, tol=1e9).status is Status.CONVERGED


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    problem, file = problem_of("bcfw"), tmp_path / "run"

    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    stopped = run(problem, BLOCK, checkpoint=file, callbacks=[interrupt])
    assert stopped.status is Status.INTERRUPTED
    assert_same_run(run(problem, BLOCK, start=file), run(problem, BLOCK))


@settings(max_examples=12)
@given(moment=st.integers(0, 200), kind=st.sampled_from(["bcfw", "accelerated cached", "divided"]))
def test_a_run_killed_at_any_moment_continues(moment: int, kind: str, tmp_path_factory: Any) -> None:
    """An error that nothing catches, at any reading of the clock, leaves a file from which to continue."""
    problem, method, file = problem_of(kind), METHODS[kind], tmp_path_factory.mktemp("run") / "run"
    expected = run(problem, method)
    with contextlib.suppress(Killed), killed_at(moment):
        solve(problem, method, checkpoint=Checkpoint(file, every=0), **SETTINGS)
    assert_same_run(run(problem, method, start=file if file.exists() else None), expected)


class Halving(NamedTuple):
    """A user's method: a batch method whose weights lose half of their distance from those of a pass."""

    lam: float


@dataclass
class HalvingState:
    """A user's state, a data class."""

    w: Array
    passes: int


@start.register(Halving)
def halving_start(method: Halving, problem: Any) -> HalvingState:
    return HalvingState(np.ones(sizes(problem).weights), 0)


@advance.register(Halving)
def halving_advance(method: Halving, state: HalvingState, problem: Any, visits: Any) -> HalvingState:
    return HalvingState(0.5 * (state.w + visits.order[0]), state.passes + 1)


@point.register(Halving)
def halving_point(method: Halving, state: HalvingState, problem: Any) -> Point:
    return primal_point(state.w)


@traits.register(Halving)
def halving_traits(method: Halving) -> Traits:
    return BATCH._replace(has_dual=False, notes_gaps=False)


def test_methods_of_users_continue(tmp_path: Path) -> None:
    problem = problem_of("bcfw")
    expected, files = files_of(problem, Halving(LAM), tmp_path)
    for file in files:
        assert_same_run(run(problem, Halving(LAM), start=file), expected)

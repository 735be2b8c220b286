"""Oracles that fall short: the bounds of the paper's appendix, and what becomes of the gap."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    BlockFrankWolfe,
    BrokenOracle,
    Cached,
    FrankWolfe,
    LineSearch,
    Pairwise,
    Predefined,
    Status,
    Subgradient,
    solve,
)
from maxmargin.methods.protocol import start
from maxmargin.methods.rules import step_size
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import advance
from maxmargin.problems import Custom, Weighted
from maxmargin.solving import objective
from maxmargin.structures.oracle import is_bounded, is_exact
from maxmargin.structures.problem import as_problem
from support import naive
from support.approximate import Approximate, Quality
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.naive import Array
from support.own_functions import custom
from support.runs import dual_of, random_order

LAM = 0.1
N_STEPS, N_RUNS = 60, 30
CASES = {"chain": chain_case(20, (1, 2, 2), 2), "multiclass": multiclass_case(20, n=3, n_labels=4)}


@cache
def constants(name: str) -> tuple[float, Array]:
    """Return the optimal dual and the curvature of each block."""
    return naive.optimum(CASES[name].data, LAM).dual, naive.block_curvatures(CASES[name].data, LAM)


class Runs:
    """Mean errors and true gaps of all iterates, the start included; and what answers lacked."""

    def __init__(self, case: Case, method: BlockFrankWolfe, least: Quality, best: float) -> None:
        errors, gaps, self.shortfalls = [], [], []
        for seed in range(N_RUNS):
            problem = Approximate(case, method, least)
            run = []
            for i in (None, *random_order(case.problem, N_STEPS, seed)):
                if i is not None:
                    problem.state = advance(method, problem.state, as_problem(problem), np.array([i]))
                dual, w = dual_of(case.problem, method, problem.state), flat(case.problem, problem.state.w)
                run.append((best - dual, naive.primal(case.data, w, LAM) - dual))
            errors.append([error for error, _ in run])
            gaps.append([gap for _, gap in run])
            self.shortfalls += problem.shortfalls
        self.errors, self.gaps = np.mean(errors, axis=0), np.mean(gaps, axis=0)


def assert_bounded(runs: Runs, n: int, nu: float, curvature: float) -> None:
    """Theorems C.1 and C.3, where nu = 1 or delta = 0, which is in the curvature."""
    k, constant = np.arange(N_STEPS + 1), curvature / nu + runs.errors[0]
    assert (runs.errors >= -1e-9).all()
    assert (runs.errors <= 2 * n / (nu * k + 2 * n) * constant).all()
    assert (np.minimum.accumulate(runs.gaps) <= 6 * n / (nu * (k + 1)) * constant).all()
    assert max(runs.shortfalls) > 1e-3  # the oracle does fall short


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("nu", [0.25, 0.7])
@pytest.mark.parametrize("rule", ["line search", "predefined"])
def test_multiplicative_quality_bounds_the_error(name: str, nu: float, rule: str) -> None:
    """A share nu of each block's gap is enough: after k steps the error is that of nu^2 k, but for h_0."""
    best, curvatures = constants(name)
    method = BlockFrankWolfe(LAM, LineSearch() if rule == "line search" else Predefined(nu))
    runs = Runs(CASES[name], method, lambda gap, i, k: nu * gap, best)
    assert_bounded(runs, len(curvatures), nu, curvatures.sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("delta", [0.5, 4.0])
@pytest.mark.parametrize("rule", ["line search", "predefined"])
def test_additive_quality_bounds_the_error(name: str, delta: float, rule: str) -> None:
    """Answers may fall short by delta/2 gamma_k C_i, where gamma_k is the predefined step."""
    best, curvatures = constants(name)
    n = len(curvatures)

    def least(gap: float, i: int, k: int) -> float:
        return gap - n * 0.5 * delta * 2 * n / (k + 2 * n) * curvatures[i]

    method = BlockFrankWolfe(LAM, LineSearch() if rule == "line search" else Predefined())
    runs = Runs(CASES[name], method, least, best)
    assert_bounded(runs, n, 1.0, (1 + delta) * curvatures.sum())


def test_predefined_steps() -> None:
    assert step_size(Predefined(0.5), 9.0, 9.0, 30, 10) == 20 / (0.5 * 30 + 20)
    assert step_size(Predefined(), 9.0, 9.0, 30, 10) == 20 / (30 + 20)
    assert Predefined(1).nu.hex() == (1.0).hex()


@pytest.mark.parametrize("nu", [0, 1.5, -1, np.nan, "half"])
def test_qualities_that_are_none(nu: Any) -> None:
    with pytest.raises(ValueError, match=r"^Predefined: nu must be a number > 0 and at most 1, got"):
        Predefined(nu)


def shy(case: Case, exact: bool) -> Any:
    """Return the case with an oracle that looks at the first two outputs alone."""
    own, data = custom(case).oracle, case.data

    def argmax(i: int, w: Array, truth: Any = None) -> Any:
        return i, int(np.argmax((data.losses[i] - data.psi[i] @ w)[:2]))

    functions = own._functions | {"argmax": argmax}
    d = data.psi[0].shape[1]
    return Custom(**functions, X=own.X, y=own.truths, n_features=d, exact=exact)


METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "predefined": BlockFrankWolfe(LAM, Predefined(0.5)),
    "pairwise": Accelerated(Pairwise(LAM)),
    "fw": FrankWolfe(LAM),
    "ssg": Subgradient(LAM),
}


@pytest.mark.filterwarnings("ignore:.*answers of argmax are below")
@pytest.mark.parametrize("method", METHODS)
def test_a_gap_of_an_oracle_that_falls_short_is_no_certificate(method: str) -> None:
    """The primal is too small, the dual a lower bound still."""
    case = multiclass_case(8, n=6, n_labels=4)
    best = naive.optimum(case.data, LAM)
    result = solve(shy(case, exact=False), METHODS[method], tol=0.0, max_passes=50, random_state=0)
    assert not result.certified
    assert "(not guaranteed: the oracle is approximate, without a bound on its shortfall)" in repr(result)
    assert result.primal < naive.primal(case.data, result.w, LAM) - 1e-3
    assert result.dual <= best.primal + 1e-9
    if method == "bcfw":  # converges by now: to less than the optimum
        assert result.primal < best.dual


def forgetful(case: Case) -> Any:
    """Return the case with an oracle that knows all outputs in the first calls, and the truth alone later."""
    own, data, calls = custom(case).oracle, case.data, [0]

    def argmax(i: int, w: Array, truth: Any = None) -> Any:
        calls[0] += 1
        known = slice(None) if calls[0] < 50 else slice(1)
        return i, int(np.argmax((data.losses[i] - data.psi[i] @ w)[known]))

    functions = own._functions | {"argmax": argmax}
    return Custom(**functions, X=own.X, y=own.truths, n_features=data.psi[0].shape[1], exact=False)


@pytest.mark.parametrize("method", [Cached(Pairwise(LAM), oracle_cost=4.0), BlockFrankWolfe(LAM)])
@pytest.mark.parametrize("tol", [0.0, 0.001])
def test_a_negative_gap_is_never_a_converged_run(method: Any, tol: float) -> None:
    case = multiclass_case(8, n=6, n_labels=4)
    problem, options = forgetful(case), {"tol": tol, "max_passes": 300, "check_every": 1, "random_state": 0}
    with pytest.warns(UserWarning, match=r"answers of argmax are below the maxima by at least \d") as caught:
        result = solve(problem, method, **options)
    assert result.status is Status.MISSED
    assert f"at least {-result.gap:.3g} in the mean" in str(caught[0].message)
    assert f"no bound: the oracle's answers are too small by at least {-result.gap:.3g}" in repr(result)
    truth = naive.primal(case.data, result.w, LAM)
    assert 0.0 < -result.gap <= truth - result.primal  # at least this much is missed
    assert result.dual <= naive.optimum(case.data, LAM).primal + 1e-9
    # It did not end by a gap, but when the lower bound rose no more.
    duals = result.history.dual
    assert len(duals) < 300
    assert duals[-1] - duals[:-1].max() <= tol


@pytest.mark.parametrize("method", METHODS)
def test_an_oracle_that_should_be_exact_is_broken(method: str) -> None:
    with pytest.raises(BrokenOracle, match="negative or undefined block gap"):
        solve(shy(multiclass_case(8, n=6, n_labels=4), exact=True), METHODS[method], tol=0.0, random_state=0)


class Bounded(Approximate):
    """Knows what its last answer lacks."""

    def shortfall(self, i: int, work: Any) -> float:
        return self.shortfalls[-1]


def test_an_oracle_that_bounds_what_it_lacks_is_certified() -> None:
    case, method = CASES["multiclass"], BlockFrankWolfe(LAM)
    problem = Bounded(case, method, lambda gap, i, k: 0.5 * gap)
    assert is_bounded(problem)
    assert not is_exact(problem)
    result = solve(problem, method, tol=0.0, max_passes=20, random_state=0)
    w, best = flat(case.problem, result.w), naive.optimum(case.data, LAM)
    assert max(problem.shortfalls) > 1e-3
    assert result.certified
    assert result.primal == pytest.approx(naive.primal(case.data, w, LAM))
    assert result.dual <= best.primal + 1e-9


def test_problems_are_exact_unless_they_say_otherwise() -> None:
    case = CASES["multiclass"]
    for oracle in (case.problem.oracle, custom(case).oracle, object()):
        assert is_exact(oracle)
        assert is_bounded(oracle)
    plain = Approximate(case, BlockFrankWolfe(LAM), lambda gap, i, k: gap)
    for oracle in (plain, shy(case, exact=False).oracle, Weighted(plain, np.ones(len(case.X))).oracle):
        assert not is_exact(oracle)
        assert not is_bounded(oracle)
    assert not new_scratch(shy(case, exact=False)).block.exact
    assert solve(case.problem, BlockFrankWolfe(LAM), max_passes=1).certified


def test_the_truth_is_never_overlooked_by_the_objective() -> None:
    """No output found is better than the truth, whose margin is zero: so is the hinge."""
    case = CASES["multiclass"]
    problem = shy(case, exact=False)
    w = start(BlockFrankWolfe(LAM), problem).w + 10.0 * naive.optimum(case.data, LAM).w
    margins = [
        (losses - psi @ w)[:2].max() for losses, psi in zip(case.data.losses, case.data.psi, strict=True)
    ]
    assert min(margins) < 0.0
    np.testing.assert_allclose(objective.hinge_losses(problem, w), np.maximum(margins, 0.0), atol=1e-12)

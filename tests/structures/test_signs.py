"""Weights with signs: against quadratic programs with bounds, whatever the method; and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    FrankWolfe,
    Pairwise,
    Perceptron,
    StructuredSVC,
    Subgradient,
    WarmStart,
    check_problem,
    solve,
)
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.problems import SignConstrained
from maxmargin.structures.feature_map import (
    inner,
    is_projected,
    map_sizes,
    projected,
    settle,
    unprojected,
)
from maxmargin.structures.oracle import is_bounded
from maxmargin.structures.problem import Problem
from maxmargin.structures.wrappers import ProximalMap
from support import naive
from support.catalogue import Case, chain_case, flat, graph_case, layout, multiclass_case
from support.own_functions import custom
from support.plain import Plain
from support.runs import dual_of

LAM = 0.1


CASES = {"multiclass": multiclass_case(3, n=5, n_labels=3), "chain": chain_case(4, (1, 2, 2), 2)}
# Weights that are negative at the optimum without signs, and others that are not.
SIGNED = {name: np.flatnonzero(np.arange(case.data.psi[0].shape[1]) % 4 != 1) for name, case in CASES.items()}
BLOCK = BlockFrankWolfe(LAM)
METHODS: dict[str, tuple[Any, float]] = {
    "fw": (FrankWolfe(LAM), 0.03),
    "bcfw": (BLOCK, 0.01),
    "pairwise": (Pairwise(LAM), 1e-4),
    "away": (Away(LAM), 1e-3),
    "cached": (Cached(Pairwise(LAM), oracle_cost=8.0), 1e-4),
    "accelerated": (Accelerated(Pairwise(LAM)), 1e-3),
    "accelerated bcfw": (Accelerated(BLOCK, kappa=0.05), 0.01),
    "averaged": (Averaged(BLOCK), 0.02),
    "averaged fw": (Averaged(FrankWolfe(LAM)), 0.1),
    "ssg": (Subgradient(LAM), 0.2),
    "averaged ssg": (Averaged(Subgradient(LAM)), 0.2),
}
RAISES_THE_DUAL = ("fw", "bcfw", "pairwise", "away", "cached", "accelerated", "accelerated bcfw")


def signed(name: str) -> Any:
    return SignConstrained(Plain(CASES[name].problem), SIGNED[name])


@pytest.mark.parametrize("name", CASES)
def test_signs_bind(name: str) -> None:
    """Else the tests below would say nothing."""
    data = CASES[name].data
    best, free = naive.signed_optimum(data, LAM, SIGNED[name]), naive.optimum(data, LAM)
    assert (free.w[SIGNED[name]] < -0.01).any()
    assert naive.primal(data, best, LAM) > free.primal + 0.005
    assert (best[SIGNED[name]] > 0.01).any()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_brackets_the_optimum(method: str, name: str) -> None:
    data, (steps, tol) = CASES[name].data, METHODS[method]
    best = naive.primal(data, naive.signed_optimum(data, LAM, SIGNED[name]), LAM)
    problem = signed(name)
    result = solve(problem, steps, tol=tol, max_passes=300, random_state=0)
    w = flat(problem, result.w)
    assert result.gap <= tol
    assert result.dual <= best + 1e-7
    assert best - 1e-7 <= result.primal == pytest.approx(naive.primal(data, w, LAM))
    assert (w[SIGNED[name]] >= 0.0).all()
    assert (result.weights == w).all()
    assert (result.history.gap >= -1e-12).all()
    if method in RAISES_THE_DUAL:
        assert (np.diff(result.history.dual) >= -1e-12).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_answer_keeps_the_signs(method: str) -> None:
    problem, steps = signed("multiclass"), METHODS[method][0]
    state, order = start(steps, problem), np.random.default_rng(0).permutation(5)
    for _ in range(12):
        state = advance(steps, state, problem, order)
        answer = point(steps, state, problem)
        for w in (answer.w, *answer.others):
            assert (flat(problem, w)[SIGNED["multiclass"]] >= 0.0).all()


def test_every_block_step_raises_the_dual() -> None:
    data = CASES["chain"].data
    best = naive.primal(data, naive.signed_optimum(data, LAM, SIGNED["chain"]), LAM)
    for method in (BLOCK, Pairwise(LAM), Away(LAM)):
        problem, before = signed("chain"), 0.0
        state = start(method, problem)
        for i in np.random.default_rng(1).integers(3, size=40):
            state = advance(method, state, problem, np.array([i]))
            dual = dual_of(problem, method, state)
            assert dual >= before - 1e-14
            before = dual
        assert 0.8 * best < before <= best + 1e-7


def test_weights_follow_from_the_image() -> None:
    """The vector that methods keep, the image of dual variables and its projection lead to one another."""
    case, where = CASES["multiclass"], SIGNED["multiclass"]
    problem = SignConstrained(case.problem, where)
    phi, v = problem.map, layout(case.problem, np.random.default_rng(0).normal(size=9))
    kept, expected = projected(phi, v), flat(case.problem, v)
    expected[where] = np.maximum(expected[where], 0.0)
    settled = np.full(len(kept), np.nan)
    settle(phi, v, settled)
    assert (unprojected(phi, kept) == v).all()
    assert (settled == kept).all()
    assert (flat(problem, kept) == expected).all()
    assert inner(phi, kept, kept) == inner(phi, kept, v) == pytest.approx(expected @ expected)
    assert len(kept) == map_sizes(phi).weights == 2 * map_sizes(case.problem.map).weights
    assert is_projected(phi)
    assert not is_projected(case.problem.map)


def test_bonds_of_cuts_keep_their_signs() -> None:
    """Where features are not negative either, these are the weights of cuts in the strict sense."""
    case: Case = graph_case(1, (3, 3, 4), 2, inference="cut", density=0.3)
    d = case.data.psi[0].shape[1]
    problem = SignConstrained(Plain(case.problem), np.arange(d) >= d - 2)
    best = naive.primal(case.data, naive.signed_optimum(case.data, LAM, np.arange(d - 2, d)), LAM)
    result = solve(problem, Pairwise(LAM), tol=1e-3, max_passes=500, random_state=0)
    assert (problem.unpack(result.w).edges >= 0.0).all()
    assert best - 1e-7 <= result.primal <= best + 1e-3
    assert is_bounded(problem.oracle)


def test_runs_go_on_at_another_lam() -> None:
    problem, data = signed("multiclass"), CASES["multiclass"].data
    for method in (Pairwise, lambda lam: Accelerated(Pairwise(lam))):
        first = solve(problem, method(2 * LAM), tol=1e-4, max_passes=300, random_state=0)
        for keep in ("best", "weights", "dual"):
            warm = WarmStart(first, keep)
            result = solve(problem, method(LAM), tol=1e-3, max_passes=300, random_state=0, start=warm)
            best = naive.primal(data, naive.signed_optimum(data, LAM, SIGNED["multiclass"]), LAM)
            assert result.dual - 1e-7 <= best <= result.primal + 1e-7 <= best + 0.0011


@pytest.mark.parametrize("form", ["dict", "pairs"])
def test_three_functions_keep_their_signs(form: str) -> None:
    case, where = CASES["multiclass"], SIGNED["multiclass"]
    own = custom(case, form).oracle
    nonnegative = {f"w{p}" for p in where} | {"no such name"} if form == "dict" else where.tolist()
    C = 1.0 / (LAM * len(own.X))
    names = own.joint.names if form == "dict" else None
    model = StructuredSVC(
        **own._functions,
        C=C,
        n_features=9,
        feature_names=names,
        nonnegative=nonnegative,
        tol=1e-3,
        random_state=0,
    )
    model.fit(own.X, own.truths)
    best = naive.primal(case.data, naive.signed_optimum(case.data, LAM, where), LAM)
    assert model.coef_.shape == (9,)
    assert (model.coef_[where] >= 0.0).all()
    assert best - 1e-7 <= naive.primal(case.data, model.coef_, LAM) <= best + 1e-3
    assert check_problem(model, own.X, own.truths).ok
    assert model.predict(own.X) == [
        (i, int(np.argmax(-psi @ model.coef_))) for i, psi in enumerate(case.data.psi)
    ]


def test_a_pickle_keeps_the_signs() -> None:
    case = CASES["multiclass"]
    problem = SignConstrained(case.problem, [5, 1, 5])
    again = pickle.loads(pickle.dumps(problem))
    assert (type(again), type(again.map)) == (Problem, ProximalMap)
    np.testing.assert_array_equal(again.map.prox.nonnegative, problem.map.prox.nonnegative)
    np.testing.assert_array_equal(again.map.inner.rows.values, case.problem.map.rows.values)
    np.testing.assert_array_equal(again.oracle.labels, case.problem.oracle.labels)
    mask = SignConstrained(case.problem, np.isin(np.arange(9), [1, 5]))
    np.testing.assert_array_equal(mask.map.prox.nonnegative, problem.map.prox.nonnegative)


@pytest.mark.parametrize(
    "method", [Divided(BLOCK), CuttingPlane(LAM), Perceptron(LAM), Accelerated(Divided(BLOCK))]
)
def test_methods_without_signs_are_refused(method: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^solve: method must be Away, .* for a problem that is SignConstrained, got"
    ):
        solve(signed("multiclass"), method)


@pytest.mark.parametrize("nonnegative", [[9], [-1], [0.5], 3, [True, False], "ab", [[1]]])
def test_wrong_indices_are_refused(nonnegative: Any) -> None:
    expected = r"^SignConstrained: nonnegative must be indices of weights, ints from 0 to 8, or 9 bools, got"
    with pytest.raises(ValueError, match=expected):
        SignConstrained(CASES["multiclass"].problem, nonnegative)

"""L1 penalties: against quadratic programs and the conditions of optimality; and what is refused."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    FrankWolfe,
    Pairwise,
    Subgradient,
    WarmStart,
    solve,
)
from maxmargin.methods import protocol
from maxmargin.methods.sweep import advance
from maxmargin.problems import GaussianKernel, Kernelised, L1Penalised, SignConstrained, Weighted
from maxmargin.structures.feature_map import projected, settle, unprojected
from maxmargin.structures.oracle import is_exact
from maxmargin.structures.problem import take
from support import naive
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    flat,
    graph_case,
    graph_cases,
    label_set_case,
    label_set_cases,
    layout,
    matching_case,
    multiclass_case,
    multiclass_cases,
    segment_case,
    tree_case,
    tree_cases,
)
from support.naive import Array
from support.own_functions import custom
from support.plain import Plain
from support.runs import dual_of

LAM, T = 0.1, 0.6
CASES = {"multiclass": multiclass_case(3, n=5, n_labels=3), "chain": chain_case(4, (1, 2, 2), 2)}
SIGNED = {name: np.arange(0, case.data.psi[0].shape[1], 3) for name, case in CASES.items()}
BLOCK = BlockFrankWolfe(LAM)
METHODS: dict[str, tuple[Any, float]] = {
    "fw": (FrankWolfe(LAM), 0.05),
    "bcfw": (BLOCK, 0.01),
    "pairwise": (Pairwise(LAM), 1e-4),
    "away": (Away(LAM), 1e-3),
    "cached": (Cached(Pairwise(LAM), oracle_cost=8.0), 1e-4),
    "accelerated": (Accelerated(Pairwise(LAM)), 1e-3),
    "accelerated bcfw": (Accelerated(BLOCK, kappa=0.05), 0.01),
    "averaged": (Averaged(BLOCK), 0.02),
    "averaged fw": (Averaged(FrankWolfe(LAM)), 0.1),
}
RAISES_THE_DUAL = ("fw", "bcfw", "pairwise", "away", "cached", "accelerated", "accelerated bcfw")
MODELS: dict[str, Case] = {
    "classes": multiclass_case(1, rows="sparse"),
    "chain": chain_case(2),
    "chain of indicators": chain_case(2, rows="indicator"),
    "second-order chain": chain_case(3, (4, 1, 3), order=2),
    "segments": segment_case(1),
    "trees": tree_case(1),
    "matching": matching_case(1, fertility=2),
    "graph": graph_case(1),
    "cut": graph_case(1, inference="cut", n_labels=2),
    "label sets": label_set_case(1),
    "functions": chain_case(5, (1, 2, 2), 2)._replace(problem=custom(chain_case(5, (1, 2, 2), 2))),
}


def penalised(name: str, signs: bool = False) -> Any:
    problem = L1Penalised(Plain(CASES[name].problem), T)
    return SignConstrained(problem, SIGNED[name]) if signs else problem


def best_of(name: str, signs: bool = False, lam: float = LAM) -> tuple[Array, float]:
    """Return the optimal weights by a quadratic program, and their objective."""
    data = CASES[name].data
    w = naive.penalised_optimum(data, lam, SIGNED[name] if signs else np.zeros(0, int), T)
    return w, objective(name, w, lam)


def objective(name: str, w: Array, lam: float = LAM) -> float:
    return naive.primal(CASES[name].data, w, lam) + lam * T * float(np.abs(w).sum())


@pytest.mark.parametrize("name", CASES)
def test_the_penalty_binds(name: str) -> None:
    """Else the tests below would say nothing."""
    w, best = best_of(name)
    assert (np.abs(w) < 1e-7).sum() >= 2
    assert (np.abs(w) > 0.05).sum() >= 2
    assert (w[SIGNED[name]] < -0.01).any()
    assert best_of(name, signs=True)[1] > best + 1e-3


@pytest.mark.parametrize("signs", [False, True], ids=["", "and signs"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_brackets_the_optimum(method: str, name: str, signs: bool) -> None:
    (steps, tol), (_, best) = METHODS[method], best_of(name, signs)
    problem = penalised(name, signs)
    result = solve(problem, steps, tol=tol, max_passes=500, random_state=0)
    w = flat(problem, result.w)
    assert result.gap <= tol
    assert result.dual <= best + 1e-6
    assert best - 1e-6 <= result.primal == pytest.approx(objective(name, w))
    assert (result.weights == w).all()
    assert (result.history.gap >= -1e-12).all()
    assert not signs or (w[SIGNED[name]] >= 0.0).all()
    if method in RAISES_THE_DUAL:
        assert (np.diff(result.history.dual) >= -1e-12).all()


@pytest.mark.parametrize("signs", [False, True], ids=["", "and signs"])
@pytest.mark.parametrize("name", CASES)
def test_weights_that_must_be_zero_are_exactly_zero(name: str, signs: bool) -> None:
    """The conditions of optimality: 0 is in v - w - t d|w|, where v is rebuilt from the dual variables."""
    problem, method, (best, _) = penalised(name, signs), Pairwise(LAM), best_of(name, signs)
    result = solve(problem, method, tol=1e-9, max_passes=3000, random_state=0)
    n = len(CASES[name].data.losses)
    total = protocol.dual_weights(method, result.stopped.state, problem)
    assert total is not None
    image = flat(CASES[name].problem, unprojected(problem.map, total)) / (LAM * n)
    w, positive = result.weights, np.isin(np.arange(len(result.weights)), SIGNED[name] if signs else [])
    np.testing.assert_allclose(w, best, atol=1e-4)
    moved = w != 0.0
    np.testing.assert_allclose(image[moved], (w + T * np.sign(w))[moved], atol=1e-10)
    still = (image <= T) & ((image >= -T) | positive)
    np.testing.assert_array_equal(w != 0.0, ~still)
    assert (w[np.abs(best) < 1e-9] == 0.0).any()


def test_every_block_step_raises_the_dual() -> None:
    _, best = best_of("chain")
    for method in (BLOCK, Pairwise(LAM), Away(LAM)):
        problem, before = penalised("chain"), 0.0
        state = protocol.start(method, problem)
        for i in np.random.default_rng(1).integers(3, size=60):
            state = advance(method, state, problem, np.array([i]))
            dual = dual_of(problem, method, state)
            assert dual >= before - 1e-14
            before = dual
        assert 0.6 * best < before <= best + 1e-7


@pytest.mark.parametrize("signs", [False, True], ids=["", "and signs"])
@pytest.mark.parametrize("name", MODELS)
def test_a_push_leaves_the_proximal_map_of_the_image(name: str, signs: bool) -> None:
    """Each model computes again what its push has changed: all entries are those of a fresh map."""
    case = MODELS[name]
    problem: Any = L1Penalised(case.problem, 0.05)
    if signs:
        problem = SignConstrained(problem, np.arange(0, case.data.psi[0].shape[1], 2))
    phi, method = problem.map, Pairwise(0.05)
    state, n = protocol.start(method, problem), len(case.data.losses)
    for i in [*range(n), *range(n)]:
        state = advance(method, state, problem, np.array([i]))
        image = unprojected(phi, state.w)
        np.testing.assert_array_equal(state.w, projected(phi, image))
    w, v = flat(problem, state.w), flat(case.problem, image)
    expected = np.sign(v) * np.maximum(np.abs(v) - 0.05, 0.0)
    if signs:
        expected[::2] = np.maximum(expected[::2], 0.0)
    np.testing.assert_allclose(w, expected, atol=1e-15)
    assert (w != v).any()
    assert (w != 0.0).any()


@pytest.mark.filterwarnings("ignore:Plain")  # some random problems have nothing to learn
@given(
    st.one_of(chain_cases(), multiclass_cases(), tree_cases(), graph_cases(), label_set_cases()),
    st.sampled_from([name for name in METHODS if name != "fw"]),
    st.floats(0.01, 1.0),
    st.floats(0.0, 3.0),
    st.integers(0, 2**16),
)
def test_bounds_hold_for_any_problem(case: Case, method: str, lam: float, t: float, seed: int) -> None:
    """The dual is below the objective of any weights, and the primal is that of the answer."""
    data, steps = case.data, protocol.with_lam(METHODS[method][0], lam)
    result = solve(L1Penalised(Plain(case.problem), t), steps, tol=0.0, max_passes=8, random_state=seed)

    def measured(w: Array) -> float:
        return naive.primal(data, w, lam) + lam * t * float(np.abs(w).sum())

    rng, slack = np.random.default_rng(seed), 1e-8
    others = [result.weights * c for c in (0.0, 0.5, 0.9, 1.1)]
    others += [result.weights + 0.1 * rng.normal(size=len(result.weights)) for _ in range(3)]
    if is_exact(case.problem.oracle):
        assert result.primal == pytest.approx(measured(result.weights), abs=slack)
    for w in (result.weights, *others):
        assert result.dual <= measured(w) + slack


def test_averages_are_made_of_images() -> None:
    method, problem = Averaged(BLOCK, "uniform"), penalised("multiclass")
    state, images = protocol.start(method, problem), []
    for i in np.random.default_rng(0).integers(5, size=30):
        state = advance(method, state, problem, np.array([i]))
        images.append(unprojected(problem.map, state.inner.w).copy())
    answer = protocol.point(method, state, problem)
    mean = np.mean(images, axis=0)
    np.testing.assert_allclose(unprojected(problem.map, answer.w), mean, atol=1e-12)
    np.testing.assert_array_equal(answer.w, projected(problem.map, unprojected(problem.map, answer.w)))
    some = np.abs(np.abs(mean) - T) > 1e-9
    shrunk = np.sign(mean) * np.maximum(np.abs(mean) - T, 0.0)
    np.testing.assert_allclose(answer.w[: len(mean)][some], shrunk[some], atol=1e-12)


def test_exact_steps_of_blocks_keep_the_certificate() -> None:
    problem = L1Penalised(CASES["multiclass"].problem, T)
    result = solve(problem, Accelerated(BlockExact(LAM)), tol=1e-3, max_passes=500, random_state=0)
    _, best = best_of("multiclass")
    assert result.dual - 1e-7 <= best <= result.primal + 1e-7 <= best + 0.0011


def test_runs_go_on_at_another_lam_and_with_more_examples() -> None:
    _, best = best_of("multiclass")
    problem = L1Penalised(CASES["multiclass"].problem, T)
    for method in (Pairwise, lambda lam: Accelerated(Pairwise(lam)), lambda lam: Averaged(FrankWolfe(lam))):
        few = solve(take(problem, [0, 1, 2]), method(2 * LAM), tol=1e-4, max_passes=50, random_state=0)
        first = solve(problem, method(2 * LAM), tol=1e-4, max_passes=50, random_state=0)
        more = [few] if method is Pairwise else []
        for start in (*(WarmStart(first, keep) for keep in ("best", "weights", "dual")), *more):
            result = solve(problem, method(LAM), tol=0.02, max_passes=300, random_state=0, start=start)
            assert result.dual - 1e-7 <= best <= result.primal + 1e-7 <= best + 0.0201
            assert result.history.dual[0] > 0.0


def test_a_start_with_another_threshold_is_refused() -> None:
    problem = CASES["multiclass"].problem
    found = solve(L1Penalised(problem, 0.5), BLOCK, max_passes=2)
    with pytest.raises(ValueError, match=r"^solve: start must come from this problem"):
        solve(L1Penalised(problem, 0.6), BLOCK, start=found)


def test_penalties_add_up_in_any_order() -> None:
    problem, v = CASES["multiclass"].problem, np.random.default_rng(0).normal(size=12)
    pairs = [
        SignConstrained(L1Penalised(problem, 0.5), [0, 4]),
        L1Penalised(SignConstrained(problem, [4, 0]), 0.5),
        L1Penalised(SignConstrained(L1Penalised(problem, 0.25), [0, 4]), 0.25),
    ]
    for other in pairs:
        np.testing.assert_array_equal(projected(other.map, v), projected(pairs[0].map, v))
    kept = np.empty(24)
    settle(pairs[0].map, v, kept)
    np.testing.assert_array_equal(unprojected(pairs[0].map, kept), v)


def test_signs_beside_a_kernel_are_those_of_its_linear_part() -> None:
    case = CASES["multiclass"]
    problem: Any = SignConstrained(Kernelised(case.problem, np.array(case.X), GaussianKernel(0.5)), [0, 1, 2])
    state = protocol.start(BLOCK, problem)
    for i in range(5):
        state = advance(BLOCK, state, problem, np.array([i]))
        np.testing.assert_array_equal(state.w, projected(problem.map, unprojected(problem.map, state.w)))
    with pytest.raises(ValueError, match=r"^L1Penalised: problem must be one without a kernel, .*\.$"):
        L1Penalised(problem, 0.5)


def test_weights_of_examples_are_those_of_their_hinges() -> None:
    case, factor = CASES["multiclass"], np.array([0.5, 2.0, 1.0, 1.5, 1.0])
    problem = Weighted(L1Penalised(Plain(case.problem), T), factor)
    losses = [c * losses for c, losses in zip(factor, case.data.losses, strict=True)]
    psi = [c * psi for c, psi in zip(factor, case.data.psi, strict=True)]
    data = case.data._replace(losses=losses, psi=psi)
    best = naive.penalised_optimum(data, LAM, np.zeros(0, int), T)
    result = solve(problem, Pairwise(LAM), tol=1e-6, max_passes=2000, random_state=0)
    np.testing.assert_allclose(result.weights, best, atol=5e-3)


@pytest.mark.parametrize(
    "method",
    [
        Divided(BLOCK),
        CuttingPlane(LAM),
        Subgradient(LAM),
        Averaged(Subgradient(LAM)),
        Accelerated(Divided(BLOCK)),
    ],
)
def test_refuses_methods(method: Any) -> None:
    expected = (
        "solve: method must be Away, BlockExact, BlockFrankWolfe, FrankWolfe or Pairwise, averaged, cached, "
        "accelerated or not, for a problem that is L1Penalised, got "
    )
    with pytest.raises(ValueError, match=rf"^{re.escape(expected)}.*; it must [a-z ]*\.$"):
        solve(penalised("multiclass"), method)


@pytest.mark.parametrize("threshold", [-1.0, np.inf, np.nan, "ab", None, [1.0]])
def test_refuses_thresholds(threshold: Any) -> None:
    with pytest.raises(ValueError, match=r"^L1Penalised: threshold must be a number >= 0, got .*\.$"):
        L1Penalised(CASES["multiclass"].problem, threshold)


def test_layouts_with_padding_keep_it_at_zero() -> None:
    problem = L1Penalised(CASES["multiclass"].problem, 0.5)
    w = projected(problem.map, layout(CASES["multiclass"].problem, np.full(9, 2.0)))
    assert flat(problem, w).tolist() == [1.5] * 9
    assert w[: len(w) // 2].sum() == 9 * 1.5

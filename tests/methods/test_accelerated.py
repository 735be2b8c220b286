"""Acceleration, against its formulas on the dual variables themselves."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    FrankWolfe,
    Pairwise,
    solve,
)
from maxmargin.methods import accelerated, between_visits, momentum
from maxmargin.methods.accelerated import _MOMENTUM, AcceleratedState, first_kappa, second_kappa
from maxmargin.methods.momentum import (
    _BAND,
    _BEFORE_LOWERING,
    _BEFORE_RAISING,
    _FACTOR,
    _SMOOTHING,
    Momentum,
    adapted_kappa,
)
from maxmargin.methods.protocol import point, regularisation, start
from maxmargin.methods.rules import ByGap, Permutation, some_visits
from maxmargin.methods.sweep import advance
from maxmargin.problems import Multiclass, Weighted
from maxmargin.runtime.wording import shown
from maxmargin.solving import objective
from support import naive
from support.active_sets import dual_variables
from support.bitwise_runs import bits
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.naive import Array

LAM = 0.05
INNER = {"bcfw": BlockFrankWolfe(LAM), "pairwise": Pairwise(LAM), "away": Away(LAM)}
CASES = {
    "chain": lambda: chain_case(1),
    "multiclass": lambda: multiclass_case(1, n=7, n_labels=5),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def one_by_one(case: Case, method: Accelerated, passes: int) -> Iterator[tuple[int, AcceleratedState]]:
    """Yield the number of visits and the state, which changes in place, after each visit."""
    sampler, rng = Permutation(len(case.X)), np.random.default_rng(3)
    state, visits = start(method, case.problem), 0
    for _ in range(passes):
        drawn = sampler.draw(rng)
        for t in range(len(case.X)):
            state, visits = advance(method, state, case.problem, some_visits(drawn, t, t + 1)), visits + 1
            yield visits, state


class Before(NamedTuple):
    """What a pass begins with: the centre, kappa, and the weights after the pass before."""

    centre: Array
    kappa: float
    previous: Array


def before(case: Case, state: AcceleratedState) -> Before:
    centre, previous = (flat(case.problem, w).copy() for w in (state.centre, state.previous))
    return Before(centre, state.momentum.kappa, previous)


METHODS = {
    "fixed": Accelerated(Pairwise(LAM), kappa=0.2),
    "fixed, large": Accelerated(Pairwise(LAM), kappa=5.0),
    "adapted": Accelerated(Pairwise(LAM)),
    "adapted, away": Accelerated(Away(LAM)),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_weights_belong_to_the_dual_variables_at_every_visit(case: Case, method: Accelerated) -> None:
    """``(lam + kappa) w = kappa v + g`` with g from the active sets, whatever v and kappa."""
    for _, state in one_by_one(case, method, passes=15):
        kappa = state.momentum.kappa
        w, v = flat(case.problem, state.inner.w), flat(case.problem, state.centre)
        g = LAM * naive.weights_of(case.data, dual_variables(case, state.inner.planes), LAM)
        assert (LAM + kappa) * w - kappa * v == pytest.approx(g, abs=1e-12 * (1.0 + kappa))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_weights_are_extrapolated_after_each_pass(case: Case, method: Accelerated) -> None:
    """After the first, an adapted method's centre makes a part of its way only."""
    n, seen = len(case.X), before(case, start(method, case.problem))
    for visits, state in one_by_one(case, method, passes=15):
        now = before(case, state)
        if visits % n:
            # In the first pass kappa grows, in the second the centre moves.
            seen = now._replace(previous=seen.previous)
            continue
        g = LAM * naive.weights_of(case.data, dual_variables(case, state.inner.planes), LAM)
        w = (seen.kappa * seen.centre + g) / (LAM + seen.kappa)
        beta = momentum_of(state)
        part = {4: 1, 7: 2}[n] / n if visits == n and method.kappa is None else 1.0
        assert now.previous == pytest.approx(w, abs=1e-11)
        assert now.centre == pytest.approx(part * (w + beta * (w - seen.previous)), abs=1e-11)
        seen = now


def test_in_the_second_pass_the_centre_arrives_in_parts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each snapshot it moves on by the share of the pass up to the next one."""
    monkeypatch.setattr(accelerated, "_EARLY", (12, 12, 12))  # 6 in the second pass
    n, way = len(case.X), np.zeros(0)
    every = {4: 1, 7: 2}[n]
    for visits, state in one_by_one(case, METHODS["adapted"], passes=2):
        if visits == n:
            way = (1.0 + momentum_of(state)) * flat(case.problem, state.previous)
        if n <= visits < 2 * n:
            ahead = min(n, ((visits - n) // every + 1) * every)
            expected = ahead / n * way
            assert flat(case.problem, state.centre) == pytest.approx(expected, abs=1e-12)


def momentum_of(state: AcceleratedState) -> float:
    """Return beta."""
    root_q = np.sqrt(LAM / (LAM + state.momentum.kappa))
    return _MOMENTUM * (1 - root_q) / (1 + root_q)


def mean_of_two(data: naive.Enumerated, mean: list[Array], alpha: list[Array]) -> tuple[float, list[Array]]:
    """Return the dual variables of largest dual value between the two, found from three values of it."""
    middle = [(a + b) / 2 for a, b in zip(mean, alpha, strict=True)]
    zero, half, one = (naive.dual(data, point, LAM) for point in (mean, middle, alpha))
    slope, curvature = 4 * half - 3 * zero - one, 4 * (2 * half - zero - one)
    gamma = 0.0 if slope <= 0.0 else min(slope / curvature, 1.0) if curvature > 0.0 else 1.0
    return gamma, [(1 - gamma) * a + gamma * b for a, b in zip(mean, alpha, strict=True)]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_bound_is_that_of_a_mean_of_dual_points(case: Case, method: Accelerated) -> None:
    """Each pass moves it towards the present dual point by the best step; within a pass it stays."""
    mean, bounds, step = naive.truth_alpha(case.data), [0.0], 1.0
    for visits, state in one_by_one(case, method, passes=15):
        if visits % len(case.X) == 0:
            gamma, mean = mean_of_two(case.data, mean, dual_variables(case, state.inner.planes))
            step += _SMOOTHING * (gamma - step) if method.kappa is None else 0.0
        answer, w = point(method, state, case.problem), naive.weights_of(case.data, mean, LAM)
        assert answer.ell == pytest.approx(naive.dual_loss(case.data, mean), abs=1e-8)
        assert answer.norm2 == pytest.approx(w @ w, abs=1e-7)
        bounds.append(objective.dual(answer, LAM))
        assert bounds[-1] == pytest.approx(naive.dual(case.data, mean, LAM), abs=1e-11)
    assert np.diff(bounds).min() >= -1e-15
    assert bounds[-1] > 0.5 * naive.optimum(case.data, LAM).dual
    assert state.momentum.step == pytest.approx(step, abs=1e-5)


def test_the_weights_are_a_mean_of_snapshots(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot counts for the time since the last one, with density t^2; it precedes all other changes."""
    monkeypatch.setattr(momentum, "_SHARE", 100.0)
    monkeypatch.setattr(accelerated, "_IN_KERNELS", 3)
    monkeypatch.setattr(accelerated, "_EARLY", (3, 3, 3))  # 1 in the second pass, none later
    n, method, snapshots, times = len(case.X), METHODS["adapted"], [], [0.0]
    taken, first = {4: (2, 4), 7: (3, 6, 7)}[n], start(METHODS["adapted"], case.problem)
    kappa, centre = first.momentum.kappa, first.centre.copy()
    for visits, state in one_by_one(case, method, passes=6):
        place = (visits - 1) % n + 1
        if place in taken:
            now = state.momentum.kappa
            g = (LAM + now) * state.inner.w - now * state.centre
            w = state.previous if place == n else (g + kappa * centre) / (LAM + kappa)
            snapshots.append(w.copy())
            times.append(visits / n)
        kappa, centre = state.momentum.kappa, state.centre.copy()
        if snapshots:
            answer, shares = point(method, state, case.problem), np.diff(np.array(times) ** 3)
            assert answer.w == pytest.approx(shares @ np.array(snapshots) / shares.sum(), abs=1e-13)
            assert (answer.others[0] == state.inner.w).all()
    assert len(snapshots) == 6 * len(taken)


def test_few_examples_make_few_snapshots_a_pass(case: Case) -> None:
    """The weights are longer than all statistics that a pass walks over; the first passes have more."""
    due = {4: (range(1, 5), range(1, 5), (2, 4)), 7: (range(1, 8), (2, 4, 6, 7), (4, 7))}
    n, expected = len(case.X), 0.0
    for visits, state in one_by_one(case, METHODS["fixed"], passes=3):
        if (visits - 1) % n + 1 in due[n][(visits - 1) // n]:
            expected = visits / n
        assert state.momentum.time == pytest.approx(expected)


MANY = {
    "in kernels": (METHODS["fixed"], [192] * 9),
    "in Python": (Accelerated(Cached(Pairwise(LAM)), kappa=0.2), [64, 32, 20, 16, 12, 10, 9, 8, 8]),
}


@pytest.mark.parametrize(("method", "expected"), MANY.values(), ids=MANY)
def test_many_examples_make_many_snapshots_only_in_kernels(
    method: Accelerated, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere pass k has 64 / k, or 8 if that is more."""
    rng, taken = np.random.default_rng(0), []
    monkeypatch.setattr(momentum, "_SHARE", 100.0)
    for module, name in ((accelerated, "mix_in_slices"), (between_visits, "mix")):
        monkeypatch.setattr(module, name, lambda share, v, mean: taken.append(share))
    problem = Multiclass.from_encoded(rng.normal(size=(192, 3)), rng.integers(3, size=192), 3)
    state = start(method, problem)
    for passes, count in enumerate(expected, 1):
        state = advance(method, state, problem, rng.permutation(192))
        at_the_end = 0 if method is METHODS["fixed"] else 1
        assert np.count_nonzero(taken) + at_the_end == count
        assert (state.momentum.visits, state.momentum.time) == (0, passes)
        taken.clear()


@pytest.mark.parametrize("method", [Accelerated(inner) for inner in INNER.values()], ids=INNER)
def test_stretches_within_kernels_are_those_between_them(
    case: Case, method: Accelerated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose kernels begin stretches, against one that returns to Python for each of them."""
    monkeypatch.setattr(momentum, "_SHARE", 100.0)
    monkeypatch.setattr(accelerated, "_EARLY", (3, 6, 6))
    monkeypatch.setattr(accelerated, "_SNAPSHOTS", 1)
    monkeypatch.setattr(accelerated, "_IN_KERNELS", 1)
    ends = []
    for inside in (True, False):
        with monkeypatch.context() as patch:
            if not inside:
                for module in (accelerated, accelerated):
                    patch.setattr(module, "has_stretches_inside", lambda *_: False)
            state, rng = start(method, case.problem), np.random.default_rng(3)
            for _ in range(7):
                state = advance(method, state, case.problem, rng.permutation(len(case.X)))
                vectors = state.inner.w, state.centre, state.previous, state.mean, state.dual
                ends.append(np.concatenate([*vectors, state.momentum]))
    assert ends[0].any()
    for within, between in zip(ends[:7], ends[7:], strict=True):
        assert within == pytest.approx(between, abs=1e-12)


def test_in_the_first_pass_the_blocks_visited_are_a_problem_of_their_own(case: Case) -> None:
    """``lam + kappa`` is then ``t lam + kappa`` with t the share of the pass at the next snapshot."""
    n, kappa = len(case.X), first_kappa(case.problem, METHODS["adapted"])
    first = start(METHODS["adapted"], case.problem).momentum.kappa
    assert LAM + first == pytest.approx(LAM / n + kappa)
    for visits, state in one_by_one(case, METHODS["adapted"], passes=2):
        expected = (visits + 1) / n * LAM + kappa if visits < n else LAM + root(LAM, (2.0 * kappa) ** 2)
        assert LAM + state.momentum.kappa == pytest.approx(expected)


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_without_kappa_it_is_the_inner_method(case: Case, inner: Any) -> None:
    runs = [
        solve(case.problem, method, tol=0.0, max_passes=12, check_every=3, random_state=1)
        for method in (inner, Accelerated(inner, kappa=0.0))
    ]
    assert bits(runs[0].weights) == bits(runs[1].weights)
    for column in ("primal", "dual", "gap"):
        assert bits(runs[0].history[column]) == bits(runs[1].history[column])


def visits_by_gap(n: int, n_visits: int) -> ByGap:
    rng = np.random.default_rng(6)
    order = np.where(rng.random(n_visits) < 0.5, -1, rng.integers(n, size=n_visits))
    return ByGap(order, rng.random(n_visits), np.zeros(16))


@pytest.mark.parametrize("inner", [BlockFrankWolfe(LAM), Pairwise(LAM), BlockExact(LAM)])
def test_how_a_pass_is_cut_does_not_matter(inner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces may be short, may end with a pass or not, and may be longer than one."""
    monkeypatch.setattr(momentum, "_SHARE", 100.0)
    monkeypatch.setattr(accelerated, "_SNAPSHOTS", 3)
    case, method, found = multiclass_case(1, n=5, n_labels=5), Accelerated(inner), []
    for length in (1, 7, 3, 4, 5, 60):
        visits, state = visits_by_gap(5, 60), start(method, case.problem)
        for first in range(0, 60, length):
            state = advance(method, state, case.problem, some_visits(visits, first, first + length))
        answer = point(method, state, case.problem)
        found.append([*bits(answer.w), *bits(answer.others[0]), *bits(state.momentum), *bits(visits.tree)])
        assert state.momentum.visits == 0
    assert found[1:] == found[:1] * 5


def test_advancing_by_nothing_changes_nothing(case: Case) -> None:
    method = METHODS["adapted"]
    *_, (_, state) = one_by_one(case, method, passes=3)
    w, momentum = state.inner.w.copy(), state.momentum
    state = advance(method, state, case.problem, np.zeros(0, dtype=np.int64))
    assert (state.inner.w == w).all()
    assert state.momentum == momentum


def test_kappa_is_adapted_when_the_step_leaves_its_band() -> None:
    """The step falls from 0.01 above to what is given; nothing changes too soon."""
    low, high = _BAND
    sides = (
        (low - 0.01, 1 / _FACTOR, _BEFORE_LOWERING),
        (low, 1.0, 99),
        (high, 1.0, 99),
        (high + 0.01, _FACTOR, _BEFORE_RAISING),
    )
    for step, factor, wait in sides:
        before = Momentum(0.6, step=step + 0.01, since=wait)
        gamma = before.step - 0.01 / _SMOOTHING
        adapted = adapted_kappa(before, gamma)
        assert adapted.step == pytest.approx(step)
        assert adapted.kappa == pytest.approx(0.6 * factor)
        assert adapted.since == (wait + 1 if factor == 1.0 else 0)
        assert adapted_kappa(before._replace(since=wait - 1), gamma).kappa == 0.6


def test_kappa_is_not_lowered_while_the_steps_grow() -> None:
    """As long as the dual is far from its optimum steps are small, whatever kappa."""
    growing = Momentum(0.6, step=0.02, since=50)
    assert adapted_kappa(growing, 0.05).kappa == 0.6
    assert adapted_kappa(growing, 0.01).kappa == pytest.approx(0.6 / _FACTOR)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 10.0])
def test_kappa_finds_its_band_from_far_away(factor: float) -> None:
    """Begun far too small or too large, kappa ends within a few factors of where it else does."""
    case, method, ends = multiclass_case(30, n=60, n_labels=5, n_features=6), Accelerated(Pairwise(0.01)), []
    for kappa in (1.0, factor):
        state, rng = start(method, case.problem), np.random.default_rng(0)
        momentum = Momentum(kappa * first_kappa(case.problem, method), passes=1)
        state = state._replace(momentum=momentum)
        kappas, steps = [], []
        for _ in range(150):
            state = advance(method, state, case.problem, rng.permutation(60))
            kappas.append(state.momentum.kappa)
            steps.append(state.momentum.step)
        ends.append(np.exp(np.mean(np.log(kappas[-50:]))))
        assert _BAND[0] <= np.median(steps[-50:]) <= _BAND[1]
    assert 1 / 4 < ends[1] / ends[0] < 4


def test_a_fixed_kappa_stays() -> None:
    for _, state in one_by_one(chain_case(1), METHODS["fixed, large"], passes=20):
        assert state.momentum.kappa == 5.0


def root(lam: float, product: float) -> float:
    """Return the positive root of ``kappa (lam + kappa) = product``."""
    return float(np.roots([1.0, lam, -product]).max())


def first_of(lam: float, n: int, size: float) -> float:
    """Return the first kappa for steps of this mean size."""
    return float(accelerated._FACTOR * np.sqrt(lam / (n * size)))


def test_the_first_kappa_is_that_of_the_later_half_of_a_pass(case: Case) -> None:
    """Each example in turn takes the longest step that pays, and the later half of them is measured."""
    n, data = len(case.X), case.data
    w, sizes = np.zeros(data.psi[0].shape[1]), []
    for losses, psi in zip(data.losses, data.psi, strict=True):
        margins = losses - psi @ w
        best = int(np.argmax(margins))
        if losses[best] > 0.0 and margins[best] > 1e-12:  # it may tie with the truth
            sizes.append(margins[best] / (psi[best] @ psi[best]))
            w += sizes[-1] * psi[best]
    assert len(sizes) > 1
    expected = first_of(LAM, n, float(np.mean(sizes[len(sizes) // 2 :])))
    assert first_kappa(case.problem, METHODS["adapted"]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("lam", [1e-300, 0.003, 1.0, 1e300])
def test_the_second_kappa_solves_its_equation(lam: float) -> None:
    for share in (0.01, 0.4, 30.0):
        assert second_kappa(lam, share * lam) / lam == pytest.approx(root(1.0, (2.0 * share) ** 2), rel=1e-9)
    assert second_kappa(lam, 0.0) == 0.0


def scaled(features: float, losses: float) -> Multiclass:
    rng = np.random.default_rng(8)
    cost = rng.uniform(0.1, 2.0, (4, 4)) * (1.0 - np.eye(4))
    X, y = rng.normal(size=(100, 3)), rng.integers(4, size=100)
    return Multiclass.from_encoded(features * X, y, 4, loss=losses * cost)


def kappa_of(problem: Multiclass, lam: float) -> float:
    return first_kappa(problem, Accelerated(Pairwise(lam)))


def test_the_first_kappa_has_the_right_units() -> None:
    kappa = kappa_of(scaled(1.0, 1.0), LAM)
    assert kappa > 0.0
    for s in (1e-3, 0.7, 50.0):
        assert kappa_of(scaled(s, 1.0), LAM * s**2) == pytest.approx(kappa * s**2, rel=1e-12)
        assert kappa_of(scaled(1.0, s), LAM / s) == pytest.approx(kappa / s, rel=1e-12)


def test_exact_steps_have_a_first_kappa() -> None:
    """It is that of the corners at zero: the classes of largest cost, at a distance of twice ||x||^2.

    Of 8 examples all are measured.
    """
    rng = np.random.default_rng(8)
    cost = rng.uniform(0.1, 2.0, (4, 4)) * (1.0 - np.eye(4))
    X, y, weights = rng.normal(size=(8, 3)), rng.integers(4, size=8), rng.uniform(0.5, 2.0, 8)
    problem = Multiclass.from_encoded(X, y, 4, loss=cost)
    for each, c in ((problem, np.ones(8)), (Weighted(problem, weights), weights)):
        size = (c @ cost[y].max(axis=1)) / (c**2 @ (2.0 * np.sum(X**2, axis=1)))
        found = first_kappa(each, Accelerated(BlockExact(LAM)))
        assert found == pytest.approx(first_of(LAM, 8, size), rel=1e-9)


def test_a_run_does_not_depend_on_units() -> None:
    """With features times s and lam times s^2 the weights are divided by s; exactly, for powers of two."""
    plain, longer, dearer = (
        solve(scaled(s, t), Accelerated(Pairwise(lam)), tol=0.0, max_passes=20, random_state=0)
        for s, t, lam in ((1.0, 1.0, LAM), (4.0, 1.0, 16.0 * LAM), (1.0, 8.0, LAM / 8.0))
    )
    assert bits(longer.history.gap) == bits(plain.history.gap)
    assert bits(4.0 * longer.weights) == bits(plain.weights)
    assert bits(dearer.history.gap) == bits(8.0 * plain.history.gap)
    assert bits(dearer.weights / 8.0) == bits(plain.weights)


def test_where_no_loss_is_possible_kappa_is_zero() -> None:
    problem = scaled(1.0, 0.0)
    assert kappa_of(problem, LAM) == 0.0
    result = solve(problem, Accelerated(Pairwise(LAM)), tol=0.0, max_passes=3, random_state=0)
    assert (result.primal, result.dual) == (0.0, 0.0)


@pytest.mark.parametrize(
    "inner", [Averaged(BlockFrankWolfe(LAM)), FrankWolfe(LAM), Accelerated(Pairwise(LAM))]
)
def test_methods_that_cannot_be_accelerated_are_refused(inner: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^Accelerated: inner must be Away, BlockExact, BlockFrankWolfe or Pairwise"
    ) as e:
        Accelerated(inner)
    blocks, average = "it must move one block at a time", "its answer must not be an average already"
    reason = blocks if type(inner) is FrankWolfe else average
    assert str(e.value).endswith(f"got {type(inner).__name__}; {reason}.")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("kappa", [-1.0, -1e-300, np.nan, np.inf, "large", [0.1]])
def test_wrong_kappas_are_refused(kappa: Any) -> None:
    with pytest.raises(ValueError, match=r"^Accelerated: kappa must be a number >= 0 or None, got ") as e:
        Accelerated(Pairwise(LAM), kappa)
    assert str(e.value).endswith(f"got {shown(kappa)}.")


def test_nothing_accelerated_is_averaged_again() -> None:
    with pytest.raises(ValueError, match=r"^Averaged: inner must be ") as e:
        Averaged(METHODS["fixed"])
    assert str(e.value).endswith("got Accelerated; its answer must not be an average already.")


def test_lam_is_the_inner_methods() -> None:
    assert regularisation(METHODS["fixed"]) == LAM

"""Planes under the risk and the program over them, against explicit matrices and another solver."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BMRM, CuttingPlane, ScaleError, solve
from maxmargin.methods import cutting_plane
from maxmargin.methods.cutting_plane import (
    Cut,
    Cuts,
    cut_at,
    cut_weights,
    cuts_ell,
    lowest,
    risk_at,
    scaled_cuts,
    with_cut,
    without_idle,
    zero_cut,
)
from maxmargin.structures.custom.model import IdentityMap
from maxmargin.structures.problem import Problem
from support import naive, naive_cuts
from support.catalogue import chain_case, flat, layout, multiclass_case
from support.naive import Array
from support.naive_cuts import dense_slopes

D = 4


def cuts_of(slopes: Array, losses: Array) -> Cuts:
    """Return the zero plane and these."""
    cuts, problem = zero_cut(), Problem(IdentityMap(1, D), None)
    for slope, loss in zip(slopes, losses, strict=True):
        cuts = with_cut(problem, cuts, Cut(slope, float(loss)))
    return cuts


def dual(cuts: Cuts, lam: float) -> float:
    """Return the value of the program at the planes' weights, from the planes themselves."""
    w = dense_slopes(cuts, D).T @ cuts.alpha / lam
    return float(cuts.loss @ cuts.alpha - 0.5 * lam * w @ w)


def random_planes(seed: int, k: int, density: float = 0.8) -> tuple[Array, Array]:
    """Return planes in D dimensions, some of which are copies of others, with zeros among their slopes."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(k, size=k)
    return (rng.normal(size=(k, D)) * (rng.random((k, D)) < density))[chosen], rng.random(k)[chosen]


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.2, 1.0), st.floats(-3.0, 2.0))
def test_the_program_is_solved(seed: int, k: int, density: float, exponent: float) -> None:
    """The weights are in the simplex, and no other weights are better by more than rounding."""
    (slopes, losses), lam = random_planes(seed, k, density), 10.0**exponent
    cuts = lowest(cuts_of(slopes, losses), lam, "test")
    best = naive_cuts.program([np.zeros(D), *slopes], [0.0, *losses], lam)
    assert cuts.alpha.min() >= 0.0
    assert cuts.alpha.sum() == pytest.approx(1.0, abs=1e-14)
    assert dual(cuts, lam) == pytest.approx(best.dual, abs=1e-9)
    assert cut_weights(cuts, lam, D) == pytest.approx(best.w, abs=1e-4 / np.sqrt(lam))
    assert cuts_ell(cuts) - 0.5 * lam * best.w @ best.w == pytest.approx(best.dual, abs=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_loss_is_of_no_account(unit: float) -> None:
    """With losses and lam times a number, the weights of the planes are the same."""
    slopes, losses = random_planes(4, 6)
    cuts, other = (lowest(cuts_of(slopes, u * losses), 0.1 / u, "test") for u in (1.0, unit))
    assert dual(other, 0.1 / unit) == pytest.approx(unit * dual(cuts, 0.1), rel=1e-8)


def test_planes_without_loss_have_the_dual_zero() -> None:
    cuts = lowest(cuts_of(np.array([[1.0, 2.0], [0.0, 0.0]]), np.zeros(2)), 0.1, "test")
    assert dual(cuts, 0.1) == pytest.approx(0.0, abs=1e-9)


def test_the_gram_matrix_is_kept() -> None:
    slopes, losses = random_planes(1, 5)
    cuts = cuts_of(slopes, losses)
    rows = np.vstack([np.zeros(D), slopes])
    assert cuts.gram == pytest.approx(rows @ rows.T, abs=1e-14)
    assert cuts.loss.tolist() == [0.0, *losses]
    half = scaled_cuts(cuts, 0.5)
    assert half.gram == pytest.approx(rows @ rows.T / 4, abs=1e-14)
    assert dense_slopes(half, D) == pytest.approx(rows / 2, abs=1e-15)
    assert half.loss.tolist() == [0.0, *(losses / 2)]


@pytest.mark.parametrize("case", [chain_case(1), multiclass_case(1)], ids=["chain", "multiclass"])
def test_a_plane_touches_the_risk_and_is_below_it(case: Any) -> None:
    rng = np.random.default_rng(0)
    d = case.data.psi[0].shape[1]
    w, others = rng.normal(size=d), rng.normal(size=(50, d))
    plane = cut_at(case.problem, layout(case.problem, w))
    slope, loss = naive_cuts.plane(case.data, w)
    assert flat(case.problem, plane.slope) == pytest.approx(slope, abs=1e-12)
    assert plane.loss == pytest.approx(loss, abs=1e-12)
    at_w = risk_at(case.problem, plane, layout(case.problem, w))
    assert at_w == pytest.approx(naive.primal(case.data, w, 0.0), abs=1e-12)
    for other in others:
        assert loss - slope @ other <= naive.primal(case.data, other, 0.0) + 1e-12


def test_idle_planes_are_those_under_the_envelope() -> None:
    """Planes under the least point are counted; dropping them changes neither weights nor dual."""
    slopes, losses = random_planes(2, 30)
    cuts, lam = cuts_of(slopes, losses), 0.1
    for passes in range(1, 4):
        cuts = lowest(cuts, lam, "test")
        height = cuts.loss - dense_slopes(cuts, D) @ cut_weights(cuts, lam, D)
        below = height < height.max() - 1e-5
        assert 0 < below.sum() < 31
        assert (cuts.idle[below] == passes).all()
        assert (cuts.idle[height > height.max() - 1e-7] == 0).all()
    assert without_idle(cuts, 4) is cuts
    kept = without_idle(cuts, 3)
    assert len(kept.slopes) == len(kept.loss) == (cuts.idle == 0).sum()
    assert kept.alpha.sum() == pytest.approx(1.0, abs=1e-14)
    assert kept.gram == pytest.approx(dense_slopes(kept, D) @ dense_slopes(kept, D).T, abs=1e-12)
    assert dual(kept, lam) == pytest.approx(dual(cuts, lam), abs=1e-10)
    assert cut_weights(kept, lam, D) == pytest.approx(cut_weights(cuts, lam, D), abs=1e-7)


def test_no_answer_of_the_solver_lowers_the_dual(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr(
        cutting_plane, "_solution", lambda matrix, loss, owner: rng.dirichlet(np.ones(len(loss)))
    )
    slopes, losses = random_planes(3, 8)
    cuts = cuts_of(slopes, losses)
    values = [0.0]
    for _ in range(200):
        cuts = lowest(cuts, 0.5, "test")
        values.append(dual(cuts, 0.5))
    assert np.diff(values).min() >= -1e-15
    assert values[-1] > 0.0


def test_a_program_without_a_solution_is_a_scale_error() -> None:
    """Its matrix is infinite."""
    cuts = cuts_of(np.array([[1e100, 0.0]]), np.ones(1))
    with np.errstate(over="ignore"), pytest.raises(ScaleError, match="program of 2 planes of CuttingPlane"):
        lowest(cuts, 1e-300, "CuttingPlane")


@pytest.mark.parametrize("method", [CuttingPlane(0.1), BMRM(0.1)])
def test_without_the_solver_an_error_says_what_to_install(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "piqp", None)
    name = type(method).__name__
    with pytest.raises(ImportError) as error:
        solve(multiclass_case(1).problem, method)
    assert str(error.value) == f"{name} needs piqp, which is not installed; run: pip install maxmargin[qp]"

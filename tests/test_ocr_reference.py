"""OCR in the paper's setting against one run of the authors' own code.

Their numbers, made in another language from other random numbers, are of one draw; ours are of several,
so the difference from our mean has the standard deviation of one draw times sqrt(1 + 1 / m). Ten draws
know that deviation too badly for a limit of three: with one of our own runs in the place of theirs, the
limit is passed in 7 to 10 % of the twelve groups of four comparisons below; with 24 draws in 4 to 6 %.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Subgradient
from maxmargin.datasets import load_ocr
from maxmargin.methods.protocol import point, start
from maxmargin.methods.rules import Uniform
from maxmargin.methods.sweep import advance
from maxmargin.problems import Chain
from maxmargin.solving import objective
from maxmargin.structures.feature_map import unpack
from maxmargin.structures.problem import sizes
from support.naive import Array
from support.runs import batch_states

PASSES = (1, 2, 5, 10)
N_SEEDS = 24
LAMS = {"0.01": 0.01, "0.001": 0.001, "inv": 1 / 6251}
# Deviations by which their primal of the iterate at pass 5 is above our mean, 3.8 and 8.1, rounded up.
KNOWN_JUMPS = {"0.001": 4, "inv": 9}


class Measured(NamedTuple):
    """Primal and dual after each of `PASSES`, of the last iterate and the weighted average."""

    w_primal: Any
    w_dual: Any
    wavg_primal: Any
    wavg_dual: Any


@pytest.fixture(scope="module")
def ocr(ocr_home: Path) -> Chain:
    X, y, *_ = load_ocr(data_home=ocr_home)
    return Chain.from_sequences(X, y)


@pytest.fixture(scope="module")
def reference(reference_home: Path) -> dict[str, Any]:
    file = reference_home / "bcfwstruct_ocr.json"
    if not file.is_file():
        pytest.skip("needs bcfwstruct_ocr.json, measurements of the authors' code: set MAXMARGIN_REFERENCE")
    return json.loads(file.read_text())


def theirs(reference: dict[str, Any], lam: str) -> Measured:
    passes = {row["pass"]: row for row in reference[f"bcfw_{lam}"]["passes"]}
    columns = [field.split("_") for field in Measured._fields]
    return Measured(*(np.array([passes[k][kind][value] for k in PASSES]) for kind, value in columns))


def one_run(problem: Chain, method: Averaged, seed: int, passes: Sequence[int] = PASSES) -> list[Array]:
    """Return the columns of `Measured` for one run of ours, after these passes."""
    lam, rng = method.inner.lam, np.random.default_rng(seed)
    state, draw, rows = start(method, problem), Uniform(sizes(problem).examples).draw, []
    for k in range(1, passes[-1] + 1):
        state = advance(method, state, problem, draw(rng))
        if k in passes:
            points = point(method.inner, state.inner, problem), point(method, state, problem)
            rows.append(
                [f for p in points for f in (objective.primal(problem, p.w, lam), objective.dual(p, lam))]
            )
    return list(np.array(rows).T)


class Comparison(NamedTuple):
    """By how many standard deviations their one draw differs from the mean of ours."""

    lam: str
    z: Measured


@pytest.fixture(scope="module", params=LAMS)
def comparison(request: pytest.FixtureRequest, ocr: Chain, reference: dict[str, Any]) -> Comparison:
    method = Averaged(BlockFrankWolfe(LAMS[request.param]))
    runs = np.array([one_run(ocr, method, seed) for seed in range(N_SEEDS)])
    ours, one = Measured(*np.moveaxis(runs, 1, 0)), theirs(reference, request.param)
    return Comparison(request.param, Measured(*map(deviations, ours, one)))


def deviations(ours: Array, theirs: Array) -> Array:
    return np.abs(theirs - ours.mean(axis=0)) / (ours.std(axis=0, ddof=1) * np.sqrt(1 + 1 / len(ours)))


def test_the_problem_is_the_papers(ocr: Chain) -> None:
    assert sizes(ocr).examples == 6251
    assert sum(part.size for part in unpack(ocr.map, np.zeros(sizes(ocr).weights))) == 4082


def test_the_dual_is_theirs(comparison: Comparison) -> None:
    assert comparison.z.w_dual.max() <= 3
    assert comparison.z.wavg_dual.max() <= 3


def test_the_primal_of_the_average_is_theirs(comparison: Comparison) -> None:
    assert comparison.z.wavg_primal.max() <= 3


def test_the_primal_of_the_iterate_is_theirs(comparison: Comparison) -> None:
    """Of pass 5 speaks the next test."""
    assert comparison.z.w_primal[[0, 1, 3]].max() <= 3


def test_the_primal_of_the_iterate_at_pass_5_is_theirs(comparison: Comparison) -> None:
    """A known disagreement: their 0.566 at lam = 0.001 and 0.630 at 1/n are beyond three deviations.

    The iterate's primal is not normal: within 30 steps it moves by up to 0.19, and over 120 of our runs
    its skewness at pass 5 is 2.0 at lam = 1/n (mean 0.478, deviation 0.033). Of those 120 runs 3 exceed
    their value at 0.001 and 1 at 1/n; the two are hardly independent (correlation 0.78 for the same order
    of visits). Dual and average, which do not jump, agree at every pass.
    """
    z = comparison.z.w_primal[PASSES.index(5)]
    assert z <= KNOWN_JUMPS.get(comparison.lam, 3)
    if z > 3:
        pytest.xfail(f"their single run is {z:.1f} deviations above our mean, at the top of a jump")


@pytest.mark.parametrize("lam", LAMS)
def test_stochastic_subgradient_steps_are_theirs(lam: str, ocr: Chain, reference: dict[str, Any]) -> None:
    """The primal of the iterate and of the weighted average, up to pass 5; their code has no dual."""
    method = Averaged(Subgradient(LAMS[lam]))
    passes = {row["pass"]: row for row in reference[f"SSG_{lam}"]["passes"]}
    known = [k for k in PASSES if k in passes]
    assert known == [1, 2, 5]
    runs_of_ours = [one_run(ocr, method, seed, known) for seed in range(N_SEEDS)]
    ours = Measured(*np.moveaxis(np.array(runs_of_ours), 1, 0))
    for runs, kind in ((ours.w_primal, "w"), (ours.wavg_primal, "wavg")):
        theirs = np.array([passes[k][kind]["primal"] for k in known])
        assert deviations(runs, theirs).max() <= 3


# Relative, for passes 1 to 5. Their file has six digits, which decide pass 1. After that step the scores of
# three examples are tied but for the rounding of a sum, and the later passes depend on how those ties are
# broken. Breaking them at random, by noise of 1e-12, moved ours by half of what is allowed here.
PRIMAL_DIGITS = (5e-6, 3e-5, 6e-5, 1e-4, 2e-3)
DUAL_DIGITS = (5e-6, 2.5e-4, 9e-4, 4.5e-4, 1.6e-3)


@pytest.mark.parametrize("lam", LAMS)
def test_batch_frank_wolfe_is_theirs(lam: str, ocr: Chain, reference: dict[str, Any]) -> None:
    """No random numbers here, so one run suffices."""
    method, rows = FrankWolfe(LAMS[lam]), reference[f"FW_{lam}"]["passes"]
    states = batch_states(ocr, method, len(rows))
    for row, state, p, d in zip(rows, states, PRIMAL_DIGITS, DUAL_DIGITS, strict=True):
        answer = point(method, state, ocr)
        assert objective.primal(ocr, answer.w, method.lam) == pytest.approx(row["w"]["primal"], rel=p)
        assert objective.dual(answer, method.lam) == pytest.approx(row["w"]["dual"], rel=d)

"""Runs that continue from files, against runs that never stopped: every method, wrapper and sampling."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    BMRM,
    Accelerated,
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
    Subgradient,
)
from maxmargin.methods.protocol import traits
from support.catalogue import chain_case, multiclass_case
from support.checkpoints import assert_same_run, files_of, run

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
    (name, sampling)
    for name, method in METHODS.items()
    for sampling in SAMPLINGS
    if sampling != "gap" or traits(method).notes_gaps
]


def problem_of(name: str) -> Any:
    """Return a small problem: of chains, or of classes for exact blocks."""
    return multiclass_case(3, n=9).problem if "exact" in name else chain_case(3, (2, 3, 1, 2, 2, 3)).problem


@pytest.mark.parametrize(("name", "sampling"), RUNS)
def test_a_run_continues_bit_for_bit(name: str, sampling: str, tmp_path: Path) -> None:
    problem, method, rng = problem_of(name), METHODS[name], np.random.default_rng(len(name))
    expected, files = files_of(problem, method, tmp_path, sampling=sampling)
    if name != "cached, timed":
        assert_same_run(run(problem, method, sampling=sampling), expected)
    assert len(files) >= 5
    for moment in {0, len(files) // 2, *rng.integers(len(files), size=2).tolist(), len(files) - 1}:
        found = run(problem_of(name), method, sampling=sampling, start=str(files[moment]), random_state=None)
        assert_same_run(found, expected)

"""The expectation oracle of every model against a list of all outputs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.compiling import kernel
from maxmargin.methods.scratch import new_scratch
from maxmargin.structures.feature_map import score, statistics_size
from maxmargin.structures.oracle import expectation
from maxmargin.structures.problem import sizes
from support.catalogue import Case, chain_case, chain_cases, layout, multiclass_case, multiclass_cases
from support.maps import statistics
from support.naive import Array

cases = st.one_of(chain_cases(), multiclass_cases())
SHARES = (0.0, 0.5, 1.0, 40.0)


@kernel
def answer(problem, i, theta, share, z, work):
    """Call the oracle from compiled code."""
    return expectation(problem.oracle, i, theta, share, z, work)


def found_mean(case: Case, i: int, w: Array, share: float) -> tuple[Array, float, float]:
    """Return the mean of psi, as long as the longest, the log-partition and the mean loss."""
    problem, scratch = case.problem, new_scratch(case.problem)
    size = statistics_size(problem.map, i)
    score(problem.map, i, w, scratch.block.theta)
    z = np.full(size, np.nan)
    log_partition, loss = answer(problem, i, scratch.block.theta, share, z, scratch.oracle)
    return np.pad(z, (0, sizes(problem).statistics - size)), log_partition, loss


def enumerated_mean(case: Case, i: int, weights: Array, share: float) -> tuple[Array, float, float]:
    """The same, from every output's score and statistics."""
    data = case.data
    exponents = share * data.losses[i] - data.psi[i] @ weights
    largest = exponents.max()
    p = np.exp(exponents - largest)
    s = np.array([statistics(case, i, y) for y in data.outputs[i]])
    z = p @ (s[data.truths[i]] - s) / p.sum()
    return z, float(largest + math.log(p.sum())), float(p @ data.losses[i] / p.sum())


@given(cases, st.integers(0, 1000), st.sampled_from(SHARES), st.sampled_from([0.0, 1.0, 30.0, 1e3]))
def test_means_are_those_of_all_outputs(case: Case, seed: int, share: float, size: float) -> None:
    weights = size * np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])
    w = layout(case.problem, weights)
    for i in range(len(case.X)):
        z, log_partition, loss = enumerated_mean(case, i, weights, share)
        found = found_mean(case, i, w, share)
        assert found[0] == pytest.approx(z, abs=1e-10)
        assert found[1] == pytest.approx(log_partition, abs=1e-12 * (1.0 + size))
        assert found[1] >= -1e-12 * (1.0 + size)
        assert found[2] == pytest.approx(loss, abs=1e-10)


@pytest.mark.parametrize("made", [chain_case, multiclass_case])
def test_without_scores_all_outputs_are_alike(made: Any) -> None:
    case = made(0)
    for i, outputs in enumerate(case.data.outputs):
        z, log_partition, loss = found_mean(case, i, np.zeros(sizes(case.problem).weights), 0.0)
        s = np.array([statistics(case, i, y) for y in outputs])
        assert z == pytest.approx(s[case.data.truths[i]] - s.mean(axis=0), abs=1e-14)
        assert log_partition == pytest.approx(math.log(len(outputs)), abs=1e-14)
        assert loss == pytest.approx(case.data.losses[i].mean(), abs=1e-14)


@pytest.mark.parametrize("made", [chain_case, multiclass_case])
def test_at_a_low_temperature_the_mean_is_the_corner(made: Any) -> None:
    case = made(1)
    weights = np.random.default_rng(1).normal(size=case.data.psi[0].shape[1])
    for i in range(len(case.X)):
        margins = case.data.losses[i] - case.data.psi[i] @ weights
        _, log_partition, loss = found_mean(case, i, layout(case.problem, 1e6 * weights), 1e6)
        assert 1e-6 * log_partition == pytest.approx(margins.max(), abs=1e-5)
        assert loss == pytest.approx(case.data.losses[i][margins.argmax()], abs=1e-9)


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("made", [chain_case, multiclass_case])
def test_compiled_means_are_the_interpreted_ones(made: Any) -> None:
    case = made(2)
    w = layout(case.problem, 3.0 * np.random.default_rng(2).normal(size=case.data.psi[0].shape[1]))
    for i in range(len(case.X)):
        scratch, size = new_scratch(case.problem), statistics_size(case.problem.map, i)
        score(case.problem.map, i, w, scratch.block.theta)
        modes = {mode: np.zeros(size) for mode in ("compiled", "interpreted")}
        numbers = [
            tuple(getattr(answer, mode)(case.problem, i, scratch.block.theta, 0.7, z, scratch.oracle))
            for mode, z in modes.items()
        ]
        assert numbers[0] == numbers[1]
        assert (modes["compiled"] == modes["interpreted"]).all()

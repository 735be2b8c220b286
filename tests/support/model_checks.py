"""What holds for every model: checks of its oracles, losses and feature map against all outputs listed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from maxmargin.methods.scratch import new_scratch
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.feature_map import gram, map_workspace, norm2, score
from maxmargin.structures.oracle import argmax, decode, loss, output_size, psi
from maxmargin.structures.problem import sizes
from support.catalogue import Case, flat, layout
from support.maps import as_move, feature_map, random_direction, statistics
from support.naive import Array, Output, margins

ScoreOf = Callable[[Case, int, Array, Output], float]


def draw_weights(case: Case, seed: int, whole: bool) -> Array:
    """Return random weights in the problem's layout; whole numbers make ties."""
    rng, d = np.random.default_rng(seed), case.data.psi[0].shape[1]
    return layout(case.problem, rng.integers(-2, 3, d).astype(float) if whole else rng.normal(size=d))


def found_output(problem: Any, i: int, w: Array, oracle: Any) -> Output:
    """Return what ``argmax`` or ``decode`` answers for example i."""
    scratch = new_scratch(problem)
    score(problem.map, i, w, scratch.block.theta)
    oracle(problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
    return tuple(scratch.y[: output_size(problem.oracle, i)].tolist())


def assert_oracles_maximise(case: Case, w: Array, score_of: ScoreOf) -> None:
    """Both find an output of largest value, for scores as the model's definition has them."""
    for i, outputs in enumerate(case.data.outputs):
        scores = np.array([score_of(case, i, w, y) for y in outputs])
        for oracle, values in ((argmax, scores + case.data.losses[i]), (decode, scores)):
            answer = outputs.index(found_output(case.problem, i, w, oracle))
            assert values[answer] == pytest.approx(values.max(), abs=1e-11)


def assert_compiled_predictions(case: Case, w: Array) -> None:
    """They are those of the interpreted oracle."""
    n = len(case.data.outputs)
    best = [part for i in range(n) for part in found_output(case.problem, i, w, decode)]
    compiled = np.zeros(len(best), dtype=np.int64)
    predictions(case.problem, w, 0, n, compiled, *decoding_work(case.problem))
    assert compiled.tolist() == best


def assert_compiled_hinges(case: Case, w: Array) -> None:
    """They are the largest margins."""
    expected = [margins(case.data, i, flat(case.problem, w)).max() for i in range(len(case.X))]
    assert hinge_losses(case.problem, w) == pytest.approx(expected, abs=1e-11)


def assert_loss_and_statistics(case: Case) -> None:
    """Those of every output are as its definition has them."""
    size = sizes(case.problem)
    where, value = np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts)
    for i, outputs in enumerate(case.data.outputs):
        truth = statistics(case, i, outputs[case.data.truths[i]])
        for y, expected in zip(outputs, case.data.losses[i], strict=True):
            assert loss(case.problem.oracle, i, np.array(y)) == pytest.approx(expected, abs=1e-13)
            entries = np.zeros(size.statistics)
            count = psi(case.problem.oracle, i, np.array(y), where, value)
            np.add.at(entries, where[:count], value[:count])
            assert (entries == truth - statistics(case, i, y)).all()


def assert_gram_and_norm2(case: Case) -> None:
    """They are those of the feature map as a matrix; the work arrays are used again."""
    work, rng = map_workspace(case.problem.map), np.random.default_rng(0)
    for i in (*range(len(case.X)), 0):
        Phi, delta = feature_map(case, i), random_direction(case, i, rng)
        image, m = np.full(len(delta), np.nan), Phi.shape[1]
        gram(case.problem.map, i, as_move(delta), image, work)
        assert image[:m] == pytest.approx(Phi.T @ (Phi @ delta[:m]), rel=1e-11, abs=1e-12)
        found = norm2(case.problem.map, i, as_move(delta), np.full(len(delta), np.nan), work)
        assert found == pytest.approx(np.sum((Phi @ delta[:m]) ** 2), rel=1e-11)

"""Problems given by three Python functions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    Cached,
    Divided,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Subgradient,
    solve,
)
from maxmargin.methods.blocks import state_bytes
from maxmargin.methods.protocol import dual_weights, start
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import advance, sweep
from maxmargin.problems import Custom
from maxmargin.solving import objective
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.custom.encode import NamedWeights
from maxmargin.structures.custom.model import _write_difference
from maxmargin.structures.feature_map import gram, norm2, push
from support import naive
from support.catalogue import chain_case, multiclass_case
from support.maps import as_move
from support.own_functions import FORMS, best_output, custom

LAM = 0.1
CASES = {"chain": chain_case(3, (1, 2, 2), 2, loss="hamming"), "multiclass": multiclass_case(4)}
FAST = {"accelerated": Accelerated(Pairwise(LAM)), "divided": Divided(Pairwise(LAM))}
SLOW = {
    "bcfw": BlockFrankWolfe(LAM),
    "cached": Cached(BlockFrankWolfe(LAM), oracle_cost=4.0),
    "fw": FrankWolfe(LAM),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
    "ssg": Averaged(Subgradient(LAM)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", [*FAST, *SLOW])
def test_certificates_bracket_the_optimum(name: str, method: str) -> None:
    case = CASES[name]
    best = naive.optimum(case.data, LAM)
    result = solve(
        custom(case), (FAST | SLOW)[method], tol=0.0, max_passes=200, check_every=20, random_state=0
    )
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    # Its argmax takes the first output of those that are best but for 1e-11.
    assert result.primal == pytest.approx(naive.primal(case.data, result.w, LAM), abs=1e-11)
    assert result.gap <= (1e-6 if method in FAST else 0.05)


def test_perceptrons_learn_too() -> None:
    case = CASES["multiclass"]
    result = solve(custom(case), Perceptron(LAM), tol=0.0, max_passes=20, random_state=0)
    assert result.primal == pytest.approx(naive.primal(case.data, result.w, LAM), abs=1e-12)
    assert result.w.any()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_features_gives_the_same_weights(form: str) -> None:
    runs = [
        solve(custom(CASES["chain"], f), BlockFrankWolfe(LAM), tol=0.0, max_passes=5, random_state=1)
        for f in ("dense", form)
    ]
    np.testing.assert_allclose(runs[1].w, runs[0].w, rtol=1e-12, atol=1e-14)
    assert runs[0].w.any()


def test_steps_are_those_of_the_same_problem_compiled() -> None:
    """The loop runs in Python for one and compiled for the other, their sums are in another order."""
    case = CASES["multiclass"]
    ours, own = (
        solve(problem, BlockFrankWolfe(LAM), tol=0.0, max_passes=10, random_state=2)
        for problem in (case.problem, custom(case))
    )
    assert sweep.mode(custom(case)) == "interpreted"
    np.testing.assert_allclose(own.weights, ours.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.history.dual, ours.history.dual, rtol=1e-9)


def test_weights_follow_from_the_dual_variables() -> None:
    problem = custom(CASES["chain"])
    for method in (BlockFrankWolfe(LAM), Pairwise(LAM)):
        state = advance(method, start(method, problem), problem, np.array([0, 1, 2, 1, 0, 2, 2]))
        w = dual_weights(method, state, problem) / (LAM * len(problem.oracle.X))
        np.testing.assert_allclose(w, state.w, rtol=1e-12, atol=1e-14)


def test_the_dual_rises_by_what_pairwise_steps_say() -> None:
    """Margins are brought up to date by `gram` alone: were it wrong, some step would lower the dual."""
    result = solve(
        custom(CASES["chain"]), Pairwise(0.01, inner_steps=10), tol=0.0, max_passes=30, check_every=1
    )
    assert np.diff(result.history.dual).min() >= -1e-14


@given(st.integers(0, 10_000))
def test_differences_of_sparse_vectors_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 6
    where, value, other, less = (
        part for _ in range(2) for part in (rng.integers(size, size=5), rng.integers(-2, 3, 5).astype(float))
    )
    sums, seen = np.zeros(size), np.zeros(size, dtype=bool)
    index, out = np.zeros(size, dtype=np.uint32), np.zeros(size)
    count = _write_difference(where, value, other, less, sums, seen, index, out)
    expected = np.bincount(where, value, size) - np.bincount(other, less, size)
    found = np.zeros(size)
    found[index[:count]] = out[:count]
    np.testing.assert_array_equal(found, expected)
    assert count == np.count_nonzero(expected)
    assert not sums.any()
    assert not seen.any()


def test_the_map_is_the_identity() -> None:
    problem, rng = custom(CASES["chain"]), np.random.default_rng(0)
    work = new_scratch(problem).block
    for _ in range(3):  # what was written for the last direction must be gone
        delta = rng.normal(size=len(work.image)) * (rng.random(len(work.image)) < 0.5)
        move, w = as_move(delta), rng.normal(size=len(delta))
        gram(problem.map, 0, move, work.image, work.map)
        np.testing.assert_array_equal(work.image, delta)
        assert norm2(problem.map, 0, move, work.image, work.map) == pytest.approx(delta @ delta)
        expected = w + 0.5 * delta
        push(problem.map, 0, move, 0.5, w, work.map)
        np.testing.assert_array_equal(w, expected)


def spread(n: int, size: int) -> Any:
    """Return a problem of two outputs whose features are two of very many."""
    rng = np.random.default_rng(0)
    places = rng.integers(size, size=(n, 2, 2))

    def argmax(i: int, w: Any, truth: Any = None) -> int:
        scores = w[places[i]].sum(axis=1) + (np.arange(2) != truth if truth is not None else 0.0)
        return int(np.argmax(scores))

    return Custom(
        lambda i, y: (places[i, y], np.ones(2)),
        lambda truth, y: float(y != truth),
        argmax,
        range(n),
        rng.integers(2, size=n).tolist(),
        n_features=size,
    )


def test_state_and_scores_cost_nonzeros() -> None:
    bytes_of, method = {}, BlockFrankWolfe(0.01)
    for size in (1_000, 100_000):
        problem = spread(40, size)
        state = advance(method, start(method, problem), problem, np.arange(40))
        bytes_of[size] = state_bytes(state.z)
        assert new_scratch(problem, state.w).block.theta is state.w  # not copied
    assert 0 < bytes_of[100_000] <= 1.05 * bytes_of[1_000]
    assert bytes_of[100_000] < 40 * 200


def test_answers_are_kept_as_objects() -> None:
    case = CASES["chain"]
    problem, w = custom(case), np.random.default_rng(5).normal(size=case.data.psi[0].shape[1])
    decode_all(problem, w)
    assert problem.oracle.answers == [(i, best_output(case.data, i, w, False)) for i in range(3)]
    assert objective.primal(problem, w, LAM) == pytest.approx(naive.primal(case.data, w, LAM))
    assert problem.oracle.answers == [(i, best_output(case.data, i, w, True)) for i in range(3)]


def test_weights_are_not_to_be_written_to() -> None:
    def argmax(x: Any, w: Any, y_true: Any = None) -> int:
        w[0] = 1.0
        return 0

    problem = Custom(lambda x, y: np.ones(2), lambda t, y: 0.0, argmax, [0], [0])
    with pytest.raises(ValueError, match="read-only") as caught:
        solve(problem, BlockFrankWolfe(LAM))
    assert caught.value.__notes__ == ["Custom: raised by argmax for example 0"]


def test_weights_are_found_by_name() -> None:
    w = NamedWeights({"a": 0, ("b", 1): 1}, np.array([2.0, 3.0]))
    assert (w["a"], w["b", 1], w["c"]) == (2.0, 3.0, 0.0)
    assert w.dot({"a": 2.0, "c": 5.0, ("b", 1): 1.0}) == 7.0

"""score, gram, norm2 and push against the matrix Phi of each example, built from its definition."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.methods.blocks import add_to_block, empty_blocks
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import push_blocks
from maxmargin.problems import Chain, Multiclass
from maxmargin.structures import products, rows
from maxmargin.structures.feature_map import gram, map_workspace, norm2, push, score
from maxmargin.structures.oracle import psi
from maxmargin.structures.problem import Problem, sizes
from maxmargin.structures.rows import DenseRows, IndicatorRows, SparseRows
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    graph_cases,
    label_set_cases,
    layout,
    matching_cases,
    multiclass_cases,
    tree_cases,
)
from support.maps import as_move, feature_map, random_direction
from support.model_checks import (
    assert_gram_and_norm2,
)
from support.naive import Array

ARCS = ("dense", "whole", "indicator")
cases = st.one_of(
    chain_cases(),
    chain_cases(max_labels=3, rows=("dense", "whole"), order=2),
    multiclass_cases(),
    matching_cases(),
    tree_cases(ARCS, (False,)),
    graph_cases(rows=("dense",)),
    label_set_cases(),
)


def applied(problem: Any, i: int, w: Array, delta: Array) -> tuple[Array, Array, Array]:
    """Return theta, Phi^T Phi delta, and w + 0.7 Phi delta."""
    theta, pushed, move = np.full(len(delta), np.nan), w.copy(), as_move(delta)
    image = np.full(len(delta), np.nan)
    score(problem.map, i, w, theta)
    push(problem.map, i, move, 0.7, pushed, map_workspace(problem.map))
    gram(problem.map, i, move, image, map_workspace(problem.map))
    return theta, image, pushed


def length2(problem: Any, i: int, delta: Array) -> float:
    """Return |Phi delta|^2."""
    image = np.full(len(delta), np.nan)
    return float(norm2(problem.map, i, as_move(delta), image, map_workspace(problem.map)))


@given(cases, st.integers(0, 1000))
def test_score_gram_and_push_apply_the_feature_map(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = layout(case.problem, rng.normal(size=case.data.psi[0].shape[1]))
    for i in range(len(case.X)):
        Phi, delta = feature_map(case, i), random_direction(case, i, rng)
        m = Phi.shape[1]
        theta, image, pushed = applied(case.problem, i, w, delta)
        assert theta[:m] == pytest.approx(Phi.T @ w, abs=1e-12)
        assert image[:m] == pytest.approx(Phi.T @ (Phi @ delta[:m]), abs=1e-10)
        assert pushed == pytest.approx(w + 0.7 * Phi @ delta[:m], abs=1e-12)
        assert length2(case.problem, i, delta) == pytest.approx(np.sum((Phi @ delta[:m]) ** 2), rel=1e-10)


@given(cases)
def test_feature_map_times_statistics_is_the_feature_vector(case: Case) -> None:
    """Phi_i (s(y_i) - s(y)) = psi_i(y): the factorisation that the whole package rests on."""
    size = sizes(case.problem)
    where, value = np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts)
    for i in range(len(case.X)):
        for y, expected in zip(case.data.outputs[i], case.data.psi[i], strict=True):
            delta, w = np.zeros(size.statistics), np.zeros(size.weights)
            count = psi(case.problem.oracle, i, np.array(y), where, value)
            np.add.at(delta, where[:count], value[:count])
            push(case.problem.map, i, as_move(delta), 1.0, w, map_workspace(case.problem.map))
            assert w == pytest.approx(layout(case.problem, expected), abs=1e-12)


@given(cases, st.integers(0, 1000))
def test_compiled_push_adds_all_blocks(case: Case, seed: int) -> None:
    """push_blocks runs the compiled push, on sparse vectors: w += c sum_i Phi_i z_i."""
    rng, size = np.random.default_rng(seed), sizes(case.problem)
    blocks, expected = empty_blocks(size.examples, size.statistics), np.zeros(size.weights)
    for i in range(size.examples):
        delta, Phi = random_direction(case, i, rng), feature_map(case, i)
        add_to_block(blocks, i, 1.0, as_move(delta))
        expected += -0.3 * Phi @ delta[: Phi.shape[1]]
    w = np.zeros(size.weights)
    push_blocks(case.problem.map, blocks, -0.3, w, new_scratch(case.problem).block)
    assert w == pytest.approx(expected, abs=1e-12)


def chain_of(X: Any) -> Problem[Any, Any]:
    return Chain.from_encoded(X, np.array([0, 2, 5, 6]), np.array([0, 1, 2, 2, 1, 0]), 3)


def multiclass_of(X: Any) -> Problem[Any, Any]:
    return Multiclass.from_encoded(X, np.array([0, 1, 2, 2, 1, 0]), 3)


@pytest.mark.parametrize("made", [chain_of, multiclass_of])
def test_dense_sparse_and_indicator_rows_agree(made: Any) -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((6, 5)) < 0.7).astype(float)
    indicator = made(scipy.sparse.csr_array(X))
    held, w = indicator.map.rows, rng.normal(size=sizes(indicator).weights)
    assert isinstance(held, IndicatorRows)
    others = DenseRows(X, 5), SparseRows(held.start, held.columns, np.ones(len(held.columns)), 5)
    examples = np.split(X, [2, 5]) if made is chain_of else list(X)
    for i in range(len(examples)):
        delta = random_direction(Case(indicator, None, examples), i, rng)
        expected = applied(indicator, i, w, delta)
        for other in others:
            found = applied(indicator._replace(map=indicator.map._replace(rows=other)), i, w, delta)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse", "indicator"])
def test_gram_is_right_for_sequences_too_long_for_a_table(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_TABULATED", 2)
    case = chain_case(5, (4, 2, 1, 3), rows=kind)
    assert np.diff(case.problem.map.product_spans).ravel().tolist() == [0, 4, 1, 0]
    assert_gram_and_norm2(case)


def test_a_sequence_of_300_tokens_needs_no_table() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 2)), rng.integers(3, size=300)
    problem = Chain.from_encoded(X, np.array([0, 300]), labels, 3)
    case = Case(problem, None, [X])
    Phi, delta = feature_map(case, 0), random_direction(case, 0, rng)
    w = rng.normal(size=len(Phi))
    theta, image, pushed = applied(problem, 0, w, delta)
    assert len(problem.map.products) == 0
    assert theta == pytest.approx(Phi.T @ w, rel=1e-11)
    assert image == pytest.approx(Phi.T @ (Phi @ delta), rel=1e-10, abs=1e-10)
    assert pushed == pytest.approx(w + 0.7 * Phi @ delta, rel=1e-11)


@pytest.mark.parametrize("few", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["dense", "sparse", "indicator"])
def test_push_adds_whole_rows_or_pairs(kind: str, few: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with many nonzeros is pushed as it is, one with few by pairs of them."""
    monkeypatch.setattr(rows, "_FEW", few)
    case, rng = chain_case(7, (3, 1, 2), rows=kind), np.random.default_rng(0)
    w = rng.normal(size=sizes(case.problem).weights)
    for i in range(3):
        Phi, delta = feature_map(case, i), random_direction(case, i, rng)
        _, _, pushed = applied(case.problem, i, w, delta)
        assert pushed == pytest.approx(w + 0.7 * Phi @ delta[: Phi.shape[1]], abs=1e-12)


@pytest.mark.parametrize("few", [0, 100])
def test_gram_is_the_same_by_whole_rows_and_by_entries(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_FEW", few)
    case, rng = chain_case(7, (3, 1, 2)), np.random.default_rng(0)
    for i in range(3):
        Phi, delta = feature_map(case, i), random_direction(case, i, rng)
        _, image, _ = applied(case.problem, i, np.zeros(len(Phi)), delta)
        m = Phi.shape[1]
        assert image[:m] == pytest.approx(Phi.T @ (Phi @ delta[:m]), abs=1e-12)


@pytest.mark.parametrize("per_row", [1, 2, 3, 4, 20])
def test_compiled_push_adds_rows_with_so_many_nonzeros(per_row: int) -> None:
    rng = np.random.default_rng(per_row)
    X, n_labels = rng.normal(size=(3, 2)), 20
    problem = Chain.from_encoded(X, np.array([0, 1, 3]), np.arange(3), n_labels)
    case, size = Case(problem, None, [X[:1], X[1:]]), sizes(problem)
    blocks, expected = empty_blocks(2, size.statistics), np.zeros(size.weights)
    for i in range(2):
        Phi, delta = feature_map(case, i), np.zeros((n_labels + 2, n_labels))
        for row in delta[: Phi.shape[1] // n_labels]:
            row[rng.choice(n_labels, per_row, replace=False)] = rng.normal(size=per_row)
        add_to_block(blocks, i, 1.0, as_move(delta.ravel()))
        expected += Phi @ delta.ravel()[: Phi.shape[1]]
    w = np.zeros(size.weights)
    push_blocks(problem.map, blocks, 1.0, w, new_scratch(problem).block)
    assert w == pytest.approx(expected, abs=1e-12)

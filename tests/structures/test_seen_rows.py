"""Features with weights for the labels they were seen with: against enumeration, programs and matrices."""

import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from maxmargin import Accelerated, Anchored, BlockFrankWolfe, ChainSVC, Pairwise, load, solve
from maxmargin.problems import Chain, L1Penalised, SecondOrderChain
from maxmargin.structures import feature_map
from maxmargin.structures.feature_map import add_entry, completed, map_sizes, map_workspace, new_move
from maxmargin.structures.seen_rows import SeenRows, seen_rows
from support import naive
from support.catalogue import Case, flat
from support.naive import Array, Enumerated, second_order_features

LABELS, FEATURES, LAM = 5, 6, 0.05


def tokens(seed: int, lengths: tuple[int, ...], kind: str = "sparse") -> tuple[Any, Array, Array]:
    """Return sparse features, of which the first are everywhere and the last rare; offsets; labels."""
    rng, offsets = np.random.default_rng(seed), np.append(0, np.cumsum(lengths))
    is_there = rng.random((offsets[-1], FEATURES)) < np.linspace(0.9, 0.1, FEATURES)
    values = is_there * (1.0 if kind == "indicators" else rng.normal(size=is_there.shape))
    return csr_array(values), offsets, rng.integers(LABELS, size=offsets[-1])


def is_kept(X: Any, labels: Array) -> Array:
    """Return which weights of features there are, label by label: a loop over all tokens."""
    dense, kept = X.toarray(), np.zeros((LABELS, FEATURES), dtype=bool)
    for x, label in zip(dense, labels, strict=True):
        kept[label] |= x != 0.0
    kept[:, kept.sum(axis=0) > LABELS / 4] = True
    return kept


def seen_case(seed: int, lengths: tuple[int, ...], order: int = 1) -> tuple[Case, Array]:
    """Return a problem with its outputs and their psi, enumerated, and which weights there are."""
    X, offsets, labels = tokens(seed, lengths)
    make: Any = (Chain, SecondOrderChain)[order - 1]
    problem = make.from_encoded(X, offsets, labels, LABELS, loss="hamming", all_possible_states=False)
    parts, Y = np.split(X.toarray(), offsets[1:-1]), np.split(labels, offsets[1:-1])
    features = (naive.chain_features, second_order_features)[order - 1]
    every = naive.enumerate_chain(parts, Y, LABELS, 1.0 - np.eye(LABELS), False, features)
    kept = is_kept(X, labels).ravel()
    mask = np.append(kept, np.ones(every.psi[0].shape[1] - len(kept), dtype=bool))
    psi = [psi * mask for psi in every.psi]
    return Case(problem, Enumerated(every.outputs, every.truths, every.losses, psi), parts), mask


def whole(case: Case, w: Array) -> Array:
    """Return weights of the problem in the naive layout."""
    plain = Chain if not hasattr(case.problem.map, "inner") else SecondOrderChain
    X = csr_array((1, FEATURES))
    every: Any = plain.for_prediction(X, np.array([0, 1]), LABELS)
    return flat(every, completed(case.problem.map, w))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "method", [Accelerated(Pairwise(LAM)), Accelerated(Anchored(BlockFrankWolfe(LAM), 1))]
)
def test_solutions_are_optima_of_the_weights_there_are(seed: int, order: int, method: Any) -> None:
    case, mask = seen_case(seed, (2, 3, 1, 2), order)
    assert isinstance(getattr(case.problem.map, "inner", case.problem.map).rows, SeenRows)
    tol = 1e-7 if isinstance(method.inner, Pairwise) else 1e-3
    result = solve(case.problem, method, tol=tol, max_passes=3000, random_state=0)
    best = naive.optimum(case.data, LAM)
    assert result.dual - 1e-8 <= best.primal <= result.primal + 1e-8
    assert result.gap <= tol
    found = whole(case, result.w)
    assert naive.primal(case.data, found, LAM) == pytest.approx(result.primal)
    assert not found[~mask].any()
    # The objective is strongly convex.
    assert 0.5 * LAM * np.sum((found - best.w) ** 2) <= result.gap + 1e-8


def test_lower_bounds_hold_with_an_L1_penalty() -> None:
    case, mask = seen_case(3, (2, 3, 1, 2))
    problem = L1Penalised(case.problem, 0.5)
    result = solve(problem, Accelerated(Pairwise(LAM)), tol=1e-5, max_passes=3000, random_state=0)
    v = result.w[: map_sizes(case.problem.map).weights]
    found = whole(case, v)
    penalty = 0.5 * LAM * np.abs(found).sum()
    assert naive.primal(case.data, found, LAM) + penalty == pytest.approx(result.primal)
    assert result.gap <= 1e-5
    assert 0 < np.count_nonzero(found) < np.count_nonzero(mask)


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(["indicators", "sparse"]), seed=st.integers(0, 99), share=st.floats(0.05, 1.0))
def test_moves_have_the_images_and_lengths_of_matrices(kind: str, seed: int, share: float) -> None:
    """Phi_i as a matrix with rows of zero for weights that there are not; the workspace is used twice."""
    X, offsets, labels = tokens(seed, (4, 3), kind)
    phi = Chain.from_encoded(X, offsets, labels, LABELS, all_possible_states=False).map
    kept, x = is_kept(X, labels), X.toarray()[4:]
    rng, work, width = np.random.default_rng(seed), map_workspace(phi), phi.width
    for _ in range(2):
        move = new_move(map_sizes(phi).statistics)
        D = (rng.random((3, LABELS)) < share) * rng.normal(size=(3, LABELS))
        for t, k in zip(*np.nonzero(D), strict=True):
            add_entry(move, (LABELS + t) * width + k, D[t, k])
        w, image, theta = np.zeros(map_sizes(phi).weights), *np.zeros((2, map_sizes(phi).statistics))
        feature_map.push(phi, 1, move, 2.0, w, work)
        feature_map.score(phi, 1, w, theta)
        feature_map.gram(phi, 1, move, image, work)
        W = kept * (D.T @ x)
        expected = (W @ x.T).T
        expected[[0, 2]] += D[[0, 2]]  # weights of the start and the end
        found = image.reshape(-1, width)[LABELS : LABELS + 3, :LABELS]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(theta[: len(image)], 2.0 * image, atol=1e-12)
        length2 = feature_map.norm2(phi, 1, move, np.zeros_like(image), work)
        assert length2 == pytest.approx(np.sum(W**2) + np.sum(D[[0, 2]] ** 2), abs=1e-12)
        unary = completed(phi, w).reshape(-1, width)[:FEATURES, :LABELS].T
        np.testing.assert_allclose(unary, 2.0 * W, atol=1e-12)


def test_rows_hold_the_pairs_that_occur_and_whole_rows_of_common_features() -> None:
    X, _, labels = tokens(5, (20,))
    rows: Any = seen_rows(
        Chain.from_encoded(X, np.array([0, 20]), labels, LABELS).map.rows, labels, LABELS, 8
    )
    kept = is_kept(X, labels)
    is_common = kept.all(axis=0)
    assert rows.common == is_common.sum()
    assert len(rows.labels) == kept[:, ~is_common].sum()
    assert rows.n_columns == rows.common + -(-len(rows.labels) // 8)
    dense: Any = X.toarray()
    phi = Chain.from_encoded(dense + 1.0, np.array([0, 20]), labels, LABELS, all_possible_states=False).map
    assert not isinstance(phi.rows, SeenRows)


def named(n: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Return sequences with names, some of them rare."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, size=n)
    X = [[[f"f{k}" for k in (rng.pareto(0.7, 3) % 200).astype(int)] for _ in range(m)] for m in lengths]
    return X, [rng.integers(7, size=m).tolist() for m in lengths]


@pytest.mark.parametrize("order", [1, 2])
def test_estimators_have_no_other_weights(order: int, tmp_path: Path) -> None:
    X, y = named(30, 0)
    model = ChainSVC(order=order, all_possible_states=False, C=1.0, tol=1e-3, random_state=0).fit(X, y)
    seen = defaultdict(set)
    for token, label in zip(itertools.chain(*X), itertools.chain(*y), strict=True):
        for name in token:
            seen[name].add(label)
    for name, label in model.state_features_:
        assert label in seen[name] or len(seen[name]) > 7 / 4
    every = ChainSVC(order=order, C=1.0, tol=1e-3, random_state=0).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < np.count_nonzero(every.coef_)
    assert model.coef_.shape == every.coef_.shape
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == model.predict(X)  # type: ignore[attr-defined]
    # The other weights can only lower the objective.
    assert model.history_.primal.min() >= every.history_.dual.max()


def test_labels_that_are_seen_later_get_weights() -> None:
    X, y = named(30, 1)
    parameters: Any = {"all_possible_states": False, "C": 1.0, "tol": 1e-4, "random_state": 0}
    X, y = X + X, y + [[6 - label for label in labels] for labels in y]
    more = ChainSVC(**parameters).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    once = ChainSVC(**parameters).fit(X, y)
    assert more.classes_.tolist() == once.classes_.tolist() == list(range(7))
    assert more.history_.primal.min() == pytest.approx(once.history_.primal.min(), rel=1e-3)


def test_a_kernel_is_refused() -> None:
    X, y = [np.ones((2, 2))], [[0, 1]]
    with pytest.raises(
        ValueError, match=r"^ChainSVC: all_possible_states must be True with a kernel, .*False"
    ):
        ChainSVC(kernel="rbf", all_possible_states=False).fit(X, y)

"""Weights of graphs that must not be negative: against quadratic programs with bounds; what is refused."""

from typing import Any

import numpy as np
import pytest

from maxmargin import GraphSVC, Result, solve
from maxmargin.estimators import estimator
from maxmargin.problems import Problem, SignConstrained
from maxmargin.structures.wrappers import layout_order
from support import naive
from support.plain import Plain

C, TOL = 2.0, 1e-3
_rng = np.random.default_rng(15)
ENDS = [[(0, 1), (2, 1)], [(1, 0), (1, 2)], [(0, 2), (2, 1), (3, 2)], [(0, 1)]]
SIZES = (3, 3, 4, 2)
LAM = 1.0 / (C * len(SIZES))
Y = [np.arange(size) % 2 for size in SIZES]
X = [
    (_rng.normal(size=(size, 2)), np.array(ends), _rng.normal(size=(len(ends), 2)))
    for size, ends in zip(SIZES, ENDS, strict=True)
]
AGREEING = np.broadcast_to(np.eye(2, dtype=bool), (2, 2, 2))
# What is imposed, and which entries of coef_ and of edge_coef_, one after another, these are.
SIGNS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "cut": ({"nodes": [1], "edges": [0, 1]}, [1, 3, 4, 5]),
    "tree": ({"edges": AGREEING}, [4, 7, 8, 11]),
}


def enumerated(inference: str) -> naive.Enumerated:
    shares = [np.full(size, 1.0 / size) for size in SIZES]
    return naive.enumerate_graphs(X, Y, 1.0 - np.eye(2), shares, inference == "cut")


def model_of(inference: str, **parameters: Any) -> GraphSVC:
    parameters = {
        "C": C,
        "tol": TOL,
        "random_state": 0,
        "loss": "normalized_hamming",
        "nonnegative": SIGNS[inference][0],
    } | parameters
    return GraphSVC(inference=inference, **parameters)


def weights_of(model: GraphSVC) -> naive.Array:
    return np.concatenate([model.coef_.ravel(), model.edge_coef_.ravel()])


def interpreted(problem: Any, *args: Any, **options: Any) -> Result:
    """Solve without waiting for the compiler."""
    order = layout_order(problem.map.inner)
    chosen = problem.map.prox.nonnegative[order]
    return solve(SignConstrained(Plain(Problem(problem.map.inner, problem.oracle)), chosen), *args, **options)


@pytest.mark.parametrize(("inference", "solver"), [("cut", solve), ("tree", interpreted)])
def test_certificate_brackets_the_optimum(
    inference: str, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimator, "solve", solver)
    data, where = enumerated(inference), SIGNS[inference][1]
    best = naive.primal(data, naive.signed_optimum(data, LAM, np.array(where)), LAM)
    free = naive.optimum(data, LAM)
    assert free.w[where].min() < -0.01
    assert best > free.primal + 10 * TOL  # the signs bind
    model = model_of(inference).fit(X, Y)
    w = weights_of(model)
    assert (w[where] >= 0.0).all()
    assert w.min() < 0.0
    assert model.history_.primal.min() == pytest.approx(naive.primal(data, w, LAM))
    assert model.history_.dual.max() - 1e-7 <= best <= model.history_.primal.min() + 1e-7
    assert 0.0 <= model.gap_ <= TOL
    assert [labels.shape for labels in model.predict(X)] == [y.shape for y in Y]


def test_threads_and_more_graphs_give_the_same_model() -> None:
    model = model_of("cut").fit(X, Y)
    np.testing.assert_array_equal(weights_of(model_of("cut", n_jobs=2).fit(X, Y)), weights_of(model))
    more = model_of("cut").partial_fit(X[:2], Y[:2]).partial_fit(X[2:], Y[2:])
    objectives = [m.history_.primal.min() for m in (more, model)]
    assert objectives[0] == pytest.approx(objectives[1], abs=TOL)
    assert (weights_of(more)[SIGNS["cut"][1]] >= 0.0).all()


@pytest.mark.parametrize(
    ("nonnegative", "expected"),
    [
        ({"edge": [0]}, r"^GraphSVC: keys of nonnegative must be among 'nodes', 'edges', got 'edge'\.$"),
        (
            {"edges": [2]},
            r"^GraphSVC: nonnegative\['edges'\] .* ints from 0 to 1, or bools of shape \(2, 2, 2\)",
        ),
        (
            {"nodes": [-1]},
            r"^GraphSVC: nonnegative\['nodes'\] .* ints from 0 to 1, or bools of shape \(2, 2\)",
        ),
        (
            {"nodes": [[True], [False, True]]},
            r"^GraphSVC: nonnegative\['nodes'\] must be indices of features",
        ),
        ({"nodes": [True, False]}, r"^GraphSVC: nonnegative\['nodes'\] must be indices of features"),
        ({"nodes": 0.5}, r"^GraphSVC: nonnegative\['nodes'\] must be indices of features.* got 0\.5 "),
        ("edges", r"^The 'nonnegative' parameter of GraphSVC must be an instance of 'dict' or None"),
    ],
)
def test_wrong_signs_are_refused(nonnegative: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as error:
        model_of("tree", nonnegative=nonnegative).fit(X, Y)
    assert "\n" not in str(error.value)

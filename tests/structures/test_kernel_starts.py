"""Going on from a result with a kernel, against explicit features."""

from typing import Any

import numpy as np
import pytest

from maxmargin import WarmStart, c_path, solve
from maxmargin.methods.protocol import with_lam
from maxmargin.problems import GaussianKernel, Kernelised, SignConstrained
from maxmargin.structures.feature_map import adopted
from maxmargin.structures.kernelised import kernel_parts
from support.growing import KINDS
from support.kernels import (
    METHODS,
    SQUARE,
    assert_same_run,
    growing_kernels,
    kernel_problem,
    linear_case,
    monomials,
    ran,
    random_rows,
)
from support.naive import Array

RESUMED = {name: METHODS[name] for name in ("BCFW", "accelerated", "away", "averaged")}


def first_row(problem: Any, method: Any, start: Any) -> Any:
    result = solve(problem, method, start=start, tol=1e9)
    assert len(result.history) == 1
    return next(iter(result.history))


@pytest.mark.parametrize(
    ("name", "keep"), [*((name, "best") for name in RESUMED), ("BCFW", "weights"), ("BCFW", "dual")]
)
@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_going_on_at_another_lam_and_with_more_examples_agrees_with_features(
    kind: str, name: str, more: int, keep: str
) -> None:
    first, explicit = growing_kernels(kind, 3, SQUARE)
    method, later = RESUMED[name], with_lam(RESUMED[name], 0.06)
    old, old_explicit = first(5), explicit.first(5).problem
    found, expected = ran(old, method, 3), ran(old_explicit, method, 3)
    problem, twin = (first(5 + more), explicit.first(5 + more).problem) if more else (old, old_explicit)
    a, b = (first_row(p, later, WarmStart(r, keep)) for p, r in ((problem, found), (twin, expected)))
    assert a.primal == pytest.approx(b.primal, abs=1e-9)
    assert a.dual == pytest.approx(b.dual, abs=1e-9)
    a, b = (ran(p, later, 3, start=WarmStart(r, keep)) for p, r in ((problem, found), (twin, expected)))
    assert_same_run(a, b)


def test_methods_without_dual_variables_go_on_at_another_lam_only() -> None:
    first, explicit = growing_kernels("chain", 3, SQUARE)
    method, later, old = METHODS["FW"], with_lam(METHODS["FW"], 0.06), first(5)
    found, expected = ran(old, method, 3), ran(explicit.first(5).problem, method, 3)
    twin = ran(expected.stopped.problem, later, 3, start=expected)
    assert_same_run(ran(old, later, 3, start=found), twin)
    with pytest.raises(ValueError, match=r"^solve: start must come from this problem"):
        ran(first(8), later, 3, start=found)


def test_signs_beside_a_kernel_when_examples_are_added() -> None:
    first, explicit = growing_kernels("chain", 4, SQUARE)
    signs, method = np.arange(6, 15, 3), METHODS["BCFW"]  # of transitions, behind start and end
    shift = 3 * explicit.X[0].shape[1]
    (old, old_twin), (problem, twin) = (
        (SignConstrained(first(n), signs), SignConstrained(explicit.first(n).problem, signs + shift))
        for n in (4, 7)
    )
    found, expected = ran(old, method, 3), ran(old_twin, method, 3)
    assert found.weights[signs].min() == 0.0
    assert_same_run(ran(problem, method, 3, start=found), ran(twin, method, 3, start=expected))
    with pytest.raises(ValueError, match=r"^solve: start must come from this problem"):
        ran(SignConstrained(first(7), signs + 1), method, 3, start=found)


def test_a_start_from_other_rows_is_refused() -> None:
    X = random_rows(0)
    result = ran(kernel_problem("chain", X, GaussianKernel(0.5)), METHODS["BCFW"], 3)
    others = {
        "another row": kernel_problem("chain", np.vstack([X[:-1], X[-1:] + 0.5]), GaussianKernel(0.5)),
        "another kernel": kernel_problem("chain", X, GaussianKernel(0.6)),
        "no kernel": linear_case("chain", X).problem,
        "fewer rows": Kernelised(*fewer_rows(X)),
    }
    for problem in others.values():
        with pytest.raises(ValueError, match=r"^solve: start must come from this problem, or") as caught:
            ran(problem, METHODS["BCFW"], 1, start=result)
        assert "\n" not in str(caught.value)
    again = kernel_problem("chain", X.copy(), GaussianKernel(0.5))
    assert ran(again, METHODS["BCFW"], 1, start=result).history.dual[0] == pytest.approx(
        result.history.dual[-1]
    )


def fewer_rows(X: Array) -> tuple[Any, Array, Any]:
    first, explicit = growing_kernels("chain", 0, SQUARE)
    n = sum(len(x) for x in explicit.X[:2])
    return first(2)._replace(map=first(2).map.inner), X[:n], GaussianKernel(0.5)


def test_adopted_weights_have_the_scores_of_new_rows() -> None:
    first, _ = growing_kernels("chain", 5, SQUARE)
    old, new = first(3), first(6)
    w = ran(old, METHODS["BCFW"], 3).w
    found = adopted(new.map, w, old.map)
    assert found is not None
    _, W, G = kernel_parts(new.map, found)
    n = len(kernel_parts(old.map, w)[1])
    np.testing.assert_array_equal(W[:n], kernel_parts(old.map, w)[1])
    assert not W[n:].any()
    np.testing.assert_allclose(G, (new.map.columns.values @ W).T, atol=1e-12)
    assert adopted(old.map, found, new.map) is None


def test_a_path_over_c_with_a_kernel_agrees_with_features() -> None:
    X = random_rows(13)
    problem, explicit = kernel_problem("chain", X, SQUARE), linear_case("chain", monomials(X, SQUARE)).problem
    options = {"tol": 0.01, "max_passes": 200, "random_state": 0}
    found, expected = (c_path(p, [0.1, 1.0, 10.0], **options) for p in (problem, explicit))
    for a, b in zip(found.results, expected.results, strict=True):
        assert a.gap <= 0.01
        assert b.dual - 1e-9 <= a.primal <= b.primal + 0.01

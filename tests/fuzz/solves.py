"""Certificates of random problems and methods, against enumeration and a quadratic program."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.methods import fast_methods, methods
from fuzz.outcomes import one_line
from fuzz.problems import SEEDS, Posed, posed, problems
from maxmargin import Anchored, Checkpoint, Result, ScaleError, Status, solve
from maxmargin.compiling import is_wrapper
from maxmargin.methods.protocol import traits
from maxmargin.problems import Multiclass
from support import naive
from support.catalogue import Case, chain_case, matching_case, multiclass_case, random_cost
from support.naive import Optimum

Draw = Callable[[st.SearchStrategy[Any]], Any]
LAMS = st.floats(-3.0, 2.0).map(lambda exponent: 10.0**exponent)
SAMPLINGS = st.sampled_from(("permutation", "uniform", "gap"))


def close(given: Posed, *values: float) -> float:
    """Return the rounding that is allowed for values of this size."""
    largest = max(float(losses.max(initial=0.0)) for losses in given.data.losses)
    return 1e-8 * (1e-3 + largest + sum(abs(value) for value in values))


def check_bounds(given: Posed, result: Result, lam: float, best: Optimum | None) -> None:
    """Both ends of every certificate are on their sides of the optimum; the primal is that of all outputs."""
    weights = given.weights(result)
    primal = naive.primal(given.data, weights, lam)
    error = close(given, primal)
    assert np.isfinite([result.primal, result.dual, result.gap]).all()
    assert result.gap == result.primal - result.dual
    assert result.primal >= primal - error, f"primal {result.primal}, by enumeration {primal}"
    if given.is_exact:
        assert result.primal <= primal + error, f"primal {result.primal}, by enumeration {primal}"
    assert (weights[list(given.signed)] >= 0.0).all()
    if best is not None:
        assert min(result.history.primal.min(), result.primal) >= best.dual - error, f"optimum {best.dual}"
        assert max(result.history.dual.max(), result.dual) <= best.primal + error, f"optimum {best.primal}"


def may_run(given: Posed, method: Any, sampling: str) -> str | None:
    """Return the sampling if the method records what it needs; None if the model does not fit."""
    inner = method
    while is_wrapper(type(inner)):
        if isinstance(inner, Anchored) and not given.name.startswith(("chain", "second order")):
            return None
        inner = inner.inner
    if given.signed and not traits(method).projects:
        return None
    return "uniform" if sampling == "gap" and not traits(method).notes_gaps else sampling


def solved(given: Posed, method: Any, **options: Any) -> Result | None:
    """Return the result, or None if one line says that this combination is not possible."""
    try:
        return solve(given.problem, method, **options)
    except ScaleError:
        raise
    except (TypeError, ValueError) as error:
        if not any(word in one_line(error) for word in ("must be", "needs")):
            raise
        return None


def runs(draw: Draw) -> int:
    """Some methods on one problem, from zero or continued; return the number of solves."""
    given, lam = draw(problems()), draw(LAMS)
    best, count = naive.optimum(given.data, lam, given.signed), 0
    for _ in range(draw(st.integers(2, 4))):
        method = draw(methods(lam))
        options = {
            "tol": draw(st.sampled_from([0.0, 1e-3])),
            "max_passes": draw(st.integers(1, 6)),
            "check_every": draw(st.integers(1, 3)),
            "sampling": may_run(given, method, draw(SAMPLINGS)),
            "n_jobs": draw(st.sampled_from([None, 1, 2])),
            "random_state": draw(SEEDS),
        }
        if options["sampling"] is None:
            continue
        found = solved(given, method, **options)
        if found is None:
            continue
        check_bounds(given, found, lam, best)
        count += 1
        if draw(st.integers(0, 3)) == 0:
            count += _continued(given, found, method, lam, best, options)
    return count


def _continued(given: Posed, found: Result, method: Any, lam: float, best: Optimum, options: Any) -> int:
    """Go on from a result, at the same lam."""
    again = solved(given, method, start=found, **options)
    if again is None:
        return 0
    check_bounds(given, again, lam, best)
    return 1


def convergent(draw: Draw) -> int:
    """A fast method at moderate lam converges to a gap of 1e-6."""
    given, lam = draw(problems()), 10.0 ** draw(st.floats(-1.0, 1.0))
    method = draw(fast_methods(lam))
    sampling = may_run(given, method, "permutation")
    if sampling is None or not given.is_exact or "weighted" in given.name:
        return 0
    best = naive.optimum(given.data, lam, given.signed)
    tol = 1e-6 * (1.0 + best.primal)
    found = solved(given, method, tol=tol, max_passes=3000, check_every=20, random_state=draw(SEEDS))
    if found is None:
        return 0
    check_bounds(given, found, lam, best)
    assert found.status is Status.CONVERGED, f"gap {found.gap} after {found.history.passes[-1]} passes"
    assert best.primal - best.dual <= 10.0 * tol  # the quadratic program was solved, too
    return 1


def stored(draw: Draw) -> int:
    """A run that is stopped and goes on from its checkpoint ends with the bits of one that never stopped."""
    given, lam = draw(problems(("multiclass", "chain", "matching", "cut"))), draw(LAMS)
    method = draw(methods(lam))
    sampling = may_run(given, method, draw(SAMPLINGS))
    if sampling is None:
        return 0
    first, passes = draw(st.integers(1, 4)), draw(st.integers(5, 7))
    options = {"tol": 0.0, "check_every": 2, "sampling": sampling, "random_state": draw(st.integers(0, 9))}
    whole = solved(given, method, max_passes=passes, **options)
    if whole is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run"
        solve(given.problem, method, max_passes=first, checkpoint=Checkpoint(file), **options)
        again = solve(given.problem, method, max_passes=passes, start=file, **options)
    check_bounds(given, whole, lam, naive.optimum(given.data, lam, given.signed))
    assert (again.primal, again.dual) == (whole.primal, whole.dual)
    assert (again.w == whole.w).all()
    return 3


def _scaled_multiclass(seed: int, scale: float) -> Case:
    rng = np.random.default_rng(seed)
    X, y, cost = rng.normal(size=(4, 2)), np.arange(4) % 3, random_cost(rng, 3)
    problem = Multiclass.from_encoded(scale * X, y, 3, loss=cost)
    return Case(problem, naive.enumerate_multiclass(scale * X, y, 3, cost), list(X))


def scaled(draw: Draw) -> int:
    """Features times 2^k, and lam times 4^k: no bit of the certificates changes."""
    k, seed, lam = draw(st.integers(-490, 490)), draw(SEEDS), draw(st.sampled_from([0.125, 0.1, 1.0]))
    method = draw(methods(lam))
    sampling = "gap" if traits(method).notes_gaps and draw(st.booleans()) else "permutation"
    if "Anchored" in repr(method):
        return 0
    outcomes = []
    for scale in (1.0, 2.0**k):
        case = _scaled_multiclass(seed, scale)
        options = {"tol": 0.0, "max_passes": 4, "check_every": 2, "sampling": sampling, "random_state": 0}
        outcomes.append(_outcome(case, _at(method, lam * scale**2), options))
    if None not in outcomes and "Perceptron" not in repr(method) and "kappa=0.3" not in repr(method):
        (expected, found) = outcomes
        assert (found.primal, found.dual) == (expected.primal, expected.dual), (k, method, sampling)
        assert (found.weights * 2.0**k == expected.weights).all()
    return sum(outcome is not None for outcome in outcomes)


def _at(method: Any, lam: float) -> Any:
    """Return the method at another lam."""
    if is_wrapper(type(method)):
        return method._replace(inner=_at(method.inner, lam))
    return method._replace(lam=lam)


def _outcome(case: Case, method: Any, options: Any) -> Any:
    """Return the result, or None if one line names the scale."""
    try:
        return solve(case.problem, method, **options)
    except ScaleError as error:
        one_line(error)
        return None


def many_labels(draw: Draw) -> int:
    """Five hundred labels, a long sequence, many links: what cannot be solved by a program is enumerated."""
    kind, seed = draw(st.sampled_from(["labels", "long", "links"])), draw(SEEDS)
    if kind == "labels":
        case = multiclass_case(seed, 3, 500, n_features=2, rows=draw(st.sampled_from(["dense", "sparse"])))
    elif kind == "long":
        case = chain_case(seed, (7, 1, 6), 2)
    else:
        case = matching_case(seed, ((3, 4),), n_features=2)
    given = posed(case, "chain" if kind == "long" else kind)
    lam = draw(LAMS)
    method = draw(methods(lam))
    sampling = may_run(given, method, draw(SAMPLINGS))
    if sampling is None:
        return 0
    found = solved(given, method, tol=0.0, max_passes=3, sampling=sampling, random_state=0)
    if found is None:
        return 0
    check_bounds(given, found, lam, None)
    assert found.dual <= found.primal + close(given, found.primal)
    return 1


# What is drawn, and how often.
KINDS = (runs,) * 12 + (convergent,) * 2 + (stored,) * 2 + (scaled,) * 3 + (many_labels,)


def solves(draw: Draw) -> int:
    """Check some solves, and return how many."""
    return draw(st.sampled_from(KINDS))(draw)

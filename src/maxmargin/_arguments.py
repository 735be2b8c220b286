"""The driver's arguments, checked: an error is one line that says what was expected and what was got."""

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from maxmargin.methods._protocol import notes_gaps, projects, regularisation, scale_error, start
from maxmargin.methods.sampling import SAMPLINGS, Visits
from maxmargin.methods.steps import step_size
from maxmargin.problems._protocol import REQUIRED, Sizes, is_projected, provides, sizes
from maxmargin.wording import described

_LEAST_LAM = 1e-305


def check_protocol(problem: Any) -> None:
    """Raise unless ``problem`` defines all that methods ask of it, and has an example."""
    missing = ", ".join(f.__name__ for f in REQUIRED if not provides(problem, f))
    if isinstance(problem, tuple) and type(problem) is not tuple:
        _expect(not missing, "problem", f"of a class for which {missing} are registered", problem)
    _expect(not missing, "problem", f"made by maxmargin.problems or define {missing}", problem)
    size = sizes(problem)
    _expect(isinstance(size, Sizes), "sizes(problem)", "a maxmargin.problems.Sizes", size)
    _expect(size.examples >= 1, "problem", "of one example or more", size.examples)


def checked_method(method: Any) -> Any:
    """Return ``method`` with its numbers as kernels are compiled for them; raise if it is none."""
    if not _is_registered(start, method):
        raise TypeError(
            f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
            f"got {shown(method)}."
        )
    if hasattr(method, "inner"):
        return method._replace(inner=checked_method(method.inner))
    rule = getattr(method, "step", None)
    known = rule is None or _is_registered(step_size, rule)
    _expect(known, "the method's step", "LineSearch() or Predefined()", rule)
    numbers = _checked_numbers(method)
    return method._replace(**numbers) if hasattr(method, "_replace") else method


def _checked_numbers(method: Any) -> dict[str, float]:
    """Return the method's numbers as kernels are compiled for them; raise if one is out of range."""
    has_lam = hasattr(method, "lam")
    lam = method.lam if has_lam else regularisation(method)
    _expect(_is_positive(lam), "the method's lam", "a number > 0", lam)
    numbers: dict[str, float] = {"lam": float(lam)} if has_lam else {}
    if hasattr(method, "inner_steps"):
        _expect(_is_count(method.inner_steps), "the method's inner_steps", "an int >= 1", method.inner_steps)
        numbers["inner_steps"] = int(method.inner_steps)
    return numbers


def check_scale(problem: Any, method: Any) -> None:
    """Raise unless lam n and its inverse are in the range of float64, with room for what methods add."""
    lam, n = regularisation(method), sizes(problem).examples
    if not (lam >= _LEAST_LAM and lam * n <= 1.0 / _LEAST_LAM):
        raise scale_error(f"lam = {lam:g} for {n} examples, and its inverse,")


def check_limits(tol: Any, max_passes: Any, time_limit: Any, check_every: Any) -> None:
    """Raise unless each says when to stop or to measure."""
    _expect(isinstance(tol, Real) and float(tol) >= 0, "tol", "a number >= 0", tol)
    for name, value in (("max_passes", max_passes), ("check_every", check_every)):
        _expect(_is_count(value), name, "an int >= 1", value)
    _expect(time_limit is None or _is_positive(time_limit), "time_limit", "a number > 0 or None", time_limit)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless it is a number of threads as scikit-learn counts them."""
    valid = n_jobs is None or (isinstance(n_jobs, Integral) and int(n_jobs) != 0)
    _expect(valid, "n_jobs", "an int other than 0, or None", n_jobs)


def checked_callbacks(callbacks: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return the callbacks as a tuple."""
    valid = isinstance(callbacks, Iterable)
    checked = tuple(callbacks) if valid else ()
    _expect(valid and all(map(callable, checked)), "callbacks", "a list of functions", callbacks)
    return checked


def check_sampling(sampling: Any, method: Any) -> None:
    """Raise if examples are to be drawn by gaps of which the method takes no note."""
    expected = f"'permutation' or 'uniform' for {type(method).__name__}, which takes no note of block gaps"
    _expect(sampling != "gap" or notes_gaps(method), "sampling", expected, sampling)


def check_projection(problem: Any, method: Any) -> None:
    """Raise if weights are a projection with which the method is not sound."""
    expected = (
        "FrankWolfe, BlockFrankWolfe, Pairwise, Away or Subgradient, averaged, cached, accelerated or not, "
        "for weights with signs"
    )
    _expect(projects(method) or not is_projected(problem), "method", expected, method)


def drawer(sampling: Any, n: int) -> Callable[[np.random.Generator], Visits]:
    """Return the function that draws the visits of a pass over n examples."""
    known = isinstance(sampling, str) and sampling in SAMPLINGS
    _expect(known, "sampling", f"one of {', '.join(map(repr, SAMPLINGS))}", sampling)
    return SAMPLINGS[sampling](n)


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "an int >= 0, a Generator, a RandomState or None"
        raise ValueError(_message("random_state", expected, random_state)) from None


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def _is_registered(function: Any, subject: Any) -> bool:
    return function.dispatch(type(subject)) is not function.dispatch(object)


def _expect(holds: bool, name: str, expected: str, value: Any) -> None:
    if not holds:
        raise ValueError(_message(name, expected, value))


def _message(name: str, expected: str, value: Any) -> str:
    return f"solve: {name} must be {expected}, got {shown(value)}."


def shown(value: Any) -> str:
    """The value in a few words, on one line."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if isinstance(value, str | Real | None) else described(value)

"""Checks of the driver's arguments; an error is one line that says what was expected and what was got."""

import math
import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from maxmargin.compiling import is_wrapper
from maxmargin.files.checkpoint import Checkpoint, CheckpointLike, as_checkpoint
from maxmargin.methods.protocol import is_method, regularisation, scale_error, traits
from maxmargin.methods.sampling import SAMPLINGS, Sampler
from maxmargin.methods.steps import step_size
from maxmargin.runtime.limits import Limits
from maxmargin.runtime.wording import shown
from maxmargin.solving.result import Callback
from maxmargin.structures.feature_map import MapSizes, is_projected, map_sizes
from maxmargin.structures.oracle import OutputSizes, output_sizes
from maxmargin.structures.problem import AnyProblem, Problem, as_problem, missing_functions, sizes

_LEAST_LAM = 1e-305


def checked_problem(problem: object) -> AnyProblem:
    """Return the problem as a pair; raise unless it is complete and has an example."""
    pair = as_problem(problem)
    missing = ", ".join(missing_functions(pair))
    if isinstance(problem, tuple) and type(problem) not in (tuple, Problem):
        _expect(not missing, "problem", f"of a class for which {missing} are registered", problem)
    _expect(not missing, "problem", f"made by maxmargin.problems or define {missing}", problem)
    names = ("Sizes", "Sizes") if pair.map is pair.oracle else ("MapSizes", "OutputSizes")
    _check_sizes(map_sizes(pair.map), MapSizes._fields, names[0])
    _check_sizes(output_sizes(pair.oracle), OutputSizes._fields, names[1])
    _expect(sizes(pair).examples >= 1, "problem", "of one example or more", sizes(pair).examples)
    return pair


def _check_sizes(size: object, fields: tuple[str, ...], expected: str) -> None:
    known = all(hasattr(size, field) for field in fields)
    _expect(known, "sizes(problem)", f"a maxmargin.problems.{expected}", size)


def checked_method(method: Any) -> Any:
    """Return ``method`` with its numbers in the types that kernels expect; raise if it is not a method."""
    if not is_method(method):
        raise TypeError(
            f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
            f"got {shown(method)}."
        )
    if is_wrapper(type(method)):
        return method._replace(inner=checked_method(method.inner))
    if hasattr(method, "step"):
        known = _is_registered(step_size, method.step)
        _expect(known, "the method's step", "LineSearch() or Predefined()", method.step)
    numbers = _checked_numbers(method)
    return method._replace(**numbers) if hasattr(method, "_replace") else method


def _checked_numbers(method: Any) -> dict[str, float]:
    """Return the method with its numbers in the types that kernels expect; raise if one is out of range."""
    has_lam = hasattr(method, "lam")
    lam = method.lam if has_lam else regularisation(method)
    _expect(_is_positive(lam), "the method's lam", "a number > 0", lam)
    numbers: dict[str, float] = {"lam": float(lam)} if has_lam else {}
    for name in ("inner_steps", "budget"):
        if hasattr(method, name):
            count = getattr(method, name)
            _expect(_is_count(count), f"the method's {name}", "an int >= 1", count)
            numbers[name] = int(count)
    return numbers


def check_scale(problem: AnyProblem, method: object) -> None:
    """Raise unless lam n and its inverse are in the range of float64, with a margin for the methods."""
    lam, n = regularisation(method), sizes(problem).examples
    if not (lam >= _LEAST_LAM and lam * n <= 1.0 / _LEAST_LAM):
        raise scale_error(f"lam = {lam:g} for {n} examples, and its inverse,")


def checked_limits(tol: float, rtol: float, max_passes: int, time_limit: float | None) -> Limits:
    """Return the limits of a run; raise unless they are valid."""
    for name, value in (("tol", tol), ("rtol", rtol)):
        _expect(isinstance(value, Real) and float(value) >= 0, name, "a number >= 0", value)
    check_count("max_passes", max_passes)
    _expect(time_limit is None or _is_positive(time_limit), "time_limit", "a number > 0 or None", time_limit)
    seconds = math.inf if time_limit is None else float(time_limit)
    return Limits(float(tol), float(rtol), int(max_passes), seconds)


def check_count(name: str, value: object, owner: str = "solve") -> None:
    """Raise unless a number of passes, or of other things, is valid."""
    _expect(_is_count(value), name, "an int >= 1", value, owner)


def check_n_jobs(n_jobs: object) -> None:
    """Raise unless ``n_jobs`` is valid, by scikit-learn's convention."""
    valid = n_jobs is None or (isinstance(n_jobs, Integral) and int(n_jobs) != 0)
    _expect(valid, "n_jobs", "an int other than 0, or None", n_jobs)


def checked_callbacks(callbacks: object) -> tuple[Callback, ...]:
    """Return the callbacks as a tuple."""
    checked: tuple[Callback, ...] = tuple(callbacks) if isinstance(callbacks, Iterable) else ()
    _expect(isinstance(callbacks, Iterable), "callbacks", "a list of functions", callbacks)
    for item in checked:
        _expect(callable(item), "each item of callbacks", "a function", item)
    return checked


def check_sampling(sampling: object, method: object) -> None:
    """Raise if gap sampling is asked for and the method does not record block gaps."""
    expected = f"'permutation' or 'uniform' for {type(method).__name__}, which does not record block gaps"
    _expect(sampling != "gap" or traits(method).notes_gaps, "sampling", expected, sampling)


def check_projection(problem: AnyProblem, method: object) -> None:
    """Raise if weights are a projection that the method cannot handle."""
    expected = (
        "FrankWolfe, BlockFrankWolfe, Pairwise, Away or Subgradient, averaged, cached, accelerated or not, "
        "for sign-constrained weights"
    )
    _expect(traits(method).projects or not is_projected(problem.map), "method", expected, method)


def checked_files(checkpoint: CheckpointLike | None, start: object) -> tuple[Checkpoint | None, str | None]:
    """Return the checkpoint, and the file to continue from, if there are any; raise if they do not fit.

    A file of another run, or of an earlier start of this one, is never replaced.
    """
    is_path = isinstance(checkpoint, str | os.PathLike)
    valid = checkpoint is None or is_path or isinstance(checkpoint, Checkpoint)
    _expect(valid, "checkpoint", "a Checkpoint, a path or None", checkpoint)
    kept = as_checkpoint(checkpoint)
    file = str(os.fspath(start)) if isinstance(start, str | os.PathLike) else None
    is_there = file is None or os.path.exists(file)
    _expect(is_there, "start", "a Result of solve, a WarmStart of one or the file of a checkpoint", file)
    if kept is None:
        return None, file
    folder = os.path.dirname(os.path.abspath(kept.path))
    _expect(os.access(folder, os.W_OK), "checkpoint", "a file in a folder that can be written to", kept.path)
    is_ours = not os.path.exists(kept.path) or (file is not None and os.path.samefile(file, kept.path))
    _expect(is_ours, "checkpoint", "a new file, or that of start", kept.path)
    return kept, file


def named_sampler(sampling: str, n: int) -> Sampler:
    """Return the sampler that draws the visits of passes over n examples."""
    known = isinstance(sampling, str) and sampling in SAMPLINGS
    _expect(known, "sampling", f"one of {', '.join(map(repr, SAMPLINGS))}", sampling)
    return SAMPLINGS[sampling](n)


def generator(random_state: Any, owner: str = "solve") -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "an int >= 0, a Generator, a RandomState or None"
        raise ValueError(_message("random_state", expected, random_state, owner)) from None


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def _is_registered(function: Any, subject: object) -> bool:
    return function.dispatch(type(subject)) is not function.dispatch(object)


def _expect(holds: bool, name: str, expected: str, value: object, owner: str = "solve") -> None:
    if not holds:
        raise ValueError(_message(name, expected, value, owner))


def _message(name: str, expected: str, value: object, owner: str) -> str:
    return f"{owner}: {name} must be {expected}, got {shown(value)}."

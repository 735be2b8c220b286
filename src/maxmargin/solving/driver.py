"""The driver of all methods: from the arguments of a run, or of a path of runs, to its result."""

import math
import os
import warnings
from collections.abc import Iterable
from contextlib import closing
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.files.checkpoint import Checkpoint, CheckpointLike, as_checkpoint
from maxmargin.methods import Accelerated, Pairwise
from maxmargin.methods.protocol import traits, with_lam
from maxmargin.methods.scratch import kept_scratch
from maxmargin.runtime.limits import Limits, deadline_at, listening, now, shared_pace
from maxmargin.runtime.threads import threads
from maxmargin.runtime.wording import frames_to_user, shown
from maxmargin.solving.kinds import (
    checked_method,
    checked_problem,
    expect,
    is_count,
    is_positive,
    kind_of,
    message,
)
from maxmargin.solving.result import Callback, Result, Status, as_frame
from maxmargin.solving.resume import RunState, as_warm_start, files_of
from maxmargin.solving.run import Run
from maxmargin.structures.problem import AnyProblem, sizes

# Certificates that have started may exceed the time limit by this factor.
_GRACE = 1.1


def solve(
    problem: object,
    method: object,
    *,
    tol: float = 1e-3,
    rtol: float = 0.0,
    max_passes: int = 1000,
    time_limit: float | None = None,
    check_every: int = 5,
    sampling: str = "permutation",
    callbacks: Iterable[Callback] = (),
    random_state: object = None,
    start: object = None,
    n_jobs: int | None = None,
    checkpoint: CheckpointLike | None = None,
) -> Result:
    r"""Minimise the structural SVM objective, and certify how far the answer is from the minimum.

    .. math:: \min_w \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y
              \left( L_i(y) - \langle w, \phi(x_i, y_i) - \phi(x_i, y) \rangle \right)

    Parameters
    ----------
    problem : problem
        From `maxmargin.problems`, or an object with the same functions. Or a ProductProblem of
        `maxmargin.product`: any smooth convex function, with blocks instead of examples.
    method : method
        Such as ``Accelerated(Pairwise(lam=0.01))`` or ``Averaged(BlockFrankWolfe(lam=0.01), "weighted")``.
    tol, rtol : float
        Stop when the duality gap is at most ``tol``, or at most ``rtol`` times the objective. The objective
        is an upper bound on the mean loss of the training examples; ``tol`` is in its units. A gap of 0.001
        says that no weights have an objective that is lower by more than 0.001. ``rtol`` does not depend on
        these units. On separable data the objective may be close to zero, so keep ``tol`` above zero.
    max_passes : int
        Stop after this many passes over the data, not counting those of a cache.
    time_limit : float, optional
        Stop after this many seconds: the start and certificates count, compilation does not. Time is reserved
        for the last certificate if the limit allows for one; if not, the gap is infinite. A method that
        visits all examples before it moves abandons a pass that it cannot complete in time.
    check_every : int
        Number of passes between certificates. A certificate costs about one pass.
    sampling : {"permutation", "uniform", "gap"}
        Visit the examples in a new random order each pass, draw them with replacement, or draw them in
        proportion to their block gaps, which need dual variables.
    callbacks : iterable of callables
        Each is called after every pass with a `Progress`; the run stops when one returns False.
    random_state : int, Generator, RandomState or None
        Seed; the same seed gives the same result, unless ``time_limit`` ends the run or `Cached` times its
        oracle.
    start : Result, WarmStart or path, optional
        Continue from the result of another run, by the same kind of method at any lam. The problem must be
        the same, or the same with examples appended. On equal data, the first certificate costs no oracle
        call. Otherwise outputs are compared at random weights; this takes some passes, which the history
        counts. Or the path of a checkpoint: continue that run, bit for bit as if it had never stopped.
        Problem, method, ``sampling`` and ``check_every`` must be the same. Limits may change: ``max_passes``
        counts all passes of the run, ``time_limit`` the seconds of this call.
    n_jobs : int, optional
        Threads for the certificates and for the parts of `Divided`: one by default, -1 for one per processor.
        With more threads than parts, a certificate is computed during the pass that follows: the run and the
        callbacks see it one pass later. Weights, bounds and history do not depend on ``n_jobs``, unless
        ``time_limit`` or a callback ends the run. But the last pass may be one that the result does not use,
        and a run that continues from it (``start``) begins after that pass.
    checkpoint : Checkpoint or path, optional
        Store the state of the run in this file every minute, or as often as the `Checkpoint` says. A file
        that exists is replaced only if it is ``start``. Problems with Python objects, as made by ``Custom``,
        have no checkpoints.

    Returns
    -------
    Result
        An interrupt (Ctrl-C) ends the run after the current piece of a pass, and the best point so far is
        returned with its certificate. A second one ends the run at once; the bound is then the last one
        known.

    Raises
    ------
    BrokenOracle
        If an example's block gap is negative or undefined.
    ScaleError
        If numbers leave the range of float64, because features or lam are too large or too small.

    Warns
    -----
    UserWarning
        If the oracle is yours and there was nothing to learn: zero weights are optimal, which happens if
        argmax returns the truth. `check_problem` finds out why.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Accelerated, Pairwise, solve
    >>> from maxmargin.problems import Multiclass
    >>> rng = np.random.default_rng(0)
    >>> problem = Multiclass.from_arrays(rng.normal(size=(60, 4)), rng.integers(3, size=60))
    >>> result = solve(problem, Accelerated(Pairwise(lam=0.1)), tol=1e-3, random_state=0)
    >>> result.dual <= result.primal <= result.dual + 1e-3
    True
    """
    kind = kind_of(problem, method)
    limits = checked_limits(tol, rtol, max_passes, time_limit)
    check_count("check_every", check_every)
    check_n_jobs(n_jobs)
    check_sampling(sampling, kind.method)
    sampler, rng = kind.sampler(sampling), generator(random_state)
    called = checked_callbacks(callbacks)
    settings = {"sampling": sampling, "check_every": int(check_every), "random_state": random_state}
    kept, source = checked_files(checkpoint, start)
    files = files_of(kept, source, kind.problem, kind.method, settings) if kept or source else None
    warm = None if start is None or source else as_warm_start(start)
    begin_time = now()
    deadline = begin_time + _GRACE * limits.time_limit
    with listening(), threads(n_jobs), kept_scratch(), shared_pace(), deadline_at(deadline):
        beginning = kind.begin(warm)
        state, w, _, dual, calls = beginning
        at = RunState(state, kind.notes, sampler, rng, sampler.none(), w, dual, dual, first_calls=calls)
        at = at if files is None else files.continued(at)
        keeper = None if files is None else files.keeper(at)
        with closing(Run(kind, at, limits, called, int(check_every), keeper, begin_time)) as run:
            status = run.begin(beginning) if warm else run.resume()
            del beginning  # arrays of the first state that the run replaces need not stay in memory
            try:
                while status is None:
                    finished = run.one_pass()
                    if finished:
                        run.certify_if_due()
                    status = run.status(finished)
                run.finish()
                status = run.converged() or status
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
                run.finish()
            run.compare_with_zero(status)
            run.rebuild()
    result = run.result(status)
    warning = kind.warning(result.w, result.primal, result.dual)
    if warning is not None:
        warnings.warn(warning, UserWarning, stacklevel=frames_to_user())
    return result


class CPath(NamedTuple):
    """Certified solutions along a path.

    Attributes
    ----------
    Cs : tuple of float
        In ascending order.
    results : tuple of Result
        One for each C.
    """

    Cs: tuple[float, ...]
    results: tuple[Result, ...]

    def to_frame(self) -> Any:
        """Return a DataFrame with the columns C, primal, dual, gap, passes, oracle_calls, seconds."""
        columns = ["C", "primal", "dual", "gap", "passes", "oracle_calls", "seconds"]
        rows = [
            (C, result.primal, result.dual, result.gap, last.passes, last.oracle_calls, last.seconds)
            for C, result in zip(self.Cs, self.results, strict=True)
            for last in result.history.rows[-1:]
        ]
        return as_frame(rows, columns, "CPath.to_frame")


def c_path(problem: AnyProblem, Cs: Iterable[float], *, method: Any = None, **options: Any) -> CPath:
    r"""Solve for each C, where :math:`\lambda = 1 / (C n)`, in ascending order.

    Each solution starts from the dual variables of the one before it, which are feasible for every C.

    Parameters
    ----------
    problem : problem
        From `maxmargin.problems`.
    Cs : iterable of float
        Each > 0.
    method : method, optional
        Any method that `solve` can start from a result; its lam is replaced. By default
        ``Accelerated(Pairwise(lam))``.
    **options
        Passed to `solve` for each C: tol, max_passes, time_limit, callbacks and so on.

    Returns
    -------
    CPath
    """
    values = _ascending(Cs)
    problem = checked_problem(problem)
    n = sizes(problem).examples
    method = Accelerated(Pairwise(lam=1.0)) if method is None else checked_method(method)
    results: list[Result] = []
    for C in values:
        before = results[-1] if results else None
        results.append(solve(problem, with_lam(method, 1.0 / (C * n)), start=before, **options))
    return CPath(values, tuple(results))


def _ascending(Cs: Any) -> tuple[float, ...]:
    """Return the values in ascending order; raise unless there are one or more, all > 0."""
    several = isinstance(Cs, Iterable) and not isinstance(Cs, str)
    values = list(Cs) if several else []
    bad = [C for C in values if not (isinstance(C, Real) and 0 < float(C) < float("inf"))]
    if not values or bad:
        got = shown(bad[0]) if bad else "none" if several else shown(Cs)
        raise ValueError(f"c_path: Cs must be a list of one or more numbers > 0, got {got}.")
    return tuple(sorted(float(C) for C in values))


def checked_limits(tol: float, rtol: float, max_passes: int, time_limit: float | None) -> Limits:
    """Return the limits of a run; raise unless they are valid."""
    for name, value in (("tol", tol), ("rtol", rtol)):
        expect(isinstance(value, Real) and float(value) >= 0, name, "a number >= 0", value)
    check_count("max_passes", max_passes)
    expect(time_limit is None or is_positive(time_limit), "time_limit", "a number > 0 or None", time_limit)
    seconds = math.inf if time_limit is None else float(time_limit)
    return Limits(float(tol), float(rtol), int(max_passes), seconds)


def check_count(name: str, value: object) -> None:
    """Raise unless a number of passes, or of other things, is valid."""
    expect(is_count(value), name, "an int >= 1", value)


def check_n_jobs(n_jobs: object) -> None:
    """Raise unless ``n_jobs`` is valid, by scikit-learn's convention."""
    valid = n_jobs is None or (isinstance(n_jobs, Integral) and int(n_jobs) != 0)
    expect(valid, "n_jobs", "an int other than 0, or None", n_jobs)


def checked_callbacks(callbacks: object) -> tuple[Callback, ...]:
    """Return the callbacks as a tuple."""
    checked: tuple[Callback, ...] = tuple(callbacks) if isinstance(callbacks, Iterable) else ()
    expect(isinstance(callbacks, Iterable), "callbacks", "a list of functions", callbacks)
    for item in checked:
        expect(callable(item), "each item of callbacks", "a function", item)
    return checked


def check_sampling(sampling: object, method: object) -> None:
    """Raise if gap sampling is asked for and the method does not record block gaps."""
    expected = f"'permutation' or 'uniform' for {type(method).__name__}, which does not record block gaps"
    expect(sampling != "gap" or traits(method).notes_gaps, "sampling", expected, sampling)


def checked_files(checkpoint: CheckpointLike | None, start: object) -> tuple[Checkpoint | None, str | None]:
    """Return the checkpoint, and the file to continue from, if there are any; raise if they do not fit.

    A file of another run, or of an earlier start of this one, is never replaced.
    """
    is_path = isinstance(checkpoint, str | os.PathLike)
    valid = checkpoint is None or is_path or isinstance(checkpoint, Checkpoint)
    expect(valid, "checkpoint", "a Checkpoint, a path or None", checkpoint)
    file = str(os.fspath(start)) if isinstance(start, str | os.PathLike) else None
    is_there = file is None or os.path.exists(file)
    expect(is_there, "start", "a Result of solve, a WarmStart of one or the file of a checkpoint", file)
    if checkpoint is None:
        return None, file
    kept = as_checkpoint(checkpoint)
    folder = os.path.dirname(os.path.abspath(kept.path))
    expect(os.access(folder, os.W_OK), "checkpoint", "a file in a folder that can be written to", kept.path)
    is_ours = not os.path.exists(kept.path) or (file is not None and os.path.samefile(file, kept.path))
    expect(is_ours, "checkpoint", "a new file, or that of start", kept.path)
    return kept, file


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "an int >= 0, a Generator, a RandomState or None"
        raise ValueError(message("random_state", expected, random_state)) from None

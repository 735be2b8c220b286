"""Solutions for many values of C, each with a warm start from the one before."""

from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

from maxmargin._arguments import checked_method, checked_problem
from maxmargin.driver import solve
from maxmargin.history import as_frame
from maxmargin.methods import Accelerated, Pairwise
from maxmargin.methods.protocol import with_lam
from maxmargin.problems.problem import AnyProblem, sizes
from maxmargin.result import Result
from maxmargin.wording import shown


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

"""Methods that can go on from a result, a few passes of them, and a problem that counts its oracle calls."""

from typing import Any

from maxmargin import Accelerated, Averaged, Away, BlockFrankWolfe, FrankWolfe, Pairwise, Result, solve
from maxmargin.problems._protocol import REQUIRED
from support.catalogue import Case

LAM = 0.1
BLOCK_METHODS = {
    "bcfw": BlockFrankWolfe(0.1),
    "pairwise": Pairwise(0.1),
    "away": Away(0.1),
    "bcfw-wavg": Averaged(BlockFrankWolfe(0.1)),
    "accelerated pairwise": Accelerated(Pairwise(0.1)),
    "accelerated bcfw": Accelerated(BlockFrankWolfe(0.1)),
}
ALL_METHODS = BLOCK_METHODS | {"fw": FrankWolfe(0.1), "fw-wavg": Averaged(FrankWolfe(0.1))}


def some_passes(case: Case, method: Any, passes: int = 3, **options: Any) -> Result:
    """Return the result of a few passes, with one certificate at their end."""
    return solve(
        case.problem,
        method,
        **{"tol": 0.0, "max_passes": passes, "check_every": 10, "random_state": 0} | options,
    )


class Counted:
    """A problem as a plain Python object that counts the calls of its oracle."""

    def __init__(self, problem: Any) -> None:
        self.inner, self.calls = problem, 0


def _method(function: Any) -> Any:
    def method(self: Counted, *args: Any) -> Any:
        self.calls += function.__name__ == "argmax"
        return function(self.inner, *args)

    return method


for _function in REQUIRED:
    setattr(Counted, _function.__name__, _method(_function))

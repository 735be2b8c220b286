"""Methods that can go on from a result, a few passes of them, and a problem that counts its oracle calls."""

from typing import Any

from maxmargin import Accelerated, Averaged, Away, BlockFrankWolfe, FrankWolfe, Pairwise, Result, solve
from support.catalogue import Case
from support.plain import Plain

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


class Counted(Plain):
    """A problem as a plain Python object that counts the calls of its oracle."""

    def __init__(self, problem: Any) -> None:
        super().__init__(problem)
        self.calls = 0

    def argmax(self, *args: Any) -> None:
        self.calls += 1
        super().argmax(*args)  # type: ignore[misc]

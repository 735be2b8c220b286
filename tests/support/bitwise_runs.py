"""Small solves, written as the exact bits of all their numbers; as a script, in JSON on standard output."""

import json
import sys
from collections.abc import Callable
from typing import Any

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Predefined, solve
from support.catalogue import chain_case, multiclass_case
from support.naive import Array

LAM = 0.05
_BLOCK = BlockFrankWolfe(LAM)
RUNS: dict[str, tuple[Callable[[], Any], Any]] = {
    "chain, BCFW": (lambda: chain_case(40), _BLOCK),
    "chain, FW": (lambda: chain_case(41), FrankWolfe(LAM)),
    "chain, averaged": (lambda: chain_case(42, (4, 2, 3), 4), Averaged(_BLOCK)),
    "chain of sparse rows, BCFW": (lambda: chain_case(43, (5, 1, 2), rows="sparse"), _BLOCK),
    "multiclass, BCFW": (lambda: multiclass_case(44), _BLOCK),
    "multiclass, predefined steps": (lambda: multiclass_case(45), BlockFrankWolfe(LAM, Predefined())),
    "multiclass, FW": (lambda: multiclass_case(46), FrankWolfe(LAM)),
    "multiclass, averaged": (lambda: multiclass_case(47), Averaged(_BLOCK)),
    "multiclass, suffix average": (lambda: multiclass_case(48), Averaged(_BLOCK, "suffix")),
    "multiclass of sparse rows, BCFW": (lambda: multiclass_case(49, rows="sparse"), _BLOCK),
    "multiclass of indicators, BCFW": (lambda: multiclass_case(50, n=9, rows="indicator"), _BLOCK),
}


def bits(values: Array) -> list[str]:
    """Return numbers in hexadecimal, digit for digit."""
    return [float(value).hex() for value in values]


def run(name: str) -> dict[str, list[str]]:
    """Return the bits of the weights and of the history of one run."""
    made, method = RUNS[name]
    result = solve(made().problem, method, tol=0.0, max_passes=24, check_every=3, random_state=7)
    return {"weights": bits(result.weights)} | {
        column: bits(result.history[column]) for column in ("primal", "dual", "gap")
    }


if __name__ == "__main__":
    json.dump({name: run(name) for name in RUNS}, sys.stdout)

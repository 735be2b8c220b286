"""A few fits, written as the exact bits of their numbers."""

import numpy as np

from maxmargin import Averaged, BlockFrankWolfe, ExponentiatedGradient, solve
from support.catalogue import chain_case, multiclass_case

LAM = 0.05
FITS = {
    "multiclass, expectations": (lambda: multiclass_case(44), ExponentiatedGradient(LAM)),
    "chain of sparse rows, averaged": (
        lambda: chain_case(43, (5, 1, 2), rows="sparse"),
        Averaged(BlockFrankWolfe(LAM)),
    ),
}


def fits() -> dict[str, list[str]]:
    """Return primal, dual and weights of each fit."""
    found = {}
    for name, (case, method) in FITS.items():
        result = solve(case().problem, method, tol=0.0, max_passes=5, random_state=0)
        numbers = [result.primal, result.dual, *np.ravel(result.weights)]
        found[name] = [float(number).hex() for number in numbers]
    return found

"""A user's own problems give the bits of the package's, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest

from maxmargin import Accelerated, Averaged, BlockFrankWolfe, FrankWolfe, Pairwise, Result, solve
from maxmargin.methods.sweep import sweep
from maxmargin.problems import Multiclass, Sizes
from maxmargin.structures.problem import as_problem
from support.bitwise_runs import bits
from support.naive import Array
from support.own_problems import N_CLASSES, OwnObject, data, own_problems


def ran(problem: Any, method: Any) -> Result:
    return solve(problem, method, tol=0.0, max_passes=20, check_every=4, random_state=3)


METHODS = (
    BlockFrankWolfe(0.1),
    FrankWolfe(0.1),
    Averaged(BlockFrankWolfe(0.1)),
    Pairwise(0.1),
    Accelerated(Pairwise(0.1)),
    Accelerated(BlockFrankWolfe(0.1)),
)
ALL = [(mode, method) for method in METHODS for mode in ("interpreted", "compiled")]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("mode", "method"), [ALL[0], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ALL[1:])]
)
def test_own_problems_give_the_bits_of_multiclass(mode: str, method: Any) -> None:
    problem = own_problems()[mode]
    assert sweep.mode(as_problem(problem), method) == mode
    expected, found = ran(Multiclass.from_encoded(*data(), N_CLASSES), method), ran(problem, method)
    assert bits(found.weights) == bits(expected.weights)
    for column in ("primal", "dual", "gap"):
        assert bits(found.history[column]) == bits(expected.history[column])
    assert found.primal - found.dual < 0.5 * found.history.gap[0]


class Cancelling(OwnObject):
    """Its psi of the truth is zero as a sum only, and every index occurs twice."""

    def sizes(self) -> Sizes:
        return super().sizes()._replace(parts=4)

    def psi(self, i: int, y: Array, index: Array, value: Array) -> int:
        index[:], value[:] = (self.y[i], y[0], self.y[i], y[0]), (0.25, -0.25, 0.75, -0.75)
        return 4


@pytest.mark.parametrize("method", [Pairwise(0.1), Accelerated(Pairwise(0.1)), BlockFrankWolfe(0.1)])
def test_entries_that_repeat_or_cancel(method: Any) -> None:
    """The run is another one, as the truth may stand twice in an active set, but not a worse one."""
    plain, cancelling = ran(OwnObject(*data()), method), ran(Cancelling(*data()), method)
    assert cancelling.dual <= plain.primal
    assert cancelling.primal >= plain.dual
    assert cancelling.gap <= max(1e-6, 3.0 * plain.gap)


@pytest.mark.slow
def test_no_own_class_is_written_to_the_cache() -> None:
    cached, compiled = list(sweep.cached.signatures), list(sweep.compiled.signatures)
    problem = own_problems()["compiled"]
    ran(problem._replace(X=np.asfortranarray(problem.X)), BlockFrankWolfe(0.1))  # a type not met before
    assert sweep.cached.signatures == cached
    assert len(sweep.compiled.signatures) == len(compiled) + 1
    assert type(sweep.compiled._cache).__name__ == "NullCache"

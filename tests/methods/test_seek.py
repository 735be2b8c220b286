"""The seam through which a method finds corners in a way of its own, compiled and interpreted."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import Pairwise, solve
from maxmargin.methods.between_visits import NO_ACCELERATION
from maxmargin.methods.protocol import DONE, Point, has_room, point, regularisation, seek, start, step
from maxmargin.methods.rules import Listed
from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.methods.sweep import advance, sweep, sweep_all
from maxmargin.solving import objective
from maxmargin.structures.feature_map import score
from support.active_sets import with_room
from support.bitwise_runs import bits
from support.catalogue import multiclass_case
from support.runs import random_order

INNER = Pairwise(0.1)


class OddOnly(NamedTuple):
    """A method that answers for its oracle at every other example: with the truth, which moves nothing."""

    base: Pairwise


@start.register(OddOnly)
def odd_start(method: OddOnly, problem: Any) -> Any:
    return start(method.base, problem)


@seek.register(OddOnly)
def odd_seek(method, state, problem, i, w, scratch):
    if i % 2 == 1:
        return find_corner(problem, i, w, scratch)
    score(problem.map, i, w, scratch.block.theta)
    scratch.block.corner.size[0] = 0
    return 0.0, 0.0


@has_room.register(OddOnly)
def odd_has_room(method, state, i, sizes):
    return has_room(method.base, state, i, sizes)


@step.register(OddOnly)
def odd_step(method, state, phi, i, loss_y, hinge, work):
    return step(method.base, state, phi, i, loss_y, hinge, work)


@advance.register(OddOnly)
def odd_advance(method: OddOnly, state: Any, problem: Any, visits: Any) -> Any:
    return sweep_all(problem, method, state, visits)


@point.register(OddOnly)
def odd_point(method: OddOnly, state: Any, problem: Any) -> Point:
    return point(method.base, state, problem)


@regularisation.register(OddOnly)
def odd_regularisation(method: OddOnly) -> float:
    return method.base.lam


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_a_method_finds_its_own_corners(mode: str) -> None:
    """It does what the method inside does with the odd examples alone."""
    problem, method = multiclass_case(51, n=6).problem, OddOnly(INNER)
    order, state = random_order(problem, 40, seed=0), start(method, problem)
    state = state._replace(planes=with_room(state.planes))
    assert sweep.mode(problem, method, state) == "compiled"
    loop = getattr(sweep, mode)
    scratch = new_scratch(problem)
    assert tuple(loop(problem, method, state, state.w, Listed(order), scratch, NO_ACCELERATION)) == (40, DONE)
    expected = advance(INNER, start(INNER, problem), problem, order[order % 2 == 1])
    assert bits(state.w) == bits(expected.w)
    assert bits(state.ell) == bits(expected.ell)
    assert np.count_nonzero(state.ell) == 3


def test_other_corners_cost_no_certificate_its_truth() -> None:
    """The primal is measured by the oracle itself, the dual is that of the variables: the gap stays."""
    problem = multiclass_case(51, n=6).problem
    result = solve(problem, OddOnly(INNER), tol=0.0, max_passes=30, random_state=0)
    best = solve(problem, INNER, tol=1e-9, random_state=0)
    assert result.dual < best.dual < best.primal < result.primal
    assert result.primal == objective.primal(problem, result.w, 0.1)

"""Workspace that a run keeps: it serves the problem it was made for, and results do not depend on it."""

import weakref
from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest

from maxmargin import Accelerated, FrankWolfe, Pairwise, solve
from maxmargin.methods.scratch import kept_scratch, scratch_for
from maxmargin.problems import Chain, Custom, Multiclass, Weighted
from maxmargin.solving import driver
from maxmargin.structures.slack import NO_WEIGHTS

RNG = np.random.default_rng(0)
SEQUENCES = [RNG.normal(size=(length, 5)) for length in (1, 3, 4, 2, 3)]
LABELS = [RNG.integers(3, size=len(rows)) for rows in SEQUENCES]
CHAIN = Chain.from_sequences(SEQUENCES, LABELS)
CLASSES = Multiclass.from_arrays(RNG.normal(size=(12, 3)), np.arange(12) % 3)

OWN = Custom(
    lambda x, y: x[:, y], lambda a, b: float(a != b), lambda x, w, y=None: 0, [np.eye(4)] * 3, [1, 2, 0]
)


def lent(problem, w=None):
    with scratch_for(problem, w) as (_, scratch):
        return scratch


def test_one_problem_has_the_same_work_space_again():
    with kept_scratch():
        first = lent(CHAIN, np.zeros(3))
        assert lent(CHAIN) is first
        with scratch_for(CHAIN, weighs=False) as outer, scratch_for(CHAIN, weighs=False) as inner:
            assert outer[1] is first
            assert inner[1] is not first
    assert lent(CHAIN) is not lent(CHAIN)


def test_other_problems_and_weights_have_another():
    weighted = Weighted(CHAIN, np.ones(5))
    with kept_scratch():
        first = lent(CHAIN)
        assert lent(CLASSES) is not first
        assert lent(weighted).weights is weighted.oracle.weights
        with scratch_for(weighted) as (inner, _), scratch_for(weighted, weighs=False) as (whole, own):
            assert inner.oracle is CHAIN.oracle
            assert whole is weighted
            assert own.weights is NO_WEIGHTS
        assert lent(CHAIN).weights is NO_WEIGHTS


def test_scores_that_are_the_weights_are_those_of_the_call():
    problem, a, b = OWN, np.zeros(4), np.zeros(4)
    with kept_scratch():
        assert lent(problem, a).block.theta is a
        assert lent(problem, b).block.theta is b
        assert lent(problem).block.theta is not b


def test_work_space_holds_no_weights_but_those_that_scores_are():
    with kept_scratch():
        w = np.zeros(3)
        lent(CHAIN, w)
        alive = weakref.ref(w)
        del w
        assert alive() is None


def test_work_space_of_an_error_is_not_lent_again():
    with kept_scratch():
        first = lent(CHAIN)
        with pytest.raises(KeyError), scratch_for(CHAIN):
            raise KeyError
        assert lent(CHAIN) is not first


@pytest.mark.parametrize("problem", [CHAIN, CLASSES, Weighted(CHAIN, np.arange(1.0, 6.0))])
@pytest.mark.parametrize("method", [Accelerated(Pairwise(0.1)), FrankWolfe(0.1)])
def test_runs_do_not_depend_on_it(problem, method):
    kept = solve(problem, method, max_passes=7, check_every=2, random_state=0)
    with mock.patch.object(driver, "kept_scratch", nullcontext):
        fresh = solve(problem, method, max_passes=7, check_every=2, random_state=0)
    np.testing.assert_array_equal(kept.w, fresh.w)
    assert (kept.primal, kept.dual) == (fresh.primal, fresh.dual)

"""Snapshots of the weights that kernels take between visits, against a mean of all iterates with weights."""

import numpy as np
import pytest

from maxmargin import Away, BlockExact, BlockFrankWolfe, Cached, Divided, FrankWolfe, Pairwise
from maxmargin.methods.between_visits import Acceleration, before_visit
from maxmargin.methods.sweep import is_swept


@pytest.mark.parametrize("every", [1, 2, 3])
def test_the_mean_has_density_t2_from_the_last_snapshot_before(every: int) -> None:
    path, mean, last = np.random.default_rng(0).normal(size=(7, 4)), np.full(4, 2.0), np.array([5, 0])
    for t, w in enumerate(path):
        before_visit(Acceleration(before=5, interval=every, last=last, mean=mean), t, w, None)
    taken = np.arange(every, 7, every)
    shares = np.diff((5.0 + np.array([-5, 0, *taken])) ** 3)
    expected = shares @ np.array([np.full(4, 2.0), *path[taken]]) / shares.sum()
    assert mean == pytest.approx(expected, abs=1e-14)
    assert last[0] == 5 + taken[-1]


def test_a_visit_that_begins_again_is_counted_once() -> None:
    """A kernel that lacks room returns, and comes back to the same visit."""
    mean, last, w = np.zeros(2), np.array([1, 0]), np.ones(2)
    for done, t in ((0, 1), (1, 0)):
        before_visit(Acceleration(done, before=1, interval=1, last=last, mean=mean), t, w, None)
        assert mean == pytest.approx(1.0 - 0.5**3)
        w = 9.0 * w


def test_methods_with_loops_of_their_own_are_not_swept() -> None:
    swept = Pairwise(1.0), Away(1.0), BlockFrankWolfe(1.0)
    others = Cached(Pairwise(1.0)), Divided(Pairwise(1.0), 2), BlockExact(1.0), FrankWolfe(1.0)
    assert [is_swept(method) for method in (*swept, *others)] == [True] * 3 + [False] * 4

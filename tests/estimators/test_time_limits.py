"""Time limits of estimators: encoding and building count, and long builds end in time."""

import itertools
import math
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from maxmargin import BlockFrankWolfe, Pairwise, solve
from maxmargin.encoding import kinds
from maxmargin.estimators import confidence, estimator
from maxmargin.problems import Chain, GaussianKernel, Kernelised, Multiclass
from maxmargin.runtime import limits
from maxmargin.runtime.limits import now
from maxmargin.structures.label_sets.model import mutual_information
from support.estimators import KINDS

LAM, N = 0.05, 30
Y = np.arange(N) % 3
X = np.random.default_rng(0).normal(size=(N, 3)) + np.eye(3)[Y]


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def slow_builds(monkeypatch):
    """Time that passes only while examples are encoded and problems are built: ten and twenty seconds."""
    clock, given = Clock(), []
    monkeypatch.setattr(limits, "time", clock)

    def slow(cls, name, seconds):
        hook = getattr(cls, name)

        def called(*args):
            clock.now += seconds
            return hook(*args)

        monkeypatch.setattr(cls, name, called)

    def noted_solve(*args, **options):
        given.append(options["time_limit"])
        return solve(*args, **options)

    for kind in KINDS.values():
        cls = type(kind.new()._structure)
        slow(cls, "encode", 10.0)
        slow(cls, "problem", 20.0)
    monkeypatch.setattr(estimator, "solve", noted_solve)
    return given


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_encoding_and_building_count(slow_builds, kind):
    model = kind.new(time_limit=100.0).fit(kind.X, kind.y)
    assert slow_builds == [pytest.approx(70.0)]
    assert model.time_limit == 100.0
    model.partial_fit(kind.X, kind.y).partial_fit(kind.X, kind.y)
    assert slow_builds == pytest.approx([70.0] * 3)
    kind.new().fit(kind.X, kind.y)
    assert slow_builds[-1] is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_build_that_takes_all_time_leaves_training_a_moment(slow_builds, kind):
    kind.new(time_limit=25.0).fit(kind.X, kind.y)
    assert slow_builds == [pytest.approx(1e-3)]


def test_all_trainings_of_probabilities_share_what_building_leaves(slow_builds):
    kind = KINDS["chain"]
    model = kind.new(time_limit=100.0, probability=True, tol=0.5).fit(kind.X, kind.y)
    # Half of it for the training that predicts; four folds and the temperature share what that leaves.
    assert slow_builds == pytest.approx([35.0, 70.0 / 5, 70.0 / 4, 70.0 / 3, 70.0 / 2])
    assert model.temperature_ > 0.0


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_fit_whose_time_is_up_before_training_is_a_model_with_a_warning(monkeypatch, kind):
    readings = itertools.count(0.0)  # each takes a second
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    with pytest.warns(ConvergenceWarning, match="after 0 passes there is no certificate; raise time_limit"):
        model = kind.new(time_limit=0.5).fit(kind.X, kind.y)
    assert (model.gap_, model.n_iter_) == (math.inf, 0)
    assert len(model.predict(kind.X)) == len(kind.X)


@contextmanager
def no_time():
    with limits.deadline_at(now() - 1.0):
        yield


@pytest.mark.parametrize("rows", [X, scipy.sparse.csr_array(X)], ids=["dense", "sparse"])
def test_tables_of_inner_products_are_left_out_if_time_is_up(rows):
    data = rows, np.arange(0, N + 1, 5), Y, 3
    with no_time():
        none = Chain.from_encoded(*data)
    whole = Chain.from_encoded(*data)
    assert (len(none.map.products), len(whole.map.products)) == (0, 25 * (N // 5))
    found, expected = (solve(p, BlockFrankWolfe(LAM), tol=1e-2, random_state=0) for p in (none, whole))
    assert found.w == pytest.approx(expected.w, abs=1e-9)


def test_a_kernel_matrix_is_left_out_if_time_is_up():
    """Its columns are computed when they are needed: the same bits."""
    plain, kernel = Multiclass.from_encoded(np.zeros((N, 0)), Y, 3), GaussianKernel(0.5)
    whole = Kernelised(plain, X, kernel)
    with no_time():
        rest = Kernelised(plain, X, kernel)
    assert type(whole.map.columns) is not type(rest.map.columns)
    found, expected = (solve(p, Pairwise(LAM), tol=1e-3, random_state=0) for p in (rest, whole))
    assert np.array_equal(found.w, expected.w)


def test_a_tree_of_labels_is_that_of_the_rows_that_time_allows(monkeypatch):
    monkeypatch.setattr(kinds, "PIECE", 50)
    sets = np.random.default_rng(0).integers(2, size=(40, 4))
    assert not np.array_equal(mutual_information(sets[:10]), mutual_information(sets))
    with no_time():
        assert np.array_equal(mutual_information(sets), mutual_information(sets[:10]))


def test_a_calibration_ends_in_time(monkeypatch):
    kind, given = KINDS["chain"], []
    monkeypatch.setattr(confidence, "best_temperature", lambda data, deadline: given.append(deadline) or 1.0)
    monkeypatch.setattr(limits, "time", Clock())
    model = kind.new(time_limit=60.0).fit(kind.X, kind.y).calibrate(kind.X, kind.y)
    model.set_params(time_limit=None).calibrate(kind.X, kind.y)
    assert given == [now() + 60.0, math.inf]

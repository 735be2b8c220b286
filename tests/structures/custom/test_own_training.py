"""Methods and callbacks of users' own, and advice for runs that do not converge."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Averaged, BlockFrankWolfe, ChainSVC, MatchingSVC, MulticlassSVC, Pairwise
from maxmargin.estimators.examples import scale_advice

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 3


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("pairwise", Pairwise(lam=99.0)),
        ("bcfw-wavg", Averaged(BlockFrankWolfe(lam=0.5), "weighted")),
    ],
)
def test_a_method_object_is_that_method_at_this_C(name, method):
    named = MulticlassSVC(C=0.3, method=name, random_state=0).fit(X, Y)
    given = MulticlassSVC(C=0.3, method=method, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(given.coef_, named.coef_)
    assert given.n_iter_ == named.n_iter_
    assert given.method is method
    assert clone(given).method == method


@pytest.mark.parametrize("method", ["newton", 3, None])
def test_what_is_not_a_method_is_refused(method):
    with pytest.raises(ValueError, match="The 'method' parameter of MulticlassSVC must be"):
        MulticlassSVC(method=method).fit(X, Y)


def test_a_tuple_that_is_no_method_is_refused():
    with pytest.raises(TypeError, match=r"method must be one of maxmargin's methods.* got a tuple\."):
        MulticlassSVC(method=(1, 2)).fit(X, Y)


def test_callbacks_are_told_in_the_units_of_the_estimator():
    weights, told = np.random.default_rng(1).uniform(0.5, 3.0, size=30), []
    model = MulticlassSVC(callbacks=[told.append], check_every=1, random_state=0)
    model.fit(X, Y, sample_weight=weights)
    # Zero weights end the run: their row follows that of the method's, at the same number of passes.
    rows = {row.passes: row for row in model.history_}
    assert len(told) == len(rows) == len(model.history_) - 1
    assert [progress.last for progress in told] == list(rows.values())
    assert told[0].limits.rtol == model.tol
    assert told[0].limits.tol == pytest.approx(0.01 * model.tol)


def test_a_callback_stops_training_without_a_warning():
    model = MulticlassSVC(callbacks=[lambda progress: progress.passes < 2], tol=0.0, random_state=0).fit(X, Y)
    assert model.n_iter_ == 2
    assert model.gap_ > 0.0


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_features_on_odd_scales_are_named(make):
    odd = make(X * [1.0, 1e-3, 500.0])
    scales = np.sqrt(np.square(X * [1.0, 1e-3, 500.0]).mean(axis=0))
    expected = re.escape(f"the columns of X range from {scales.min():.2g} to {scales.max():.2g}")
    with pytest.warns(ConvergenceWarning, match=f"{expected}.*StandardScaler.*TokenTransformer"):
        MulticlassSVC(max_iter=2, tol=0.0, fit_intercept=False).fit(odd, Y)
    with pytest.warns(ConvergenceWarning, match=expected):
        ChainSVC(max_iter=2, tol=0.0).fit([odd[:10], odd[10:]], [Y[:10], Y[10:]])


def test_features_of_links_on_odd_scales_are_named():
    odd = X * [1.0, 1e-3, 500.0]
    pairs = [odd[:6].reshape(2, 3, 3), odd[6:18].reshape(4, 3, 3), odd[18:].reshape(3, 4, 3)]
    scales = np.sqrt(np.square(odd).mean(axis=0))
    expected = re.escape(f"the columns of X range from {scales.min():.2g} to {scales.max():.2g}")
    with pytest.warns(ConvergenceWarning, match=expected):
        MatchingSVC(max_iter=2, tol=0.0).fit(pairs, [[0, 1], [2, 1, 0, -1], [3, -1, 0]])


def test_alike_features_are_not_mentioned():
    counted = csr_array((np.ones(102), (np.arange(102), [0] * 100 + [1, 2])))
    assert scale_advice(X) == scale_advice(counted) == scale_advice([object()]) == ""

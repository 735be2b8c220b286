"""C="scale": one divided by the variance of the features, in units of a constant of each estimator."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from maxmargin import ChainSVC, MulticlassSVC, MultilabelSVC

CONSTANTS = {MulticlassSVC: 3.0, MultilabelSVC: 1.0}


def made(rng, n=30):
    """Return rows on several scales, and one of two classes for each."""
    y = rng.integers(2, size=n)
    return (rng.normal(size=(n, 3)) + y[:, None]) * [0.5, 1.0, 2.0] + 4.0, y


@pytest.fixture(params=CONSTANTS, ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_scale_is_the_variance_of_the_columns(estimator, form):
    X, y = made(np.random.default_rng(0))
    model = estimator(random_state=0).fit(form(X), y)
    assert model.C == "scale"
    np.testing.assert_allclose(model.C_, CONSTANTS[estimator] / X.var(axis=0).sum())
    same = estimator(C=model.C_, random_state=0).fit(form(X), y)
    np.testing.assert_array_equal(same.coef_, model.coef_)


def test_weights_count_as_repetitions(estimator):
    rng = np.random.default_rng(1)
    (X, y), times = made(rng), rng.integers(0, 4, size=30)
    weighted = estimator(random_state=0).fit(X, y, sample_weight=times)
    repeated = estimator(random_state=0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.C_, repeated.C_, rtol=1e-12)


def test_the_unit_of_features_does_not_matter():
    X, y = made(np.random.default_rng(2))
    models = [MulticlassSVC(fit_intercept=False, random_state=0).fit(unit * X, y) for unit in (1.0, 1024.0)]
    np.testing.assert_allclose(models[0].coef_, 1024.0 * models[1].coef_, rtol=1e-9)


def test_partial_fit_scales_by_all_examples(estimator):
    X, y = made(np.random.default_rng(3))
    model = estimator(random_state=0)
    for part in (slice(None, 10), slice(10, None)):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(model.C_, CONSTANTS[estimator] / X.var(axis=0).sum())


def test_warm_start_with_scale_needs_no_pass_on_the_same_data(estimator):
    X, y = made(np.random.default_rng(4))
    model = estimator(random_state=0, warm_start=True).fit(X, y)
    np.testing.assert_equal(model.C_, model.fit(X, y).C_)
    assert model.n_iter_ <= 1


@pytest.mark.parametrize("value", [0.0, 7.1])
def test_without_variance_c_is_one(estimator, value):
    assert estimator(random_state=0).fit(np.full((4, 2), value), [0, 1, 0, 1]).C_ == 1.0


def test_with_a_kernel_scale_is_one(estimator):
    X, y = made(np.random.default_rng(5))
    assert estimator(kernel="rbf", random_state=0).fit(X, y).C_ == 1.0


def test_numbers_are_kept(estimator):
    X, y = made(np.random.default_rng(6))
    assert estimator(C=2, random_state=0).fit(X, y).C_ == 2.0
    assert ChainSVC(C=0.5, random_state=0).fit([X], [y]).C_ == 0.5
    with pytest.raises(ValueError, match="'C' parameter"):
        estimator(C="auto").fit(X, y)

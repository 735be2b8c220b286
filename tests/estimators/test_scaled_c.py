"""C="scale": one divided by the variance of the features, in units of a constant of each estimator."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from maxmargin import ChainSVC, GraphSVC, MulticlassSVC, MultilabelSVC

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
    assert estimator(C=2, tol=10.0, random_state=0).fit(X, y).C_ == 2.0
    assert ChainSVC(C=0.5, tol=10.0, random_state=0).fit([X], [y]).C_ == 0.5
    with pytest.raises(ValueError, match="'C' parameter"):
        estimator(C="best").fit(X, y)


def graphs_of(rng, sizes):
    """Return graphs without edges of so many nodes, and labels."""
    X, y = made(rng, n=sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    return [(nodes, np.zeros((0, 2), dtype=int)) for nodes in np.split(X, ends)], np.split(y, ends)


@pytest.mark.parametrize("sizes", [(3, 9, 12), (50, 60)])
def test_graphs_of_many_nodes_count_as_48(sizes):
    X, y = graphs_of(np.random.default_rng(7), sizes)
    variance, size = np.concatenate([nodes for nodes, _ in X]).var(axis=0).sum(), np.mean(sizes)
    found = {
        loss: GraphSVC(loss=loss, max_iter=1, tol=10.0).fit(X, y).C_
        for loss in ("hamming", "normalized_hamming")
    }
    np.testing.assert_allclose(found["hamming"], 3.0 / variance * min(1.0, 48 / size))
    # Where all graphs have one size, both losses have the same minimum at these two.
    np.testing.assert_allclose(found["normalized_hamming"], found["hamming"] * size)
    costs = GraphSVC(loss=1.0 - np.eye(2), max_iter=1, tol=10.0).fit(X, y)
    assert found["normalized_hamming"] == costs.C_
    kernel = GraphSVC(kernel="rbf", max_iter=1, tol=10.0).fit(X, y)
    np.testing.assert_allclose(kernel.C_, min(1.0, 48 / size))


def test_weights_of_graphs_count_as_repetitions():
    X, y = graphs_of(np.random.default_rng(8), (70, 30, 90))
    times = np.array([1, 2, 3])
    weighted = GraphSVC(max_iter=1, tol=10.0).fit(X, y, sample_weight=times)
    again = np.repeat(np.arange(3), times)
    repeated = GraphSVC(max_iter=1, tol=10.0).fit([X[i] for i in again], [y[i] for i in again])
    np.testing.assert_allclose(weighted.C_, repeated.C_, rtol=1e-12)


def test_void_nodes_do_not_count():
    X, y = graphs_of(np.random.default_rng(9), (20, 20))
    y = [np.where(np.arange(20) < 5, 255, labels) for labels in y]
    known = [(nodes[5:], edges) for nodes, edges in X]
    model = GraphSVC(void=255, max_iter=1, tol=10.0).fit(X, y)
    np.testing.assert_allclose(
        model.C_, GraphSVC(max_iter=1, tol=10.0).fit(known, [labels[5:] for labels in y]).C_
    )

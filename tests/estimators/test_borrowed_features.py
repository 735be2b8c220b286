"""Estimators train and predict on features where and as they are, and keep none of them that could change."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    ChainSVC,
    Checkpoint,
    DependencySVC,
    GraphSVC,
    MulticlassSVC,
    MultilabelSVC,
    SegmentSVC,
    TokenTransformer,
    solve,
)
from maxmargin.encoding import kinds
from maxmargin.estimators import estimator
from maxmargin.estimators.examples import mean_variance, scale_advice, total_variance
from maxmargin.estimators.tables import with_constant
from maxmargin.structures.rows import as_rows

RNG = np.random.default_rng(0)
TOKENS = RNG.normal(size=(6, 3, 4)).astype(np.float32)
LABELS = np.where(TOKENS[:, :, 0] + TOKENS[:, :, 1] > 0, 1, 0).tolist()
TABLE, CLASSES = TOKENS.reshape(18, 4), np.ravel(LABELS)
OPTIONS = {"verbose": 0, "random_state": 0, "max_iter": 60, "tol": 0.2}
EDGES = [(0, 1), (1, 2)]


def converted(X, dtype):
    """Features of one type: of an array, or of the first parts of graphs."""
    if isinstance(X, list):
        return [
            tuple(converted(part, dtype) for part in x) if isinstance(x, tuple) else converted(x, dtype)
            for x in X
        ]
    return X.astype(dtype) if hasattr(X, "astype") else X


CASES = {
    "chain": (ChainSVC, TOKENS, LABELS),
    "second-order chain": (lambda **kw: ChainSVC(order=2, **kw), TOKENS, LABELS),
    "chain of sparse matrices": (ChainSVC, [scipy.sparse.csr_array(x * (x > 0)) for x in TOKENS], LABELS),
    "segments": (SegmentSVC, TOKENS, [[(0, 2, "a")], [(1, 2, "b")]] * 3),
    "classes": (MulticlassSVC, TABLE, CLASSES),
    "classes without intercept": (lambda **kw: MulticlassSVC(fit_intercept=False, **kw), TABLE, CLASSES),
    "sparse classes": (MulticlassSVC, scipy.sparse.csr_array(TABLE * (TABLE > 0)), CLASSES),
    "sets of labels": (MultilabelSVC, TABLE, np.column_stack([CLASSES, TABLE[:, 2] > 0]).astype(int)),
    "graphs": (GraphSVC, [(x, EDGES, x[:2]) for x in TOKENS], LABELS),
    "graphs without features of edges": (GraphSVC, [(x, EDGES) for x in TOKENS], LABELS),
    "trees": (DependencySVC, [RNG.normal(size=(2, 3, 4)).astype(np.float32) for _ in range(5)], [[0, 1]] * 5),
    "kernel of tokens": (lambda **kw: ChainSVC(kernel="rbf", **kw), TOKENS, LABELS),
    "kernel of classes": (lambda **kw: MulticlassSVC(kernel="poly", coef0=1.0, **kw), TABLE, CLASSES),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_single_precision_trains_as_the_same_values_in_double(case):
    make, X, y = CASES[case]
    single = make(**OPTIONS).fit(X, y)
    double = make(**OPTIONS).fit(converted(X, np.float64), y)
    if "kernel" in case:  # the values of the kernel, unlike its arithmetic, are as precise as the features
        assert single.history_.primal.min() == pytest.approx(double.history_.primal.min(), rel=1e-4)
        return
    np.testing.assert_array_equal(single._w, double._w)
    assert single.gap_ == double.gap_
    for a, b in zip(single.predict(X), double.predict(converted(X, np.float64)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert single.score(X, y) == double.score(converted(X, np.float64), y)


@pytest.fixture
def trained(monkeypatch):
    """The problems that estimators hand to `solve`."""
    problems = []

    def recording(problem, *args, **kwargs):
        problems.append(problem)
        return solve(problem, *args, **kwargs)

    monkeypatch.setattr(estimator, "solve", recording)
    return problems


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_reads_features_in_place_and_keeps_none(trained, dtype, tmp_path):
    X = TOKENS.astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped, tokens = np.load(tmp_path / "X.npy", mmap_mode="r"), X.reshape(18, 4)
    scaled = TokenTransformer(StandardScaler()).fit_transform(X)
    slices = [tokens[3 * i : 3 * i + 3] for i in range(6)]
    for given, memory in ((X, X), (slices, X), (mapped, mapped), (scaled, scaled)):
        ChainSVC(**OPTIONS).fit(given, LABELS)
        assert np.shares_memory(trained[-1].map.rows.values, memory)
    MulticlassSVC(**OPTIONS, fit_intercept=False).fit(tokens, CLASSES)
    assert np.shares_memory(trained[-1].map.rows.values, X)
    matrix = scipy.sparse.csr_array(tokens * (tokens > 0))
    MulticlassSVC(**OPTIONS, fit_intercept=False).fit(matrix, CLASSES)
    assert np.shares_memory(trained[-1].map.rows.values, matrix.data)
    assert not np.shares_memory(trained[-1].map.rows.columns, matrix.indices)
    assert X.flags.writeable
    assert matrix.data.flags.writeable


def test_fit_and_predict_let_features_go():
    X = TOKENS.copy()
    model = ChainSVC(**OPTIONS).fit(X, LABELS)
    model.predict(X)
    kept = weakref.ref(X)
    del X
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("made", [lambda X: X, lambda X: list(X)])
def test_what_is_kept_for_later_calls_is_a_copy(trained, made):
    X = TOKENS.copy()
    model = ChainSVC(**OPTIONS, warm_start=True).fit(made(X), LABELS)
    assert not np.shares_memory(trained[-1].map.rows.values, X)
    X *= 3.0
    model.fit(made(X), LABELS)  # the state of before is of other features
    cold = ChainSVC(**OPTIONS).fit(made(X), LABELS)
    assert model.history_.primal.min() >= cold.history_.dual.max()
    assert cold.history_.primal.min() >= model.history_.dual.max()
    model = ChainSVC(**OPTIONS).partial_fit(made(X[:4]), LABELS[:4])
    first = X[:4].copy()
    X[:4] = 77.0
    model.partial_fit(made(X[4:]), LABELS[4:])
    rows = model._seen.examples.data[0].rows
    np.testing.assert_array_equal(rows, np.concatenate([*first, *X[4:]]))
    assert rows.dtype == np.float32


def test_tables_kept_for_later_calls_are_copies():
    for X in (TABLE.copy(), scipy.sparse.csr_array(TABLE)):
        expected = X.copy()
        model = MulticlassSVC(**OPTIONS).partial_fit(X, CLASSES)
        X *= 77.0
        kept = model._seen.examples.data[0]
        assert abs(kept - expected).max() == 0.0


def test_fits_of_mapped_features_continue_from_checkpoints(tmp_path):
    np.save(tmp_path / "X.npy", TOKENS)
    options = OPTIONS | {"tol": 1e-4, "checkpoint": Checkpoint(tmp_path / "run", every="5 passes")}
    with pytest.warns(ConvergenceWarning):
        ChainSVC(**options | {"max_iter": 10}).fit(TOKENS, LABELS)
    found = ChainSVC(**options | {"max_iter": 500}).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), LABELS)
    whole = ChainSVC(**options | {"checkpoint": None, "max_iter": 500}).fit(TOKENS, LABELS)
    np.testing.assert_array_equal(found.coef_, whole.coef_)


@pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_variances_are_measured_piece_by_piece_in_double(monkeypatch, made, dtype):
    monkeypatch.setattr(kinds, "PIECE", 8)
    rng = np.random.default_rng(1)
    X = (1000.0 + 3.0 * rng.normal(size=(37, 3))).astype(dtype)
    weights, double = rng.random(37), X.astype(np.float64)
    assert total_variance(made(X), None) == pytest.approx(double.var(axis=0).sum(), rel=1e-6)
    mean = np.average(double, axis=0, weights=weights)
    expected = np.average((double - mean) ** 2, axis=0, weights=weights).sum()
    assert total_variance(made(X), weights) == pytest.approx(expected, rel=1e-6)
    assert mean_variance(made(X)) == pytest.approx(double.var(), rel=1e-6)
    narrow = made(X[:, :1] * np.array([[1.0, 1e-3]], dtype=dtype))
    assert "from 1 to 1e+03" in scale_advice(narrow)


def test_scores_of_classes_are_computed_in_double():
    model = MulticlassSVC(**OPTIONS).fit(TABLE, CLASSES)
    expected = TABLE.astype(np.float64) @ model.coef_.T + model.intercept_
    found = model.decision_function(TABLE)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected[:, 1] - expected[:, 0], rtol=1e-13)


@pytest.mark.parametrize("shape", [(7, 4), (3, 0), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_tables_get_a_column_of_ones_in_their_own_type(shape, dtype):
    rng = np.random.default_rng(2)
    X = (rng.normal(size=shape) * (rng.random(shape) < 0.4)).astype(dtype)
    found = with_constant(scipy.sparse.csr_array(X))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.toarray(), np.hstack([X, np.ones((len(X), 1))]))
    np.testing.assert_array_equal(found.toarray(), with_constant(X))
    if len(X):
        assert np.shares_memory(as_rows(found).columns, found.indices)

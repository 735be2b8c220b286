"""`TokenTransformer` against the transformer applied by hand to the rows of all sequences or graphs."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler
from sklearn.utils import get_tags

from maxmargin import ChainSVC, GraphSVC, SegmentSVC, TokenTransformer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
SIZES = (3, 1, 4, 2)
DENSE = [5.0 + RNG.normal(size=(m, 3)) * [1.0, 100.0, 0.01] for m in SIZES]
OTHERS = [RNG.normal(size=(m, 3)) for m in (2, 5)]
SPARSE = [scipy.sparse.csr_array(RNG.normal(size=(m, 6)) * (RNG.random((m, 6)) < 0.5)) for m in SIZES]
EDGES = [[(a, a + 1) for a in range(m - 1)] for m in SIZES]
GRAPHS = [
    (x, edges, np.ones((len(edges), 2))) if i % 2 else (x, edges)
    for i, (x, edges) in enumerate(zip(DENSE, EDGES, strict=True))
]
Y = [[i % 2 for i in range(m)] for m in SIZES]
FLAT = np.concatenate(Y)
NAMES = [[["a", "b"], ["b"]], [["c"]], [["a", "a", "c"]]]
DICTS = [[{"a": 1.0, "b": 1.0}, {"b": 1.0}], [{"c": 1.0}], [{"a": 2.0, "c": 1.0}]]


def stacked(pieces):
    stack = scipy.sparse.vstack if scipy.sparse.issparse(pieces[0]) else np.concatenate
    return stack(pieces)


def dense(matrix):
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def assert_pieces(found, expected, sizes=SIZES):
    assert [piece.shape[0] for piece in found] == list(sizes)
    np.testing.assert_allclose(dense(stacked(found)), dense(expected), rtol=1e-12, atol=1e-12)


class Copycat(TransformerMixin, BaseEstimator):
    """Returns what it gets, and counts; it has no `fit_transform` of its own and no names of features."""

    calls = ()

    def __init__(self, extra_rows=0):
        self.extra_rows = extra_rows

    def fit(self, X, y=None):
        self.calls, self.y_ = (*self.calls, "fit"), y
        return self

    def transform(self, X):
        self.calls = (*self.calls, "transform")
        return np.vstack([X, X[: self.extra_rows]]) if self.extra_rows else X


class InPlace(Copycat):
    """Changes what it gets."""

    def transform(self, X):
        X *= 2.0
        return X


@pytest.mark.parametrize(
    "inner",
    [
        StandardScaler(),
        PCA(2, random_state=0),
        Nystroem(n_components=4, random_state=0),
        RBFSampler(n_components=5, random_state=0),
        make_pipeline(StandardScaler(), PolynomialFeatures(2)),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_sequences_are_transformed_as_one_table(inner):
    by_hand, ours = clone(inner), TokenTransformer(inner)
    expected = by_hand.fit_transform(stacked(DENSE))
    assert_pieces(ours.fit_transform(DENSE), expected)
    assert_pieces(ours.transform(DENSE), by_hand.transform(stacked(DENSE)))
    assert_pieces(ours.transform(OTHERS), by_hand.transform(stacked(OTHERS)), (2, 5))
    assert_pieces(
        TokenTransformer(inner).fit(DENSE).transform(OTHERS), by_hand.transform(stacked(OTHERS)), (2, 5)
    )
    assert not hasattr(inner, "n_features_in_")  # the parameter is cloned
    assert ours.n_features_in_ == 3


@pytest.mark.parametrize("inner", [MaxAbsScaler(), StandardScaler(with_mean=False), PolynomialFeatures(2)])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_sparse_stays_sparse(inner, form):
    found = TokenTransformer(inner).fit_transform([form(x) for x in SPARSE])
    assert all(scipy.sparse.issparse(x) and x.format == "csr" for x in found)
    assert_pieces(found, clone(inner).fit_transform(stacked(SPARSE)))
    for x in found:
        x.check_format(full_check=True)
        assert x.indices.dtype == np.int32


def test_a_transformer_may_make_dense_features_of_sparse_ones():
    inner = TruncatedSVD(2, random_state=0)
    found = TokenTransformer(inner).fit_transform(SPARSE)
    assert all(isinstance(x, np.ndarray) for x in found)
    assert_pieces(found, clone(inner).fit_transform(stacked(SPARSE)))


def test_a_3d_array_stays_one():
    X = np.random.default_rng(1).normal(size=(4, 5, 3))
    found = TokenTransformer(PCA(2)).fit_transform(X)
    assert found.shape == (4, 5, 2)
    np.testing.assert_allclose(found.reshape(20, 2), PCA(2).fit_transform(X.reshape(20, 3)))
    encoded = TokenTransformer(PolynomialFeatures(2)).fit_transform(X)
    assert encoded.shape == (4, 5, 10)


def test_nodes_of_graphs_are_transformed_and_edges_are_not():
    found = TokenTransformer(StandardScaler()).fit_transform(GRAPHS)
    assert_pieces([graph[0] for graph in found], StandardScaler().fit_transform(stacked(DENSE)))
    for new, old in zip(found, GRAPHS, strict=True):
        assert isinstance(new, tuple)
        assert len(new) == len(old)
        assert all(ours is theirs for ours, theirs in zip(new[1:], old[1:], strict=True))
    nested = [(x.tolist(), edges) for x, edges in zip(DENSE, EDGES, strict=True)]
    again = TokenTransformer(StandardScaler()).fit_transform(nested)
    assert_pieces([graph[0] for graph in again], StandardScaler().fit_transform(stacked(DENSE)))


def test_sparse_nodes_stay_sparse():
    graphs = list(zip(SPARSE, EDGES, strict=True))
    found = TokenTransformer(MaxAbsScaler()).fit_transform(graphs)
    assert all(scipy.sparse.issparse(nodes) for nodes, _ in found)
    assert_pieces([nodes for nodes, _ in found], MaxAbsScaler().fit_transform(stacked(SPARSE)))


@pytest.mark.parametrize("X", [NAMES, DICTS])
def test_named_features_are_encoded(X):
    counts = scipy.sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
    ours, by_hand = TokenTransformer(TfidfTransformer()), TfidfTransformer()
    found = ours.fit_transform(X)
    assert all(scipy.sparse.issparse(x) for x in found)
    assert_pieces(found, by_hand.fit_transform(counts), (2, 1, 1))
    (unseen,) = ours.transform([[["b", "new"]]])
    np.testing.assert_allclose(unseen.toarray(), by_hand.transform([[0.0, 1.0, 0.0]]).toarray())
    assert ours.get_feature_names_out().tolist() == ["a", "b", "c"]


def test_the_transformer_is_called_once_and_its_result_is_not_copied():
    ours = TokenTransformer(Copycat())
    found = ours.fit(DENSE).transform(DENSE)
    assert ours.transformer_.calls == ("fit", "transform")
    assert ours.transformer_.y_ is None
    assert found[0].base is not None
    assert all(piece.base is found[0].base for piece in found)
    pieces = ours.fit(SPARSE).transform(SPARSE)
    first, last = (piece.data.__array_interface__["data"][0] for piece in (pieces[0], pieces[-1]))
    assert last - first == 8 * sum(piece.nnz for piece in pieces[:-1])


@pytest.mark.parametrize(
    "X", [DENSE, DENSE[:1], SPARSE, SPARSE[:1], GRAPHS[:1], [(SPARSE[0], EDGES[0])], np.ones((1, 2, 3))]
)
def test_users_data_do_not_change(X):
    before = pickle.dumps(X)
    TokenTransformer(InPlace()).fit(X).transform(X)
    assert pickle.dumps(X) == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_transformer(dtype):
    forms = [
        [x.astype(dtype) for x in DENSE],
        [x.astype(dtype) for x in SPARSE],
        [(x.astype(dtype), edges) for x, edges in zip(DENSE, EDGES, strict=True)],
    ]
    for X in forms:
        found = TokenTransformer(StandardScaler(with_mean=False)).fit_transform(X)
        assert {(x[0] if isinstance(x, tuple) else x).dtype for x in found} == {np.dtype(dtype)}


def test_missing_features_are_left_to_the_transformer():
    X = [x.copy() for x in DENSE]
    X[2][1, 0] = np.nan
    found = TokenTransformer(SimpleImputer()).fit_transform(X)
    assert_pieces(found, SimpleImputer().fit_transform(stacked(X)))
    graphs = TokenTransformer(SimpleImputer()).fit_transform(list(zip(X, EDGES, strict=True)))
    assert_pieces([nodes for nodes, _ in graphs], SimpleImputer().fit_transform(stacked(X)))
    with pytest.raises(ValueError, match=r"^TokenTransformer: .*NaN"):
        TokenTransformer(PCA(2)).fit(X)


@pytest.mark.parametrize(
    "inner",
    [
        SelectKBest(k=2),
        LinearDiscriminantAnalysis(),
        SelectFromModel(LogisticRegression()),
        make_pipeline(SelectKBest(k=2), StandardScaler()),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_transformers_that_need_labels_get_those_of_all_tokens(inner):
    expected = clone(inner).fit(stacked(DENSE), FLAT).transform(stacked(DENSE))
    assert_pieces(TokenTransformer(inner).fit(DENSE, Y).transform(DENSE), expected)
    assert_pieces(TokenTransformer(inner).fit_transform(DENSE, Y), expected)
    nodes = TokenTransformer(inner).fit_transform(GRAPHS, [np.array(y).reshape(1, -1) for y in Y])
    assert_pieces([graph[0] for graph in nodes], expected)
    assert get_tags(TokenTransformer(inner)).target_tags.required
    with pytest.raises(ValueError, match="needs labels, got y=None"):
        TokenTransformer(inner).fit(DENSE)


class Keen(Copycat):
    """Needs y by its signature alone."""

    def fit(self, X, y):
        return super().fit(X, y)


def test_segments_are_given_as_tags():
    ours = TokenTransformer(Keen()).fit(DENSE, [[(0, 2, "A")], [], [(1, 2, "B"), (2, 4, "A")], []])
    assert ours.transformer_.y_.tolist() == ["B-A", "I-A", "O", "O", "O", "B-B", "B-A", "I-A", "O", "O"]


def test_labels_that_nobody_needs_are_not_read():
    ours = TokenTransformer(Copycat()).fit(DENSE, "not labels")
    assert ours.transformer_.y_ is None
    assert not get_tags(ours).target_tags.required


def test_names_of_features_are_those_of_the_transformer():
    ours = TokenTransformer(PCA(2)).fit(DENSE)
    assert ours.get_feature_names_out().tolist() == ["pca0", "pca1"]
    scaled = TokenTransformer(StandardScaler()).fit(DENSE)
    assert scaled.get_feature_names_out(["p", "q", "r"]).tolist() == ["p", "q", "r"]
    assert not hasattr(TokenTransformer(Copycat()).fit(DENSE), "get_feature_names_out")


SEGMENTS = [[(0, 2, "A")], [(0, 1, "B")], [(1, 3, "B")], [(0, 2, "A")]]


@pytest.mark.parametrize(
    ("svc", "X", "y"),
    [(ChainSVC, DENSE, Y), (SegmentSVC, DENSE, SEGMENTS), (GraphSVC, [graph[:2] for graph in GRAPHS], Y)],
)
@pytest.mark.parametrize("inner", [StandardScaler(), Nystroem(n_components=4, random_state=0)])
def test_pipelines_are_the_estimator_on_transformed_features(svc, X, y, inner):
    model = svc(max_iter=3, tol=0.0, verbose=0, random_state=0)
    piped = Pipeline([("tokens", TokenTransformer(inner)), ("svc", clone(model))]).fit(X, y)
    rows = np.split(clone(inner).fit_transform(stacked(DENSE)), np.cumsum(SIZES)[:-1])
    by_hand = [(x, *item[1:]) for x, item in zip(rows, X, strict=True)] if svc is GraphSVC else rows
    alone = model.fit(by_hand, y)
    np.testing.assert_allclose(piped[-1].coef_, alone.coef_, rtol=1e-9, atol=1e-12)
    assert list(map(list, piped.predict(X))) == list(map(list, alone.predict(by_hand)))
    assert piped.score(X, y) == alone.score(by_hand, y)


def test_sparse_features_train_a_chain():
    model = make_pipeline(TokenTransformer(MaxAbsScaler()), ChainSVC(max_iter=3, verbose=0, random_state=0))
    plain = ChainSVC(max_iter=3, verbose=0, random_state=0)
    scaled = MaxAbsScaler().fit_transform(stacked(SPARSE)).toarray()
    rows = np.split(scaled, np.cumsum(SIZES)[:-1])
    np.testing.assert_allclose(
        model.fit(SPARSE, Y)[-1].coef_, plain.fit(rows, Y).coef_, rtol=1e-9, atol=1e-12
    )


def test_grid_search_sets_the_parameters_of_the_transformer():
    inner = Nystroem(n_components=3, random_state=0)
    steps = [("map", TokenTransformer(inner)), ("svc", ChainSVC(max_iter=2, verbose=0, random_state=0))]
    search = GridSearchCV(Pipeline(steps), {"map__transformer__gamma": [0.1, 1.0]}, cv=2)
    search.fit(DENSE, Y)
    assert search.best_params_["map__transformer__gamma"] in (0.1, 1.0)
    fitted = search.best_estimator_["map"].transformer_
    assert fitted.gamma == search.best_params_["map__transformer__gamma"]


def test_parameters_are_those_of_clones_and_pickles():
    ours = TokenTransformer(Nystroem(gamma=0.5))
    assert ours.get_params()["transformer__gamma"] == 0.5
    twin = clone(ours.set_params(transformer__gamma=2.0))
    assert twin.transformer.gamma == 2.0
    assert twin.transformer is not ours.transformer
    fitted = TokenTransformer(StandardScaler()).fit(DENSE)
    assert_pieces(pickle.loads(pickle.dumps(fitted)).transform(DENSE), stacked(fitted.transform(DENSE)))
    assert list(inspect.signature(TokenTransformer).parameters) == ["transformer"]
    assert not get_tags(ours).input_tags.two_d_array
    assert not hasattr(ours, "set_output")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_from_the_transformer_become_arrays(library):
    pytest.importorskip(library)
    with sklearn.config_context(transform_output=library):
        found = TokenTransformer(StandardScaler()).fit_transform(DENSE)
    assert all(isinstance(x, np.ndarray) for x in found)
    assert_pieces(found, StandardScaler().fit_transform(stacked(DENSE)))


def test_a_transformer_must_be_fitted():
    with pytest.raises(NotFittedError, match="TokenTransformer"):
        TokenTransformer(StandardScaler()).transform(DENSE)
    with pytest.raises(NotFittedError, match="TokenTransformer"):
        TokenTransformer(StandardScaler()).get_feature_names_out()


SCALED = TokenTransformer(StandardScaler()).fit(DENSE)
NAMED = TokenTransformer(MaxAbsScaler()).fit(NAMES)
REFUSED = [
    (lambda: TokenTransformer(ChainSVC()).fit(DENSE), TypeError, "must have the methods fit and transform"),
    (lambda: TokenTransformer(StandardScaler).fit(DENSE), TypeError, "got the class StandardScaler"),
    (lambda: TokenTransformer(None).fit(DENSE), TypeError, "got None"),
    (lambda: TokenTransformer(StandardScaler()).fit([]), ValueError, "X has no sequence"),
    (lambda: TokenTransformer(StandardScaler()).fit(DENSE[0]), TypeError, r"pass \[X\]"),
    (
        lambda: TokenTransformer(StandardScaler()).fit([*DENSE, np.ones((2, 4))]),
        ValueError,
        "has 4 features, but",
    ),
    (
        lambda: TokenTransformer(StandardScaler()).fit([(np.ones((2, 1)), []), 3]),
        TypeError,
        "graph 1 of X is 3",
    ),
    (
        lambda: TokenTransformer(StandardScaler()).fit([(np.ones((0, 1)), [])]),
        ValueError,
        "at least one node",
    ),
    (lambda: TokenTransformer(Copycat(1)).fit_transform(DENSE), ValueError, "the 10 rows given, got .*11, 3"),
    (lambda: TokenTransformer(Copycat(1)).fit(DENSE).transform(OTHERS), ValueError, "the 7 rows given"),
    (lambda: TokenTransformer(PCA(9)).fit(DENSE), ValueError, "n_components=9"),
    (lambda: SCALED.transform(SPARSE), ValueError, "X has 6 features, .* was fitted with 3"),
    (lambda: SCALED.transform(NAMES), TypeError, "X has lists of dicts .* but fit had arrays"),
    (lambda: NAMED.transform(DENSE), TypeError, "X has arrays .* but fit had lists of dicts"),
    (lambda: TokenTransformer(Keen()).fit(DENSE, Y[:2]), ValueError, "X has 4 sequences, but y has 2"),
    (lambda: TokenTransformer(Keen()).fit(GRAPHS, Y[:2]), ValueError, "X has 4 graphs, but y has 2"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_errors_are_one_line(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("TokenTransformer: ")


def test_a_fit_that_fails_changes_nothing():
    ours = TokenTransformer(StandardScaler()).fit(DENSE)
    with pytest.raises(ValueError, match="NaN"):
        TokenTransformer.fit(ours.set_params(transformer=PCA(2)), [np.full((3, 2), np.nan)])
    assert isinstance(ours.transformer_, StandardScaler)
    assert ours.n_features_in_ == 3

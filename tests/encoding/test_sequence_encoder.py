"""The encoder against scikit-learn's vectorizers and a slow dictionary of counts."""

import doctest
import pickle
from collections import Counter
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from maxmargin.encoding import labels, sequences
from maxmargin.encoding import table as lookup
from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.matrices import sparse_rows
from maxmargin.encoding.sequences import SequenceEncoder

NAMES = st.sampled_from(["a", "b", "c", "d=1", "", "é", "x\0y", "long name " * 9])
BAGS = st.lists(st.lists(st.lists(NAMES, max_size=6), min_size=1, max_size=4), min_size=1, max_size=5)
WORDS = [[["w=the", "det"], ["w=dog"]], [["w=dog", "end"]]]


def flat(X):
    return [token for sequence in X for token in sequence]


def by_name(encoder, rows):
    """Each row as a dict of the features it stores."""
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    names = np.array(encoder.feature_names_, dtype=object)
    return [dict(zip(names[rows.indices[a:b]], rows.data[a:b].tolist(), strict=True)) for a, b in spans]


def check_form(tokens, n_tokens, n_features):
    rows, offsets = tokens
    assert rows.shape == (n_tokens, n_features)
    assert isinstance(rows, sparse.csr_array)
    assert [a.dtype for a in (rows.data, rows.indices, rows.indptr)] == [
        np.float64,
        np.int32,
        np.int64,
    ]
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        assert np.all(np.diff(rows.indices[a:b]) > 0)
    assert offsets.dtype == np.int64
    assert offsets[-1] == n_tokens


@given(X=BAGS, Z=BAGS, min_count=st.integers(1, 3))
@pytest.mark.parametrize("few", [0, 10**9], ids=["table", "dict"])
def test_strings_are_counted(X, Z, min_count, few):
    in_tokens = Counter(name for token in flat(X) for name in set(token))
    names = [n for n in dict.fromkeys(flat(flat(X))) if in_tokens[n] >= min_count]
    encoder = SequenceEncoder(min_count=min_count)
    if not names:
        with pytest.raises(ValueError, match="no token of X has a feature"):
            encoder.fit(X)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "FEW", few)
        fitted = encoder.fit_transform(X)
        # Some more strings than names, so that the table is worth building.
        padded = [*Z, [["c"] * len(names)]]
        tokens = encoder.transform(padded)
    assert (encoder._vocabulary._table is not None) == (few == 0)
    assert encoder.feature_names_ == names
    check_form(tokens, len(flat(padded)), len(names))
    check_form(fitted, len(flat(X)), len(names))
    expected = [Counter(n for n in token if n in set(names)) for token in flat(padded)]
    assert by_name(encoder, tokens.rows) == expected
    assert np.diff(tokens.offsets).tolist() == list(map(len, padded))
    assert np.array_equal(encoder.transform(X).rows.toarray(), fitted.rows.toarray())


@given(
    X=st.lists(
        st.lists(
            st.dictionaries(
                st.sampled_from(["a", "b", "a=1", "c"]),
                st.sampled_from([1, 2.5, -3, True, False, "1", "x", np.float32(0.5)]),
            ),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_dicts_are_encoded_as_by_dict_vectorizer(X):
    X = [*X, [{"a": 1, "b": "x"}]]
    encoder = SequenceEncoder()
    rows = encoder.fit_transform(X).rows
    check_form((rows, encoder.transform(X).offsets), len(flat(X)), encoder.n_features_in_)
    vectorizer = DictVectorizer(sort=False)
    expected = vectorizer.fit_transform(flat(X)).toarray()
    # Both number features in order of first appearance.
    assert encoder.feature_names_ == vectorizer.feature_names_
    assert np.array_equal(rows.toarray(), expected)
    assert np.array_equal(encoder.transform(X).rows.toarray(), expected)


def test_booleans_of_numpy_in_dicts_are_numbers():
    rows = SequenceEncoder().fit_transform([[{"a": np.True_, "b": np.False_, "c": "x"}]]).rows
    assert rows.toarray().tolist() == [[1, 0, 1]]


def test_mappings_other_than_dicts_are_encoded():
    X = [[MappingProxyType({"a": 2.0}), {"b": "x"}], [Counter("aab")]]
    rows = SequenceEncoder().fit_transform(X).rows
    assert rows.toarray().tolist() == [[2, 0, 0], [0, 1, 0], [2, 0, 1]]


def test_unseen_names_of_numeric_dicts_are_left_out():
    encoder = SequenceEncoder().fit([[{"b": 2.0, "a": 1.0}]])
    rows = encoder.transform([[{"a": 3, "new": 9, "b": -1}, {"new": 1}]]).rows
    assert encoder.feature_names_ == ["b", "a"]
    assert rows.toarray().tolist() == [[-1, 3], [0, 0]]


def test_text_dicts_name_indicators():
    encoder = SequenceEncoder()
    rows = encoder.fit_transform([[{"w": "the", "pos": "D"}, {"w": "dog"}]]).rows
    assert encoder.feature_names_ == ["w=the", "pos=D", "w=dog"]
    assert rows.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]


def test_sets_are_encoded_as_by_multi_label_binarizer():
    X = [[{"b", "a"}, frozenset({"c"})], [{"a", "d", "c"}]]
    encoder = SequenceEncoder()
    rows = encoder.fit_transform(X).rows
    assert encoder.feature_names_ == ["a", "b", "c", "d"]
    assert np.array_equal(rows.toarray(), MultiLabelBinarizer().fit_transform(flat(X)))


def test_many_tokens_are_encoded_in_several_runs():
    rng = np.random.default_rng(0)
    X = [[[f"f{k}" for k in rng.integers(0, 3000, 30)] for _ in range(20)] for _ in range(100)]
    encoder = SequenceEncoder()
    fitted = encoder.fit_transform(X).rows
    assert by_name(encoder, fitted) == list(map(Counter, flat(X)))
    Z = [[[f"f{k}" for k in rng.integers(0, 6000, 30)] for _ in range(700)], [[]]]
    known = set(encoder.feature_names_)
    expected = [Counter(n for n in token if n in known) for token in flat(Z)]
    assert by_name(encoder, encoder.transform(Z).rows) == expected
    assert encoder._vocabulary._table is not None


def test_more_rows_and_features_than_fit_32_bits_are_encoded():
    codes = np.array([7, 3, 7, 5, 1, 2**31 - 2], np.int32)
    counts = np.array([3, 0, 2, 1])
    rows = sparse_rows(codes, counts, None, 2**31 - 1)
    assert rows.indices.tolist() == [3, 7, 1, 5, 2**31 - 2]
    assert rows.data.tolist() == [1, 2, 1, 1, 1]
    assert rows.indptr.tolist() == [0, 2, 2, 4, 5]


@st.composite
def coded_tokens(draw):
    """Feature numbers at both ends of a vocabulary, so that they repeat, and a value for each or None."""
    n_features = draw(st.sampled_from([4, 2**16, 2**31 - 2, 2**31 - 1]))
    number = st.sampled_from([0, 1, 2, n_features - 2, n_features - 1, n_features])
    tokens = draw(st.lists(st.lists(number, max_size=6), min_size=1, max_size=6))
    codes = np.array(flat(tokens), np.int32)
    # Small integers, whose sums are exact in any order.
    values = st.lists(st.integers(-3, 3), min_size=len(codes), max_size=len(codes))
    drawn = draw(st.none() | values.map(lambda v: np.array(v, np.float64)))
    return codes, np.array([len(token) for token in tokens], np.int64), drawn, n_features


@given(coded_tokens())
def test_repeated_features_are_added_up_as_scipy_does_in_any_vocabulary(coded):
    codes, counts, values, n_features = coded
    known = codes < n_features
    data = np.ones(len(codes)) if values is None else values
    places = np.repeat(np.arange(len(counts)), counts)[known], codes[known]
    expected = sparse.coo_array((data[known], places), (len(counts), n_features)).tocsr()
    expected.sort_indices()
    rows = sparse_rows(codes, counts, values, n_features)
    check_form((rows, np.array([0, len(counts)])), len(counts), n_features)
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(rows, name), getattr(expected, name))


@pytest.mark.parametrize(
    "token",
    [("a", "b"), {"a", "b"}, frozenset("ab"), np.array(["a", "b"]), {"a": 0, "b": 0}.keys()],
    ids=lambda token: type(token).__name__,
)
def test_all_kinds_of_tokens_are_encoded(token):
    encoder = SequenceEncoder()
    rows = encoder.fit_transform([[token]]).rows
    assert by_name(encoder, rows) == [{"a": 1, "b": 1}]


def test_generators_are_read_once():
    encoder = SequenceEncoder()
    X = ((iter(token) for token in sequence) for sequence in WORDS)
    rows, offsets = encoder.fit_transform(X)
    expected = SequenceEncoder().fit_transform(WORDS)
    assert np.array_equal(rows.toarray(), expected.rows.toarray())
    assert offsets.tolist() == [0, 2, 3]


def test_object_arrays_of_sequences_and_tokens_are_encoded():
    outer = np.empty(2, dtype=object)
    outer[:] = [np.array(WORDS[0], dtype=object), tuple(WORDS[1])]
    encoder = SequenceEncoder()
    rows = encoder.fit_transform(outer).rows
    assert by_name(encoder, rows) == list(map(Counter, flat(WORDS)))


def test_min_count_counts_tokens_not_strings():
    encoder = SequenceEncoder(min_count=2)
    rows = encoder.fit_transform([[["a", "a", "b"], ["b", "c"]], [["c"]]]).rows
    assert encoder.feature_names_ == ["b", "c"]
    assert rows.toarray().tolist() == [[1, 0], [1, 1], [0, 1]]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.float64, object])
def test_dense_rows_are_stacked(dtype):
    A, B = np.eye(3, 2).astype(dtype), np.asfortranarray(np.ones((2, 2), dtype))
    encoder = SequenceEncoder()
    rows, offsets = encoder.fit_transform([A, B.tolist(), B])
    assert rows.dtype == np.float64  # lists are of this type, or of integers
    assert rows.flags.c_contiguous
    assert np.array_equal(rows, np.vstack([A, B, B]).astype(float))
    assert offsets.tolist() == [0, 3, 5, 7]
    assert (encoder.kind_, encoder.n_features_in_, encoder.feature_names_) == ("dense", 2, None)


def test_three_dimensional_array_is_a_list_of_sequences():
    A = np.arange(12.0).reshape(2, 3, 2)
    rows, offsets = SequenceEncoder().fit_transform(A)
    assert np.array_equal(rows, A.reshape(6, 2))
    assert offsets.tolist() == [0, 3, 6]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_sparse_rows_are_stacked(form):
    half = np.random.default_rng(0).random((7, 5))
    half[half < 0.5] = 0
    A = sparse.coo_array(half[:4]).asformat(form)
    B = sparse.coo_matrix(half[4:], dtype=np.float32).asformat(form)
    encoder = SequenceEncoder()
    tokens = encoder.fit_transform([A, B])
    check_form(tokens, 7, 5)
    assert np.array_equal(tokens.rows.toarray(), np.vstack([A.toarray(), B.toarray()]))
    assert (encoder.kind_, encoder.feature_names_) == ("sparse", None)


def test_sparse_duplicates_are_added_and_input_is_unchanged():
    A = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), (1, 2))
    rows = SequenceEncoder().fit_transform([A]).rows
    assert rows.indices.tolist() == [0, 1]
    assert rows.data.tolist() == [2, 4]
    assert A.indices.tolist() == [1, 0, 1]


def test_sparse_rows_serve_as_scipy_matrix():
    rows = SequenceEncoder().fit_transform(WORDS).rows
    dense = rows.toarray()
    w = np.arange(1.0, 5.0)
    assert np.array_equal(rows @ w, dense @ w)
    assert np.array_equal(rows.T @ dense, dense.T @ dense)
    assert np.array_equal(rows[1:].toarray(), dense[1:])
    assert np.array_equal(rows[[2, 0]].toarray(), dense[[2, 0]])
    assert rows.copy().sum() == dense.sum()


def test_arrays_and_sparse_matrices_serve_each_other():
    A = np.eye(2)
    assert sparse.issparse(SequenceEncoder().fit([A]).transform([sparse.csr_array(A)]).rows)
    assert isinstance(SequenceEncoder().fit([sparse.csr_array(A)]).transform([A]).rows, np.ndarray)


def test_dicts_and_strings_serve_each_other():
    encoder = SequenceEncoder().fit([[["w=a", "w=b"]]])
    assert encoder.transform([[{"w": "b"}]]).rows.toarray().tolist() == [[0, 1]]
    encoder = SequenceEncoder().fit([[{"w": "b", "n": 2.0}]])
    assert encoder.transform([[["n", "w=b"]]]).rows.toarray().tolist() == [[1, 1]]


@pytest.mark.parametrize("few", [0, 10**9], ids=["table", "dict"])
def test_a_pickle_encodes_the_same(few, monkeypatch):
    monkeypatch.setattr(lookup, "FEW", few)
    encoder = SequenceEncoder(min_count=1).fit([*WORDS, [["end"] * 9]])
    copy = pickle.loads(pickle.dumps(encoder))
    assert (copy.kind_, copy.feature_names_) == ("strings", encoder.feature_names_)
    ours, theirs = encoder.transform(WORDS), copy.transform(WORDS)
    assert np.array_equal(ours.rows.toarray(), theirs.rows.toarray())
    assert np.array_equal(ours.offsets, theirs.offsets)


def test_pickle_holds_plain_data_only():
    encoder = SequenceEncoder().fit([[["w=a"] * 9000]])
    state = encoder._vocabulary.__getstate__()
    assert state == {"names": ["w=a"], "_table": None}


def test_a_failed_fit_changes_nothing():
    encoder = SequenceEncoder().fit(WORDS)
    with pytest.raises(TypeError, match="plain string"):
        encoder.fit([["the", "dog"]])
    assert encoder.feature_names_ == ["w=the", "det", "w=dog", "end"]


def test_fit_returns_the_encoder():
    encoder = SequenceEncoder()
    assert encoder.fit(WORDS) is encoder
    assert isinstance(encoder.transform(WORDS), Tokens)


@pytest.mark.parametrize("module", [sequences, labels], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0

"""A vector in a dict of features is as many numbers, each a feature of its own."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.feature_extraction import DictVectorizer

from maxmargin import ChainSVC, GraphSVC, Predictor, SegmentSVC, TokenTransformer, load
from maxmargin.encoding.sequences import HashingEncoder, SequenceEncoder

NUMBERS = st.floats(-1e3, 1e3, width=32)
WIDTHS = {"emb": 3, "f": 1, "next:emb": 2}


@st.composite
def tokens(draw: st.DrawFn) -> dict[str, Any]:
    """A token with names, and some vectors, one of them in a dict within the dict."""
    token: dict[str, Any] = draw(st.dictionaries(st.sampled_from(["emb[0]", "x", "y"]), NUMBERS))
    token |= draw(st.dictionaries(st.sampled_from(["word", "tag"]), st.sampled_from("abc")))
    for name, width in WIDTHS.items():
        if draw(st.booleans()):
            entries = draw(st.lists(NUMBERS, min_size=width, max_size=width))
            dtype = draw(st.sampled_from([np.float32, np.float64, np.int16, np.bool_]))
            outer, _, inner = name.rpartition(":")
            array = np.array(entries).astype(dtype)
            token |= {outer: {inner: array}} if outer else {inner: array}
    return token


def written_out(token: dict[str, Any]) -> dict[str, Any]:
    """The same token without vectors."""
    found: dict[str, Any] = {}
    for name, value in token.items():
        if isinstance(value, dict):
            value = {f"{name}:{inner}": array for inner, array in value.items()}
        for key, entry in (value if isinstance(value, dict) else {name: value}).items():
            numbers = (
                {f"{key}[{j}]": float(x) for j, x in enumerate(entry)} if np.ndim(entry) else {key: entry}
            )
            for each, number in numbers.items():
                found[each] = number + found.get(each, 0.0) if isinstance(number, float) else number
    return found


@given(st.lists(st.lists(tokens(), min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_vectors_are_encoded_as_their_numbers_are(X: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    flat = [written_out(token) for x in X for token in x]
    if not any(flat):
        return
    expected = DictVectorizer(sparse=False).fit(flat)
    encoder = SequenceEncoder()
    rows, offsets = encoder.fit_transform(X)
    names = expected.get_feature_names_out().tolist()
    assert sorted(encoder.feature_names_ or []) == names
    order = [(encoder.feature_names_ or []).index(name) for name in names]
    np.testing.assert_allclose(rows.toarray()[:, order], expected.transform(flat), rtol=1e-12)
    assert np.diff(offsets).tolist() == list(map(len, X))
    one = data.draw(st.sampled_from(X))
    again, _ = encoder.transform([one, [], one])
    known = [written_out(token) for token in one] * 2
    np.testing.assert_allclose(again.toarray()[:, order], expected.transform(known), rtol=1e-12)


@given(st.lists(tokens(), min_size=1, max_size=5))
def test_vectors_are_hashed_as_their_numbers_are(x: list[dict[str, Any]]) -> None:
    found, same = (HashingEncoder(8).transform([each])[0] for each in (x, list(map(written_out, x))))
    np.testing.assert_allclose(found.toarray(), same.toarray(), rtol=1e-12)


def test_a_vector_counts_for_min_count_as_often_as_tokens_have_it() -> None:
    X = [[{"a": np.zeros(2), "b": np.ones(2)}, {"a": np.ones(2), "c": "x"}, {"c": "x"}]]
    encoder = SequenceEncoder(min_count=2).fit(X)
    assert encoder.feature_names_ == ["c=x", "a[0]", "a[1]"]


def test_vectors_of_unknown_names_are_ignored() -> None:
    encoder = SequenceEncoder().fit([[{"a": np.ones(2), "w": "x"}]])
    rows, _ = encoder.transform([[{"b": np.ones(5), "w": "x"}, {"a": "text"}]])
    assert rows.toarray().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


class Tensor:
    """An array of another library."""

    ndim = 1

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[np.float32]:
        return np.array([0.5, 2.0], dtype=np.float32)


def test_arrays_of_other_libraries_are_vectors() -> None:
    rows, _ = SequenceEncoder().fit_transform([[{"t": Tensor(), "w": "x"}]])
    assert rows.toarray().tolist() == [[1.0, 0.5, 2.0]]


WRONG: dict[str, tuple[Any, str]] = {
    "shorter": (np.ones(2), "token 1 of sequence 1 of X has the feature 'v' of 2 numbers, expected 3 as"),
    "longer": (np.ones(4), "token 1 of sequence 1 of X has the feature 'v' of 4 numbers, expected 3 as"),
    "empty": (
        np.ones(0),
        "token 1 of sequence 1 of X has the feature 'v', an ndarray of shape (0,), expected n",
    ),
    "a matrix": (
        np.ones((1, 3)),
        "has the feature 'v', an ndarray of shape (1, 3), expected numbers in an array",
    ),
    "texts": (
        np.array(["a", "b", "c"]),
        "has the feature 'v', an ndarray of shape (3,), expected numbers in",
    ),
    "complex": (np.ones(3) * 1j, "has the feature 'v', an ndarray of shape (3,), expected numbers in"),
    "nan": (
        np.array([1.0, np.nan, 0.0]),
        "token 1 of sequence 1 of X has a vector with nan, expected finite",
    ),
    "infinite": (np.array([1.0, 0.0, -np.inf]), "of sequence 1 of X has a vector with -inf, expected finite"),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_errors_name_sequence_token_and_feature(value: Any, message: str) -> None:
    good = [{"v": np.arange(3.0)}, {"w": "x"}]
    encoder = SequenceEncoder().fit([good])
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        SequenceEncoder().fit([good, [{"a": 1}, {"v": value}]])
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match=re.escape(message.replace("token 1 of", "token 0 of"))):
        encoder.transform([[], [{"v": value}]])


def data() -> tuple[list[list[dict[str, Any]]], list[list[dict[str, Any]]], list[list[str]]]:
    """Tokens with a word and a vector, the same written out, and labels that need both."""
    rng = np.random.default_rng(0)
    X = [
        [
            {"word": str(w), "emb": e}
            for w, e in zip(rng.integers(0, 3, 6), rng.normal(size=(6, 4)), strict=True)
        ]
        for _ in range(12)
    ]
    y = [["q" if token["emb"][0] > 0 else token["word"] for token in x] for x in X]
    return X, [[written_out(token) for token in x] for x in X], y


@pytest.mark.parametrize("estimator", [ChainSVC(), ChainSVC(order=2), SegmentSVC()])
def test_estimators_learn_what_they_learn_from_the_numbers(estimator: Any, tmp_path: Path) -> None:
    X, same, y = data()
    y = [[f"B-{label}" for label in labels] for labels in y] if isinstance(estimator, SegmentSVC) else y
    model = estimator.set_params(tol=1e-6, random_state=0).fit(X, y)
    other = copy.deepcopy(estimator).fit(same, y)
    assert sorted(model.feature_names_) == sorted(other.feature_names_)
    columns = [model.feature_names_.index(name) for name in other.feature_names_]
    np.testing.assert_allclose(model.coef_[:, columns], other.coef_, atol=1e-3)
    path = tmp_path / "model"
    model.save(path)
    for each in (pickle.loads(pickle.dumps(model)), load(path), Predictor(path)):
        assert each.predict(X) == model.predict(same) == model.predict(X)
        assert each.predict_single(X[3]) == model.predict([X[3]])[0]
        with pytest.raises(
            ValueError, match=r"SVC: token 0 of sequence 0 of X has the feature 'emb' of 5 num"
        ):
            each.predict([[{"emb": np.ones(5)}]])


def test_weights_of_a_vector_have_names_with_places() -> None:
    X, _, y = data()
    model = ChainSVC(random_state=0).fit(X, y)
    assert model.state_features_["emb[0]", "q"] == model.top_features("q", k=1)["weight"][0]
    assert model.top_features("q", k=1)["feature"][0] == "emb[0]"
    assert {each.feature for each in model.explain(X[0]).contributions} >= {"emb[0]"}


def test_nodes_and_transformers_take_vectors() -> None:
    X, same, _ = data()
    found, expected = (TokenTransformer(IdentityOfRows()).fit_transform(each) for each in (X, same))
    assert [sorted(x.sum(axis=0)) for x in found] == [pytest.approx(sorted(x.sum(axis=0))) for x in expected]
    edges = [[0, 1], [1, 2]]
    models = [
        GraphSVC(random_state=0).fit([(x[:3], edges) for x in each], [[0, 1, 0]] * len(each))
        for each in (X, same)
    ]
    assert sorted(models[0].feature_names_) == sorted(models[1].feature_names_)


class IdentityOfRows:
    """Rows as they are."""

    def fit(self, X: Any) -> "IdentityOfRows":
        return self

    def transform(self, X: Any) -> Any:
        return X

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {}

    def set_params(self) -> "IdentityOfRows":
        return self


def test_a_vector_keeps_its_length_where_weights_without_use_are_forgotten(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = [
        [{"v": np.array([0.0, e, 0.0]), "noise": str(k)} for k, e in enumerate(x)]
        for x in rng.normal(size=(9, 4))
    ]
    y = [["q" if token["v"][1] > 0 else "p" for token in x] for x in X]
    model = ChainSVC(l1_ratio=0.5, C=0.5, random_state=0).fit(X, y)
    assert model.feature_names_ == ["v[0]", "v[1]", "v[2]"]
    assert not model.coef_[:, [0, 2]].any()
    model.save(tmp_path / "model")
    assert model.predict(X) == load(tmp_path / "model").predict(X) == y
    with pytest.raises(ValueError, match="the feature 'v' of 2 numbers, expected 3 as in fit"):
        model.predict([[{"v": np.ones(2)}]])

"""Dicts and collections within dicts have the names and values that python-crfsuite gives them."""

import gzip
import html
import json
import pickle
import re
from ast import literal_eval
from collections import Counter, OrderedDict
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.preprocessing import MaxAbsScaler

from maxmargin import ChainSVC, GraphSVC, SegmentSVC, TokenTransformer, encode_files, load
from maxmargin.crfsuite import ItemSequence
from maxmargin.encoding import table as lookup
from maxmargin.encoding.sequences import SequenceEncoder


class Scalar:
    """As other libraries have them."""

    def __init__(self, value: Any = 2.5) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)


# An item, and the names and values that it has here.
CASES: dict[str, tuple[Any, dict[str, float]]] = {
    "text": ({"word": "dog"}, {"word=dog": 1}),
    "number": ({"a": 2.5, "b": -3}, {"a": 2.5, "b": -3}),
    "bools": ({"a": True, "b": False, "c": np.True_}, {"a": 1, "b": 0, "c": 1}),
    "zero": ({"a": 0}, {"a": 0}),
    "number of NumPy": ({"a": np.float32(0.5), "b": np.int8(2)}, {"a": 0.5, "b": 2}),
    "decimal": ({"a": Decimal("1.5")}, {"a": 1.5}),
    "what float() takes": ({"a": np.array(1.5), "b": {"c": Scalar()}}, {"a": 1.5, "b:c": 2.5}),
    "dict": ({"next": {"word": "dog", "n": 2.0}}, {"next:word=dog": 1, "next:n": 2}),
    "dict in a dict in a dict": ({"a": {"b": {"c": {"d": 1.5}}}}, {"a:b:c:d": 1.5}),
    "list": ({"tags": ["N", "V"]}, {"tags:N": 1, "tags:V": 1}),
    "set": ({"tags": {"V", "N"}}, {"tags:N": 1, "tags:V": 1}),
    "list in a dict": ({"next": {"tags": ["N"], "end": True}}, {"next:tags:N": 1, "next:end": 1}),
    "everything": (
        {"a": 0.5, "b": "x", "c": True, "d": {"e": ["x", "y"], "f": 2}},
        {"a": 0.5, "b=x": 1, "c": 1, "d:e:x": 1, "d:e:y": 1, "d:f": 2},
    ),
    "dict of another class": (
        {"a": Counter("xxy"), "b": OrderedDict(c=1)},
        {"a:x": 2, "a:y": 1, "b:c": 1},
    ),
    "nothing inside": ({"a": {}, "b": [], "c": set(), "d": 1}, {"d": 1}),
    "nothing": ({}, {}),
    "empty texts": ({"": "", "a": {"": 1}}, {"=": 1, "a:": 1}),
    "empty names": ({"": {"": 2}, "a": [""]}, {":": 2, "a:": 1}),
    "bytes": ({b"a": b"x", "b": {b"c": 2}, "d": [b"y"]}, {"a=x": 1, "b:c": 2, "d:y": 1}),
    "bytes and a number": ({b"a": 2}, {"a": 2}),
    "letters": ({"é": {"ü": "ß"}}, {"é:ü=ß": 1}),
    "names": (["a", "b=c"], {"a": 1, "b=c": 1}),
    "tuple of names": (("a", "b"), {"a": 1, "b": 1}),
    "set of names": ({"a", "b"}, {"a": 1, "b": 1}),
    "names in bytes": ([b"a", "b"], {"a": 1, "b": 1}),
    "set of names in bytes": ({b"a", "b"}, {"a": 1, "b": 1}),
}
# What python-crfsuite refuses.
MORE: dict[str, tuple[Any, dict[str, float]]] = {
    "tuple": ({"tags": ("N", "V")}, {"tags:N": 1, "tags:V": 1}),
    "frozenset": ({"tags": frozenset("N")}, {"tags:N": 1}),
    "other mapping": ({"a": MappingProxyType({"b": 2})}, {"a:b": 2}),
}
NAMES = st.sampled_from(["a", "b", "c", "é", "", "word", b"d"])
LEAVES = st.one_of(
    st.sampled_from(["x", "y", "", "ß", b"z"]),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(NAMES, max_size=3),
    st.sets(NAMES, max_size=3),
)
ITEMS = st.one_of(
    st.lists(NAMES, max_size=3),
    st.dictionaries(
        NAMES, st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3)), max_size=4
    ),
)


def encoded(items: list[Any]) -> list[dict[str, float]]:
    """The names and values of items, as a fitted encoder has them."""
    encoder = SequenceEncoder()
    rows = encoder.fit_transform([[*items, ["some feature"]]]).rows
    assert np.array_equal(encoder.transform([items]).rows.toarray(), rows[:-1].toarray())
    assert encoder.feature_names_ is not None
    names = np.array(encoder.feature_names_, dtype=object)
    spans = zip(rows.indptr[:-2], rows.indptr[1:-1], strict=True)
    return [dict(zip(names[rows.indices[a:b]], rows.data[a:b].tolist(), strict=True)) for a, b in spans]


def one_sign(items: list[dict[str, float]]) -> list[dict[str, float]]:
    """Items with one sign between names and texts: python-crfsuite writes a colon for ours."""
    return [{name.replace("=", ":"): value for name, value in item.items()} for item in items]


def as_documented(item: Any) -> Any:
    """An item with its texts in the names: python-crfsuite says that this is the same, and what it shows."""
    if not isinstance(item, dict):
        return item
    texts = {_str(k) + "=" + _str(v): 1.0 for k, v in item.items() if isinstance(v, str | bytes)}
    return texts | {k: as_documented(v) for k, v in item.items() if not isinstance(v, str | bytes)}


def _str(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode()


def one_value(item: Any) -> dict[str, float]:
    """What python-crfsuite shows for an item, with texts as it documents them."""
    tuples = (
        {key: list(value) if isinstance(value, tuple) else value for key, value in item.items()}
        if isinstance(item, dict)
        else item
    )
    return crfsuite_reads([as_documented(tuples)])[0]


def n_leaves(item: Any) -> int:
    if isinstance(item, dict):
        return sum(map(n_leaves, item.values()))
    return len(item) if isinstance(item, list | set) else 1


def crfsuite_reads(items: list[Any]) -> list[dict[str, float]]:
    return pytest.importorskip("pycrfsuite").ItemSequence(items).items()


@pytest.mark.parametrize(("item", "expected"), [*CASES.values(), *MORE.values()], ids=[*CASES, *MORE])
def test_names_and_values_are_those_of_python_crfsuite(item: Any, expected: dict[str, float]) -> None:
    assert encoded([item]) == [expected]


@pytest.mark.parametrize(("item", "expected"), CASES.values(), ids=CASES)
def test_names_and_values_are_those_of_crfsuite(item: Any, expected: dict[str, float]) -> None:
    assert one_sign(crfsuite_reads([item])) == one_sign([expected])
    assert crfsuite_reads([as_documented(item)]) == [expected]


@given(st.lists(ITEMS, max_size=4), st.booleans())
def test_items_are_read_as_crfsuite_reads_them(items: list[Any], few: bool) -> None:
    theirs = crfsuite_reads(list(map(as_documented, items)))
    # It shows the last value of a name that occurs more than once, and uses all of them.
    assume([len(item) for item in theirs] == list(map(n_leaves, items)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "FEW", 0 if few else 10**9)
        assert encoded(items) == theirs


@given(st.lists(ITEMS, max_size=4))
def test_item_sequences_show_what_those_of_crfsuite_show(items: list[Any]) -> None:
    assert ItemSequence(items).items() == crfsuite_reads(items)


@pytest.mark.parametrize(("item", "expected"), [*CASES.values(), *MORE.values()], ids=[*CASES, *MORE])
def test_item_sequences_have_their_names(item: Any, expected: dict[str, float]) -> None:
    assert one_sign(ItemSequence([item]).items()) == one_sign([expected])


def test_names_of_crfsuite_are_those_of_weights_if_item_sequences_are_fitted() -> None:
    X = [ItemSequence(x).items() for x in NESTED]
    model = ChainSVC(C=1.0, random_state=0, verbose=0).fit(X, TAGS)
    assert set(model.feature_names_ or ()) == {
        name for x in NESTED for item in crfsuite_reads(x) for name in item
    }
    assert ("next:word:dog", "D") in model.state_features_


def test_the_guide_shows_the_features_of_items() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "coming_from.md").read_text(encoding="utf-8")
    table = page.partition("| item | features |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.*?)`.* \| `(.*)` \|$", table, re.MULTILINE)
    assert len(rows) == table.count("\n") - 1 > 5
    for item, expected in rows:
        assert encoded([literal_eval(item)]) == [literal_eval(expected)]
    differ = [item for item, expected in rows if literal_eval(expected) != one_value(literal_eval(item))]
    assert differ == ['{"a:b": 1, "a": {"b": 2}}', '["last", "last"]']  # the sums, of which the guide speaks


def test_dicts_and_lists_of_names_may_be_mixed() -> None:
    items = [["a"], {"b": {"c": 1}}, {"d"}, [], {}, ("e", "e")]
    expected = [{"a": 1}, {"b:c": 1}, {"d": 1}, {}, {}, {"e": 2}]
    assert encoded(items) == expected
    assert encoded(items[1:]) == expected[1:]
    assert crfsuite_reads(items[:-1]) == expected[:-1]


def test_values_of_one_name_are_added_as_crfsuite_adds_them(tmp_path: Path) -> None:
    twice = {"a:b": 1, "a": {"b": 2, "c": ["d", "d"]}}
    once = {"a:b": 3, "a:c:d": 2}
    assert encoded([twice, ["a", "a"]]) == [once, {"a": 2}]
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    for _ in range(3):
        trainer.append([{"a:b": 1.0, "a:c:d": 1.0}, ["e"]], ["A", "B"])
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    found = []
    for item in (twice, once, {"a:b": 2, "a:c:d": 1}):
        tagger.set([item])
        found.append(tagger.marginal("A", 0))
    tagger.close()
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    assert found[0] > found[2] + 1e-3


def nested(words: list[str], t: int) -> dict[str, Any]:
    item: dict[str, Any] = {"word": words[t], "size": len(words[t]) / 4, "letters": sorted(set(words[t]))}
    if t + 1 < len(words):
        item["next"] = {"word": words[t + 1], "is": {"short": len(words[t + 1]) < 3, "last": {b"s"}}}
    return item


def flat(words: list[str], t: int) -> dict[str, float]:
    item = {"word=" + words[t]: 1.0, "size": len(words[t]) / 4}
    item |= {"letters:" + letter: 1.0 for letter in sorted(set(words[t]))}
    if t + 1 < len(words):
        item["next:word=" + words[t + 1]] = 1.0
        item |= {"next:is:short": float(len(words[t + 1]) < 3), "next:is:last:s": 1.0}
    return item


WORDS = [["the", "dog", "barks"], ["a", "cat"], ["the", "cat", "sees", "a", "dog"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "D", "N"]]
NESTED, FLAT = ([[read(x, t) for t in range(len(x))] for x in WORDS] for read in (nested, flat))
# Sets and bytes do not go into JSON.
LISTED = json.loads(json.dumps(NESTED, default=lambda value: [name.decode() for name in value]))


@pytest.mark.parametrize("Estimator", [ChainSVC, SegmentSVC])
def test_estimators_learn_the_same_from_nested_and_from_flat_features(Estimator: Any, tmp_path: Path) -> None:
    y = TAGS if Estimator is ChainSVC else [[f"B-{tag}" for tag in tags] for tags in TAGS]
    model = Estimator(C=1.0, random_state=0, verbose=0).fit(NESTED, y)
    same = Estimator(C=1.0, random_state=0, verbose=0).fit(FLAT, y)
    assert model.feature_names_ == same.feature_names_
    np.testing.assert_array_equal(model.coef_, same.coef_)
    model.save(tmp_path / "model")
    for copy in (model, pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        assert copy.predict(NESTED) == copy.predict(FLAT) == same.predict(FLAT)
        assert [copy.predict_single(x) for x in NESTED] == same.predict(FLAT)
    assert model.explain(NESTED[0]) == same.explain(FLAT[0])


def test_weights_are_named_by_path() -> None:
    model = ChainSVC(C=1.0, random_state=0, verbose=0).fit(NESTED, TAGS)
    assert {"next:word=dog", "next:is:short", "letters:d", "word=dog", "size"} < {
        name for name, _ in model.state_features_
    }


@pytest.mark.parametrize("hash_bits", [None, 6])
def test_files_of_nested_features_are_encoded_as_lists_are(tmp_path: Path, hash_bits: int | None) -> None:
    found = []
    for name, X in (("nested", LISTED), ("flat", FLAT)):
        lines = (json.dumps({"tokens": x, "labels": y}) for x, y in zip(X, TAGS, strict=True))
        (tmp_path / name).write_text("\n".join(lines))
        corpus = encode_files(tmp_path / name, tmp_path / (name + ".corpus"), hash_bits=hash_bits)
        found.append(ChainSVC(C=1.0, random_state=0, verbose=0).fit(corpus))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    assert found[0].predict(NESTED) == found[1].predict(FLAT) == found[0].predict(LISTED) == TAGS


def test_nodes_and_transformers_read_nested_features() -> None:
    edges = [[[t, t + 1] for t in range(len(x) - 1)] for x in WORDS]
    models = [
        GraphSVC(C=1.0, random_state=0, verbose=0).fit(list(zip(X, edges, strict=True)), TAGS)
        for X in (NESTED, FLAT)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    found, expected = (TokenTransformer(MaxAbsScaler()).fit_transform(X) for X in (NESTED, FLAT))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())


def itself() -> dict[str, Any]:
    item: dict[str, Any] = {}
    item["a"] = item
    return item


WRONG = {
    "array": (
        {"next": {"word": np.ones((2, 2))}},
        ValueError,
        "token 1 of sequence 1 of X has the feature 'next:word', an ndarray of shape (2, 2), expected "
        "numbers in an array with one axis.",
    ),
    "none": ({"next": {"word": None}}, TypeError, "feature 'next:word' of token 1 of sequence 1"),
    "object": ({"a": {"b": {"c": object()}}}, TypeError, "feature 'a:b:c' of token 1 of sequence 1"),
    "generator": ({"a": (x for x in "b")}, TypeError, "feature 'a' of token 1 of sequence 1"),
    "several numbers": ({"a": {"b": Scalar(None)}}, TypeError, "feature 'a:b' of token 1 of sequence 1"),
    "not finite": ({"a": Scalar(np.inf)}, ValueError, "feature 'a' of token 1 of sequence 1"),
    "time": ({"a": np.datetime64("2000")}, TypeError, "feature 'a' of token 1 of sequence 1"),
    "text without axes": ({"a": np.array("1.5")}, TypeError, "feature 'a' of token 1 of sequence 1"),
    "complex": ({"a": {"b": 1j}}, TypeError, "feature 'a:b' of token 1 of sequence 1"),
    "nan": ({"a": {"b": "x", "c": np.nan}}, ValueError, "feature 'a:c' of token 1 of sequence 1 of X is nan"),
    "decimal nan": ({"a": Decimal("NaN")}, ValueError, "feature 'a' of token 1 of sequence 1 of X is "),
    "huge": ({"a": {"b": 10**400}}, ValueError, "feature 'a:b' of token 1 of sequence 1"),
    "number in a list": (
        {"next": {"tags": ["N", 1]}},
        TypeError,
        "token 1 of sequence 1 of X has the feature 1 (int) in 'next:tags', expected a string; use a dict",
    ),
    "dict in a list": ({"a": [{"b": 1}]}, TypeError, "has the feature a dict in 'a', expected a string"),
    "list in a list": ({"a": [["b"]]}, TypeError, "has the feature a list in 'a', expected a string"),
    "number as name": ({"a": {1: 2.0}}, TypeError, "has the feature 1 (int) in 'a', expected a string"),
    "not UTF-8": ({"a": {"b": b"\xff"}}, TypeError, "has the feature b'\\xff' in 'a:b', expected text in"),
    "not UTF-8 as name": ({b"\xff": 1}, TypeError, "has the feature b'\\xff', expected text in UTF-8"),
    "itself": (itself(), ValueError, "token 1 of sequence 1 of X has hundreds of dicts within dicts, or one"),
}


@pytest.mark.parametrize(("item", "error", "message"), WRONG.values(), ids=WRONG)
def test_errors_name_sequence_token_and_path(item: Any, error: type[Exception], message: str) -> None:
    encoder = SequenceEncoder().fit([[["a"]]])
    for read in (SequenceEncoder().fit, encoder.transform):
        with pytest.raises(error, match=re.escape(message)) as raised:
            read([[{"a": 1}], [{"b": "x"}, item]])
        assert "\n" not in str(raised.value)


def strings_of(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """The words of the distinct strings of a file of labelled pieces, and their labels."""
    found: dict[tuple[str, ...], list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    for string in re.findall(r"<(?:AddressString|Name)>(.*?)</(?:AddressString|Name)>", text, re.DOTALL):
        pieces = re.findall(r"<(\w+)>(.*?)</\1>", string, re.DOTALL)
        pairs = [(word, label) for label, piece in pieces for word in html.unescape(piece).split()]
        pairs = [(word, label) for word, label in pairs if re.search(r"\w", word)]
        if pairs:
            found.setdefault(tuple(word for word, _ in pairs), [label for _, label in pairs])
    return list(map(list, found)), list(found.values())


@pytest.mark.parametrize("project", ["usaddress", "probablepeople"])
def test_features_that_projects_make_have_the_names_of_crfsuite(project: str) -> None:
    # Of usaddress 0.5.16 and probablepeople 0.5.6, for strings made up here.
    recorded = json.loads((Path(__file__).parents[1] / "data" / "features_of_projects.json").read_text())
    items = [item for string in recorded[project] for item in string]
    assert len(items) > 20
    found = encoded(items)
    assert found == crfsuite_reads(list(map(as_documented, items)))
    assert one_sign(found) == one_sign(crfsuite_reads(items))


@pytest.mark.parametrize(
    ("project", "file", "least"),
    [("usaddress", "labeled.xml.gz", 0.70), ("probablepeople", "person_labeled.xml.gz", 0.76)],
)
def test_features_of_projects_are_read_as_they_come(
    real_data: Path, project: str, file: str, least: float
) -> None:
    path = real_data / "downstream" / project / file
    if not path.is_file():
        pytest.skip("needs the labelled strings of usaddress and probablepeople")
    module = pytest.importorskip(project)
    words, y = strings_of(path)
    X = [module.tokens2features(x) for x in words]
    items = [item for x in X for item in x]
    found = encoded(items)
    assert found == crfsuite_reads(list(map(as_documented, items)))
    assert one_sign(found) == one_sign(crfsuite_reads(items))
    order = np.random.default_rng(0).permutation(len(X)).tolist()
    train, test = order[: 4 * len(X) // 5], order[4 * len(X) // 5 :]
    model = ChainSVC(random_state=0, verbose=0).fit([X[i] for i in train], [y[i] for i in train])
    tags = model.predict([X[i] for i in test])
    assert np.mean([ours == y[i] for ours, i in zip(tags, test, strict=True)]) > least

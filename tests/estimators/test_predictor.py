"""Predictions from files by `Predictor`: those of the loaded estimator, whatever model and features."""

import pickle
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import ChainSVC, FileError, MulticlassSVC, Predictor, SegmentSVC, load

NAMES = ["a", "b", "a=x", "b:c", "a:b", "", "ü", "\0", "t\tn\n", "\ud800"]
LABELS = ["A", "B", "Ü"]


def model_of(names: list[str], share: float = 0.7, **parameters: object) -> ChainSVC:
    """A chain of these names. This share of its weights are drawn at random, and the others are zero."""
    model = ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0, **parameters)
    model.fit([[[name] for name in names]], [[LABELS[k % 3] for k in range(len(names))]])
    rng = np.random.default_rng(0)
    model._w = rng.normal(size=model._w.shape) * (rng.random(model._w.shape) < share)
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    model_of([*NAMES, *(f"no{k}" for k in range(5))]).save(path)
    return path


@pytest.fixture(scope="module")
def loaded(saved: Path) -> ChainSVC:
    found = load(saved)
    assert isinstance(found, ChainSVC)
    return found


@pytest.fixture(scope="module")
def predictor(saved: Path) -> Predictor:
    return Predictor(saved)


NAME = st.sampled_from([*NAMES, "unknown"])
NUMBER = st.floats(-3.0, 3.0) | st.integers(-2, 2) | st.booleans()
ITSELF: dict[str, object] = {}
ITSELF["a"] = ITSELF
VALUE = NUMBER | st.sampled_from(["x", "", "c"]) | st.lists(NAME, max_size=3) | st.sets(NAME, max_size=3)
DICT = st.dictionaries(
    NAME,
    st.recursive(VALUE, lambda inner: st.dictionaries(NAME, inner, max_size=3), max_leaves=5),
    max_size=5,
)
NAMED = st.lists(NAME, max_size=5) | st.sets(NAME, max_size=5) | st.lists(NAME, max_size=3).map(tuple)
SIMPLE = st.lists(DICT | NAMED, max_size=4)
ODD = st.sampled_from(
    [{b"a": 1}, [b"a"], {"a": b"x"}, {"a": [b"b"]}, {"a": Decimal("0.5")}, {"a": {"b": np.float32(0.5)}}]
)
SEQUENCES = st.lists(SIMPLE | st.lists(DICT | NAMED | ODD, max_size=3), max_size=4)


@given(X=SEQUENCES)
def test_labels_of_named_features_are_those_of_the_estimator(loaded, predictor, X):
    assert predictor.predict(X) == loaded.predict(X)


@given(X=st.lists(SIMPLE, min_size=1, max_size=3))
def test_simple_features_do_not_need_the_estimator(loaded, saved, X):
    fresh = Predictor(saved)
    found = [fresh.predict_single(x) for x in X]
    assert "_estimator" not in vars(fresh)
    assert found == [loaded.predict_single(x) for x in X]


def test_real_weights_give_the_labels_of_the_estimator_to_the_last_bit(tmp_path):
    # Sums of these depend on their order: 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1.
    model = ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0)
    model.fit([[["a"], ["b"], ["c"], ["d"], ["e"]]], [["A", "B", "A", "B", "A"]])
    model._w = np.zeros_like(model._w)
    W = model._w.reshape(-1, 4)
    W[:3, 0], W[3, 1] = (0.2, 0.4, 0.6), 2 * ((0.1 + 0.2) + 0.3)
    model.save(tmp_path / "model")
    for token in ({"c": 0.5, "b": 0.5, "a": 0.5, "d": 0.5}, {"d": 0.5, "a": 0.5, "b": 0.5, "c": 0.5}):
        assert Predictor(tmp_path / "model").predict_single([token]) == model.predict_single([token]) == ["A"]


@pytest.mark.parametrize(
    "X",
    [
        "text",
        ["text"],
        [["the", "dog"]],
        [[{"a": float("nan")}]],
        [[{"a": None}]],
        [[{"a": {"b": None}}]],
        [[{"a": ["b", 1]}]],
        [[ITSELF]],
        [[{1: True}]],
        [[{1: False}]],
        [[[1.0, 2.0]]],
        [np.zeros((2, 3))],
        [[{"a": 10**400}]],
        [[["a", 1]]],
        None,
    ],
)
def test_bad_examples_get_the_error_of_the_estimator(loaded, predictor, X):
    with pytest.raises((TypeError, ValueError)) as expected:
        loaded.predict(X)
    with pytest.raises(type(expected.value)) as found:
        predictor.predict(X)
    assert str(found.value) == str(expected.value)


def test_longer_tokens_and_sequences_than_before_are_predicted(loaded, predictor):
    for X in ([[["a", "b"] * 10_000]], [[["a"], {"b": 0.5}] * 700, [["b"]]], [[["a", "ü"] * 40]] * 200):
        assert predictor.predict(X) == loaded.predict(X)


def test_threads_may_share_a_predictor(loaded, predictor):
    X = [[[NAMES[(i * t) % 7], NAMES[(i + t) % 5]] for t in range(1 + i % 9)] for i in range(40)]
    expected, found = [loaded.predict_single(x) for x in X], dict[int, object]()

    def predict(k: int) -> None:
        found[k] = [predictor.predict_single(x) for x in X]

    threads = [Thread(target=predict, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(4)] == [expected] * 4


PLACES = [*LABELS, None]
PAIRS = st.sampled_from([(a, b) for a in PLACES for b in PLACES if a or b])


@settings(max_examples=10)
@given(pairs=st.lists(PAIRS, min_size=1, max_size=6), X=st.lists(SIMPLE, min_size=1, max_size=3))
def test_forbidden_pairs_are_not_predicted(tmp_path_factory, pairs, X):
    path = tmp_path_factory.mktemp("models") / "model"
    model_of(NAMES, forbidden=pairs, forbidden_in="prediction").save(path)
    try:
        expected = load(path).predict(X)
    except ValueError as error:  # of lengths for which no labelling is left
        with pytest.raises(ValueError, match=re.escape(str(error))):
            Predictor(path).predict(X)
    else:
        found = Predictor(path)
        assert found.predict(X) == expected
        repeats = {label: {(label, label), (None, label), (label, None)} for label in LABELS}
        is_fast = any(not needed & set(pairs) for needed in repeats.values())
        assert is_fast == ("_estimator" not in vars(found))


@pytest.mark.parametrize("share", [0.3, 1.0], ids=["sparse", "dense"])
def test_rounded_weights_are_those_that_load_reads(tmp_path, share):
    names, path = [f"n{k}" for k in range(40)], tmp_path / "model"
    model_of(names, share).save(path, dtype="float32")
    X = [[{name: 0.1 * k - 1.0} for k, name in enumerate(names[start : start + 7])] for start in range(30)]
    predictor = Predictor(path)
    assert predictor.predict(X) == load(path).predict(X)
    assert "_estimator" not in vars(predictor)


@pytest.mark.parametrize(
    "parameters", [{"order": 2}, {"forbidden": [(a, a) for a in "ABC"]}, {"kernel": "rbf"}]
)
def test_other_chains_are_predicted_by_the_estimator(tmp_path, parameters):
    X, y = [[["a"], ["b"], ["c"]]] * 2, [["A", "C", "B"]] * 2
    model = ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0, **parameters).fit(X, y)
    model.save(tmp_path / "model")
    assert Predictor(tmp_path / "model").predict(X) == model.predict(X)


@pytest.mark.parametrize("y", [[[0, 1, 2]], [np.array(["A", "C", "B"])]], ids=["numbers", "arrays"])
def test_labels_have_the_types_that_the_estimator_gives_them(tmp_path, y):
    X = [[["a"], ["b"], ["c"]]]
    model = ChainSVC(random_state=0, max_iter=1, tol=1e9, verbose=0).fit(X, y)
    model.save(tmp_path / "model")
    (found,), (expected,) = Predictor(tmp_path / "model").predict(X), model.predict(X)
    assert type(found) is type(expected)
    assert [(type(a), a) for a in found] == [(type(b), b) for b in expected]


def test_other_estimators_predict_as_they_do(tmp_path):
    X, y = [[["a"], ["b"]]], [[(0, 1, "A"), (1, 2, "B")]]
    segments = SegmentSVC(random_state=0, max_iter=1, tol=1e9, verbose=0).fit(X, y)
    segments.save(tmp_path / "segments")
    assert Predictor(tmp_path / "segments").predict(X) == segments.predict(X)
    rows = np.array([[0.0], [1.0], [2.0]])
    classes = MulticlassSVC(random_state=0).fit(rows, [0, 1, 2])
    classes.save(tmp_path / "classes")
    np.testing.assert_array_equal(Predictor(tmp_path / "classes").predict(rows), classes.predict(rows))


def test_pickles_open_the_same_file(predictor):
    x = [["a"], {"b": 2.0}]
    assert pickle.loads(pickle.dumps(predictor)).predict_single(x) == predictor.predict_single(x)


def test_files_that_are_not_models_are_errors_at_once(tmp_path):
    (tmp_path / "model").write_bytes(b"nothing")
    with pytest.raises(FileError, match="model"):
        Predictor(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        Predictor(tmp_path / "none")


def test_two_models_are_never_mixed(saved, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(saved.read_bytes())
    predictor = Predictor(path)
    model_of(NAMES).save(path)
    predictor.predict_single([["a"]])
    with pytest.raises(ValueError, match="must stay as it was"):
        predictor.predict_single([{b"a": 2}])


@pytest.mark.compiled
def test_a_process_that_predicts_does_not_import_numpy(saved):
    program = (
        "import sys, maxmargin; p = maxmargin.Predictor(sys.argv[1]); p.predict_single([{'a': 0.5}]);"
        "print(*{'numpy', 'scipy', 'numba', 'sklearn'} & set(sys.modules))"
    )
    Predictor(saved)  # compiles the loops that are not on disk
    run = subprocess.run([sys.executable, "-c", program, saved], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []

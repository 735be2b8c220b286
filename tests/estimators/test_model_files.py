"""Saved and loaded models: they predict the same, bit for bit, and files of earlier versions can be read."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxmargin import (
    BlockFrankWolfe,
    ChainSVC,
    GraphSVC,
    MulticlassSVC,
    MultilabelSVC,
    ProgressLine,
    StructuredSVC,
    load,
)
from support.estimators import KINDS, features_of, zero_one
from support.estimators import best as best_of_three
from support.model_files import FOLDER, FUNCTIONS, TAGS, WORDS, outputs, overlap, plain, samples

SAMPLES = samples()
KEPT = sorted(FOLDER.glob("*/*.safetensors"))
# What only training reads, or only files hold.
OF_TRAINING = {"_seen", "_last", "_dtype", "_names", "_n_weights", "notes_"}
TABLE = np.random.default_rng(0).normal(size=(6, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def stored(model: Any, path: Path, **given: Any) -> Any:
    model.save(path)
    return load(path, **given)


def bits(value: Any) -> Any:
    """Return attributes in a form in which equal ones have equal bits."""
    if hasattr(value, "tocsr"):
        return bits([value.data, value.indices.astype(np.int64), value.indptr.astype(np.int64), value.shape])
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple | np.ndarray):
        return [bits(item) for item in value]
    return bits(sorted(vars(value).items())) if hasattr(value, "__dict__") and not callable(value) else value


def attributes(model: Any) -> dict[str, Any]:
    """Return all attributes that predictions can read, without what is made on demand."""
    found = {name: value for name, value in vars(model).items() if name not in OF_TRAINING}
    for encoder in {"_encoder", "_node_names", "_edge_names"} & found.keys():
        if found[encoder] is not None:
            learnt = vars(found[encoder]).items()
            found[encoder] = {
                name: value for name, value in learnt if name not in {"min_count", "_vocabulary"}
            }
    if hasattr(model, "_support"):  # also has weights of labels that only pad
        found["_w"] = model._structure.layout(model).unpack(model._w)
    return {
        name: bits(list(value.items()) if isinstance(value, dict) else value) for name, value in found.items()
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_a_loaded_model_is_the_model(name: str, path: Path) -> None:
    sample = SAMPLES[name]
    model = sample.fitted()
    loaded = stored(model, path, **sample.functions)
    assert type(loaded) is type(model)
    assert attributes(loaded) == attributes(model)
    assert outputs(loaded, sample.X) == outputs(model, sample.X)
    assert repr(loaded) == repr(model)
    assert clone(loaded).get_params().keys() == model.get_params().keys()
    assert pickle.dumps(loaded)


def changed_kinds() -> list[Any]:
    return [
        pytest.param(name, {key: value}, id=f"{name}-{key}")
        for name, kind in KINDS.items()
        for key, value in kind.changes.items()
        if key not in {"features", "degree", "gamma", "coef0"}
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "changes"), changed_kinds())
def test_parameters_are_kept(name: str, changes: dict[str, Any], path: Path) -> None:
    kind = KINDS[name]
    model = kind.new(max_iter=1, check_every=1, **changes).fit(kind.X, kind.y)
    functions = {"features": features_of, "loss": zero_one, "argmax": best_of_three}
    loaded = stored(model, path, **(functions if name == "structured" else {}))
    assert bits(list(loaded.get_params().items())) == bits(list(model.get_params().items()))
    assert attributes(loaded) == attributes(model)
    assert plain(loaded.predict(kind.X)) == plain(model.predict(kind.X))


def test_there_is_a_sample_of_every_class() -> None:
    assert {type(sample.model).__name__ for sample in SAMPLES.values()} == {
        type(kind.new()).__name__ for kind in KINDS.values()
    }


@pytest.mark.parametrize("file", KEPT, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_files_of_all_versions_can_be_read(file: Path) -> None:
    sample, expected = SAMPLES[file.stem], json.loads(file.with_suffix(".json").read_text())
    found = outputs(load(file, **sample.functions), sample.X)
    assert found.keys() >= expected.keys()
    assert found["predict"] == expected.pop("predict")
    for name, values in expected.items():
        for a, b in zip(found[name], values, strict=True):
            _assert_close(a, b)
    assert file.stat().st_size < 20_000


def _assert_close(a: Any, b: Any) -> None:
    if isinstance(b, list) and any(isinstance(item, list | str) for item in b):
        for pair in zip(a, b, strict=True):
            _assert_close(*pair)
    elif isinstance(b, str):
        assert a == b
    else:
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_there_is_a_file_of_every_sample() -> None:
    assert {file.stem for file in KEPT} >= set(SAMPLES)


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, -1, 7] * 2, dtype=np.int32),
        np.array([1.0, 2.0] * 3),
        np.array([True, False] * 3),
        np.array(["b", "ä", "long label"] * 2),
        np.array(["b", "a"] * 3, dtype=object),
    ],
    ids=lambda y: str(y.dtype),
)
def test_labels_keep_their_type(y: Any, path: Path) -> None:
    model = MulticlassSVC(random_state=0, verbose=0).fit(TABLE, y)
    found = stored(model, path).predict(TABLE)
    assert found.dtype == model.predict(TABLE).dtype == y.dtype
    assert found.tolist() == model.predict(TABLE).tolist()


def test_names_of_features_may_have_any_character(path: Path) -> None:
    X = [[["\0", "ä\n", "\ud800"], ["", "\xff"]], [["a\0b"], ["日本"]]]
    model = ChainSVC(random_state=0, verbose=0).fit(X, [["p", "q"], ["q", "p"]])
    assert stored(model, path).feature_names_ == model.feature_names_


def test_columns_of_frames_keep_their_names(path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame, sets = pd.DataFrame(TABLE, columns=["u", "v"]), pd.DataFrame({"b": [0, 1] * 3, "a": [1, 0, 0] * 2})
    model = stored(MultilabelSVC(random_state=0, verbose=0).fit(frame, sets), path)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    assert model.classes_.tolist() == ["b", "a"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["v", "u"]])


def test_zeros_are_not_stored(path: Path) -> None:
    X = np.hstack([TABLE, np.zeros((6, 1000))])
    MulticlassSVC(random_state=0, verbose=0).fit(X, [0, 1, 2] * 2).save(path)
    stored_arrays = load_file(path)
    assert stored_arrays["weights.unary.values"].shape == (9,)
    assert path.stat().st_size < 4000
    assert load(path).coef_.shape == (3, 1002)


def test_float32_rounds_weights(path: Path) -> None:
    model = MulticlassSVC(random_state=0, verbose=0).fit(TABLE, [0, 1, 2] * 2)
    model.save(path, dtype="float32")
    np.testing.assert_array_equal(load(path).coef_, model.coef_.astype(np.float32))
    model._w = 1e200 * model._w
    with pytest.raises(ValueError, match=r"^MulticlassSVC: weights must be finite numbers of type float32"):
        model.save(path, dtype="float32")
    with pytest.raises(ValueError, match="dtype must be 'float32' or None, got 'int8'"):
        model.save(path, dtype="int8")


def test_functions_are_given_again(path: Path) -> None:
    SAMPLES["structured"].fitted().save(path)
    with pytest.raises(
        ValueError, match=r"give them again: load\(path, argmax=\.\.\., features=\.\.\., loss=\.\.\.\)"
    ):
        load(path)
    with pytest.raises(ValueError, match=r"give them again: load\(path, loss=\.\.\.\)"):
        load(path, **{name: f for name, f in FUNCTIONS.items() if name != "loss"})
    with pytest.raises(ValueError, match=r"takes argmax, features, loss, got C\.$"):
        load(path, **FUNCTIONS, C=1.0)
    with pytest.raises(ValueError, match="'loss' parameter of StructuredSVC must be a callable"):
        load(path, **(FUNCTIONS | {"loss": 3}))


def test_what_is_not_plain_has_its_default_or_is_given(path: Path) -> None:
    parameters = {
        "method": BlockFrankWolfe(1.0),
        "callbacks": [ProgressLine()],
        "random_state": np.random.RandomState(0),
    }
    MulticlassSVC(**parameters, verbose=0).fit(TABLE, [0, 1, 2] * 2).save(path)
    model = load(path)
    assert (model.method, model.callbacks, model.random_state) == ("auto", None, None)
    assert load(path, method="bcfw").method == "bcfw"
    with pytest.raises(ValueError, match="takes callbacks, method, random_state, got tol"):
        load(path, tol=1.0)


def test_training_data_are_not_in_the_file(path: Path) -> None:
    model = MulticlassSVC(random_state=0, verbose=0, warm_start=True).partial_fit(TABLE, [0, 1, 2] * 2)
    loaded = stored(model, path)
    assert loaded.kept_bytes_ == 0
    with pytest.raises(ValueError, match=r"but the file of this model does not hold them; call fit"):
        loaded.partial_fit(TABLE, [0, 1, 2] * 2)
    with pytest.raises(ValueError, match="the file of this model"):
        pickle.loads(pickle.dumps(loaded)).partial_fit(TABLE, [0, 1, 2] * 2)
    np.testing.assert_array_equal(
        loaded.fit(TABLE, [0, 1, 2] * 2).coef_, clone(model).fit(TABLE, [0, 1, 2] * 2).coef_
    )


def test_a_loaded_model_can_be_calibrated_and_saved_again(path: Path) -> None:
    model = stored(ChainSVC(random_state=0, verbose=0).fit(WORDS, TAGS), path).calibrate(WORDS, TAGS)
    again = stored(model, path)
    assert again.temperature_ == model.temperature_
    assert outputs(again, WORDS) == outputs(model, WORDS)


def features_by_path(x: int, y: int) -> dict[Any, float]:
    return {Path(f"{x}-{y}"): 1.0}


def best_path(x: int, w: Any, y_true: int | None = None) -> int:
    return max(
        (0, 1), key=lambda y: w.dot(features_by_path(x, y)) + (y_true is not None and zero_one(y_true, y))
    )


def test_what_cannot_be_saved_is_refused_and_leaves_no_file(path: Path) -> None:
    class OwnSVC(MulticlassSVC):
        pass

    with pytest.raises(NotFittedError):
        MulticlassSVC().save(path)
    with pytest.raises(TypeError, match=r"^OwnSVC: a class of your own cannot be saved"):
        OwnSVC(random_state=0, verbose=0).fit(TABLE, [0, 1, 2] * 2).save(path)
    pairs = [("a", 1), ("b", 2), ("a", 3)]
    model = MulticlassSVC(kernel=lambda a, b: np.ones((len(a), len(b))), random_state=0, verbose=0)
    with pytest.raises(
        ValueError, match=r"^MulticlassSVC: the kernel has training examples that are neither"
    ):
        model.fit(pairs, [0, 1, 0]).save(path)
    with pytest.raises(ValueError, match=r"^StructuredSVC: names of features .* got a \w+Path; pickle"):
        StructuredSVC(features_by_path, zero_one, best_path, random_state=0, verbose=0).fit(
            [0, 1], [0, 1]
        ).save(path)
    assert not path.exists()


def test_long_parameters_do_not_go_into_the_header(path: Path) -> None:
    names = [("place", k) for k in range(30_000)]
    model = StructuredSVC(*FUNCTIONS.values(), C=10, feature_names=names, random_state=0, verbose=0)
    loaded = stored(model.fit([list("abc"), list("cab")], [1, 2]), path, **FUNCTIONS)
    assert loaded.feature_names == names
    assert loaded.feature_names_ == names


def test_a_cut_of_a_graph_keeps_its_signs(path: Path) -> None:
    kind = KINDS["graph"]
    model = GraphSVC(
        inference="cut", nonnegative={"nodes": np.ones((2, 2), dtype=bool)}, random_state=0, verbose=0
    )
    loaded = stored(model.fit(kind.X, kind.y), path)
    assert bits(loaded.nonnegative["nodes"]) == bits(model.nonnegative["nodes"])
    assert outputs(loaded, kind.X) == outputs(model, kind.X)


def test_a_kernel_of_arrays_is_given_again(path: Path) -> None:
    def linear(a: Any, b: Any) -> Any:
        return np.asarray(a) @ np.asarray(b).T

    model = ChainSVC(kernel=linear, random_state=0, verbose=0).fit(
        [TABLE[:3], TABLE[3:]], [[0, 1, 0], [1, 1, 0]]
    )
    loaded = stored(model, path, kernel=linear)
    assert outputs(loaded, [TABLE]) == outputs(model, [TABLE])
    with pytest.raises(ValueError, match=r"load\(path, kernel=\.\.\.\)"):
        load(path)
    assert overlap("ab", "b").shape == (2, 1)


@pytest.mark.compiled
@pytest.mark.parametrize("name", sorted({*SAMPLES} - {"graph", "graph-names", "multilabel"}))
def test_loading_compiles_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of graphs that are trees, it compiles one function, which predictions need, too.
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise AssertionError(f"compiles {self.py_func.__name__}")

    monkeypatch.setattr(Dispatcher, "_compile_for_args", refuse)
    file = max(file for file in KEPT if file.stem == name)
    assert type(load(file, **SAMPLES[name].functions)) is type(SAMPLES[name].model)

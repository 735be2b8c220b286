"""What is said about model files that are wrong, and how little is allocated before it is said."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from maxmargin import FileError, load
from support.damaged_files import FILES, SAMPLES, parts, refusal, whole


def set_in(header: dict[str, Any], name: str, value: Any) -> None:
    if name in header["header"]["parameters"]:
        header["header"]["parameters"][name] = value
    else:
        header["header"][name] = value


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("multiclass", {"n_features_in_": 10**12}, "bytes for a file of this size"),
        ("multiclass", {"n_features_in_": 4}, "expected shape [3, 5] for 'weights.unary', got [3, 4]"),
        ("multiclass", {"n_features_in_": True}, "expected 'n_features_in_' to be an int >= 0, got True"),
        ("multiclass", {"estimator": "os.system"}, "expected an estimator of ChainSVC, "),
        ("multiclass", {"estimator": ["ChainSVC"]}, "expected an estimator of ChainSVC, "),
        ("multiclass", {"estimator": "ChainSVC"}, "expected 'parameters' to have some of C, l1_rati"),
        ("multiclass", {"more": 1}, "expected no other parts, got 'more'"),
        ("multiclass", {"C": -1.0}, "The 'C' parameter of MulticlassSVC must be"),
        ("multiclass", {"temperature_": 0.0}, "expected 'temperature_' to be a float >= 2.2"),
        ("multiclass", {"_function": ["rbf", 0.5]}, "support rows must be those of a kernel"),
        ("multiclass", {"_function": ["rbf", "0.5"]}, "expected the numbers of a kernel for '_function'"),
        ("multiclass", {"_function": ["__import__"]}, "expected '_function' to be one of linear, poly"),
        ("multiclass", {"loss": {"pickle": []}}, "expected plain data for 'loss', got an object of type"),
        ("multiclass", {"loss": {"array": ["float64", ["a"]]}}, "expected plain data for 'loss'"),
        ("multiclass", {"functions": ["C"]}, "without its functions, which are not stored; give them"),
        ("multiclass", {"functions": ["no"]}, "expected 'functions' to be some of C, l1_ratio"),
        ("multiclass-kernel", {"_support": ["dense", 3, 10**12]}, "bytes for a file of this size"),
        ("multiclass-kernel", {"_support": ["sparse", 10**30, 4]}, "expected at most 2**32 features"),
        ("multiclass-texts", {"_has_objects": False}, "support rows must be of the kind"),
        ("chain", {"_order": 2}, "expected a value for 'weights.trigrams', got none"),
        ("chain", {"_order": 3}, "expected '_order' to be one of 1, 2, got 3"),
        ("chain", {"_encoder.size": 10**12}, "must have a name each"),
        ("chain", {"_encoder": "dense"}, "must have a name each"),
        ("chain-second-order", {"_encoder.size": 10**12}, "bytes for a file of this size"),
        ("matching", {"_fertility": 10**12}, "bytes for a file of this size"),
        ("graph", {"n_edge_features_in_": 10**12}, "bytes for a file of this size"),
        ("graph-names", {"n_edge_features_in_": 10**12}, "features of edges must have a name each"),
        ("graph-names", {"_edge_names.size": 10**12}, "must have a name each or be arrays"),
        ("graph-names", {"_node_names": "hashed"}, "expected '_node_names' to be one of 'dicts', 'strings'"),
        ("dependency", {"n_features_in_": 10**12}, "features must be those of the encoder"),
        ("dependency-arcs", {"n_features_in_": 10**12}, "bytes for a file of this size"),
        ("multilabel", {"_n_labels": 10**12}, "labels must have a class each"),
        ("structured", {"_joint": "arrays", "_joint.size": 10**12}, "bytes for a file of this size"),
    ],
)
def test_wrong_headers_are_refused_before_much_is_allocated(
    tmp_path: Path, name: str, changes: Any, said: str
) -> None:
    outer, inner, body = parts(FILES[name])
    for key, value in changes.items():
        set_in(inner, key, value)
    (tmp_path / "file").write_bytes(whole(outer, inner, body))
    tracemalloc.start()
    try:
        found = refusal(tmp_path / "file", name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said in found
    assert str(tmp_path / "file") in found
    assert peak < 4_000_000


def replaced(path: Path, name: str, **arrays: Any) -> Path:
    """Write a sample's file with some arrays replaced."""
    path.write_bytes(FILES[name])
    _, inner, _ = parts(FILES[name])
    save_file(load_file(path) | arrays, path, {"maxmargin": json.dumps(inner)})
    return path


@pytest.mark.parametrize(
    ("name", "arrays", "said"),
    [
        ("chain", {"weights.transitions.values": np.full(4, np.nan)}, "expected finite numbers in"),
        (
            "chain",
            {"weights.transitions.counts": np.full(3, 255, np.uint8)},
            "expected as many counts as values in",
        ),
        ("chain", {"weights.transitions": np.zeros((3, 3))}, "expected no other parts"),
        ("chain", {"_encoder": np.frombuffer(b"a\xffa\xff", np.uint8)}, "must have a name each"),
        ("chain", {"_encoder": np.frombuffer(b"a\xff" * 6, np.uint8)}, "must be distinct"),
        ("chain", {"_encoder": np.frombuffer(b"\xc3\xff" * 6, np.uint8)}, "to be texts in UTF-8"),
        ("chain", {"_encoder": np.frombuffer(b"a\xffb", np.uint8)}, "texts that do not end"),
        ("chain", {"classes_": np.frombuffer(b"D\xffV\xffN\xff", np.uint8)}, "labels in order"),
        ("chain", {"_forbidden": np.zeros((2, 4), bool)}, "forbidden must be bools of shape (4, 4)"),
        ("chain", {"more": np.zeros(1)}, "expected no other parts, got 'more'"),
        ("segments", {"max_length_": np.array([2**40, 1, 1])}, "bytes for a file of this size"),
        ("segments", {"max_length_": np.array([-1, 1, 1])}, "expected 'max_length_' to be ints >= 0"),
        ("multilabel", {"edges_": np.array([[0, 9], [1, 2]])}, "ends of edges must be from 0 to 2"),
        ("multilabel", {"edges_": np.array([[0, 1], [1, 2], [2, 0]])}, "cycle"),
        (
            "multiclass-kernel",
            {"_support.rows.indices": np.full(18, 9, np.int32)},
            "column indices from 0 to 2",
        ),
        ("dependency", {"_encoder": np.zeros(3, np.uint64)}, "keys must be positive and rise"),
        ("multiclass", {"history_": np.zeros((0, 6))}, "expected 'history_' to have a row"),
        (
            "multiclass",
            {"history_": np.zeros((2, 5))},
            "to be floats of shape (any, 6), got float64 of shape (2, 5)",
        ),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, name: str, arrays: Any, said: str) -> None:
    path = replaced(tmp_path / "file", name, **arrays)
    with pytest.raises(FileError) as error:
        load(path, **SAMPLES[name].functions)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{path}: expected ")


def test_labels_of_very_unequal_lengths_take_little_memory(tmp_path: Path) -> None:
    # NumPy would give each of the labels the room of the longest.
    texts = b"".join(b"%08d\xff" % k for k in range(20_000)) + b"z" * 500_000 + b"\xff"
    path = replaced(tmp_path / "file", "multiclass", classes_=np.frombuffer(texts, np.uint8))
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="expected 'classes_' of at most"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 20 * path.stat().st_size
    finally:
        tracemalloc.stop()

"""Small models of every kind, and the files of them that are kept for later versions.

``python tests/support/model_files.py`` writes the files of the present version to ``tests/data/models``, with
what each model predicts. Run it once for each release, and never change a file of an earlier one.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from maxmargin import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    SegmentSVC,
    StructuredSVC,
    __version__,
)

FOLDER = Path(__file__).parents[1] / "data" / "models"
WORDS = [[["the", "w"], ["dog"]], [["a"], ["cat", "w"], ["barks"]], [["dog"], ["barks"]]]
TAGS = [["D", "N"], ["D", "N", "V"], ["N", "V"]]
TAGGED = [[("the", "D"), ("dog", "N"), ("barks", "V")], [("cats", "N"), ("sleep", "V")]]
PATH = [(0, 1), (1, 2)]
SENTENCES = ["now", "then", "cow", "ten"]


def overlap(a: Any, b: Any) -> Any:
    """Return the number of letters that texts share: a kernel of users' own objects."""
    return np.array([[float(len(set(x) & set(y))) for y in b] for x in a])


def counts_of(x: Any, y: int) -> dict[Any, float]:
    """Return joint features whose names are tuples."""
    return {("place", y): 1.0, ("word", x[y]): 0.5}


def missed(y_true: int, y: int) -> float:
    return float(y_true != y)


def best(x: Any, w: Any, y_true: int | None = None) -> int:
    def value(y: int) -> float:
        return float(w.dot(counts_of(x, y))) + (0.0 if y_true is None else missed(y_true, y))

    return max(range(len(x)), key=value)


FUNCTIONS = {"features": counts_of, "loss": missed, "argmax": best}


class Sample(NamedTuple):
    """An estimator, examples, and the functions that `load` needs."""

    model: Any
    X: Any
    y: Any
    functions: Mapping[str, Any] = MappingProxyType({})

    def fitted(self) -> Any:
        """Return the model trained."""
        return self.model.set_params(verbose=0, random_state=0).fit(self.X, self.y)


def _rows(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def _graph(seed: int) -> Any:
    return _rows(seed, 3, 2), [(0, 1), (1, 2)], _rows(seed + 9, 2, 2)


def pairs_of(tokens: Any) -> list[list[str]]:
    """Return features of pairs of neighbours: that there is one, and of its second token."""
    return [["pair", *map("then {}".format, token)] for token in tokens[1:]]


def samples() -> dict[str, Sample]:
    """Return a model of every kind, not yet trained."""
    sequences, labels = [_rows(i, 3, 2) for i in range(3)], [[0, 1, 2], [2, 1, 0], [0, 0, 1]]
    table, classes = _rows(0, 6, 3), np.array(["p", "q", "r"] * 2)
    graphs, nodes = (
        [_graph(i) for i in range(3)],
        [np.array([0, 1, 1]), np.array([1, 0, 0]), np.array([1, 1, 0])],
    )
    sets = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
    segments = [[(0, 2, "A")], [(1, 2, "B")], [(0, 1, "A"), (1, 2, "B")]]
    return {
        "chain": Sample(ChainSVC(probability=True, forbidden=[("V", "D")]), WORDS, TAGS),
        "chain-second-order": Sample(ChainSVC(order=2), sequences, labels),
        "chain-kernel": Sample(ChainSVC(kernel="rbf", class_weight={0: 2.0}), sequences, labels),
        "segments": Sample(SegmentSVC(C=1.0, max_length={"A": 2, "B": 1}), WORDS, segments),
        "multiclass": Sample(MulticlassSVC(probability=True, loss=1.0 - np.eye(3)), table, classes),
        "multiclass-kernel": Sample(
            MulticlassSVC(kernel="poly", fit_intercept=False), scipy.sparse.csr_array(np.abs(table)), classes
        ),
        "multiclass-texts": Sample(
            MulticlassSVC(kernel=overlap), SENTENCES, [True, False, True, False], {"kernel": overlap}
        ),
        "multilabel": Sample(MultilabelSVC(structure="tree"), table[:4], sets),
        "multilabel-kernel": Sample(MultilabelSVC(kernel="sigmoid"), table[:4], sets),
        "graph": Sample(GraphSVC(), graphs, nodes),
        "graph-cut": Sample(GraphSVC(inference="cut", kernel="rbf"), graphs, nodes),
        "graph-names": Sample(
            GraphSVC(probability=True), [(x, PATH[: len(x) - 1], pairs_of(x)) for x in WORDS], TAGS
        ),
        "matching": Sample(
            MatchingSVC(fertility=2), [_rows(i, 2, 3, 2) for i in range(3)], [[0, 1], [2, -1], [1, 0]]
        ),
        "dependency": Sample(DependencySVC(C=1.0, projective=True), TAGGED, [[2, 3, 0], [2, 0]]),
        "dependency-arcs": Sample(
            DependencySVC(), [_rows(i, 2, 3, 2) for i in range(3)], [[2, 0], [0, 1], [2, 0]]
        ),
        "structured": Sample(
            StructuredSVC(*FUNCTIONS.values(), C=10), [list("abc"), list("cab")], [1, 2], FUNCTIONS
        ),
    }


def plain(value: Any) -> Any:
    """Return predictions as JSON holds them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def outputs(model: Any, X: Any) -> dict[str, Any]:
    """Return all that a model says about examples."""
    names = ["predict", "predict_margins"]
    names += ["predict_marginals"] if hasattr(model, "temperature_") else []
    found = {name: plain(getattr(model, name)(X)) for name in names if hasattr(model, name)}
    if hasattr(model, "predict_k_best"):
        found["predict_k_best"] = plain(model.predict_k_best(X, 2))
    return found


def main() -> None:
    """Write all files of this version."""
    from maxmargin.compiling.interpreting import interpreted

    folder = FOLDER / __version__
    folder.mkdir(parents=True, exist_ok=True)
    with interpreted():
        for name, sample in samples().items():
            model = sample.fitted()
            model.save(folder / f"{name}.safetensors")
            text = json.dumps(outputs(model, sample.X), indent=1)
            (folder / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())

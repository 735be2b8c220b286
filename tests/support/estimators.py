"""An estimator of every kind, with examples of its own and others that it could be fitted to instead."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    SegmentSVC,
    StructuredSVC,
)


class Kind(NamedTuple):
    """An estimator's class, examples for it, others, and values of parameters that make another model."""

    make: Any
    X: Any
    y: Any
    other_X: Any
    other_y: Any
    changes: dict[str, Any]

    def new(self, **parameters: Any) -> Any:
        return self.make(verbose=0, random_state=0, **parameters)


def features_of(x: Any, y: int) -> dict[Any, float]:
    return {(x, y): 1.0}


def other_features_of(x: Any, y: int) -> dict[Any, float]:
    return {(x, y): 2.0}


def zero_one(y_true: int, y: int) -> float:
    return float(y_true != y)


def best(x: Any, w: Any, y_true: int | None = None) -> int:
    return max(range(3), key=lambda y: w[x, y] + (0.0 if y_true is None else zero_one(y_true, y)))


def structured(**parameters: Any) -> StructuredSVC:
    return StructuredSVC(features_of, zero_one, best, **parameters)


def _rows(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def _linked(seed: int, n_features: int) -> Any:
    return _rows(seed, 3, 2), [(0, 1), (1, 2)], _rows(seed + 9, 2, n_features)


# Other parameters of the kernel, for the estimators that may have one.
KERNEL = {"kernel": "rbf", "degree": 2, "gamma": 0.5, "coef0": 1.0}
SETS = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
_KINDS = {
    "multiclass": Kind(
        MulticlassSVC,
        _rows(0, 6, 3),
        np.array([0, 1, 2, 0, 1, 2]),
        _rows(1, 5, 4),
        np.array(["p", "q", "q", "p", "p"]),
        {
            "loss": 2.0 - 2.0 * np.eye(3),
            "rescaling": "slack",
            "fit_intercept": False,
            "class_weight": {0: 2.0},
            **KERNEL,
        },
    ),
    "chain": Kind(
        ChainSVC,
        [_rows(i, 4, 3) for i in range(4)],
        [[0, 1, 2, 0]] * 4,
        [[["a"], ["b"]], [["b"], ["c"]]],
        [["p", "q"], ["q", "q"]],
        {
            "order": 2,
            "loss": "normalized_hamming",
            "rescaling": "slack",
            "forbidden": [(2, 1)],
            "all_possible_states": False,
            "forbidden_in": "prediction",
            "min_count": 2,
            "class_weight": {0: 2.0},
            **KERNEL,
        },
    ),
    "segments": Kind(
        SegmentSVC,
        [_rows(i, 4, 3) for i in range(4)],
        [[(0, 2, "A")], [(1, 2, "B")], [(0, 1, "A"), (2, 4, "B")], []],
        [[["a"], ["b"]], [["b"], ["c"]]],
        [[(0, 1, "C")], [(0, 2, "D")]],
        {"max_length": 3, "loss": "normalized_hamming", "rescaling": "slack", "min_count": 2, **KERNEL},
    ),
    "matching": Kind(
        MatchingSVC,
        [_rows(i, 2, 3, 2) for i in range(4)],
        [[0, 1], [2, -1], [1, 0], [0, 2]],
        [_rows(i, 3, 2, 4) for i in range(3)],
        [[0, 1, -1]] * 3,
        {"wrong": 2.0, "missed": 1.0, "fertility": 2, "fit_intercept": False},
    ),
    "dependency": Kind(
        DependencySVC,
        [_rows(i, 3, 4, 2) for i in range(4)],
        [[2, 0, 2], [0, 1, 2], [3, 3, 0], [2, 3, 0]],
        [_rows(i, 2, 3, 5) for i in range(3)],
        [[2, 0]] * 3,
        {"projective": True, "single_root": False, "loss": "normalized_hamming", "min_count": 2},
    ),
    "graph": Kind(
        GraphSVC,
        [_linked(i, 2) for i in range(4)],
        [[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]],
        [_linked(i, 3) for i in range(3)],
        [["a", "b", "c"]] * 3,
        {
            "inference": "messages",
            "loss": "normalized_hamming",
            "rescaling": "slack",
            "nonnegative": {"nodes": [0]},
            "class_weight": {0: 2.0},
            "void": 7,
            "min_count": 2,
            "search": 5,
            **KERNEL,
        },
    ),
    "multilabel": Kind(
        MultilabelSVC,
        _rows(0, 4, 3),
        SETS,
        _rows(1, 4, 5),
        SETS[:, :2],
        {"structure": "full", "loss": "normalized_hamming", "rescaling": "slack", **KERNEL},
    ),
    "structured": Kind(
        structured,
        [0, 1, 2, 0],
        [0, 1, 2, 0],
        [3, 4],
        [1, 2],
        {"features": other_features_of, "nonnegative": [(0, 0)], "exact": False, "feature_names": [(0, 0)]},
    ),
}
KINDS = {name: kind._replace(changes=kind.changes | {"l1_ratio": 0.5}) for name, kind in _KINDS.items()}

"""Garbage of all kinds into every public function and method: a valid result, or one line."""

import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import clone

import maxmargin
from fuzz.functions import FUNCTIONS
from fuzz.garbage import Draw, garbage, mutated
from fuzz.outcomes import Refused, outcome
from support.model_files import samples

# Values that parameters may and may not have, besides garbage.
_VALUES: dict[str, list[Any]] = {
    "C": [1e-12, 1e12, 1e-300, 1e300, 0, -1, np.float32(2), "scale"],
    "tol": [0, 1e-12, 1e12, -1],
    "max_iter": [1, 2, 0, 10**20, np.int32(3)],
    "time_limit": [None, 1e-9, 0.01, 0, np.inf],
    "check_every": [1, 2, 10**9, 0, 10**25],
    "sampling": ["permutation", "uniform", "gap"],
    "warm_start": [True, False, 1],
    "n_jobs": [None, 2, -1, 0, 40, 10**6],
    "random_state": [0, None, -1, 2**32, np.random.RandomState(0), np.random.default_rng(0)],
    "method": ["auto", "pairwise", "away", "bcfw", "bcfw-wavg", "fw", "ssg", "ssg-wavg", "perceptron"],
    "order": [1, 2, 3, True],
    "loss": [
        "normalized_hamming",
        "hamming",
        "zero_one",
        "segments",
        np.eye(3),
        1 - np.eye(3),
        1e200 * (1 - np.eye(3)),
    ],
    "rescaling": ["margin", "slack"],
    "forbidden": [None, "bio", [(0, 1)], [(None, 0)], [(None, None)], [(0, float("nan"))], [([], [])]],
    "min_count": [1, 2, 10**9, 0],
    "class_weight": [None, "balanced", {0: 2.0}, {0: 0.0}, {0: 1e300}, {9: 1}],
    "max_length": [None, 1, 0, 10**9, {"A": 2}, {"A": 10**12}, {"Z": 2}, 2.5],
    "fertility": [1, 2, 3, 0, 50, 10**6, 10**12],
    "wrong": [0, 1, -1, 1e300],
    "inference": ["auto", "tree", "cut", "messages"],
    "structure": ["tree", "full", "none"],
    "kernel": ["linear", "rbf", "poly", "sigmoid", "precomputed", None],
    "gamma": ["scale", "auto", 0.1, 0, 1e300],
    "degree": [1, 3, 0, 10**6, -1],
    "coef0": [0.0, 1e300, -1],
    "cache_size": [0, 1e-9, 200, -1, np.inf],
    "nonnegative": [None, {"nodes": [0]}, {"edges": [10**6]}, [0], [-1], {"edges": True}],
    "probability": [True, False, "a"],
    "verbose": [0, 0, -1, "a"],
}
_SETTINGS = {"max_iter": 3, "verbose": 0, "random_state": 0}
_CHANGES: dict[str, list[Any]] = {
    "predict_k_best": [1, 2, 5, 100, 0, -1, "a", 1.5, None, 10**9],
    "explain": [1, 50, 0, -1, "a", 10**9],
    "top_features": [1, 0, -1, None, "a", 10**9],
    "top_transitions": [1, 0, -1, None, "a", 10**9],
}
_SAMPLES = samples()


@cache
def _fitted(name: str) -> bytes:
    sample = _SAMPLES[name]
    with maxmargin.pickle_training_data():
        return pickle.dumps(outcome(clone(sample.model).set_params(**_SETTINGS).fit, sample.X, sample.y))


def check_fitted(model: Any) -> None:
    """A model that was fitted has finite weights, and a gap."""
    if model.time_limit is None:  # else there may be no time for a certificate
        assert np.isfinite(model.gap_), f"gap {model.gap_}"
    assert model.gap_ >= -1e-6 * (1.0 + abs(model.history_.primal.min())), f"gap {model.gap_}"
    assert np.isfinite(model._w).all(), "weights that are not finite"


def _choose_parameters(draw: Draw, model: Any) -> None:
    """Set some parameters, to values that may not be valid."""
    names = sorted(set(model.get_params()) - {"features", "argmax"})
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        is_known = name in _VALUES and draw(st.integers(0, 3)) > 0
        model.set_params(**{name: draw(st.sampled_from(_VALUES[name])) if is_known else garbage(draw)})
    if "verbose" in names and not isinstance(model.verbose, str | None):
        model.set_params(verbose=0)
    if isinstance(model.max_iter, int) and model.max_iter > 10:
        model.set_params(time_limit=0.05)


def _arguments(draw: Draw, X: Any, y: Any) -> tuple[Any, Any]:
    """Draw examples with a fault in X, in y, or in neither."""
    which = draw(st.sampled_from(["X", "X", "y", "neither"]))
    return mutated(draw, X) if which == "X" else X, mutated(draw, y) if which == "y" else y


def _train(draw: Draw, model: Any, X: Any, y: Any) -> None:
    weights = {
        "sample_weight": draw(st.sampled_from([np.ones(len(y)), np.zeros(len(y)), "a", [1e300], None]))
    }
    options = weights if draw(st.integers(0, 4)) == 0 else {}
    method = draw(st.sampled_from(["fit", "fit", "partial_fit"]))
    found = outcome(getattr(model, method), *_arguments(draw, X, y), **options)
    if not isinstance(found, Refused):
        check_fitted(found)


def _use(draw: Draw, model: Any, X: Any, y: Any) -> None:
    """Call a method of a fitted model that takes examples, or a number."""
    with_X = [
        "predict",
        "predict_margins",
        "predict_marginals",
        "predict_proba",
        "decision_function",
        "predict_tags",
    ]
    others = [
        "score",
        "calibrate",
        "predict_single",
        "predict_k_best",
        "explain",
        "top_features",
        "top_transitions",
    ]
    name = draw(st.sampled_from([*with_X, *others]))
    if not hasattr(model, name):
        name = "predict"
    given, truth = _arguments(draw, X, y)
    if name in with_X:
        found = outcome(getattr(model, name), given)
        if not isinstance(found, Refused) and given is X:
            assert len(found) == (X.shape[0] if hasattr(X, "shape") else len(X))
    elif name in ("score", "calibrate"):
        found = outcome(getattr(model, name), given, truth)
        if name == "score" and not isinstance(found, Refused):
            assert np.isfinite(found), f"score {found}"
    elif name in ("predict_single", "explain"):
        one = mutated(draw, X[0]) if draw(st.booleans()) else X[0]
        extra = [draw(st.sampled_from(_CHANGES[name]))] if name == "explain" and draw(st.booleans()) else []
        outcome(getattr(model, name), one, *extra)
    else:
        number = draw(st.sampled_from(_CHANGES[name]))
        outcome(getattr(model, name), *([given] if name == "predict_k_best" else []), number)


def _store(draw: Draw, model: Any, functions: Any) -> None:
    """Save a model and load it again, with faults in any argument."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        options = {name: garbage(draw) for name in draw(st.sets(st.sampled_from(["dtype", "notes"])))}
        where = garbage(draw) if draw(st.integers(0, 4)) == 0 else path
        if isinstance(where, str | int | bytes) and not isinstance(where, bool):
            where = path  # a valid name of a file, or the number of an open one
        found = outcome(model.save, where, **options, also=(OSError,))
        if where is path and not isinstance(found, Refused):
            given = {"C": garbage(draw)} if draw(st.integers(0, 4)) == 0 else {}
            again = outcome(maxmargin.load, path, **functions, **given)
            assert isinstance(again, Refused | type(model))


def _estimator(draw: Draw) -> int:
    """Train a model on garbage or not, then use it; return the number of calls."""
    name = draw(st.sampled_from(sorted(_SAMPLES)))
    sample = _SAMPLES[name]
    if draw(st.booleans()):
        model = clone(sample.model).set_params(**_SETTINGS)
    else:
        model = pickle.loads(_fitted(name))
    if draw(st.booleans()):
        _choose_parameters(draw, model)
    steps: list[Callable[[], None]] = [
        lambda: _train(draw, model, sample.X, sample.y),
        lambda: _use(draw, model, sample.X, sample.y),
        lambda: _use(draw, model, sample.X, sample.y),
        lambda: _store(draw, model, sample.functions),
    ]
    count = draw(st.integers(1, 5))
    for _ in range(count):
        draw(st.sampled_from(steps))()
    return count


def _function(draw: Draw) -> int:
    """Call a public function with one or two arguments that are wrong."""
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    function, arguments = FUNCTIONS[name]()
    for key in draw(st.sets(st.sampled_from(sorted(arguments)), min_size=1, max_size=2)):
        arguments[key] = mutated(draw, arguments[key])
    outcome(function, **arguments, also=(OSError,) if name.startswith("load_") else ())
    return 1


def calls(draw: Draw) -> int:
    """Make some calls, and return how many."""
    return draw(st.sampled_from([_estimator, _estimator, _function]))(draw)

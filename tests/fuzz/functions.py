"""The public functions, each with arguments that are right."""

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock
from urllib.error import URLError

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin import datasets, displays, problems, product
from maxmargin.datasets import files
from support.model_files import samples

mpl.use("Agg")
Call = tuple[Callable[..., Any], dict[str, Any]]
_ROWS = np.array([[0.5, 1.0], [1.5, -1.0], [-0.5, 2.0], [1.0, 1.0]])
_SEQUENCES, _LABELS = [_ROWS[:2], _ROWS], [[0, 1], [1, 0, 2, 2]]
_GRAPHS = [
    (_ROWS, np.array([[0, 1], [1, 2], [2, 3]]), np.ones((3, 1))),
    (_ROWS[:2], np.array([[0, 1]]), np.ones((1, 1))),
]


def _problem() -> Any:
    return problems.Multiclass.from_arrays(_ROWS, [0, 1, 2, 0])


@cache
def _model(name: str) -> Any:
    return samples()[name].fitted()


def _features(x: float, y: int) -> Any:
    return np.array([x * y, 1.0 * y])


def _loss(truth: int, y: int) -> float:
    return float(truth != y)


def _argmax(x: float, w: Any, truth: int | None = None) -> int:
    return max((0, 1), key=lambda y: float(w @ _features(x, y)) + (0.0 if truth is None else _loss(truth, y)))


def _drawn(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that closes what it draws."""

    def draw(**arguments: Any) -> Any:
        import matplotlib.pyplot as plt

        try:
            return make(**arguments)
        finally:
            plt.close("all")

    return draw


_SOLVE = {
    "tol": 1e-3,
    "rtol": 0.0,
    "max_passes": 2,
    "time_limit": None,
    "check_every": 1,
    "sampling": "permutation",
    "n_jobs": None,
    "random_state": 0,
    "callbacks": [],
}


def _solved(**arguments: Any) -> Any:
    """Solve with a limit, as a valid number of passes may be huge."""
    return mm.solve(**{**arguments, "callbacks": [*arguments["callbacks"], lambda at: at.passes < 5]})


def _words(name: str) -> Call:
    X = samples()["segments"].X
    return _drawn(displays.SegmentsDisplay.from_predictions), {
        "y_true": [(0, 2, "A")],
        "y_pred": [(1, 2, "B")],
        "words": [word[0] for word in X[0]],
    }


def _wrapped(wrapper: Any, **arguments: Any) -> Callable[[], Call]:
    return lambda: (wrapper, {"problem": _problem(), **arguments})


def _method(method: Any, **arguments: Any) -> Callable[[], Call]:
    def run(**given: Any) -> Any:
        return mm.solve(_problem(), method(**given), max_passes=2, random_state=0)

    return lambda: (run, dict(arguments))


def _domain(domain: Any, **arguments: Any) -> Callable[[], Call]:
    return lambda: (domain, dict(arguments))


def _loader(load: Any, **arguments: Any) -> Callable[[], Call]:
    """Return a call of a loader that finds no file, off the network."""

    def offline(**given: Any) -> Any:
        with mock.patch.object(files, "_open", side_effect=URLError("no route to host")):
            return load(**given)

    return lambda: (offline, {"data_home": tempfile.gettempdir(), **arguments})


def _display(display: Any, **arguments: Any) -> Callable[[], Call]:
    return lambda: (_drawn(display.from_predictions), dict(arguments))


FUNCTIONS: dict[str, Callable[[], Call]] = {
    "solve": lambda: (
        _solved,
        {"problem": _problem(), "method": mm.Pairwise(0.1), "start": None, "checkpoint": None, **_SOLVE},
    ),
    "c_path": lambda: (
        mm.c_path,
        {"problem": _problem(), "Cs": [0.1, 1.0], "method": mm.Pairwise(1.0), "max_passes": 2},
    ),
    "check_problem": lambda: (
        mm.check_problem,
        {"subject": _problem(), "outputs": None, "n_examples": 2, "random_state": 0},
    ),
    "Multiclass": lambda: (
        problems.Multiclass.from_arrays,
        {"X": _ROWS, "y": [0, 1, 2, 0], "loss": "zero_one"},
    ),
    "Multiclass encoded": lambda: (
        problems.Multiclass.from_encoded,
        {"X": _ROWS, "labels": np.array([0, 1, 2, 0]), "n_labels": 3},
    ),
    "Chain": lambda: (
        problems.Chain.from_sequences,
        {"X": _SEQUENCES, "y": _LABELS, "loss": "hamming", "forbidden": [(2, 1)]},
    ),
    "Chain encoded": lambda: (
        problems.Chain.from_encoded,
        {"features": _ROWS, "offsets": np.array([0, 1, 4]), "labels": np.array([0, 1, 2, 0]), "n_labels": 3},
    ),
    "SecondOrderChain": lambda: (problems.SecondOrderChain.from_sequences, {"X": _SEQUENCES, "y": _LABELS}),
    "Segments": lambda: (
        problems.Segments.from_sequences,
        {"X": _SEQUENCES, "y": [[(0, 1, "A")], [(1, 3, "B")]], "loss": "segments"},
    ),
    "Matching": lambda: (
        problems.Matching.from_links,
        {"X": [np.ones((2, 3, 2))], "y": [[0, 1]], "wrong": 1.0, "missed": 1.0, "fertility": 1},
    ),
    "Dependency": lambda: (
        problems.Dependency.from_arcs,
        {"X": [np.ones((2, 3, 2))], "y": [[2, 0]], "projective": True, "single_root": True},
    ),
    "Graph": lambda: (
        problems.Graph.from_graphs,
        {"X": _GRAPHS, "y": [[0, 1, 0, 1], [1, 1]], "inference": "tree", "loss": "hamming"},
    ),
    "Custom": lambda: (
        problems.Custom,
        {
            "features": _features,
            "loss": _loss,
            "argmax": _argmax,
            "X": [0.5, 1.0],
            "y": [0, 1],
            "n_features": 2,
        },
    ),
    "take": lambda: (problems.take, {"problem": _problem(), "indices": [0, 2]}),
    "Weighted": _wrapped(problems.Weighted, weights=np.ones(4)),
    "SlackRescaled": _wrapped(problems.SlackRescaled),
    "SignConstrained": _wrapped(problems.SignConstrained, nonnegative=[0, 1]),
    "L1Penalised": _wrapped(problems.L1Penalised, threshold=0.5),
    "Kernelised": _wrapped(
        problems.Kernelised, features=_ROWS, kernel=problems.GaussianKernel(0.5), cache_size=1.0
    ),
    "BlockFrankWolfe": _method(mm.BlockFrankWolfe, lam=0.1, step=mm.LineSearch()),
    "Pairwise": _method(mm.Pairwise, lam=0.1, inner_steps=2),
    "Accelerated": _method(mm.Accelerated, inner=mm.Pairwise(0.1), kappa=0.1),
    "Averaged": _method(mm.Averaged, inner=mm.Pairwise(0.1), scheme="uniform"),
    "Cached": _method(mm.Cached, inner=mm.Pairwise(0.1), oracle_cost=4.0, capacity=3, life=2),
    "Divided": _method(mm.Divided, inner=mm.Pairwise(0.1), parts=2),
    "Anchored": _method(mm.Anchored, inner=mm.BlockFrankWolfe(0.1), length=2),
    "Checkpoint": lambda: (mm.Checkpoint, {"path": "run", "every": "2 passes"}),
    "WarmStart": lambda: (
        mm.WarmStart,
        {"result": mm.solve(_problem(), mm.Pairwise(0.1), max_passes=1), "keep": "best"},
    ),
    "GaussianKernel": _domain(problems.GaussianKernel, gamma=0.1),
    "PolynomialKernel": _domain(problems.PolynomialKernel, degree=2, gamma=0.1, coef0=1.0),
    "SigmoidKernel": _domain(problems.SigmoidKernel, gamma=0.1, coef0=1.0),
    "grid_edges": lambda: (mm.grid_edges, {"shape": (2, 3), "connectivity": 8}),
    "edge_differences": lambda: (mm.edge_differences, {"values": _ROWS, "edges": np.array([[0, 1], [1, 2]])}),
    "Simplex": _domain(product.Simplex, shape=(2, 3), radius=1.0),
    "Box": _domain(product.Box, lower=[0.0, 0.0], upper=[1.0, 2.0]),
    "chunk_f1": lambda: (
        datasets.chunk_f1,
        {"y_true": [["B-NP", "I-NP", "O"]], "y_pred": [["B-NP", "O", "O"]]},
    ),
    "alignment_error_rate": lambda: (
        datasets.alignment_error_rate,
        {"sure": [[(0, 1)]], "possible": [[(1, 1)]], "predicted": [[(0, 0)]]},
    ),
    "intersection_over_union": lambda: (
        datasets.intersection_over_union,
        {"truth": [np.array([0, 1])], "predicted": [np.array([1, 1])]},
    ),
    "window_features": lambda: (datasets.window_features, {"sentence": [("the", "DT"), ("dog", "NN")]}),
    "load_ocr": _loader(datasets.load_ocr),
    "load_conll2000": _loader(datasets.load_conll2000),
    "load_ud_ewt": _loader(datasets.load_ud_ewt, tags="both"),
    "load_hansards": _loader(datasets.load_hansards, n_text=3),
    "load_digit_words": lambda: (datasets.load_digit_words, {"random_state": 0}),
    "ConvergenceDisplay": lambda: (
        _drawn(displays.ConvergenceDisplay.from_estimator),
        {"estimator": _model("chain"), "tol": 0.1},
    ),
    "FeaturesDisplay": lambda: (
        _drawn(displays.FeaturesDisplay.from_estimator),
        {"estimator": _model("chain"), "label": "D", "k": 2},
    ),
    "TransitionsDisplay": lambda: (
        _drawn(displays.TransitionsDisplay.from_estimator),
        {"estimator": _model("chain"), "feature": 0},
    ),
    "SegmentsDisplay": lambda: _words("segments"),
    "DependencyDisplay": _display(displays.DependencyDisplay, y_true=[2, 0], y_pred=[0, 1], words=["a", "b"]),
    "GraphDisplay": _display(
        displays.GraphDisplay, y_true=[0, 1, 1], y_pred=[0, 0, 1], edges=[(0, 1), (1, 2)]
    ),
    "AlignmentDisplay": _display(
        displays.AlignmentDisplay, predicted=[(0, 1)], sure=[(0, 0)], sources=["a", "b"], targets=["c", "d"]
    ),
}

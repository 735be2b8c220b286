"""Tiny fits that need the same kernels as users' fits: what `maxmargin.warm` runs to compile them."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from maxmargin import estimators
from maxmargin.arrays import CsrMatrix, FloatArray
from maxmargin.decoding import decode_all
from maxmargin.driver import solve
from maxmargin.encoding.arcs import Arcs
from maxmargin.encoding.fields import number_fields
from maxmargin.encoding.links import encode_links
from maxmargin.encoding.numbered import NumberedSequences
from maxmargin.estimators._parameters import DUAL_METHODS
from maxmargin.problems import Arborescence, Chain, Graph, Matching, Multiclass, SecondOrderChain, Segments
from maxmargin.problems.arborescence import ArborescenceProblem
from maxmargin.problems.oracles._labelling import LABELLINGS
from maxmargin.problems.problem import AnyProblem, sizes
from maxmargin.tagging.loops import ready_loops


class FirstFit(NamedTuple):
    """A fit that compiles kernels.

    Attributes
    ----------
    model : str
        An estimator, trained with default parameters; or a model, trained by ``method``.
    data : str
        What its examples are.
    method : str
        Name of a method; empty for an estimator.
    """

    model: str
    data: str
    method: str = ""

    def __str__(self) -> str:
        return f"{self.model}, {self.data}" + (f", {self.method}" if self.method else "")


_RNG_SHAPE = (9, 4)


def _tables() -> dict[str, NDArray[np.float64]]:
    """Return features in each of the three storage formats."""
    X = np.random.default_rng(0).normal(size=_RNG_SHAPE)
    return {"dense": X, "sparse": np.where(X > 1.0, X, 0.0), "indicators": np.where(X > 1.0, 1.0, 0.0)}


_LABELS = np.arange(_RNG_SHAPE[0]) % 3
_CHUNKS = ["B-a", "I-a", "O"] * 3
_PATH, _CYCLE = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
_Data = dict[str, Callable[[], tuple[object, object]]]


def _of_rows(examples: Callable[[NDArray[np.float64]], tuple[object, object]]) -> _Data:
    """Return data for each storage format of features."""
    return {f"{kind} rows": partial(lambda kind: examples(_tables()[kind]), kind) for kind in _tables()}


def _graph(edges: list[tuple[int, int]], labels: list[int]) -> tuple[object, object]:
    return [(_tables()["dense"][:3], edges)], [labels]


def _named_path() -> tuple[object, object]:
    """Return a path graph with named features of nodes and edges, as templates with label pairs make it."""
    return [([["a"], ["b"], ["b"]], _PATH, [["c"], ["d"]])], [[0, 1, 1]]


def _attributes() -> tuple[object, object]:
    """Return a sequence of attributes as read from a file; a kernel numbers their names.

    Tagging such files needs loops of its own, which are compiled here too.
    """
    ready_loops()
    codes, counts, _, _ = number_fields(b"a\tb\nb\n")
    return NumberedSequences(["a", "b"], codes, None, counts, np.array([0, 2])), [[0, 1]]


DATA: dict[str, _Data] = {
    "ChainSVC": {**_of_rows(lambda X: ([X], [_LABELS])), "attributes": _attributes},
    "DependencySVC": {"tagged words": lambda: ([[("a", "X"), ("b", "Y")]], [[2, 0]])},
    "GraphSVC": {
        "paths of two labels": lambda: _graph(_PATH, [0, 1, 1]),
        "cycles of two labels": lambda: _graph(_CYCLE, [0, 1, 1]),
        "paths with names": _named_path,
        "cycles of three labels": lambda: _graph(_CYCLE, [0, 1, 2]),
    },
    "MatchingSVC": {"links": lambda: ([_tables()["dense"][:6].reshape(2, 3, 4)], [[(0, 0), (1, 2)]])},
    "MulticlassSVC": _of_rows(lambda X: (X, _LABELS)),
    "MultilabelSVC": _of_rows(lambda X: (X, np.column_stack([_LABELS == 0, _LABELS == 1]).astype(int))),
    "SegmentSVC": _of_rows(lambda X: ([X], [_CHUNKS])),
}


# What the demo compares with.
DEMO = FirstFit("chain", "dense rows", "bcfw")


def default_fits(names: list[str]) -> list[FirstFit]:
    """Return the fits of these estimators with default parameters, for every kind of data."""
    return [FirstFit(name, data) for name in names for data in DATA[name]]


def all_fits() -> list[FirstFit]:
    """Return the fits of every model by every method of the dual, for every kind of rows."""
    return [FirstFit(model, data, method) for model, data in _problems() for method in DUAL_METHODS]


def run(fit: FirstFit) -> None:
    """Train and predict, so that all kernels of the fit are compiled or loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are too few data to converge
        if fit.method:
            problem = _problems()[fit.model, fit.data]
            solve(problem, DUAL_METHODS[fit.method](1.0), max_passes=1, random_state=0)
            decode_all(problem, np.zeros(sizes(problem).weights))
        else:
            X, y = DATA[fit.model][fit.data]()
            estimator = getattr(estimators, fit.model)(max_iter=2, tol=0.0, verbose=0, random_state=0)
            estimator.fit(X, y).predict(X)


@cache
def _problems() -> dict[tuple[str, str], AnyProblem]:
    """Return a tiny problem for each model and each storage format of features."""
    return dict(_made_problems())


def _made_problems() -> Iterator[tuple[tuple[str, str], AnyProblem]]:
    sequence = np.array([0, 2]), np.array([0, 1]), 2
    builders: list[tuple[str, Callable[[Any], Any]]] = [
        ("multiclass", lambda X: Multiclass.from_encoded(X, np.array([0, 1]), 2)),
        ("chain", lambda X: Chain.from_encoded(X, *sequence)),
        ("second-order chain", lambda X: SecondOrderChain.from_encoded(X, *sequence)),
        ("segments", lambda X: Segments.from_sequences([X], [[(0, 1, "a"), (1, 2, "b")]])),
        ("trees", partial(_trees, projective=False)),
        ("projective trees", partial(_trees, projective=True)),
    ]
    features = {
        "dense": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "sparse": scipy.sparse.csr_array(np.diag([2.0, 3.0])),
        "indicators": scipy.sparse.csr_array(np.eye(2)),
    }
    for (model, build), (storage, X) in itertools.product(builders, features.items()):
        yield (model, f"{storage} rows"), build(X)
    for inference in LABELLINGS:
        graph = (features["dense"], [[0, 1]])
        yield ("graph", f"by {inference}"), Graph.from_graphs([graph], [[0, 1]], inference=inference)
    links = encode_links([np.ones((1, 1, 1))], owner="compile")
    yield ("matching", "links"), Matching.from_encoded(links, np.ones(1, dtype=np.bool_))


def _trees(X: FloatArray | CsrMatrix, *, projective: bool) -> ArborescenceProblem:
    arcs, heads = Arcs(X, np.array([0, 1])), np.array([0])
    return Arborescence.from_encoded(arcs, heads, projective=projective)

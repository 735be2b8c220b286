"""Compile kernels ahead of time, for container images and before workers start."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from tqdm import tqdm

from maxmargin.arrays import CsrMatrix, FloatArray
from maxmargin.compiling import KERNELS
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.decoding import decode_all
from maxmargin.encoding.arcs import Arcs
from maxmargin.encoding.links import encode_links
from maxmargin.estimators._parameters import DUAL_METHODS
from maxmargin.problems import Arborescence, Chain, Graph, Matching, Multiclass, SecondOrderChain, Segments
from maxmargin.problems.arborescence import ArborescenceProblem
from maxmargin.problems.oracles._labelling import LABELLINGS
from maxmargin.problems.problem import sizes
from maxmargin.solve import solve


class Compiled(NamedTuple):
    """The outcome of `compile_kernels`; ``str`` makes one line of it.

    Attributes
    ----------
    kernels : int
        Number of specialisations that are ready: one per kernel, model, kind of features and method.
    seconds : float
        Time that it took; little if the kernels were on disk.
    directory : Path or None
        Where they are stored; None if no directory is writeable, so that each process compiles again.
    """

    kernels: int
    seconds: float
    directory: Path | None

    def __str__(self) -> str:
        kept = f"in {self.directory}" if self.directory else "but not kept: no directory is writeable"
        return f"{self.kernels} kernels ready in {self.seconds:.1f} s, {kept}"


def compile_kernels() -> Compiled:
    """Compile the kernels of every model, kind of features and method of the dual, or load them from disk.

    Kernels for weights of examples, rescaled slacks, signs of weights, forbidden transitions and graphs with
    sparse features are compiled when they are first used. Compiling them here would take more than twice as
    long.

    The kernels are stored for the user who compiles them. Other users can load them if root compiled them
    into the installed package and made them readable (``chmod -R a+rX``).

    Returns
    -------
    Compiled
        ``(kernels, seconds, directory)``.
    """
    begin = time.perf_counter()
    pairs = list(itertools.product(_problems(), DUAL_METHODS.items()))
    with tqdm(pairs, desc="compile", unit="kernel", disable=None, leave=False) as line:
        for (model, problem), (name, method) in line:
            line.set_postfix_str(f"{model}, {name}")
            solve(problem, method(1.0), max_passes=1, random_state=0)
            decode_all(problem, np.zeros(sizes(problem).weights))
    return Compiled(_n_specialisations(), time.perf_counter() - begin, cache_directory())


def _problems() -> Iterator[tuple[str, Any]]:
    """Yield a tiny problem for each model and each way of storing features."""
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
        yield f"{model} of {storage} features", build(X)
    for inference in LABELLINGS:
        graph = (features["dense"], [[0, 1]])
        yield f"graph by {inference}", Graph.from_graphs([graph], [[0, 1]], inference=inference)
    links = encode_links([np.ones((1, 1, 1))], owner="compile")
    yield "matching", Matching.from_encoded(links, np.ones(1, dtype=np.bool_))


def _trees(X: FloatArray | CsrMatrix, *, projective: bool) -> ArborescenceProblem:
    arcs, heads = Arcs(X, np.array([0, 1])), np.array([0])
    return Arborescence.from_encoded(arcs, heads, projective=projective)


def _n_specialisations() -> int:
    """Return the number of compiled versions of all kernels; zero if compilation is disabled."""
    return sum(len(getattr(loop.cached, "signatures", ())) for loop in KERNELS)

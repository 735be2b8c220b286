"""Problems of every model over rows, with a kernel of the rows or with the features that it stands for."""

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    CuttingPlane,
    Divided,
    FrankWolfe,
    Pairwise,
    Result,
    Subgradient,
    solve,
)
from maxmargin.problems import (
    Chain,
    Graph,
    Kernelised,
    Multiclass,
    PolynomialKernel,
    SecondOrderChain,
    Segments,
)
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.segments.encode import EncodedSegments
from support import naive
from support.catalogue import Case, random_cost
from support.growing import Growing, growing
from support.naive import Array

_EDGES = {
    "tree": [[], [(0, 1), (2, 1)], [(0, 2)]],
    "cut": [[], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]],
    "messages": [[], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]],
}
_SIZES = (1, 3, 3)


def _multiclass(rows: Array, rng: np.random.Generator, hamming: bool) -> Case:
    y, cost = np.append(np.arange(3), rng.integers(3, size=len(rows) - 3)), random_cost(rng, 3)
    problem = Multiclass.from_encoded(rows, y, 3, loss=cost)
    return Case(problem, naive.enumerate_multiclass(rows, y, 3, cost), list(rows))


def _chain(
    rows: Array,
    rng: np.random.Generator,
    hamming: bool,
    made: Any = Chain,
    phi: Any = naive.chain_features,
) -> Case:
    offsets, K = np.array([0, 1, 3, 6, 7]), 3 if made is Chain else 2
    y, cost = rng.integers(K, size=offsets[-1]), 1.0 - np.eye(K) if hamming else random_cost(rng, K)
    problem = made.from_encoded(rows, offsets, y, K, loss="hamming" if hamming else cost)
    X, Y = np.split(rows, offsets[1:-1]), np.split(y, offsets[1:-1])
    return Case(problem, naive.enumerate_chain(X, Y, K, cost, not hamming, phi), X)


def _second_order(rows: Array, rng: np.random.Generator, hamming: bool) -> Case:
    return _chain(rows, rng, hamming, SecondOrderChain, naive.second_order_features)


def _segments(rows: Array, rng: np.random.Generator, hamming: bool) -> Case:
    loss = "hamming" if hamming else "segments"
    offsets, limits = np.array([0, 1, 4, 7]), np.array([2, 1])
    outputs = [naive.all_segmentations(length, limits) for length in np.diff(offsets)]
    Y = [some[rng.integers(len(some))] for some in outputs]
    found = EncodedSegments(np.concatenate(Y), np.arange(1), 2)
    problem = Segments.from_encoded(rows, offsets, found, limits, loss=loss)
    X = np.split(rows, offsets[1:-1])
    return Case(problem, naive.enumerate_segments(X, Y, limits, 1, loss), X)


def _graph(inference: str) -> Callable[[Array, np.random.Generator, bool], Case]:
    def made(rows: Array, rng: np.random.Generator, hamming: bool) -> Case:
        K, ends = (
            2 if inference == "cut" else 3,
            [np.array(e, dtype=np.int64).reshape(-1, 2) for e in _EDGES[inference]],
        )
        nodes = np.split(rows, np.cumsum(_SIZES)[:-1])
        edges = [rng.normal(size=(len(e), 2)) for e in ends]
        Y = [rng.integers(K, size=size) for size in _SIZES]
        Y[-1] = np.arange(3) % K  # every label occurs
        weights = [np.ones(size) if hamming else rng.uniform(0.2, 2.0, size) for size in _SIZES]
        cost = 1.0 - np.eye(K) if hamming else random_cost(rng, K)
        graphs = list(zip(nodes, ends, edges, strict=True))
        offsets, edge_offsets = (np.cumsum([0, *map(len, parts)]) for parts in (nodes, edges))
        encoded = Graphs(rows, offsets, np.concatenate(edges), edge_offsets, np.concatenate(ends))
        problem = Graph.from_encoded(
            encoded,
            np.concatenate(Y),
            K,
            inference=inference,
            loss="hamming" if hamming else cost,
            weights=np.concatenate(weights),
        )
        shares = [w if hamming else w / w.sum() for w in weights]
        return Case(problem, naive.enumerate_graphs(graphs, Y, cost, shares, inference == "cut"), graphs)

    return made


N_ROWS = 7
MODELS: dict[str, Callable[[Array, np.random.Generator, bool], Case]] = {
    "multiclass": _multiclass,
    "chain": _chain,
    "second order": _second_order,
    "segments": _segments,
    "tree": _graph("tree"),
    "cut": _graph("cut"),
    "messages": _graph("messages"),
}


LAM = 0.1
SQUARE, CUBE = PolynomialKernel(2, 0.7, 0.5), PolynomialKernel(3, 0.5, 1.0)
METHODS = {
    "BCFW": BlockFrankWolfe(LAM),
    "accelerated": Accelerated(Pairwise(LAM)),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
    "away": Away(LAM),
    "FW": FrankWolfe(LAM),
    "subgradient": Subgradient(LAM),
    "divided": Divided(Pairwise(LAM), 2),
    "cutting plane": CuttingPlane(LAM),
}


def linear_case(model: str, rows: Array, *, seed: int = 0, hamming: bool = False) -> Case:
    """Return the problem of these features of its seven rows; all else depends on the seed alone."""
    return MODELS[model](rows, np.random.default_rng(seed), hamming)


def random_rows(seed: int, n_features: int = 2) -> Array:
    """Return features of the seven rows."""
    return np.random.default_rng(1000 + seed).normal(size=(N_ROWS, n_features))


def kernel_problem(
    model: str,
    features: Any,
    kernel: Any,
    *,
    linear: Array | None = None,
    hamming: bool = False,
    **options: Any,
) -> Any:
    """Return the problem with a kernel of these features, and with linear features too if there are any."""
    linear = np.zeros((N_ROWS, 0)) if linear is None else linear
    return Kernelised(linear_case(model, linear, hamming=hamming).problem, features, kernel, **options)


def growing_kernels(kind: str, seed: int, kernel: PolynomialKernel) -> tuple[Callable[[int], Any], Growing]:
    """Return the problem of the first examples with a kernel, and the same with its explicit features."""
    examples = growing(kind, seed)
    blank = examples._replace(X=[x[:, :0] for x in examples.X])

    def first(n: int) -> Any:
        return Kernelised(blank.first(n).problem, np.concatenate(examples.X[:n]), kernel)

    return first, examples._replace(X=[monomials(x, kernel) for x in examples.X])


def monomials(X: Array, kernel: PolynomialKernel) -> Array:
    """Return features whose inner product is the polynomial kernel.

    With z = (sqrt(gamma) x, sqrt(coef0)) the kernel is <z, z'>^d: the sum over all products of d entries,
    each as often as its factors have orders.
    """
    d, gamma, c = kernel
    Z = np.column_stack([np.sqrt(gamma) * X, np.full(len(X), np.sqrt(c))])
    chosen = list(combinations_with_replacement(range(Z.shape[1]), d))
    orders = [factorial(d) / prod(factorial(which.count(j)) for j in set(which)) for which in chosen]
    return np.column_stack(
        [np.sqrt(m) * Z[:, which].prod(axis=1) for m, which in zip(orders, chosen, strict=True)]
    )


def factors(K: Array) -> Array:
    """Return features F of the rows with K = F F', for a matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(K)
    assert values.min() > -1e-10 * values.max()
    return vectors * np.sqrt(np.maximum(values, 0.0))


def ran(problem: Any, method: Any, passes: int = 6, **options: Any) -> Result:
    """Return the result of a few passes."""
    limits = {"tol": 0.0, "max_passes": passes, "check_every": 2, "random_state": 0}
    return solve(problem, method, **limits | options)


def assert_same_run(found: Result, expected: Result, tol: float = 1e-8) -> None:
    """All certificates agree, and those of the results."""
    for name in ("primal", "dual", "gap"):
        np.testing.assert_allclose(found.history[name], expected.history[name], rtol=0.0, atol=tol)
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=tol)
    np.testing.assert_array_equal(found.history.oracle_calls, expected.history.oracle_calls)
    assert len(expected.history.dual) >= 2


def assert_same_answers(problem: Any, found: Result, explicit: Any, expected: Result) -> None:
    """Both predict the same outputs."""
    np.testing.assert_array_equal(decode_all(problem, found.w), decode_all(explicit, expected.w))

"""Small solves, written as the exact bits of all their numbers; as a script, in JSON on standard output."""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Predefined,
    Result,
    Subgradient,
    solve,
)
from maxmargin.problems import (
    Chain,
    GaussianKernel,
    Kernelised,
    L1Penalised,
    LinearKernel,
    PolynomialKernel,
    SigmoidKernel,
    SignConstrained,
    SlackRescaled,
    Weighted,
)
from maxmargin.structures.kernel_functions import GROUP
from support.catalogue import (
    Case,
    chain_case,
    graph_case,
    label_set_case,
    matching_case,
    multiclass_case,
    segment_case,
    tree_case,
)
from support.naive import Array
from support.own_functions import custom

LAM = 0.05
_BLOCK = BlockFrankWolfe(LAM)
RUNS: dict[str, tuple[Callable[[], Any], Any]] = {
    "chain, BCFW": (lambda: chain_case(40), _BLOCK),
    "chain, FW": (lambda: chain_case(41), FrankWolfe(LAM)),
    "chain, averaged": (lambda: chain_case(42, (4, 2, 3), 4), Averaged(_BLOCK)),
    "chain of sparse rows, BCFW": (lambda: chain_case(43, (5, 1, 2), rows="sparse"), _BLOCK),
    "multiclass, BCFW": (lambda: multiclass_case(44), _BLOCK),
    "multiclass, predefined steps": (lambda: multiclass_case(45), BlockFrankWolfe(LAM, Predefined())),
    "multiclass, FW": (lambda: multiclass_case(46), FrankWolfe(LAM)),
    "multiclass, averaged": (lambda: multiclass_case(47), Averaged(_BLOCK)),
    "multiclass, suffix average": (lambda: multiclass_case(48), Averaged(_BLOCK, "suffix")),
    "multiclass of sparse rows, BCFW": (lambda: multiclass_case(49, rows="sparse"), _BLOCK),
    "multiclass of sparse singles, BCFW": (lambda: multiclass_case(49, rows="sparse single"), _BLOCK),
    "multiclass of indicators, BCFW": (lambda: multiclass_case(50, n=9, rows="indicator"), _BLOCK),
    "chain, pairwise": (lambda: chain_case(51, (4, 2, 3), 4), Pairwise(LAM)),
    "chain, pairwise with a budget": (lambda: chain_case(51, (6, 2, 5), 4), Pairwise(LAM, budget=100)),
    "chain, away": (lambda: chain_case(52), Away(LAM, inner_steps=3)),
    "chain, averaged pairwise": (lambda: chain_case(53), Averaged(Pairwise(LAM))),
    "chain, accelerated": (lambda: chain_case(54, (4, 2, 3), 4), Accelerated(Pairwise(LAM))),
    "chain of singles, accelerated": (
        lambda: chain_case(54, (4, 2, 3), 4, rows="single"),
        Accelerated(Pairwise(LAM)),
    ),
    "chain, accelerated by gap": (lambda: chain_case(55), Accelerated(Pairwise(LAM))),
    "second-order chain, BCFW": (lambda: chain_case(80, (4, 1, 3), order=2), _BLOCK),
    "second-order chain, accelerated": (
        lambda: chain_case(81, (5, 2, 3), order=2),
        Accelerated(Pairwise(LAM)),
    ),
    "multiclass, pairwise": (lambda: multiclass_case(56), Pairwise(LAM)),
    "multiclass, away": (lambda: multiclass_case(57), Away(LAM)),
    "multiclass, pairwise by gap": (lambda: multiclass_case(58, n=11), Pairwise(LAM)),
    "multiclass, accelerated": (lambda: multiclass_case(59, n=11), Accelerated(Pairwise(LAM))),
    "multiclass, exact blocks": (lambda: multiclass_case(62, n=9), Accelerated(BlockExact(LAM))),
    "multiclass, accelerated BCFW": (lambda: multiclass_case(60), Accelerated(_BLOCK, kappa=0.1)),
    "multiclass, accelerated away": (lambda: multiclass_case(61), Accelerated(Away(LAM))),
    "chain, cached BCFW": (lambda: chain_case(62), Cached(_BLOCK, oracle_cost=8.0)),
    "multiclass, cached and accelerated": (
        lambda: multiclass_case(63, n=9),
        Accelerated(Cached(Pairwise(LAM), oracle_cost=8.0)),
    ),
    "chain, subgradient": (lambda: chain_case(64, (4, 2, 3), 4), Subgradient(LAM)),
    "multiclass, averaged subgradient": (lambda: multiclass_case(65), Averaged(Subgradient(LAM))),
    "chain, perceptron": (lambda: chain_case(66), Perceptron(LAM)),
    "chain, averaged perceptron": (lambda: chain_case(67), Averaged(Perceptron(LAM), "uniform")),
    "chain, exponentiated gradient": (lambda: chain_case(64, (4, 2, 3), 4), ExponentiatedGradient(LAM)),
    "chain, extragradient": (lambda: chain_case(65), Extragradient(LAM)),
    "chain, excessive gap": (lambda: chain_case(66, (4, 2, 3), 4), ExcessiveGap(LAM)),
    "multiclass, exponentiated gradient by gap": (lambda: multiclass_case(67), ExponentiatedGradient(LAM)),
    "multiclass, extragradient": (lambda: multiclass_case(68, n=9), Extragradient(LAM)),
    "multiclass, excessive gap": (lambda: multiclass_case(69), ExcessiveGap(LAM)),
    "matching, BCFW": (lambda: matching_case(64, ((4, 5), (3, 3), (5, 4))), _BLOCK),
    "matching, FW": (lambda: matching_case(65), FrankWolfe(LAM)),
    "matching, averaged": (lambda: matching_case(66, fertility=2), Averaged(_BLOCK)),
    "matching, away": (lambda: matching_case(67, fertility=3), Away(LAM)),
    "matching, pairwise by gap": (lambda: matching_case(68, whole=True), Pairwise(LAM)),
    "matching, accelerated": (lambda: matching_case(69, fertility=2), Accelerated(Pairwise(LAM))),
    "matching, cached BCFW": (lambda: matching_case(70), Cached(_BLOCK, oracle_cost=8.0)),
    "functions, BCFW": (lambda: _of_functions(chain_case(68, (1, 2, 2), 2)), _BLOCK),
    "functions, accelerated": (lambda: _of_functions(multiclass_case(69)), Accelerated(Pairwise(LAM))),
    "slack-rescaled chain, BCFW": (lambda: _rescaled(chain_case(70, loss="hamming")), _BLOCK),
    "slack-rescaled classes, pairwise": (lambda: _rescaled(multiclass_case(71)), Pairwise(LAM)),
    "slack-rescaled classes, exact blocks": (
        lambda: _rescaled(multiclass_case(72, n=9)),
        Accelerated(BlockExact(LAM)),
    ),
    "weighted chain, accelerated": (lambda: _weighted(chain_case(72)), Accelerated(Pairwise(LAM))),
    "weighted functions, pairwise": (
        lambda: _weighted(_of_functions(chain_case(73, (1, 2, 2), 2))),
        Pairwise(LAM),
    ),
    "classes with signs, accelerated": (
        lambda: _with_signs(multiclass_case(72, n=9)),
        Accelerated(Pairwise(LAM)),
    ),
    "chain of seen states, accelerated": (
        lambda: _of_seen_states(chain_case(77, (5, 2, 4), 6, n_features=9, rows="sparse")),
        Accelerated(Pairwise(LAM)),
    ),
    "chain of seen states with an L1 penalty, BCFW": (
        lambda: _with_l1(_of_seen_states(chain_case(78, (5, 2, 4), 6, n_features=9, rows="indicator"))),
        _BLOCK,
    ),
    "chain with an L1 penalty, accelerated": (
        lambda: _with_l1(chain_case(74, (4, 2, 3), rows="sparse")),
        Accelerated(Pairwise(LAM)),
    ),
    "label sets with an L1 penalty, pairwise": (lambda: _with_l1(label_set_case(75)), Pairwise(LAM)),
    "trees with an L1 penalty and signs, averaged": (
        lambda: _with_l1(_with_signs(tree_case(76, n_features=9))),
        Averaged(_BLOCK),
    ),
    "trees, BCFW": (lambda: tree_case(71), _BLOCK),
    "trees, FW": (lambda: tree_case(72, single_root=False), FrankWolfe(LAM)),
    "trees, averaged": (lambda: tree_case(73, (5, 2, 4)), Averaged(_BLOCK)),
    "trees, pairwise by gap": (lambda: tree_case(74, rows="whole"), Pairwise(LAM)),
    "trees, accelerated": (lambda: tree_case(75, (5, 2, 4)), Accelerated(Pairwise(LAM))),
    "trees, subgradient": (lambda: tree_case(76), Subgradient(LAM)),
    "trees of indicators, BCFW": (lambda: tree_case(77, rows="indicator"), _BLOCK),
    "projective trees, accelerated": (
        lambda: tree_case(78, (5, 2, 4), projective=True),
        Accelerated(Pairwise(LAM)),
    ),
    "tree, BCFW": (lambda: graph_case(71, (5, 1, 4)), _BLOCK),
    "tree, pairwise": (lambda: graph_case(72), Pairwise(LAM)),
    "cut, BCFW": (lambda: graph_case(73, (4, 3), 2, inference="cut"), _BLOCK),
    "cut, accelerated": (lambda: graph_case(74, (4, 4), 2, inference="cut"), Accelerated(Pairwise(LAM))),
    "messages, FW": (lambda: graph_case(75, (4, 3, 4), inference="messages"), FrankWolfe(LAM)),
    "segments, accelerated": (
        lambda: segment_case(78, (4, 1, 5), (3, 2), rows="indicator", loss="hamming", outside=False),
        Accelerated(Pairwise(LAM)),
    ),
    "messages, BCFW": (lambda: graph_case(76, (4, 4), inference="messages"), _BLOCK),
    "subsets, BCFW": (lambda: graph_case(77, (4, 4), 2, inference="subsets"), _BLOCK),
    "label sets, accelerated": (lambda: label_set_case(78), Accelerated(Pairwise(LAM))),
    "label sets of indicators, BCFW": (lambda: label_set_case(79, rows="indicator"), _BLOCK),
    "kernel of classes, BCFW": (lambda: _with_kernel(multiclass_case(82, n=9), GaussianKernel(0.5)), _BLOCK),
    "kernel of classes, some columns, accelerated": (
        lambda: _with_kernel(multiclass_case(83, n=24), GaussianKernel(0.5), 3, np.float32),
        Accelerated(Pairwise(LAM)),
    ),
    "kernel of sparse rows, some columns, FW": (
        lambda: _with_kernel(multiclass_case(84, n=20, rows="sparse"), SigmoidKernel(0.01, 1.0), 2),
        FrankWolfe(LAM),
    ),
    "kernel of chains, accelerated": (
        lambda: _with_kernel(chain_case(85, (4, 2, 3), 4), PolynomialKernel(3, 0.3, 0.5), dtype=np.float32),
        Accelerated(Pairwise(LAM)),
    ),
    "kernel of chains, some columns, averaged": (
        lambda: _with_kernel(chain_case(86, (4, 1, 9, 3, 4)), GaussianKernel(0.3), 4),
        Averaged(_BLOCK),
    ),
    "kernel of second-order chains, BCFW": (
        lambda: _with_kernel(chain_case(87, (4, 1, 3), order=2), PolynomialKernel(2, 0.5, 1.0)),
        _BLOCK,
    ),
    "kernel of segments, no columns, BCFW": (
        lambda: _with_kernel(segment_case(88, rows="indicator"), PolynomialKernel(2, 0.5, 1.0), 0),
        _BLOCK,
    ),
    "kernel of trees, pairwise": (
        lambda: _with_kernel(graph_case(89, (5, 1, 4)), LinearKernel()),
        Pairwise(LAM),
    ),
    "kernel of cuts, BCFW": (
        lambda: _with_kernel(graph_case(90, (4, 4), 2, inference="cut"), GaussianKernel(1.0)),
        _BLOCK,
    ),
    "kernel of messages, no columns, BCFW": (
        lambda: _with_kernel(
            graph_case(91, (4, 3, 4), inference="messages"), GaussianKernel(1.0), 0, np.float32
        ),
        _BLOCK,
    ),
}


def _of_functions(case: Case) -> Case:
    return case._replace(problem=custom(case))


def _rescaled(case: Case) -> Case:
    return case._replace(problem=SlackRescaled(case.problem))


def _weighted(case: Case) -> Case:
    return case._replace(problem=Weighted(case.problem, [0.5, 2.0, 1.5, 0.7][: len(case.X)]))


def _with_signs(case: Case) -> Case:
    return case._replace(problem=SignConstrained(case.problem, range(0, 9, 2)))


def _of_seen_states(case: Case) -> Case:
    features = scipy.sparse.csr_array(np.concatenate(case.X))
    phi, labels = case.problem.map, case.problem.oracle.labels
    offsets = np.append(0, phi.tokens[:, 1])
    problem = Chain.from_encoded(features, offsets, labels, phi.n_labels, all_possible_states=False)
    return case._replace(problem=problem)


def _with_l1(case: Case) -> Case:
    return case._replace(problem=L1Penalised(case.problem, 0.3))


def _with_kernel(case: Case, kernel: Any, kept: int | None = None, dtype: Any = np.float64) -> Case:
    """Return the problem with a kernel of its features, too, of whose matrix all or some columns are kept."""
    X = np.vstack([example[0] if isinstance(example, tuple) else example for example in case.X])
    size = 200.0 if kept is None else 1.001e-6 * (kept + GROUP) * len(X) * np.dtype(dtype).itemsize
    features = X if X.all() else scipy.sparse.csr_array(X)
    return case._replace(
        problem=Kernelised(case.problem, features, kernel, cache_size=0.0 if kept == 0 else size, dtype=dtype)
    )


def bits(values: Array) -> list[str]:
    """Return numbers in hexadecimal, digit for digit."""
    return [float(value).hex() for value in values]


def assert_same_bits(found: Result, expected: Result) -> None:
    """Weights and certificates, but for their times, are the same to the last bit."""
    assert bits(found.weights) == bits(expected.weights)
    for column in ("passes", "oracle_calls", "primal", "dual", "gap"):
        assert bits(found.history[column]) == bits(expected.history[column])


def run(name: str) -> dict[str, list[str]]:
    """Return the bits of the weights and of the history of one run."""
    made, method = RUNS[name]
    sampling = "gap" if name.endswith("by gap") else "permutation"
    limits = {"tol": 0.0, "max_passes": 24, "check_every": 3}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*budget")
        result = solve(made().problem, method, **limits, sampling=sampling, random_state=7)
    return {"weights": bits(result.weights)} | {
        column: bits(result.history[column]) for column in ("primal", "dual", "gap")
    }


if __name__ == "__main__":
    json.dump({name: run(name) for name in sys.argv[1:]}, sys.stdout)

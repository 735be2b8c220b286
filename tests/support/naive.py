"""Structural SVMs written out: every output is listed, every sum is a loop or a NumPy expression.

Nothing here calls the package, so that tests can hold the package against it. Weights are flat and
unpadded, in the order of `Result.weights`: for a chain the feature weights label by label, start, end,
then transitions row by row.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import quadprog

Array = np.ndarray[Any, Any]
Output = tuple[int, ...]


class Enumerated(NamedTuple):
    """All outputs of all examples.

    Attributes
    ----------
    outputs : list of lists of tuples
        The outputs of each example; in this order, ties of the max oracle go to the first.
    truths : list of int
        Which of them is the truth.
    losses : list of arrays of shape (n_outputs,)
    psi : list of arrays of shape (n_outputs, d)
        phi(x_i, y_i) - phi(x_i, y).
    """

    outputs: list[list[Output]]
    truths: list[int]
    losses: list[Array]
    psi: list[Array]


class Optimum(NamedTuple):
    """A dual solution, one vector per example, and what follows from it."""

    alpha: list[Array]
    w: Array
    primal: float
    dual: float


def chain_features(x: Array, y: Output, n_labels: int) -> Array:
    """Return phi(x, y) of a chain."""
    unary, transitions = np.zeros((n_labels, x.shape[1])), np.zeros((n_labels, n_labels))
    start, end = np.zeros(n_labels), np.zeros(n_labels)
    for t, label in enumerate(y):
        unary[label] += x[t]
        if t > 0:
            transitions[y[t - 1], label] += 1.0
    start[y[0]] = end[y[-1]] = 1.0
    return np.concatenate([unary.ravel(), start, end, transitions.ravel()])


def second_order_features(x: Array, y: Output, n_labels: int) -> Array:
    """Return phi(x, y) of a second-order chain: that of the chain, then the counts of trigrams."""
    trigrams = np.zeros((n_labels, n_labels, n_labels))
    for t in range(2, len(y)):
        trigrams[y[t - 2], y[t - 1], y[t]] += 1.0
    return np.concatenate([chain_features(x, y, n_labels), trigrams.ravel()])


def class_features(x: Array, y: Output, n_labels: int) -> Array:
    """Return phi(x, y) of a multiclass model: x in the place of class y."""
    unary = np.zeros((n_labels, len(x)))
    unary[y[0]] = x
    return unary.ravel()


def enumerate_chain(
    X: list[Array],
    Y: list[Array],
    n_labels: int,
    cost: Array,
    per_token: bool,
    features: Callable[[Array, Output, int], Array] = chain_features,
) -> Enumerated:
    """List the labellings of each sequence; the loss is the sum of costs, or their mean (``per_token``)."""
    found = Enumerated([], [], [], [])
    for x, truth in zip(X, Y, strict=True):
        labellings = sorted(product(range(n_labels), repeat=len(truth)), key=lambda y: y[::-1])
        losses = [sum(cost[a, b] for a, b in zip(truth, y, strict=True)) for y in labellings]
        phi = np.array([features(x, y, n_labels) for y in labellings])
        _append(found, labellings, tuple(truth), np.array(losses) / (len(truth) if per_token else 1), phi)
    return found


def enumerate_multiclass(X: Array, y: Array, n_labels: int, cost: Array) -> Enumerated:
    """List the classes of each example."""
    found = Enumerated([], [], [], [])
    classes = [(k,) for k in range(n_labels)]
    for x, truth in zip(X, y, strict=True):
        phi = np.array([class_features(x, k, n_labels) for k in classes])
        _append(found, classes, (int(truth),), cost[truth].copy(), phi)
    return found


def enumerate_matchings(
    X: list[Array], Y: list[Output], costs: list[Array], missed: float, fertility: int
) -> Enumerated:
    """List the matchings of places to targets; ``costs[i]`` holds what it costs to have each link."""
    found = Enumerated([], [], [], [])
    for x, truth, cost in zip(X, Y, costs, strict=True):
        matchings = all_matchings(len(x) * fertility, x.shape[1])
        true_links = set(_links(truth, fertility))
        losses = [
            sum(cost[link] for link in _links(y, fertility) if link not in true_links)
            + missed * len(true_links - set(_links(y, fertility)))
            for y in matchings
        ]
        phi = np.array([link_features(x, y, fertility) for y in matchings])
        _append(found, matchings, truth, np.array(losses, dtype=float), phi)
    return found


def all_matchings(n_places: int, n_targets: int) -> list[Output]:
    """Return every way to give each place a target of its own, or -1."""
    given = product(range(-1, n_targets), repeat=n_places)
    return [y for y in given if len({k for k in y if k >= 0}) == sum(k >= 0 for k in y)]


def link_features(x: Array, y: Output, fertility: int) -> Array:
    """Return phi(x, y) of a matching: the sum of its links' features, and the counts of further places."""
    links, places = np.zeros(x.shape[2]), np.zeros(fertility - 1)
    for place, k in enumerate(y):
        if k >= 0:
            links += x[place // fertility, k]
            if place % fertility > 0:
                places[place % fertility - 1] += 1.0
    return np.concatenate([links, places])


def enumerate_trees(
    X: list[Array], Y: list[Output], share: bool, *, single_root: bool, projective: bool
) -> Enumerated:
    """List the trees of each sentence; the loss is the number of wrong heads, or their share."""
    found = Enumerated([], [], [], [])
    for x, truth in zip(X, Y, strict=True):
        trees = all_trees(len(x), single_root=single_root, projective=projective)
        wrong = [sum(a != b for a, b in zip(truth, y, strict=True)) for y in trees]
        phi = np.array([sum(x[j, h] for j, h in enumerate(y)) for y in trees])
        _append(found, trees, truth, np.array(wrong) / (len(x) if share else 1), phi)
    return found


def all_trees(m: int, *, single_root: bool = False, projective: bool = False) -> list[Output]:
    """Return the heads of every tree on m words, 0 for the root, 1 for the first word."""
    given = product(*([h for h in range(m + 1) if h != j + 1] for j in range(m)))
    trees = [y for y in given if all(_reaches_root(y, j) for j in range(1, m + 1))]
    trees = [y for y in trees if y.count(0) == 1] if single_root else trees
    return [y for y in trees if not _has_crossing(y)] if projective else trees


def _reaches_root(y: Output, node: int) -> bool:
    for _ in y:
        node = y[node - 1] if node else 0
    return node == 0


def _has_crossing(y: Output) -> bool:
    """Whether one arc has an end strictly within another, and the other end strictly without."""
    arcs = [(min(h, j + 1), max(h, j + 1)) for j, h in enumerate(y)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def enumerate_graphs(
    X: list[Any], Y: list[Array], cost: Array, shares: list[Array], has_bonds: bool
) -> Enumerated:
    """List the labellings of each graph, with all sets of bonds between equal labels if there are bonds."""
    found, n_labels = Enumerated([], [], [], []), len(cost)
    for (nodes, ends, edges), truth, share in zip(X, Y, shares, strict=True):
        labellings = list(product(range(n_labels), repeat=len(nodes)))
        outputs = [y + b for y in labellings for b in _bonds(y, ends, has_bonds)]
        losses = [sum(s * cost[t, k] for s, t, k in zip(share, truth, y, strict=False)) for y in outputs]
        phi = np.array([graph_features(nodes, ends, edges, y, n_labels, has_bonds) for y in outputs])
        true_bonds = tuple(int(truth[a] == truth[b]) for a, b in ends) if has_bonds else ()
        _append(found, outputs, (*truth, *true_bonds), np.array(losses), phi)
    return found


def _bonds(y: Output, ends: Array, has_bonds: bool) -> Any:
    return product(*[(1, 0) if y[a] == y[b] else (0,) for a, b in ends]) if has_bonds else [()]


def graph_features(
    nodes: Array, ends: Array, edges: Array, y: Output, n_labels: int, has_bonds: bool
) -> Array:
    """Return phi(x, y) of a graph: node features by label, edge features by pair of labels or of bonds."""
    unary = np.zeros((n_labels, nodes.shape[1]))
    for v, x in enumerate(nodes):
        unary[y[v]] += x
    pairs = np.zeros((edges.shape[1], n_labels, n_labels))
    for (a, b), x in zip(ends, edges, strict=True):
        pairs[:, y[a], y[b]] += x
    bonds = edges.T @ np.array(y[len(nodes) :], dtype=float) if has_bonds else pairs
    return np.concatenate([unary.ravel(), bonds.ravel()])


def enumerate_segments(
    X: list[Array], Y: list[Output], limits: Array, n_classes: int, loss: str
) -> Enumerated:
    """List the segmentations of each sequence; labels from ``n_classes`` on are outside of segments."""
    found = Enumerated([], [], [], [])
    for x, truth in zip(X, Y, strict=True):
        outputs = all_segmentations(len(x), limits)
        true = {segment for segment in segments_of(truth) if segment[2] < n_classes}
        losses = []
        for y in outputs:
            wrong = sum(a != b for a, b in zip(truth, y, strict=True))
            guessed = {segment for segment in segments_of(y) if segment[2] < n_classes}
            by_name = {
                "hamming": wrong,
                "normalized_hamming": wrong / len(x),
                "segments": len(true ^ guessed),
            }
            losses.append(float(by_name[loss]))
        phi = np.array([segment_features(x, y, limits) for y in outputs])
        _append(found, outputs, truth, np.array(losses), phi)
    return found


def all_segmentations(length: int, limits: Array) -> list[Output]:
    """Return the codes of every segmentation: twice the labels, and one more where a segment starts."""
    codes = product(range(2 * len(limits)), repeat=length)
    proper = [y for y in codes if y[0] % 2 and all(b % 2 or b // 2 == a // 2 for a, b in pairwise(y))]
    return [y for y in proper if all(stop - start <= limits[k] for start, stop, k in segments_of(y))]


def segments_of(y: Output) -> list[tuple[int, int, int]]:
    """Return (start, stop, label) of the segments of a segmentation."""
    starts = [t for t, code in enumerate(y) if code % 2]
    return [(a, b, y[a] // 2) for a, b in zip(starts, [*starts[1:], len(y)], strict=True)]


def segment_features(x: Array, y: Output, limits: Array) -> Array:
    """Return phi(x, y) of a segmentation: tokens, first and last ones, the first label, pairs and lengths."""
    K, segments = len(limits), segments_of(y)
    inside, first, last = np.zeros((3, K, x.shape[1]))
    start, transitions, lengths = np.zeros(K), np.zeros((K, K)), np.zeros((K, max(limits)))
    for a, b, k in segments:
        inside[k] += x[a:b].sum(axis=0)
        first[k] += x[a]
        last[k] += x[b - 1]
        lengths[k, b - a - 1] += 1.0
    for (_, _, j), (_, _, k) in pairwise(segments):
        transitions[j, k] += 1.0
    start[segments[0][2]] = 1.0
    return np.concatenate([part.ravel() for part in (inside, first, last, start, transitions, lengths)])


def _links(y: Output, fertility: int) -> list[tuple[int, int]]:
    return [(place // fertility, k) for place, k in enumerate(y) if k >= 0]


def _append(found: Enumerated, outputs: list[Output], truth: Output, losses: Array, phi: Array) -> None:
    t = outputs.index(tuple(int(label) for label in truth))
    found.outputs.append(outputs)
    found.truths.append(t)
    found.losses.append(losses)
    found.psi.append(phi[t] - phi)


def margins(data: Enumerated, i: int, w: Array) -> Array:
    """Return H_i(y; w) = L_i(y) - <w, psi_i(y)> for every output y."""
    return data.losses[i] - data.psi[i] @ w


def best_output(data: Enumerated, i: int, w: Array) -> int:
    """Return the index of the first output of largest H_i, up to rounding."""
    short_of_best = np.max(margins(data, i, w)) - margins(data, i, w)
    return int(np.argmax(short_of_best < 1e-11))


def primal(data: Enumerated, w: Array, lam: float) -> float:
    """Return lam/2 ||w||^2 + mean_i max_y H_i(y; w)."""
    hinges = [margins(data, i, w).max() for i in range(len(data.losses))]
    return 0.5 * lam * float(w @ w) + float(np.mean(hinges))


def truth_alpha(data: Enumerated) -> list[Array]:
    """Return the dual variables that put all weight on the truth, where the methods start."""
    return [np.eye(len(losses))[t] for losses, t in zip(data.losses, data.truths, strict=True)]


def weights_of(data: Enumerated, alpha: list[Array], lam: float) -> Array:
    """Return w = A alpha = sum_i psi_i' alpha_i / (lam n)."""
    n = len(alpha)
    return sum(psi.T @ a for psi, a in zip(data.psi, alpha, strict=True)) / (lam * n)


def dual_loss(data: Enumerated, alpha: list[Array]) -> float:
    """Return b' alpha = mean_i <L_i, alpha_i>."""
    return float(np.mean([losses @ a for losses, a in zip(data.losses, alpha, strict=True)]))


def dual(data: Enumerated, alpha: list[Array], lam: float) -> float:
    """Return b' alpha - lam/2 ||A alpha||^2."""
    w = weights_of(data, alpha, lam)
    return dual_loss(data, alpha) - 0.5 * lam * float(w @ w)


def radius(data: Enumerated) -> float:
    """Return R, the length of the longest psi."""
    return max(float(np.linalg.norm(psi, axis=1).max()) for psi in data.psi)


def block_curvatures(data: Enumerated, lam: float) -> Array:
    """Return the exact curvature of the dual on each block, lam max ||A (y - y')||^2 over corners."""
    n = len(data.psi)
    widest = [max(float((d @ d.T).diagonal().max()) for d in psi - psi[:, None]) for psi in data.psi]
    return np.array(widest) / (lam * n**2)


def optimum(data: Enumerated, lam: float, signed: Sequence[int] = ()) -> Optimum:
    """Solve the dual, a quadratic program over a product of simplices, by an active-set solver.

    The solver wants a definite matrix, which A'A is not: a few proximal steps take the place of a ridge,
    until only rounding moves the weights.
    Each weight that must not be negative has a multiplier >= 0, which is added to its entry of A alpha.
    """
    n, signed = len(data.losses), np.asarray(signed, dtype=np.int64)
    A = np.vstack([*data.psi, np.eye(data.psi[0].shape[1])[signed]])
    b, m = np.r_[np.concatenate(data.losses), np.zeros(len(signed))], len(A)
    ends = np.cumsum([len(losses) for losses in data.losses])
    owner = np.repeat(np.arange(n), np.diff(ends, prepend=0))
    G = A @ A.T / (lam * n**2)
    ridge = 1e-4 * (1.0 + np.trace(G) / m)
    sums = np.vstack([np.eye(n)[owner], np.zeros((len(signed), n))])
    constraints, bounds = np.hstack([sums, np.eye(m)]), np.r_[np.ones(n), np.zeros(m)]
    flat = np.r_[np.concatenate(truth_alpha(data)), np.zeros(len(signed))]
    image, moved = A.T @ flat, np.inf
    for _ in range(30):
        flat = quadprog.solve_qp(G + ridge * np.eye(m), b / n + ridge * flat, constraints, bounds, n)[0]
        before, image_before, image = moved, image, A.T @ flat
        moved = float(np.abs(image - image_before).max() / max(1.0, np.abs(image).max()))
        if before <= moved <= 1e-9:
            break
    blocks = [np.maximum(block, 0.0) for block in np.split(flat[: ends[-1]], ends[:-1])]
    alpha = [block / block.sum() for block in blocks]
    w = weights_of(data, alpha, lam)
    w[signed] = np.maximum(w[signed], 0.0)  # what the best multipliers add
    return Optimum(alpha, w, primal(data, w, lam), dual_loss(data, alpha) - 0.5 * lam * float(w @ w))


def signed_optimum(data: Enumerated, lam: float, signed: Array) -> Array:
    """Return the best weights of which some must not be negative, by a quadratic program in the primal.

    Its variables are the weights and one slack per example, with next to no curvature.
    """
    n, d = len(data.losses), data.psi[0].shape[1]
    G = np.diag(np.r_[np.full(d, lam), np.full(n, 1e-9)])
    rows = [np.r_[psi, np.eye(n)[i]] for i in range(n) for psi in data.psi[i]]
    rows += [np.eye(d + n)[k] for k in signed]
    least = np.r_[np.concatenate(data.losses), np.zeros(len(signed))]
    w = quadprog.solve_qp(G, -np.r_[np.zeros(d), np.full(n, 1.0 / n)], np.array(rows).T, least)[0]
    return w[:d]


def penalised_optimum(data: Enumerated, lam: float, signed: Array, threshold: float = 0.0) -> Array:
    """Return the best weights for signs and the penalty lam * threshold * |w|_1, by a quadratic program.

    Its variables are the positive and the negative parts of weights, of which the best have one that is zero,
    and one slack per example, with next to no curvature.
    """
    n, d = len(data.losses), data.psi[0].shape[1]
    G = np.diag(np.r_[np.full(2 * d, lam), np.full(n, 1e-9)])
    rows = [np.r_[psi, -psi, np.eye(n)[i]] for i in range(n) for psi in data.psi[i]]
    rows += [np.eye(2 * d + n)[k] for k in range(2 * d)]
    rows += [-np.eye(2 * d + n)[d + k] for k in signed]
    least = np.r_[np.concatenate(data.losses), np.zeros(2 * d + len(signed))]
    slope = np.r_[np.full(2 * d, lam * threshold), np.full(n, 1.0 / n)]
    found = quadprog.solve_qp(G, -slope, np.array(rows).T, least)[0]
    return found[:d] - found[d : 2 * d]

"""Tiny random problems of every model and wrapper, each with all its outputs written out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from maxmargin import Result
from maxmargin.problems import GaussianKernel, SignConstrained, SlackRescaled, Weighted, take
from maxmargin.structures.problem import as_problem
from support.catalogue import (
    CHAIN_LOSSES,
    ROWS,
    SEGMENT_LOSSES,
    Case,
    chain_case,
    graph_case,
    matching_case,
    multiclass_case,
    segment_case,
    tree_case,
)
from support.kernels import MODELS as KERNEL_MODELS
from support.kernels import SQUARE, factors, kernel_problem, linear_case, monomials, random_rows
from support.naive import Array, Enumerated
from support.own_functions import custom
from support.slack import rescaled

SEEDS = st.integers(0, 2**32 - 1)
WRAPPED = ("slack", "weighted", "signs")
_ROWS = st.sampled_from((*ROWS, "zero"))
Rows = st.SearchStrategy[str]
_COUNTS = st.integers(1, 3)
_SIZES = st.lists(_COUNTS, min_size=1, max_size=3).map(tuple)
_HAMMING = st.sampled_from(("normalized_hamming", "hamming"))


class Posed(NamedTuple):
    """A problem, the same problem written out, and what is known of it.

    Attributes
    ----------
    problem : Problem
    data : Enumerated
    weights : callable
        Takes a result to the weights of ``data``.
    signed : list of int
        The weights of ``data`` that must not be negative.
    is_exact : bool
        Whether the oracle always finds the best output.
    name : str
        The model and its wrappers.
    """

    problem: Any
    data: Enumerated
    weights: Callable[[Result], Array]
    signed: tuple[int, ...]
    is_exact: bool
    name: str


def _flat_weights(result: Result) -> Array:
    return result.weights


def posed(case: Case, name: str, is_exact: bool = True) -> Posed:
    """Return a case without wrappers."""
    return Posed(case.problem, case.data, _flat_weights, (), is_exact, name)


@st.composite
def _multiclass(draw: Any, rows: Rows) -> Case:
    return multiclass_case(
        draw(SEEDS),
        draw(st.integers(1, 5)),
        draw(st.integers(2, 5)),
        n_features=draw(_COUNTS),
        loss=draw(st.sampled_from(("zero_one", "matrix"))),
        rows=draw(rows),
    )


@st.composite
def _chain(draw: Any, rows: Rows, order: int) -> Case:
    return chain_case(
        draw(SEEDS),
        draw(_SIZES),
        draw(st.integers(2, 3)),
        n_features=draw(_COUNTS),
        loss=draw(st.sampled_from(CHAIN_LOSSES)),
        rows=draw(rows),
        order=order,
    )


@st.composite
def _segments(draw: Any, rows: Rows) -> Case:
    limits = draw(st.sampled_from([(2,), (2, 1), (1, 1), (3, 1), (2, 2)]))
    return segment_case(
        draw(SEEDS),
        draw(_SIZES),
        limits,
        n_features=draw(_COUNTS),
        loss=draw(st.sampled_from(SEGMENT_LOSSES)),
        rows=draw(rows),
        outside=len(limits) > 1 and limits[-1] == 1,
    )


@st.composite
def _matching(draw: Any) -> Case:
    size = st.tuples(st.integers(1, 2), _COUNTS)
    return matching_case(
        draw(SEEDS),
        tuple(draw(st.lists(size, min_size=1, max_size=3))),
        draw(st.integers(1, 2)),
        n_features=draw(_COUNTS),
        whole=draw(st.booleans()),
    )


@st.composite
def _trees(draw: Any, rows: Rows) -> Case:
    return tree_case(
        draw(SEEDS),
        draw(_SIZES),
        single_root=draw(st.booleans()),
        projective=draw(st.booleans()),
        n_features=draw(_COUNTS),
        loss=draw(_HAMMING),
        rows=draw(rows),
    )


@st.composite
def _graph(draw: Any, rows: Rows, inference: str) -> Case:
    n_labels = 2 if inference == "cut" else draw(st.integers(2, 3))
    return graph_case(
        draw(SEEDS),
        (*draw(_SIZES)[1:], draw(st.integers(n_labels, 3))),
        n_labels,
        inference=inference,
        n_features=draw(_COUNTS),
        loss=draw(st.sampled_from(CHAIN_LOSSES)),
        rows=draw(rows),
        weighted=draw(st.booleans()),
    )


def cases(rows: Rows) -> dict[str, st.SearchStrategy[Case]]:
    """Return what draws a case of each model, with rows of these kinds."""
    return {
        "multiclass": _multiclass(rows),
        "chain": _chain(rows, 1),
        "second order": _chain(rows, 2),
        "segments": _segments(rows),
        "matching": _matching(),
        "trees": _trees(rows),
        "tree": _graph(rows, "tree"),
        "cut": _graph(rows, "cut"),
        "messages": _graph(rows, "messages"),
    }


CASES = cases(_ROWS)


@st.composite
def _own(draw: Any) -> Posed:
    """Draw a problem of three Python functions, with features of each form."""
    case = draw(st.one_of(CASES["multiclass"], CASES["chain"]))
    problem = custom(case, draw(st.sampled_from(["pairs", "dense", "dict"])))
    return Posed(problem, case.data, _flat_weights, (), True, "custom")


@st.composite
def _kernels(draw: Any) -> Posed:
    """Draw a problem with a kernel, and the same with features that have its inner products."""
    model, rows = draw(st.sampled_from(sorted(KERNEL_MODELS))), random_rows(draw(st.integers(0, 10**6)))
    if draw(st.booleans()):
        kernel, features = SQUARE, monomials(rows, SQUARE)
    else:
        squares = np.square(rows[:, None] - rows).sum(axis=2)
        kernel, features = GaussianKernel(0.4), factors(np.exp(-0.4 * squares))
    hamming = draw(st.booleans())
    problem = kernel_problem(
        model, rows, kernel, hamming=hamming, cache_size=draw(st.sampled_from([0.0, 200.0]))
    )
    data = linear_case(model, features, hamming=hamming).data

    def weights(result: Result) -> Array:
        """Coefficients of rows, label by label in blocks of four, to weights of their features."""
        *parts, coefficients = problem.unpack(result.w)
        blocks = iter(np.split(coefficients, len(coefficients) // 4))
        found = [next(blocks)[: len(part)] @ features if part.size == 0 else part for part in parts]
        return np.concatenate([np.ravel(part) for part in found])

    return Posed(problem, data, weights, (), model != "messages", f"{model} with kernel")


@st.composite
def problems(draw: Any, models: tuple[str, ...] = (*CASES, "custom", "kernel")) -> Posed:
    """Draw a problem of any model, any subset of its examples, and any wrappers."""
    model = draw(st.sampled_from(models))
    if model == "kernel":
        return draw(_kernels())
    found = draw(_own()) if model == "custom" else posed(draw(CASES[model]), model, model != "messages")
    if draw(st.integers(0, 3)) == 0:
        found = _some(
            found, draw(st.lists(st.integers(0, len(found.data.losses) - 1), min_size=1, max_size=4))
        )
    wrappers = [name for name in WRAPPED if draw(st.integers(0, 3)) == 0]
    return wrapped(draw, found, wrappers)


def wrapped(draw: Any, given: Posed, wrappers: list[str]) -> Posed:
    """Draw the parameters of some wrappers of a problem."""
    if "slack" in wrappers:
        given = _with_slack(given)
    if "weighted" in wrappers:
        given = _weighted(given, draw(SEEDS), draw(st.sampled_from([0.5, 1.0, 2.0])))
    return _signed(given, draw(SEEDS)) if "signs" in wrappers else given


def _some(given: Posed, indices: list[int]) -> Posed:
    """Return some of the examples, in any order, some of them twice."""
    data = Enumerated(*([field[i] for i in indices] for field in given.data))
    return given._replace(
        problem=take(as_problem(given.problem), indices), data=data, name=f"{given.name}, taken"
    )


def _with_slack(given: Posed) -> Posed:
    """Return the problem with rescaled slacks, if its model has them."""
    try:
        problem = SlackRescaled(given.problem)
    except (TypeError, ValueError):
        return given
    return given._replace(problem=problem, data=rescaled(given.data), name=f"{given.name}, slack")


def _weighted(given: Posed, seed: int, spread: float) -> Posed:
    """Return the problem with weights of its examples, within some orders of magnitude."""
    data = given.data
    factor = 10.0 ** np.random.default_rng(seed).uniform(-spread, spread, len(data.losses))
    losses = [c * losses for c, losses in zip(factor, data.losses, strict=True)]
    psi = [c * psi for c, psi in zip(factor, data.psi, strict=True)]
    problem = Weighted(given.problem, factor)
    return given._replace(
        problem=problem, data=data._replace(losses=losses, psi=psi), name=f"{given.name}, weighted"
    )


def _signed(given: Posed, seed: int) -> Posed:
    """Return the problem with some weights that must not be negative."""
    chosen = np.flatnonzero(np.random.default_rng(seed).random(given.data.psi[0].shape[1]) < 0.4)
    problem = SignConstrained(given.problem, chosen)
    return given._replace(problem=problem, signed=tuple(chosen.tolist()), name=f"{given.name}, signs")

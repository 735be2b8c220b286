"""Margins of the parts of outputs against a list of all outputs, and against the k best."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from maxmargin.compiling.interpreting import interpreted
from maxmargin.problems import Chain, SecondOrderChain, SlackRescaled, Weighted
from maxmargin.solving.decoding import decode_all, decode_all_with_margins
from maxmargin.structures.feature_map import score
from maxmargin.structures.graphs.cuts import cut, cut_margin_work, cut_margins, cut_work
from maxmargin.structures.matchings.inference import (
    assignment,
    assignment_margins,
    assignment_work,
    exchange_work,
)
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import sizes
from maxmargin.structures.questions import DecodingAgain, decode_again, k_best_outputs, n_parts
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    flat,
    graph_case,
    graph_cases,
    layout,
    matching_case,
    matching_cases,
    multiclass_case,
    multiclass_cases,
    segment_case,
    segment_cases,
    tree_case,
    tree_cases,
)
from support.graphs import arcs_of, cut_score, random_graph
from support.naive import Array, Output, segments_of

FEW_ROWS = ("dense", "whole")
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40)


def entries(case: Case, i: int, y: Output) -> list[Any]:
    """Return the parts of an output: its entries, without the bonds of a graph."""
    return list(y[: n_parts(case.problem.oracle, i)])


def segments(case: Case, i: int, y: Output) -> list[Any]:
    """Return the segment of each token."""
    return [segment for segment in segments_of(y) for _ in range(segment[0], segment[1])]


def links(case: Case, i: int, y: Output) -> list[Any]:
    """Return whether each link is made."""
    oracle = case.problem.oracle
    made = np.zeros((oracle.sources[i], oracle.targets[i]), dtype=bool)
    for place, k in enumerate(y):
        if k >= 0:
            made[place // oracle.fertility, k] = True
    return made.ravel().tolist()


def expected_margins(parts: list[list[Any]], scores: Array, found: int) -> list[float]:
    """Return by how much the best score of the outputs that differ in each part is below that of all."""
    best = scores.max()
    rest = [
        [score for other, score in zip(parts, scores, strict=True) if other[p] != part]
        for p, part in enumerate(parts[found])
    ]
    return [best - max(others) if others else np.inf for others in rest]


def check(case: Case, w: Array, parts_of: Callable[[Case, int, Output], list[Any]] = entries) -> None:
    """Compare outputs and margins with those of a list of all outputs."""
    problem, begin, end = case.problem, 0, 0
    outputs, margins = decode_all_with_margins(problem, w)
    assert outputs.tolist() == decode_all(problem, w).tolist()
    for i, every in enumerate(case.data.outputs):
        length, count = output_size(problem.oracle, i), n_parts(problem.oracle, i)
        y = tuple(outputs[begin : begin + length].tolist())
        scores = -case.data.psi[i] @ flat(problem, w)
        parts = [parts_of(case, i, other) for other in every]
        expected = expected_margins(parts, scores, every.index(y))
        assert margins[end : end + count] == pytest.approx(expected, abs=1e-9)
        assert (margins[end : end + count] >= 0.0).all()
        begin, end = begin + length, end + count
    assert (len(outputs), len(margins)) == (begin, end)


def weights(case: Case, seed: int, whole: bool) -> Array:
    """Return random weights; whole numbers make ties."""
    drawn = 2 * np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])
    return layout(case.problem, np.round(drawn) if whole else drawn)


def test_expected_margins_are_those_of_the_best_without_a_part() -> None:
    assert expected_margins([["a", "b"], ["a", "c"], ["a", "d"]], np.array([3.0, 1.0, 2.5]), 0) == [
        np.inf,
        0.5,
    ]


@pytest.mark.parametrize("order", [1, 2])
@few
@given(st.data(), seeds, st.booleans())
def test_margins_of_chains_are_those_of_all_labellings(order: int, data: Any, seed: int, whole: bool) -> None:
    case = data.draw(chain_cases(rows=FEW_ROWS, order=order))
    check(case, weights(case, seed, whole))


@pytest.mark.parametrize("order", [1, 2])
@few
@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.floats(0.1, 0.7), st.booleans())
def test_margins_of_chains_know_forbidden_transitions(
    order: int, seed: int, lengths: list[int], share: float, whole: bool
) -> None:
    case, rng = chain_case(seed, tuple(lengths), 3, order=order), np.random.default_rng(seed)
    forbidden = rng.random((4, 4)) < share
    forbidden[3, 0] = forbidden[0, 0] = forbidden[0, 3] = False  # zeros are always allowed
    kept = [[_is_allowed(y, forbidden) for y in outputs] for outputs in case.data.outputs]
    data = case.data._replace(
        outputs=[
            [y for y, k in zip(o, keep, strict=True) if k]
            for o, keep in zip(case.data.outputs, kept, strict=True)
        ],
        psi=[psi[keep] for psi, keep in zip(case.data.psi, kept, strict=True)],
    )
    model = Chain if order == 1 else SecondOrderChain
    offsets, X = np.append(0, np.cumsum(lengths)), np.concatenate(case.X)
    problem = model.for_prediction(X, offsets, 3, forbidden)
    check(case._replace(problem=problem, data=data), weights(case, seed, whole))


def _is_allowed(y: Output, forbidden: Array) -> bool:
    path = np.array([3, *y, 3])
    return not forbidden[path[:-1], path[1:]].any()


@pytest.mark.parametrize("model", [Chain, SecondOrderChain])
def test_one_label_has_no_other(model: Any) -> None:
    problem = model.for_prediction(np.ones((3, 2)), np.array([0, 1, 3]), 1)
    outputs, margins = decode_all_with_margins(problem, np.ones(sizes(problem).weights))
    assert outputs.tolist() == [0, 0, 0]
    assert margins.tolist() == [np.inf] * 3


@few
@given(segment_cases(rows=FEW_ROWS), seeds, st.booleans())
def test_margins_of_segments_are_those_of_all_segmentations(case: Case, seed: int, whole: bool) -> None:
    check(case, weights(case, seed, whole), segments)


@few
@given(multiclass_cases(rows=FEW_ROWS), seeds, st.booleans())
def test_margins_of_classes_are_those_of_all_classes(case: Case, seed: int, whole: bool) -> None:
    check(case, weights(case, seed, whole))


@few
@given(matching_cases(), seeds, st.booleans())
def test_margins_of_links_are_those_of_all_matchings(case: Case, seed: int, whole: bool) -> None:
    check(case, weights(case, seed, whole), links)


@few
@given(tree_cases(rows=FEW_ROWS), seeds, st.booleans())
def test_margins_of_heads_are_those_of_all_trees(case: Case, seed: int, whole: bool) -> None:
    check(case, weights(case, seed, whole))


@pytest.mark.parametrize("inference", ["tree", "cut", "messages"])
@few
@given(st.data(), seeds, st.booleans())
def test_margins_of_nodes_are_those_of_all_labellings(
    inference: str, data: Any, seed: int, whole: bool
) -> None:
    """On graphs as small as these, messages and search find the best labelling."""
    case = data.draw(graph_cases(inference=(inference,), rows=FEW_ROWS))
    check(case, weights(case, seed, whole))


SEQUENCES = {
    "chain": lambda seed: chain_case(seed, (1, 3, 4, 2)),
    "second-order chain": lambda seed: chain_case(seed, (1, 3, 4, 2), order=2),
    "segments": lambda seed: segment_case(seed, (1, 4, 5), (3, 2)),
}


@pytest.mark.parametrize("name", SEQUENCES)
@few
@given(seeds, st.booleans())
def test_smallest_margin_is_that_of_the_second_best(name: str, seed: int, whole: bool) -> None:
    problem = (case := SEQUENCES[name](seed)).problem
    w = weights(case, seed, whole)
    margins = decode_all_with_margins(problem, w).margins
    stops = np.cumsum([output_size(problem.oracle, i) for i in range(len(case.X))])
    smallest = [found.min() for found in np.split(margins, stops[:-1])]
    assert smallest == pytest.approx([two.margins[1] for two in k_best_outputs(problem, w, 2)], abs=1e-9)


@few
@given(tree_cases(rows=FEW_ROWS, projective=(True,)), seeds)
def test_decoding_again_without_each_part_gives_the_same_margins(case: Case, seed: int) -> None:
    """The default agrees with the oracle's own way."""
    problem, w = case.problem, weights(case, seed, whole=False)
    found, end = decode_all_with_margins(problem, w), 0
    theta, work = (
        np.zeros(sizes(problem).statistics),
        DecodingAgain(oracle_workspace(problem.oracle), np.zeros(9, dtype=np.int64)),
    )
    for i in range(len(case.X)):
        score(problem.map, i, w, theta)
        count = n_parts(problem.oracle, i)
        before, y, margins = theta.copy(), np.zeros(count, dtype=np.int64), np.zeros(count)
        decode_again(problem.oracle, i, theta, y, margins, work)
        assert margins == pytest.approx(found.margins[end : end + count], abs=1e-9)
        assert (theta == before).all()
        end += count


WRAPPED = {
    "weights": lambda problem: Weighted(problem, np.full(sizes(problem).examples, 3.0)),
    "slacks": SlackRescaled,
    "both": lambda problem: Weighted(SlackRescaled(problem), np.full(sizes(problem).examples, 3.0)),
}


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("order", [1, 2])
def test_wrappers_do_not_change_margins(wrapper: str, order: int) -> None:
    """Margins are differences of scores, which weights of examples and slacks leave alone."""
    case = chain_case(7, loss="hamming", order=order)
    w = weights(case, 7, whole=False)
    found = decode_all_with_margins(WRAPPED[wrapper](case.problem), w)
    assert found.margins.tolist() == decode_all_with_margins(case.problem, w).margins.tolist()


def _value(places: Array, forced: tuple[int, int] | None = None, banned: Any = None) -> float:
    """Return the score of the best matching, by SciPy: with a link of a place, or without one of places.

    As many rows and columns of zeros leave every place and every target unlinked, if that is best.
    """
    (n_places, n_targets), far = places.shape, 1e4
    square = np.zeros((n_places + n_targets, n_targets + n_places))
    square[:n_places, :n_targets] = places
    if banned is not None:
        square[banned] -= far
    if forced is not None:
        square[forced] += far
    rows, columns = linear_sum_assignment(square, maximize=True)
    return float(square[rows, columns].sum() - (far if forced is not None else 0.0))


@few
@given(seeds, st.integers(1, 5), st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_margins_of_links_are_those_of_assignments(
    seed: int, m: int, n: int, n_slots: int, whole: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores, bonus = rng.normal(size=(m, n)), np.append(0.0, rng.normal(size=n_slots - 1))
    scores, bonus = (np.round(2 * scores), np.round(bonus)) if whole else (scores, bonus)
    prices, work = assignment_work(m * n_slots + 1, n + 2), exchange_work(m * n_slots + 1, n + 2)
    for array in work:
        array[:] = 7
    y, margins = np.zeros(m * n_slots, dtype=np.int64), np.zeros((m, n))
    assignment(scores, bonus, prices, y)
    assignment_margins(scores, bonus, prices, work, y, margins)
    places = (scores[:, None] + bonus[None, :, None]).reshape(-1, n)
    best = _value(places)
    for j, k in np.ndindex(m, n):
        of_row = range(j * n_slots, (j + 1) * n_slots)
        if k in y[of_row]:
            other = _value(places, banned=(of_row, k))
        else:
            other = max(_value(places, forced=(place, k)) for place in of_row)
        assert margins[j, k] == pytest.approx(best - other, abs=1e-9)


@few
@given(seeds, st.integers(1, 8), st.floats(0.0, 1.0), st.booleans())
def test_margins_of_cuts_are_those_of_larger_graphs(
    seed: int, n_nodes: int, density: float, whole: bool
) -> None:
    rng = np.random.default_rng(seed)
    ends = random_graph(rng, n_nodes, density)
    gains, strengths = rng.normal(size=n_nodes), rng.random(len(ends))
    gains, strengths = (np.round(2 * gains), np.round(3 * strengths)) if whole else (gains, strengths)
    flow, work, numbered = cut_work(9, 36), cut_margin_work(9, 36), arcs_of(ends, n_nodes)
    flow.excess[:n_nodes], flow.residual[: 2 * len(ends)] = gains, np.repeat(strengths, 2)
    y, margins = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes)
    cut(*numbered, n_nodes, flow, y)
    cut_margins(*numbered, flow, work, y, margins)
    every = [list(other) for other in product(range(2), repeat=n_nodes)]
    scores = np.array([cut_score(gains, strengths, ends, other) for other in every])
    assert margins == pytest.approx(expected_margins(every, scores, every.index(y.tolist())), abs=1e-9)


COMPILED = {
    "chain": lambda: chain_case(51, (3, 2, 4)),
    "second-order chain": lambda: chain_case(51, (3, 1, 4), order=2),
    "segments": lambda: segment_case(51, (3, 5), (3, 2)),
    "classes": lambda: multiclass_case(51),
    "links": lambda: matching_case(51, fertility=2),
    "heads": lambda: tree_case(51),
    "projective heads": lambda: tree_case(51, projective=True),
    "tree": lambda: graph_case(51, (3, 4), inference="tree"),
    "cut": lambda: graph_case(51, (3, 4), 2, inference="cut"),
    "messages": lambda: graph_case(51, (3, 4), inference="messages"),
}


# Each of them compiles for some seconds.
@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_margins_have_the_same_bits(name: str) -> None:
    case = COMPILED[name]()
    w = weights(case, 51, whole=False)
    compiled = decode_all_with_margins(case.problem, w)
    with interpreted():
        by_hand = decode_all_with_margins(case.problem, w)
    assert compiled.outputs.tolist() == by_hand.outputs.tolist()
    assert [m.hex() for m in compiled.margins.tolist()] == [m.hex() for m in by_hand.margins.tolist()]

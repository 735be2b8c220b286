"""Blocks of long sequences: where they are, and their oracles against all outputs that they allow."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.problems import Chain, SecondOrderChain, Weighted
from maxmargin.structures.oracle import decode, output_size
from maxmargin.structures.sequences.anchoring import Anchors, anchored, can_anchor, first_anchors, joined
from support import naive
from support.catalogue import (
    Case,
    chain_case,
    graph_case,
    layout,
    multiclass_case,
    segment_case,
)

LENGTHS = (1, 6, 4, 7)


def case_of(order: int, seed: int = 0, loss: str = "matrix") -> Case:
    return chain_case(seed, LENGTHS, 2, loss=loss, order=order)


def outputs_of_blocks(case: Case, anchors: Anchors, b: int) -> list[int]:
    """The outputs of a sequence that are the truth outside of the free tokens of block b."""
    i = int(anchors.examples[b])
    begin = int(np.cumsum([0, *LENGTHS])[i])
    first, stop = anchors.tokens[b] + [1, -1] * anchors.held[b] - begin
    truth = np.array(case.data.outputs[i][case.data.truths[i]])
    same = [np.delete(np.array(y) == truth, np.arange(first, stop)).all() for y in case.data.outputs[i]]
    return np.flatnonzero(same).tolist()


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    length=st.integers(1, 12),
    order=st.sampled_from([1, 2]),
)
def test_every_token_is_free_in_one_block_or_held(lengths: list[int], length: int, order: int) -> None:
    anchors = first_anchors(_empty_chain(lengths, order), length)
    offsets = np.cumsum([0, *lengths])
    while True:
        free = np.zeros(offsets[-1], dtype=int)
        for i, (a, z), (before, after) in zip(*anchors, strict=True):
            assert offsets[i] <= a
            assert z <= offsets[i + 1]
            assert before == (0 if a == offsets[i] else order)
            assert after == (0 if z == offsets[i + 1] else order)
            assert z - a - before - after >= min(length, lengths[i])
            free[a + before : z - after] += 1
        assert set(free) <= {0, 1}
        n_cuts = len(anchors.examples) - len(lengths)
        assert (free == 0).sum() == order * n_cuts
        if n_cuts == 0:
            break
        anchors, _ = joined(anchors)
    np.testing.assert_array_equal(anchors.tokens, np.column_stack([offsets[:-1], offsets[1:]]))


def _random_weights(case: Case, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])


def _empty_chain(lengths: list[int], order: int) -> Any:
    offsets = np.cumsum([0, *lengths])
    labels = np.zeros(offsets[-1], dtype=np.int64)
    builder = {1: Chain, 2: SecondOrderChain}[order]
    return builder.from_encoded(np.zeros((offsets[-1], 1)), offsets, labels, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["matrix", "hamming"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("length", [1, 2])
def test_hinges_of_blocks_are_those_of_an_enumeration(
    order: int, length: int, loss: str, weighted: bool
) -> None:
    case, factors = case_of(order, loss=loss), np.array([2.0, 0.5, 1.0, 3.0])
    problem = Weighted(case.problem, factors) if weighted else case.problem
    anchors = first_anchors(problem, length)
    assert len(anchors.examples) > len(LENGTHS)
    for seed in range(2):
        w = _random_weights(case, seed)
        for joins in range(3):
            blocks = anchored(problem, anchors)
            scratch = new_scratch(blocks)
            for b, i in enumerate(anchors.examples):
                some = outputs_of_blocks(case, anchors, b)
                expected = naive.margins(case.data, i, w)[some].max()
                _, hinge = find_corner(blocks, b, layout(case.problem, w), scratch)
                assert hinge == pytest.approx(expected * (factors[i] if weighted else 1.0), abs=1e-9)
            anchors = joined(anchors)[0] if joins < 2 else first_anchors(problem, length)


@pytest.mark.parametrize("order", [1, 2])
def test_held_tokens_have_their_true_labels(order: int) -> None:
    case = case_of(order)
    anchors = first_anchors(case.problem, 1)
    blocks = anchored(case.problem, anchors)
    scratch, w = new_scratch(blocks), layout(case.problem, _random_weights(case, 5))
    pairs = zip(case.data.outputs, case.data.truths, strict=True)
    truth = np.concatenate([np.array(outputs[k]) for outputs, k in pairs])
    for b, ((a, z), (before, after)) in enumerate(zip(anchors.tokens, anchors.held, strict=True)):
        find_corner(blocks, b, w, scratch)
        theta = scratch.block.theta.copy()
        decode(blocks.oracle, b, scratch.block.theta, scratch.y, scratch.oracle)
        np.testing.assert_array_equal(scratch.block.theta, theta)  # as it was before
        y = scratch.y[: output_size(blocks.oracle, b)]
        np.testing.assert_array_equal(y[:before], truth[a : a + before])
        np.testing.assert_array_equal(y[len(y) - after :], truth[z - after : z])


def test_features_are_shared() -> None:
    problem = case_of(1).problem
    blocks = anchored(problem, first_anchors(problem, 2))
    assert blocks.map.rows is problem.map.rows
    assert blocks.oracle.labels is problem.oracle.labels


def test_other_problems_have_no_blocks() -> None:
    assert can_anchor(case_of(1).problem)
    assert can_anchor(Weighted(case_of(2).problem, np.ones(4)))
    for case in (multiclass_case(0), segment_case(0), graph_case(0)):
        assert not can_anchor(case.problem)

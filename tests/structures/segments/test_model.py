"""Segmentations: oracle, loss and statistics against lists of all; what they equal; what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Accelerated, Pairwise, Status, solve
from maxmargin.problems import Chain, Segments
from maxmargin.structures import products
from maxmargin.structures.feature_map import gram, map_workspace, norm2, push, score
from maxmargin.structures.oracle import argmax, decode, is_exact, loss, psi
from maxmargin.structures.problem import sizes
from maxmargin.structures.segments import inference
from maxmargin.structures.segments.encode import EncodedSegments
from support import naive
from support.catalogue import Case, flat, layout, segment_case, segment_cases
from support.maps import as_move, feature_map, random_direction, statistics
from support.model_checks import (
    assert_compiled_hinges,
    assert_compiled_predictions,
    assert_gram_and_norm2,
    assert_loss_and_statistics,
    assert_oracles_maximise,
    draw_weights,
    found_output,
)
from support.naive import Array, Output, segments_of

LAM = 0.1
ROWS = ("dense", "whole")


def written_out_score(case: Case, i: int, w: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, segment by segment."""
    weights, x, before, total = case.problem.unpack(w), case.X[i], None, 0.0
    for start, stop, k in segments_of(y):
        total += sum(float(x[t] @ weights.inside[k]) for t in range(start, stop))
        total += float(x[start] @ weights.first[k] + x[stop - 1] @ weights.last[k])
        total += weights.lengths[k, stop - start - 1]
        total += weights.start[k] if before is None else weights.transitions[before, k]
        before = k
    return total


@given(segment_cases(rows=ROWS), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_segmentations(case: Case, seed: int, whole: bool) -> None:
    assert is_exact(case.problem.oracle)
    assert_oracles_maximise(case, draw_weights(case, seed, whole), written_out_score)


@pytest.mark.parametrize("block", [1, 2])
@given(case=segment_cases(rows=ROWS), seed=st.integers(0, 1000), whole=st.booleans())
def test_oracles_that_skip_starts_maximise_too(block: int, case: Case, seed: int, whole: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "BLOCK", block)
        assert_oracles_maximise(case, draw_weights(case, seed, whole), written_out_score)


def best_score(theta: Array, pairs: Array, lengths: Array, limits: list[int]) -> float:
    """Return the largest score of a segmentation, end by end, over all starts and pairs of labels.

    ``theta[t]`` has three rows: the scores of token t as any, as the first and as the last of a segment.
    """
    sums, best = np.cumsum(theta[:, 0], axis=0), np.zeros((len(theta), len(limits)))
    for t, k in np.ndindex(best.shape):
        values = []
        for s in range(max(t + 1 - limits[k], 0), t + 1):
            before = (best[s - 1] + pairs[:, k]).max() if s else 0.0
            inside = sums[t, k] - (sums[s - 1, k] if s else 0.0)
            values.append(before + inside + theta[s, 1, k] + theta[t, 2, k] + lengths[k, t - s])
        best[t, k] = max(values)
    return float(best[-1].max())


@pytest.mark.parametrize("seed", range(3))
def test_long_segments_skip_most_starts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, length, limits, calls = np.random.default_rng(seed), 180, [150, 40, 1], []
    found = EncodedSegments(np.repeat([1, 0, 3, 2], [1, 139, 1, 39]), np.arange(3), 3)
    offsets = np.array([0, length])
    problem = Segments.from_encoded(rng.normal(size=(length, 2)), offsets, found, np.array(limits))
    w = np.zeros(sizes(problem).weights)
    weights = problem.unpack(w)
    for part, scale in zip(weights, (0.1, 1.0, 1.0, 1.0, 2.0, 1.0), strict=True):
        part[:] = scale * rng.normal(size=part.shape)
    best_lengths = inference._best_lengths
    monkeypatch.setattr(inference, "_best_lengths", lambda *args: [calls.append(0), best_lengths(*args)])
    y = found_output(problem, 0, w, decode)
    assert 0 < len(calls) < length * (length // inference.BLOCK) / 2  # many starts are skipped
    X = problem.map.rows.values
    theta = np.stack([X @ part.T for part in weights[:3]], axis=1)
    theta[0, 1] += weights.start
    expected = best_score(theta, weights.transitions, weights.lengths, limits)
    case = Case(problem, None, [X])
    assert written_out_score(case, 0, w, y) == pytest.approx(expected, rel=1e-12)


@given(segment_cases(rows=ROWS), st.integers(0, 1000))
def test_score_gram_and_push_apply_the_feature_map(case: Case, seed: int) -> None:
    rng, problem = np.random.default_rng(seed), case.problem
    w, work = draw_weights(case, seed, whole=False), map_workspace(case.problem.map)
    for i in range(len(case.X)):
        Phi, delta = feature_map(case, i), random_direction(case, i, rng)
        m, move, pushed = Phi.shape[1], as_move(delta), w.copy()
        theta, image = np.full((2, len(delta)), np.nan)
        score(problem.map, i, w, theta)
        assert theta[:m] == pytest.approx(Phi.T @ w, abs=1e-12)
        gram(problem.map, i, move, image, work)
        assert image[:m] == pytest.approx(Phi.T @ (Phi @ delta[:m]), abs=1e-10)
        push(problem.map, i, move, 0.7, pushed, work)
        assert pushed == pytest.approx(w + 0.7 * Phi @ delta[:m], abs=1e-12)
        assert norm2(problem.map, i, move, image, work) == pytest.approx(
            np.sum((Phi @ delta[:m]) ** 2), rel=1e-10
        )
        for y, expected in zip(case.data.outputs[i], case.data.psi[i], strict=True):
            told = statistics(case, i, case.data.outputs[i][case.data.truths[i]]) - statistics(case, i, y)
            assert Phi @ told[:m] == pytest.approx(layout(problem, expected), abs=1e-12)


@given(segment_cases(rows=("indicator",)), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    w = draw_weights(case, seed, whole=False)
    assert_compiled_hinges(case, w)
    assert_compiled_predictions(case, w)


@given(segment_cases(rows=ROWS))
def test_loss_and_statistics_are_those_of_every_segmentation(case: Case) -> None:
    assert_loss_and_statistics(case)


def test_parts_that_agree_are_not_told() -> None:
    problem = segment_case(0, (4,), (3, 2, 1)).problem
    truth = problem.oracle.truth.copy()
    where, value = np.zeros(40, dtype=np.uint32), np.zeros(40)
    assert psi(problem.oracle, 0, truth, where, value) == 0
    oracle = problem.oracle._replace(truth=np.array([1, 0, 3, 5]), sizes=np.array([0, 2, 1, 1]))
    # The last token changes its label: as a token, first and last, its length and the transition to it.
    assert psi(oracle, 0, np.array([1, 0, 3, 1]), where, value) == 10


def test_gram_is_right_for_sequences_too_long_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_TABULATED", 2)
    case = segment_case(5, (4, 2, 1, 3))
    assert np.diff(case.problem.map.product_spans).ravel().tolist() == [0, 4, 1, 0]
    assert_gram_and_norm2(case)


def test_certificate_brackets_the_optimum() -> None:
    case, method = segment_case(3, (2, 3, 1, 4), rows="indicator"), Accelerated(Pairwise(LAM))
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, method, tol=0.02 * best.primal, max_passes=3000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= 1.02 * best.primal + 1e-9
    assert result.primal == pytest.approx(naive.primal(case.data, flat(case.problem, result.w), LAM))


@pytest.mark.parametrize("name", ["normalized_hamming", "hamming"])
def test_segments_of_one_token_are_a_chain(name: str) -> None:
    rng, offsets = np.random.default_rng(0), np.array([0, 4, 5, 11])
    X, labels = rng.normal(size=(11, 3)), rng.integers(3, size=11)
    found, limits = EncodedSegments(2 * labels + 1, np.arange(3), 3), np.ones(3, dtype=np.int64)
    problem = Segments.from_encoded(X, offsets, found, limits, loss=name)
    chain = Chain.from_encoded(X, offsets, labels, 3, loss=name)
    w, v = np.zeros(sizes(problem).weights), np.zeros(sizes(chain).weights)
    ours, theirs = problem.unpack(w), chain.unpack(v)
    for part, same in ((ours.inside, theirs.unary), (ours.transitions, theirs.transitions)):
        part[:] = same[:] = rng.normal(size=part.shape)
    ours.start[:] = theirs.start[:] = rng.normal(size=3)
    for oracle in (argmax, decode):
        for i in range(3):
            expected = found_output(chain, i, v, oracle)
            assert found_output(problem, i, w, oracle) == tuple(2 * k + 1 for k in expected)
            y = np.array(expected)
            assert loss(problem.oracle, i, 2 * y + 1) == pytest.approx(loss(chain.oracle, i, y))


X = [np.arange(10.0).reshape(5, 2), np.ones((2, 2))]
Y: list[Any] = [[(0, 2, "a"), (3, 5, "b")], [(0, 2, "a")]]


def test_segments_and_tags_are_the_same_problem() -> None:
    tags = [["B-a", "I-a", "O", "B-b", "I-b"], ["I-a", "I-a"]]
    problem, expected = Segments.from_sequences(X, tags), Segments.from_sequences(X, [Y[0][::-1], Y[1]])
    assert problem.oracle.truth.tolist() == expected.oracle.truth.tolist() == [1, 0, 5, 3, 2, 1, 0]
    assert problem.oracle.sizes.tolist() == [0, 2, 1, 0, 2, 0, 2]
    assert (problem.oracle.n_labels, problem.oracle.n_lengths) == (3, 2)
    assert np.isneginf(problem.oracle.limits[:, :3]).tolist() == [[False] * 3, [False, False, True]]


def test_losses_are_those_worked_out_by_hand() -> None:
    # The first segment is found, the second has another stop; token 2 is outside, token 4 is now.
    y = np.array([1, 0, 5, 3, 5])
    for name, expected in (("hamming", 1.0), ("normalized_hamming", 0.2), ("segments", 2.0)):
        assert loss(Segments.from_sequences(X, Y, loss=name).oracle, 0, y) == pytest.approx(expected)
    # The same labels, but the second segment is cut in two.
    for name, expected in (("hamming", 1.0), ("normalized_hamming", 0.2), ("segments", 3.0)):
        assert loss(Segments.from_sequences(X, Y, loss=name).oracle, 0, np.array([1, 0, 5, 3, 3])) == expected


def test_largest_lengths_are_learnt_or_given() -> None:
    for given_length, expected in ((None, [2, 2, 1]), (4, [4, 4, 1]), ({"b": 3}, [2, 3, 1])):
        limits = Segments.from_sequences(X, Y, max_length=given_length).oracle.limits[:, :3]
        assert (limits == 0.0).sum(axis=0).tolist() == expected


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([], Y, {}, "X has no sequence"),
    (X, 3, {}, r"y must be a list of the segments or tags of 2 sequences, got 3 \(int\)"),
    (X, Y[:1], {}, "y must be a list of the segments or tags of 2 sequences, got 1 items"),
    (
        X,
        [Y[0], 3],
        {},
        r"y\[1\] is 3 \(int\), expected a list of segments .*; if y is one sequence pass \[y\]",
    ),
    (X, [[], []], {}, "y has no segment, expected at least one"),
    (X, [[(0, 2)], []], {}, r"sequence 0 of y has \(0, 2\), expected segments \(start, stop, label\)"),
    (X, [Y[0], [(0.0, 2, "a")]], {}, r"sequence 1 of y has \(0.0, 2, 'a'\), expected segments"),
    (X, [Y[0], [(1, 3, "a")]], {}, r"sequence 1 of y has the segment \(1, 3, 'a'\), expected 0 <= .* <= 2"),
    (X, [Y[0], [(1, 1, "a")]], {}, r"sequence 1 of y has the segment \(1, 1, 'a'\), expected 0 <= start < "),
    (
        X,
        [Y[0], [(0, 1, 0.5)]],
        {},
        r"sequence 1 of y has the segment \(0, 1, 0.5\), expected a str or an int",
    ),
    (X, [Y[0], [(0, 1, 3)]], {}, "y has str and int labels"),
    (
        X,
        [[(1, 3, "a"), (0, 2, "b")], []],
        {},
        r"sequence 0 of y has the segments \(0, 2, 'b'\) and .* overlap",
    ),
    (X, [["O"] * 5, ["O"]], {}, "sequence 1 of y has 1 tags, but there are 2 tokens in X"),
    (X, [["B-a"] * 5, ["B-a", "X"]], {}, "sequence 1 of y has 'X', expected the tags 'O', 'B-label' or"),
    (X, [["B-a"] * 5, ["B-a", 3]], {}, "sequence 1 of y has 3, expected the tags"),
    (
        X,
        Y,
        {"max_length": 1},
        r"segment \(0, 2, 'a'\) of sequence 0 of y has 2 tokens, but max_length is 1; set",
    ),
    (
        X,
        Y,
        {"max_length": {"b": 1}},
        r"segment \(3, 5, 'b'\) of sequence 0 of y has 2 tokens, but max_length ",
    ),
    (X, Y, {"max_length": {"c": 1}}, "max_length has the label 'c', which is not in y"),
    (
        X,
        Y,
        {"max_length": 0},
        "max_length must be None, an int >= 1 or a dict of labels and such ints, got 0",
    ),
    (X, Y, {"loss": "zero_one"}, "loss must be one of 'normalized_hamming', .*, got 'zero_one'"),
    (X, [["B-a"] * 5, ["B-a"] * 2], {}, "y has one label and segments of one token only"),
    ([X[0], np.full((2, 2), np.nan)], Y, {}, ".* of sequence 1 of X"),
]


@pytest.mark.parametrize(("features", "y", "settings", "message"), REFUSED)
def test_wrong_segments_and_settings_are_refused(
    features: Any, y: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^Segments: {message}") as caught:
        Segments.from_sequences(features, y, **settings)
    assert "\n" not in str(caught.value)

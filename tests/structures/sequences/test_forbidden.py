"""Chains in which some labels may not follow some others, against a list of the labellings that are left."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Accelerated, ChainSVC, Pairwise, solve
from maxmargin.methods.scratch import new_scratch
from maxmargin.problems import Chain
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.feature_map import score, statistics_size
from maxmargin.structures.oracle import argmax, decode, expectation, oracle_workspace
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.encode import check_allowed, encode_forbidden
from support import naive
from support.catalogue import Case, flat, layout
from support.naive import Array, Enumerated, Output, margins
from support.slack import check_slack_oracle

LABELS = 3


def is_allowed(y: Output, forbidden: Array) -> bool:
    path = [LABELS, *y, LABELS]
    return not any(forbidden[a, b] for a, b in itertools.pairwise(path))


def forbidding_case(seed: int, lengths: tuple[int, ...]) -> tuple[Case, Array]:
    """Return a random chain with forbidden transitions, none of them in the truth."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(lengths))
    features, labels = rng.normal(size=(offsets[-1], 2)), rng.integers(LABELS, size=offsets[-1])
    forbidden = rng.random((LABELS + 1, LABELS + 1)) < 0.5
    is_true = np.zeros_like(forbidden)
    X, Y = np.split(features, offsets[1:-1]), np.split(labels, offsets[1:-1])
    for y in Y:
        path = np.concatenate([[LABELS], y, [LABELS]])
        is_true[path[:-1], path[1:]] = True
    forbidden &= ~is_true
    forbidden = forbidden if forbidden.any() else ~is_true
    forbidden[LABELS, LABELS] = False
    problem = Chain.from_encoded(features, offsets, labels, LABELS, forbidden=forbidden)
    every = naive.enumerate_chain(X, Y, LABELS, 1.0 - np.eye(LABELS), per_token=True)
    kept = Enumerated([], [], [], [])
    for outputs, truth, losses, psi in zip(*every, strict=True):
        rest = [k for k, y in enumerate(outputs) if is_allowed(y, forbidden)]
        kept.outputs.append([outputs[k] for k in rest])
        kept.truths.append(rest.index(truth))
        kept.losses.append(losses[rest])
        kept.psi.append(psi[rest])
    return Case(problem, kept, X), forbidden


cases = st.builds(
    forbidding_case,
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
)


@given(cases, st.integers(0, 1000))
def test_oracles_choose_among_what_is_allowed(drawn: tuple[Case, Array], seed: int) -> None:
    case, forbidden = drawn
    w = layout(case.problem, 3 * np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1]))
    scratch, found = new_scratch(case.problem), []
    for i, x in enumerate(case.X):
        outputs, scores = case.data.outputs[i], -case.data.psi[i] @ flat(case.problem, w)
        score(case.problem.map, i, w, scratch.block.theta)
        for oracle, values in ((argmax, scores + case.data.losses[i]), (decode, scores)):
            oracle(case.problem.oracle, i, scratch.block.theta, scratch.y, scratch.oracle)
            y = tuple(scratch.y[: len(x)].tolist())
            assert is_allowed(y, forbidden)
            assert values[outputs.index(y)] == pytest.approx(values.max(), abs=1e-11)
        found += list(y)
    compiled = np.zeros(len(found), dtype=np.int64)
    predictions(case.problem, w, 0, len(case.X), compiled, *decoding_work(case.problem))
    assert compiled.tolist() == found
    expected = [margins(case.data, i, flat(case.problem, w)).max() for i in range(len(case.X))]
    assert hinge_losses(case.problem, w) == pytest.approx(expected, abs=1e-11)
    check_slack_oracle(case.problem, case.data, seed)


@given(cases, st.integers(0, 1000))
def test_means_are_over_what_is_allowed(drawn: tuple[Case, Array], seed: int) -> None:
    case, _ = drawn
    w = layout(case.problem, np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1]))
    (phi, oracle), theta = case.problem, np.zeros(sizes(case.problem).statistics)
    for i in range(len(case.X)):
        score(phi, i, w, theta)
        z = np.full(statistics_size(phi, i), np.nan)
        log_partition, loss = expectation(oracle, i, theta, 1.0, z, oracle_workspace(oracle))
        weights = np.exp(margins(case.data, i, flat(case.problem, w)))
        assert log_partition == pytest.approx(np.log(weights.sum()), abs=1e-11)
        assert loss == pytest.approx(weights @ case.data.losses[i] / weights.sum(), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_certificates_bracket_the_optimum(seed: int) -> None:
    case, _ = forbidding_case(seed, (3, 2, 4, 1))
    best = naive.optimum(case.data, 0.1)
    result = solve(case.problem, Accelerated(Pairwise(0.1)), tol=1e-4, random_state=0)
    assert result.gap <= 1e-4
    assert best.dual - 1e-9 <= result.primal <= best.primal + 1e-4
    assert result.dual <= best.primal + 1e-9


TAGS = ["B-NP", "B-VP", "I-NP", "I-VP", "O"]


def test_bio_forbids_what_cannot_follow() -> None:
    matrix = encode_forbidden("bio", TAGS)
    assert matrix is not None
    allowed = {
        (before, after)
        for j, before in enumerate([*TAGS, None])
        for k, after in enumerate([*TAGS, None])
        if not matrix[j, k]
    }
    inner = {(before, after) for before, after in allowed if after in ("I-NP", "I-VP")}
    assert inner == {("B-NP", "I-NP"), ("I-NP", "I-NP"), ("B-VP", "I-VP"), ("I-VP", "I-VP")}
    assert len(allowed) == 4 + 6 * 4
    assert encode_forbidden("bio", ["A", "B"]) is None
    assert encode_forbidden([], TAGS) is None


_rng = np.random.default_rng(0)
X = [_rng.normal(size=(length, 3)) for length in (3, 5, 4, 2, 6)]
Y = [["O", "B-NP", "I-NP"], ["B-NP", "I-NP", "I-NP", "O", "O"], ["B-NP"] * 4, ["O"] * 2, ["O"] * 6]


def score_of(model: ChainSVC, x: Array, labels: list[int]) -> float:
    """The score of a labelling, by its formula."""
    total = model.start_[labels[0]] + model.end_[labels[-1]] + (model.coef_[labels] * x).sum()
    return float(total + sum(model.transitions_[a, b] for a, b in itertools.pairwise(labels)))


def pairs_in(sequences: Any) -> set[tuple[Any, Any]]:
    paths = [[None, *labels, None] for labels in sequences]
    return {pair for path in paths for pair in itertools.pairwise(path)}


@pytest.mark.parametrize(
    "forbidden", ["bio", [("O", "I-NP"), (None, "I-NP")], [("B-NP", None), ("I-NP", "B-NP")]]
)
def test_forbidden_transitions_are_never_predicted(forbidden: Any) -> None:
    """Labels are noise: without the prohibition all pairs are predicted."""
    noise = [np.random.default_rng(k).normal(size=(7, 3)) for k in range(50)]
    truth = (
        Y
        if forbidden == "bio" or forbidden[0][0] == "O"
        else [labels for labels in Y if labels[-1] != "B-NP"]
    )
    data = [x for x, labels in zip(X, Y, strict=True) if labels in truth]
    banned = {("O", "I-NP"), (None, "I-NP")} if forbidden == "bio" else set(forbidden)
    plain = ChainSVC(C=10, random_state=0).fit(data, truth)
    model = ChainSVC(C=10, forbidden=forbidden, random_state=0).fit(data, truth)
    assert pairs_in(plain.predict(noise)) & banned
    assert not pairs_in(model.predict(noise)) & banned


REFUSED = [
    (
        Y,
        [("B-NP", "I-NP")],
        "y has forbidden pairs in 2 of 5 sequences, first at token 2 of sequence 0: 'I-NP' after 'B-NP' 2 "
        "times; correct y",
    ),
    (
        Y,
        [(None, "B-NP")],
        "y has forbidden pairs in 2 of 5 sequences, first at token 0 of sequence 1: 'B-NP' after the start",
    ),
    (
        Y,
        [("I-NP", None), ("B-NP", "B-NP")],
        "y has forbidden pairs in 2 of 5 sequences, first at token 3 of sequence 0: 'B-NP' after 'B-NP' "
        "3 times, the end after 'I-NP' once; correct y",
    ),
    (Y, [("O", "X")], "forbidden has the label 'X', which is not in y; labels are"),
    (Y, [("O",)], r"forbidden has the item \('O',\), expected pairs of labels"),
    (Y, ["OO"], "forbidden has the item 'OO', expected pairs of labels"),
    (Y, [(None, None)], r"forbidden has the item \(None, None\), expected pairs"),
]


@pytest.mark.parametrize(("y", "forbidden", "message"), REFUSED)
def test_forbidden_labels_and_wrong_pairs_are_refused(y: Any, forbidden: Any, message: str) -> None:
    for make in (
        lambda: ChainSVC(forbidden=forbidden).fit(X, y),
        lambda: Chain.from_sequences(X, y, forbidden=forbidden),
    ):
        with pytest.raises(ValueError, match=f"^(ChainSVC|Chain): ({message})") as caught:
            make()
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^Chain: forbidden must be None, 'bio' or a list of pairs"):
        Chain.from_sequences(X, y, forbidden=3)


def test_lengths_that_no_labelling_has_are_refused() -> None:
    forbidden = [(before, after) for before in "ab" for after in "ab"]
    model = ChainSVC(forbidden=forbidden, random_state=0).fit([np.ones((1, 1))] * 2, [["a"], ["b"]])
    assert [len(y) for y in model.predict([np.ones((1, 1))])] == [1]
    with pytest.raises(
        ValueError, match=r"^ChainSVC: all labellings of 2 tokens are forbidden; remove some pairs"
    ):
        model.predict([np.ones((1, 1)), np.ones((2, 1))])


@given(cases, st.integers(0, 1000))
def test_all_forbidden_pairs_are_counted(drawn: tuple[Case, Array], seed: int) -> None:
    case, forbidden = drawn
    rng, names = np.random.default_rng(seed), "abc"
    labels = [rng.integers(LABELS, size=length) for length in (*map(len, case.X), 0, 2)]
    paths = [[LABELS, *y.tolist(), LABELS] for y in labels]
    wrong = [[pair for pair in itertools.pairwise(path) if forbidden[pair]] for path in paths]
    offsets = np.append(0, np.cumsum([len(y) for y in labels]))
    counts = Counter(itertools.chain.from_iterable(wrong))
    if not counts:
        check_allowed(np.concatenate(labels), offsets, forbidden, list(names))
        return
    with pytest.raises(ValueError, match=r"^y has forbidden pairs in ") as caught:
        check_allowed(np.concatenate(labels), offsets, forbidden, list(names))
    said, first = str(caught.value), next(i for i, pairs in enumerate(wrong) if pairs)
    assert f"in {sum(map(bool, wrong))} of {len(labels)} sequences" in said
    token = next(t for t, pair in enumerate(itertools.pairwise(paths[first])) if forbidden[pair])
    assert f"first at token {token} of sequence {first}: " in said
    listed = counts.most_common(5)
    for (a, b), n in listed:
        before, after = [*map(repr, names), "the start"][a], [*map(repr, names), "the end"][b]
        times = "once" if n == 1 else f"{n} times"
        assert f"{after} after {before} {times}" in said
    assert ("others" in said) == (len(counts) > 5)


def test_odd_labels_are_for_training_alone() -> None:
    """What is forbidden in prediction alone changes no weight, and no prediction that is allowed."""
    odd = [*Y[:-1], ["I-NP", "I-NP", "O", "I-NP", "O", "O"]]
    with pytest.raises(
        ValueError, match=r"set forbidden_in='prediction' to forbid them in predictions alone\.$"
    ):
        ChainSVC(forbidden="bio").fit(X, odd)
    plain = ChainSVC(C=10, random_state=0).fit(X, odd)
    model = ChainSVC(C=10, forbidden="bio", forbidden_in="prediction", random_state=0).fit(X, odd)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    noise = [np.random.default_rng(k).normal(size=(4, 3)) for k in range(20)]
    banned, changed = {("O", "I-NP"), (None, "I-NP")}, 0
    for x, free, bound in zip(noise, plain.predict(noise), model.predict(noise), strict=True):
        allowed = [y for y in itertools.product(plain.classes_, repeat=4) if not pairs_in([y]) & banned]
        scores = [score_of(model, x, [*map(model.classes_.tolist().index, y)]) for y in allowed]
        assert tuple(bound) == allowed[int(np.argmax(scores))]
        changed += free != bound
    assert changed > 0
    assert not pairs_in(labels for best in model.predict_k_best(noise, 3) for labels in best.labels) & banned

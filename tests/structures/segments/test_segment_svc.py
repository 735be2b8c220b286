"""SegmentSVC: what it learns and returns, scikit-learn's conventions, and what it refuses."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from maxmargin import SegmentSVC
from maxmargin.datasets import chunk_f1, load_conll2000
from support.naive import all_segmentations, segments_of

SENTENCES = [
    ("the old dog barks now", "B-NP I-NP I-NP B-VP O"),
    ("a cat has been sleeping", "B-NP I-NP B-VP I-VP I-VP"),
    ("now the cat barks", "O B-NP I-NP B-VP"),
    ("the dog the cat sees barks", "B-NP I-NP B-NP I-NP B-VP B-VP"),
    ("a small old cat has barked", "B-NP I-NP I-NP I-NP B-VP I-VP"),
    ("sleeping", "B-VP"),
]
X = [[[word, "-" + word[-1]] for word in words.split()] for words, _ in SENTENCES]
TAGS = [tags.split() for _, tags in SENTENCES]
SEGMENTS = [
    [(0, 3, "NP"), (3, 4, "VP")],
    [(0, 2, "NP"), (2, 5, "VP")],
    [(1, 3, "NP"), (3, 4, "VP")],
    [(0, 2, "NP"), (2, 4, "NP"), (4, 5, "VP"), (5, 6, "VP")],
    [(0, 4, "NP"), (4, 6, "VP")],
    [(0, 1, "VP")],
]


def fitted(y=SEGMENTS, features=X, **parameters):
    return SegmentSVC(**{"C": 10.0, "random_state": 0, **parameters}).fit(features, y)


@pytest.fixture(scope="module")
def learnt():
    """A model that no test changes."""
    return fitted()


def test_segments_are_learnt(learnt):
    model = learnt
    assert model.predict(X) == SEGMENTS
    assert model.predict_tags(X) == TAGS
    assert model.score(X, SEGMENTS) == model.score(X, TAGS) == 1.0
    assert model.gap_ <= model.tol
    assert model.classes_.tolist() == ["NP", "VP"]
    assert model.max_length_.tolist() == [4, 3, 1]  # the last is outside
    assert model.predict([[["the"], ["small"], ["dog"], ["barked"]]]) == [[(0, 3, "NP"), (3, 4, "VP")]]


def test_segments_and_tags_train_the_same_model(learnt):
    from_tags = fitted(TAGS)
    np.testing.assert_array_equal(from_tags.coef_, learnt.coef_)
    assert from_tags.predict(X) == SEGMENTS


def test_weights_have_their_shapes(learnt):
    model, n_features = learnt, len({name for x in X for token in x for name in token})
    assert model.n_features_in_ == n_features == len(model.feature_names_)
    for coef in (model.coef_, model.first_coef_, model.last_coef_):
        assert coef.shape == (3, n_features)
    assert model.lengths_.shape == (3, 4)
    assert model.transitions_.shape == (3, 3)
    assert model.start_.shape == (3,)
    assert not model.lengths_[2, 1:].any()  # no segments of several tokens outside
    assert model.lengths_[:, 0].any()


def score_of(model, x, codes):
    """Return the score of a segmentation by the weights that users see."""
    place = {name: k for k, name in enumerate(model.feature_names_)}
    tokens = np.array([sum(np.eye(len(place))[place[name]] for name in token) for token in x])
    total, before = 0.0, None
    for start, stop, k in segments_of(codes):
        total += (tokens[start:stop] @ model.coef_[k]).sum() + model.lengths_[k, stop - start - 1]
        total += tokens[start] @ model.first_coef_[k] + tokens[stop - 1] @ model.last_coef_[k]
        total += model.start_[k] if before is None else model.transitions_[before, k]
        before = k
    return total


@pytest.mark.long
@pytest.mark.parametrize("loss", ["normalized_hamming", "segments"])
def test_objective_is_the_documented_one(loss):
    examples, truths = [X[k] for k in (2, 5, 1)], [(5, 1, 0, 3), (3,), (1, 0, 3, 2, 2)]
    model = SegmentSVC(C=2.0, loss=loss, tol=1e-3, random_state=0).fit(
        examples, [SEGMENTS[k] for k in (2, 5, 1)]
    )
    hinges = []
    for x, truth in zip(examples, truths, strict=True):
        margins = []
        for y in all_segmentations(len(x), model.max_length_):
            wrong = sum(a != b for a, b in zip(truth, y, strict=True)) / len(x)
            differ = len({s for s in set(segments_of(y)) ^ set(segments_of(truth)) if s[2] < 2})
            cost = wrong if loss == "normalized_hamming" else differ
            margins.append(cost + score_of(model, x, y) - score_of(model, x, truth))
        hinges.append(max(margins))
    weights = (
        model.coef_,
        model.first_coef_,
        model.last_coef_,
        model.lengths_,
        model.transitions_,
        model.start_,
    )
    primal = sum((part**2).sum() for part in weights) / (2 * 2.0 * 3) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0 <= model.gap_ <= 1e-3


@pytest.mark.long
def test_k_best_segmentations_have_the_margins_of_their_scores(learnt):
    model, few = learnt, [X[2], X[5], X[0]]  # the others have too many segmentations to list
    for x, first, (segments, margins) in zip(
        few, model.predict(few), model.predict_k_best(few, 20), strict=True
    ):
        assert segments[0] == first
        scores = {}
        for codes in all_segmentations(len(x), model.max_length_):
            inside = [(a, b, model.classes_[k]) for a, b, k in segments_of(codes) if k < 2]
            scores[tuple(inside)] = score_of(model, x, codes)
        expected = np.sort(list(scores.values()))[::-1][:20]
        assert [scores[tuple(some)] for some in segments] == pytest.approx(expected, abs=1e-10)
        assert margins == pytest.approx(expected[0] - expected, abs=1e-10)
        assert len(set(map(tuple, segments))) == len(expected)
    with pytest.raises(ValueError, match=r"^SegmentSVC: k must be an int >= 1, got 0"):
        model.predict_k_best(X, 0)


def test_no_segment_is_longer_than_asked_for():
    model = fitted(
        [["B-VP"] * len(x) for x in X[:2]] + TAGS[2:4], X[:4], max_length={"VP": 1, "NP": 2}, tol=0.5
    )
    assert all(stop - start <= {"VP": 1, "NP": 2}[k] for y in model.predict(X) for start, stop, k in y)
    assert fitted(max_length=6, tol=10.0).lengths_.shape == (3, 6)


def test_score_counts_whole_segments(learnt):
    model = learnt
    truth = [[(0, 3, "NP"), (3, 5, "VP")], *SEGMENTS[1:]]
    n = sum(map(len, SEGMENTS))
    assert model.score(X, truth) == pytest.approx((n - 1) / n)
    assert model.score(X, [[(0, 3, "XP")], *SEGMENTS[1:]]) == pytest.approx(2 * (n - 2) / (2 * n - 1))
    tags = [["B-NP", "I-NP", "I-NP", "B-VP", "I-VP"], *TAGS[1:]]
    assert model.score(X, tags) == chunk_f1(tags, model.predict_tags(X)) == pytest.approx((n - 1) / n)


def test_one_label_without_tokens_outside_learns_the_borders():
    """Word segmentation: what is to be learnt are the borders."""
    text, words = ["abab", "aba", "bababa"], [[(0, 2, 1), (2, 4, 1)], [(0, 2, 1), (2, 3, 1)], [(0, 1, 1)]]
    words[2] += [(1, 3, 1), (3, 5, 1), (5, 6, 1)]
    model = fitted(words, [[[letter] for letter in line] for line in text])
    assert model.predict([[["b"], ["a"], ["b"], ["a"], ["b"]]]) == [[(0, 1, 1), (1, 3, 1), (3, 5, 1)]]


def test_clones_pickles_and_threads_agree():
    model = fitted(n_jobs=2)
    assert pickle.loads(pickle.dumps(model)).predict(X) == SEGMENTS
    assert clone(model).fit(X, SEGMENTS).predict(X) == SEGMENTS


def test_a_search_for_C_scores_and_predicts():
    search = GridSearchCV(SegmentSVC(tol=0.1, random_state=0), {"C": [0.1, 10.0]}, cv=KFold(2))
    search.fit(X, TAGS)
    assert search.best_score_ > 0.3
    assert len(search.predict(X[:1])) == 1


def test_warm_start_goes_on():
    model = SegmentSVC(C=10.0, tol=0.0, max_iter=3, warm_start=True, random_state=0)
    gaps = []
    for _ in range(3):
        with pytest.warns(ConvergenceWarning, match="SegmentSVC: .* the gap is .*, above tol=0 "):
            model.fit(X, TAGS)
        gaps.append(model.gap_)
    assert gaps[2] < gaps[0]


REFUSED = [
    (X, SEGMENTS[:-1], {}, "y must be a list of the segments or tags of 6 sequences, got 5 items"),
    (
        X,
        [*SEGMENTS[:-1], [(0, 2, "VP")]],
        {},
        r"sequence 5 of y has the segment \(0, 2, 'VP'\), expected 0 <=",
    ),
    (X, [*TAGS[:-1], ["E-VP"]], {}, "sequence 5 of y has 'E-VP', expected the tags"),
    (
        X,
        TAGS,
        {"max_length": 2},
        r"segment \(0, 3, 'NP'\) of sequence 0 of y has 3 tokens, but max_length is 2",
    ),
    (X, TAGS, {"max_length": {"XP": 2}}, "max_length has the label 'XP', which is not in y"),
    (X, [["B-x"] * len(x) for x in X], {}, "y has one label and segments of one token only"),
    ([], [], {}, "X has no sequence"),
]


@pytest.mark.parametrize(("features", "y", "parameters", "message"), REFUSED)
def test_wrong_data_are_refused(features, y, parameters, message):
    with pytest.raises((TypeError, ValueError), match=f"^SegmentSVC: {message}") as caught:
        SegmentSVC(**parameters).fit(features, y)
    assert "\n" not in str(caught.value)


def test_wrong_parameters_and_use_before_fit_are_refused(learnt):
    with pytest.raises(NotFittedError):
        SegmentSVC().predict(X)
    for parameters in ({"loss": "f1"}, {"max_length": 0}, {"max_length": "long"}):
        with pytest.raises(
            ValueError, match=f"The '{next(iter(parameters))}' parameter of SegmentSVC must be"
        ):
            SegmentSVC(**parameters).fit(X, TAGS)
    with pytest.raises(TypeError, match=r"^SegmentSVC: sequence 0 of X is .*, but SegmentSVC was fitted on"):
        learnt.predict([np.ones((2, 2))])


def test_real_chunks_are_found(real_data):
    if not (real_data / "conll2000").is_dir():
        pytest.skip("needs CoNLL-2000: set MAXMARGIN_DATA")
    train_X, train_y, test_X, test_y = load_conll2000(data_home=real_data)
    model = SegmentSVC(C=0.1, tol=0.05, random_state=0).fit(train_X[:500], train_y[:500])
    # The commonest tag of each part of speech gives 0.77.
    assert model.score(test_X[:300], test_y[:300]) > 0.85


def bounds(model):
    return model.history_.dual.max(), model.history_.primal.min()


def assert_same_optimum(first, second):
    """Certified brackets of one minimum overlap."""
    (low, high), (other_low, other_high) = bounds(first), bounds(second)
    assert low <= other_high
    assert other_low <= high


@pytest.mark.long
def test_partial_fit_is_certified_for_all_sequences():
    order, parameters = [1, 2, 4, 0, 3, 5], {"C": 10.0, "tol": 1e-3, "random_state": 0}
    features, y = [X[i] for i in order], [SEGMENTS[i] for i in order]
    model = SegmentSVC(**parameters).partial_fit(features[:3], y[:3]).partial_fit(features[3:], y[3:])
    assert model.gap_ <= 1e-3
    assert model.predict(X) == SEGMENTS
    known = set(model.feature_names_)
    seen = [[[name for name in token if name in known] for token in x] for x in features]
    assert_same_optimum(model, fitted(y, seen, **parameters))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            [[(0, 1, "PP")]],
            "sequence 0 of y has the segment .*, expected a label of the first call",
        ),
        ([[(0, 4, "NP")]], "has 4 tokens, but max_length is 3; set max_length to at least 4"),
        (
            [[(0, 2, "NP"), (2, 3, "VP")]],
            "y has tokens outside of segments, but the first call had none",
        ),
    ],
)
def test_partial_fit_refuses_what_the_first_call_had_not(y, message):
    model = SegmentSVC(C=10.0, tol=10.0).partial_fit([X[0][:4], X[1]], [SEGMENTS[0], SEGMENTS[1]])
    with pytest.raises(ValueError, match=message):
        model.partial_fit([X[4][:4]], y)


def test_a_weight_of_two_is_a_sequence_that_occurs_twice():
    weighted = SegmentSVC(C=3.0, tol=5e-3, random_state=0)
    weighted.fit(X[:3], SEGMENTS[:3], sample_weight=[2, 1, 1])
    assert_same_optimum(weighted, fitted([SEGMENTS[0], *SEGMENTS[:3]], [X[0], *X[:3]], C=3.0, tol=5e-3))


def test_each_token_has_the_margin_of_its_segment(learnt):
    model = learnt
    for segments, margins, found in zip(
        model.predict(X), model.predict_margins(X), model._tag_margins(X), strict=True
    ):
        expected = np.full(len(found), np.inf)
        for (start, stop, _), margin in zip(segments, margins, strict=True):
            expected[start:stop] = margin
        np.testing.assert_array_equal(found, expected)

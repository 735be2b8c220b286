"""The estimator of dependency trees: forms of data, what it refuses, and how it works with scikit-learn."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from maxmargin import DependencySVC
from maxmargin.datasets import load_ud_ewt
from support.naive import all_trees

_rng = np.random.default_rng(0)
WORDS = [("the", "DET"), ("dog", "NOUN"), ("barks", "VERB"), ("loudly", "ADV")]
SENTENCES = [WORDS, WORDS[1:], WORDS[:3], WORDS[1:3], [WORDS[2]], [WORDS[2], WORDS[3]]]
HEADS = [[2, 3, 0, 3], [2, 0, 2], [2, 3, 0], [2, 0], [0], [0, 1]]


def _arcs(heads, rng):
    """Arcs whose first feature says, through noise, whether they are true."""
    truth = np.equal.outer(np.array(heads), np.arange(len(heads) + 1))
    return truth[:, :, None] * [1.0, 0.0] + 0.3 * rng.normal(size=(*truth.shape, 2))


X = [_arcs(heads, _rng) for heads in HEADS]


def fitted(features=X, heads=HEADS, **parameters):
    parameters = {"C": 1.0, "tol": 0.02, "random_state": 0} | parameters
    return DependencySVC(**parameters).fit(features, heads)


def score_of(model, x, y):
    return sum(x[j, h] @ model.coef_ for j, h in enumerate(y))


@pytest.mark.parametrize("kind", [{}, {"single_root": False}, {"projective": True}])
def test_predictions_have_the_highest_score(kind):
    model = fitted(**kind)
    allowed = {"single_root": True} | kind
    for x, predicted in zip(X, model.predict(X), strict=True):
        best = max(score_of(model, x, y) for y in all_trees(len(x), **allowed))
        assert score_of(model, x, predicted) == pytest.approx(best, abs=1e-12)
        assert predicted.dtype == np.int64


@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming"])
def test_the_certificate_is_that_of_an_enumeration(loss):
    C = 0.5
    model = fitted(C=C, loss=loss, tol=1e-3)
    hinges = []
    for x, truth in zip(X, HEADS, strict=True):
        cost = 1.0 if loss == "hamming" else 1.0 / len(x)
        hinges.append(
            max(
                cost * np.not_equal(truth, y).sum() + score_of(model, x, y) - score_of(model, x, truth)
                for y in all_trees(len(x), single_root=True)
            )
        )
    primal = (model.coef_**2).sum() / (2 * C * len(X)) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0 <= model.gap_ <= 1e-3


def test_arrays_and_sparse_matrices_agree():
    matrices = [scipy.sparse.csr_array(x.reshape(-1, 2)) for x in X]
    dense, sparse = fitted(), fitted(matrices)
    assert sparse.coef_ == pytest.approx(dense.coef_)
    for one, other in zip(dense.predict(X), sparse.predict(matrices), strict=True):
        np.testing.assert_array_equal(one, other)


def test_trees_are_learnt_from_words_and_tags():
    model = fitted(SENTENCES)
    assert model.score(SENTENCES, HEADS) == 1.0
    assert model.coef_.shape == (model.n_features_in_,)
    assert model.predict([[("The", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]])[0].tolist() == [2, 3, 0]
    assert fitted(SENTENCES, min_count=2).n_features_in_ < model.n_features_in_
    with pytest.raises(ValueError, match=r"^DependencySVC: no feature of X occurs in min_count=99 true arcs"):
        fitted(SENTENCES, min_count=99)


def test_score_is_the_share_of_right_heads():
    model = fitted()
    right = sum((np.array(a) == b).sum() for a, b in zip(HEADS, model.predict(X), strict=True))
    assert model.score(X, HEADS) == right / sum(map(len, HEADS))
    several = [[0] * len(heads) for heads in HEADS]
    assert model.score(X, several) == pytest.approx(len(X) / sum(map(len, HEADS)), abs=0.3)


def test_settings_changed_after_the_fit_do_not_disturb_it():
    model = fitted()
    expected = model.predict(X)
    model.set_params(single_root=False, projective=True)
    for found, same in zip(model.predict(X), expected, strict=True):
        np.testing.assert_array_equal(found, same)


def test_clones_pickles_and_threads_agree():
    model = fitted(SENTENCES, n_jobs=2)
    again = pickle.loads(pickle.dumps(model))
    same = clone(model).fit(SENTENCES, HEADS)
    for one, other, third in zip(*(m.predict(SENTENCES) for m in (model, again, same)), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def test_a_search_for_C_scores_and_predicts():
    search = GridSearchCV(DependencySVC(tol=0.1, random_state=0), {"C": [0.01, 1.0]}, cv=KFold(2))
    search.fit(SENTENCES, HEADS)
    assert search.best_score_ > 0.3
    assert search.predict(SENTENCES[:1])[0].shape == (4,)


def test_warm_start_goes_on():
    model = DependencySVC(C=1.0, tol=0.0, max_iter=3, warm_start=True, random_state=0)
    gaps = []
    for _ in range(3):
        with pytest.warns(ConvergenceWarning, match="DependencySVC: .* the gap is .*, above tol=0 "):
            model.fit(X, HEADS)
        gaps.append(model.gap_)
    assert gaps[2] < gaps[0]


REFUSED = [
    (X[0], HEADS, {}, r"X must be a list of sentences, .* if it is one sentence pass \[X\]"),
    ([], [], {}, "X has no sentence"),
    ([["the", "dog"]], [[2, 0]], {}, r"word 1 of sentence 0 of X is 'the', expected a pair \(word, tag\)"),
    (SENTENCES, HEADS[:-1], {}, "y must be a list of the heads of 6 sentences, got 5 items"),
    (SENTENCES, [*HEADS[:-1], [2, 1]], {}, "sentence 5 of y has a cycle above word 1"),
    (SENTENCES, [*HEADS[:-1], [0, 0]], {}, "sentence 5 of y has 2 words whose head is the root"),
    ([WORDS], [[3, 4, 0, 3]], {"projective": True}, "sentence 0 of y has crossing arcs"),
]


@pytest.mark.parametrize(("features", "heads", "parameters", "message"), REFUSED)
def test_wrong_data_are_refused(features, heads, parameters, message):
    with pytest.raises((TypeError, ValueError), match=f"^DependencySVC: ({message})") as caught:
        DependencySVC(**parameters).fit(features, heads)
    assert "\n" not in str(caught.value)


def test_other_features_than_those_of_fit_are_refused():
    with pytest.raises(NotFittedError):
        DependencySVC().predict(X)
    with pytest.raises(ValueError, match=r"^DependencySVC: arcs of X have 3 features, but .* fitted with 2"):
        fitted().predict([np.ones((1, 2, 3))])
    with pytest.raises(
        TypeError, match=r"^DependencySVC: X has words and tags, but .* with features of arcs"
    ):
        fitted().predict(SENTENCES)
    with pytest.raises(
        TypeError, match=r"^DependencySVC: X has features of arcs, but .* with words and tags"
    ):
        fitted(SENTENCES).predict(X)


def test_real_sentences_are_parsed(real_data):
    if not (real_data / "ud_ewt").is_dir():
        pytest.skip("needs the English Web Treebank: set MAXMARGIN_DATA")
    train, dev, _ = load_ud_ewt(data_home=real_data)
    model = DependencySVC(tol=0.5, random_state=0).fit(train.X[:1000], train.y[:1000])
    # Each word's head being the word before is right for a fifth of them.
    assert model.score(dev.X[:300], dev.y[:300]) > 0.75

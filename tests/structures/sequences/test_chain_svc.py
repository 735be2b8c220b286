"""The chain estimator: forms of data, its weights, and how it works with scikit-learn."""

import pickle
import warnings
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from maxmargin import ChainSVC
from maxmargin.estimators.parameters import METHODS

LENGTHS = [3, 1, 4, 2, 3, 5, 2, 4, 3, 1, 4, 2]
_rng = np.random.default_rng(0)
# Three labels that follow each other in a circle, seen through noise.
Y = [np.arange(first, first + length) % 3 for first, length in enumerate(LENGTHS)]
X = [np.eye(4)[labels] + 0.8 * _rng.normal(size=(len(labels), 4)) for labels in Y]
WORDS = [[f"w{label}" for label in labels] for labels in Y]
INDICATORS = [np.eye(3)[labels] for labels in Y]
NAMES = [[("verb", "noun", "adverb")[label] for label in labels] for labels in Y]


def fitted(features=X, labels=Y, **parameters):
    return ChainSVC(**({"C": 1.0, "tol": 0.05, "random_state": 0} | parameters)).fit(features, labels)


@cache
def expected_of(kind):
    """What all forms of the same features train."""
    return fitted({"real": X, "indicators": INDICATORS}[kind])


def flat(sequences):
    return np.concatenate([np.asarray(labels) for labels in sequences])


def assert_same_model(model, expected):
    assert model.classes_.tolist() == expected.classes_.tolist()
    for name in ("coef_", "transitions_", "start_", "end_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        scipy.sparse.csr_array,
        scipy.sparse.csr_matrix,
        scipy.sparse.coo_array,
        np.asfortranarray,
        lambda x: [{f"f{j}": v for j, v in enumerate(row)} for row in x],
    ],
    ids=["lists", "csr", "csr_matrix", "coo", "fortran", "dicts"],
)
def test_real_features_have_many_forms(convert):
    assert_same_model(fitted([convert(x) for x in X]), expected_of("real"))


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: [[f"f{j}" for j in np.flatnonzero(row)] for row in x],
        lambda x: [{f"f{j}" for j in np.flatnonzero(row)} for row in x],
        lambda x: [{f"f{j}": True for j in np.flatnonzero(row)} for row in x],
        lambda x: [{"f": str(row.argmax())} for row in x],
        scipy.sparse.csr_array,
    ],
    ids=["strings", "sets", "flags", "values", "csr"],
)
def test_indicators_have_many_forms(convert):
    # Names are numbered as they come, and so are the columns: the first sequence holds all, in order.
    assert_same_model(fitted([convert(x) for x in INDICATORS]), expected_of("indicators"))


def test_labels_have_many_forms():
    expected = expected_of("real")
    for labels in (
        [y.tolist() for y in Y],
        [tuple(y) for y in Y],
        [y.astype(np.int8) for y in Y],
        np.array(Y, dtype=object),
    ):
        assert_same_model(fitted(labels=labels), expected)
    shifted = fitted(labels=[10 * y - 5 for y in Y])
    assert shifted.classes_.tolist() == [-5, 5, 15]
    np.testing.assert_array_equal(flat(shifted.predict(X)), 10 * flat(expected.predict(X)) - 5)


def test_labels_are_sorted_strings():
    model = fitted(labels=NAMES)
    assert model.classes_.tolist() == ["adverb", "noun", "verb"]
    order = [2, 1, 0]  # of the numbered labels verb, noun, adverb
    expected = fitted(labels=[np.argsort(order)[y] for y in Y])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    predicted = model.predict(X)
    assert [len(labels) for labels in predicted] == LENGTHS
    assert set(flat(predicted)) <= {"adverb", "noun", "verb"}


def score_of(model, x, labels):
    """The score of a labelling, by its formula."""
    total = model.start_[labels[0]] + model.end_[labels[-1]]
    total += sum(model.coef_[label] @ row for label, row in zip(labels, x, strict=True))
    return total + sum(model.transitions_[a, b] for a, b in pairwise(labels))


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # perceptrons have no certificate
def test_predictions_have_the_highest_score(method):
    model = fitted(method=method, tol=0.1, max_iter=200)
    for x, predicted in zip(X, model.predict(X), strict=True):
        best = max(product(range(3), repeat=len(x)), key=lambda labels, x=x: score_of(model, x, labels))
        assert tuple(predicted) == best


COST = np.array([[0.0, 3.0, 1.0], [0.5, 0.0, 2.0], [1.0, 0.25, 0.0]])
LOSSES = {
    "normalized_hamming": ("normalized_hamming", lambda y, labels: np.mean(y != labels)),
    "hamming": ("hamming", lambda y, labels: np.sum(y != labels)),
    "matrix": (COST, lambda y, labels: COST[y, labels].mean()),
}


@pytest.mark.long
@pytest.mark.parametrize(("loss", "loss_of"), LOSSES.values(), ids=LOSSES)
def test_the_certificate_is_that_of_an_enumeration(loss, loss_of):
    C, n = 0.5, len(X)
    model = fitted(C=C, loss=loss, tol=5e-3, max_iter=5000)
    squares = sum((part**2).sum() for part in (model.coef_, model.transitions_, model.start_, model.end_))
    hinges = [
        max(
            loss_of(y, np.array(labels)) + score_of(model, x, labels) - score_of(model, x, y)
            for labels in product(range(3), repeat=len(y))
        )
        for x, y in zip(X, Y, strict=True)
    ]
    primal = squares / (2 * C * n) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert model.gap_ == model.history_.primal.min() - model.history_.dual.max()
    assert 0 <= model.gap_ <= 5e-3
    assert model.n_iter_ == model.history_.passes[-1]


def test_what_follows_what_is_learnt():
    model = fitted()
    np.testing.assert_array_equal(model.transitions_.argmax(axis=1), [1, 2, 0])
    assert model.score(X, Y) > 0.9


def test_weights_have_shapes_and_names():
    model = fitted(WORDS_AS_TOKENS, NAMES)
    assert model.feature_names_ == ["w0", "w1", "w2"]
    assert model.n_features_in_ == 3
    assert model.coef_.shape == model.transitions_.shape == (3, 3)
    assert model.start_.shape == model.end_.shape == (3,)
    assert fitted().feature_names_ is None
    assert fitted().n_features_in_ == 4


WORDS_AS_TOKENS = [[[word] for word in words] for words in WORDS]


def test_rare_names_are_ignored():
    odd = [
        [[*token, "once"] if (i, t) == (0, 0) else token for t, token in enumerate(words)]
        for i, words in enumerate(WORDS_AS_TOKENS)
    ]
    assert_same_model(fitted(odd, min_count=2), fitted(WORDS_AS_TOKENS))


def test_equal_losses_train_the_same():
    assert_same_model(fitted(loss=1.0 - np.eye(3)), fitted(loss="normalized_hamming"))


def test_score_is_the_share_of_tokens():
    model = fitted()
    right = flat(model.predict(X)) == flat(Y)
    assert model.score(X, Y) == pytest.approx(right.mean())


def test_labels_unknown_to_fit_count_as_wrong():
    model = fitted()
    truth = [y.copy() for y in Y]
    truth[2][:] = 99
    right = np.concatenate([p == t for p, t in zip(model.predict(X), truth, strict=True)])
    assert model.score(X, truth) == pytest.approx(right.mean())
    words = fitted(WORDS_AS_TOKENS, NAMES)
    assert words.score(WORDS_AS_TOKENS[:1], [["noun", "verb", "interjection"]]) <= 1 / 3
    assert words.score(WORDS_AS_TOKENS[:1], [["a rather long label"] * 3]) == 0.0


def test_seed_decides_the_fit():
    one, same, other = (fitted(tol=0.2, random_state=seed).coef_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_fit_forgets_the_last_fit():
    model = fitted(WORDS_AS_TOKENS, NAMES)
    assert_same_model(model.fit(X, Y), fitted())
    assert model.feature_names_ is None


def test_data_are_not_changed():
    copies = [x.copy() for x in X], [y.copy() for y in Y]
    fitted().predict(X)
    for before, after in zip((*copies[0], *copies[1]), (*X, *Y), strict=True):
        np.testing.assert_array_equal(before, after)


def test_clones_keep_the_parameters():
    model = ChainSVC(C=3.0, loss="hamming", min_count=2, method="fw", sampling="uniform", verbose=0)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(fitted()), "coef_")
    assert repr(ChainSVC(C=3.0)) == "ChainSVC(C=3.0)"


def test_a_pickle_predicts_the_same():
    model = fitted(WORDS_AS_TOKENS, NAMES)
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(again.predict(WORDS_AS_TOKENS), model.predict(WORDS_AS_TOKENS), strict=True):
        np.testing.assert_array_equal(one, other)
    assert_same_model(again, model)
    assert again.gap_ == model.gap_
    assert list(again.history_) == list(model.history_)


def test_grid_search_scores_as_by_hand():
    model = ChainSVC(tol=0.1, max_iter=1000, random_state=0)
    search = GridSearchCV(model, {"C": [1e-3, 1.0]}, cv=3).fit(X, Y)
    by_hand = []
    for train, test in KFold(3).split(X):
        part = clone(model).set_params(C=1.0).fit([X[i] for i in train], [Y[i] for i in train])
        by_hand.append(part.score([X[i] for i in test], [Y[i] for i in test]))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))
    assert len(search.predict(X[:2])) == 2


def test_folds_that_lack_a_label_have_scores():
    # The only sequences with label 3 are the last two: one fold trains without it.
    labels = [*Y[:-2], np.full(4, 3), np.full(2, 3)]
    scores = cross_val_score(ChainSVC(tol=0.1, max_iter=1000, random_state=0), X, labels, cv=KFold(6))
    assert np.isfinite(scores).all()
    assert scores[-1] == 0.0


def words_of(sentences):
    return [[[f"w{label}"] for label in sentence] for sentence in sentences]


def test_a_pipeline_trains_the_same_model():
    pipeline = make_pipeline(FunctionTransformer(words_of), ChainSVC(C=1.0, tol=0.05, random_state=0))
    pipeline.fit(Y, NAMES)
    assert_same_model(pipeline[-1], fitted(WORDS_AS_TOKENS, NAMES))
    assert pipeline.score(Y, NAMES) == 1.0


def test_warning_names_the_gap_and_the_line():
    model = ChainSVC(tol=1e-9, max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    (warning,) = caught
    assert str(warning.message) == (
        "ChainSVC: the limit of passes was reached before the gap was small enough: "
        f"after 3 passes the gap is {model.gap_:.3g}, above tol=1e-09 times the objective "
        f"{model.history_.primal.min():.4g}; "
        "raise max_iter or tol, or lower C."
    )
    assert warning.filename == __file__


def test_the_time_limit_warns():
    with pytest.warns(
        ConvergenceWarning,
        match=r"after 0 passes there is no certificate; raise time_limit or tol, or lower C",
    ) as caught:
        ChainSVC(tol=0.0, max_iter=10**6, time_limit=1e-6).fit(X, Y)
    assert str(caught[0].message).startswith("ChainSVC: the time limit was reached before")


def test_no_warning_is_given_if_converged():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted().gap_ <= 0.05


@pytest.mark.parametrize("use", [lambda m: m.predict(X), lambda m: m.score(X, Y), lambda m: m.coef_])
def test_an_estimator_must_be_fitted(use):
    with pytest.raises((NotFittedError, AttributeError), match=r"ChainSVC.* not fitted yet") as caught:
        use(ChainSVC())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("X", [np.str_("a"), np.array("a"), np.float64(3.0)])
def test_weights_must_be_a_list(X: object) -> None:
    with pytest.raises(TypeError, match=r"^ChainSVC: .+$"):
        ChainSVC().fit(X, [["A"]], sample_weight=[1.0])

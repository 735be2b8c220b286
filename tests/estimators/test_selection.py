"""C, chosen by cross-validation."""

import math

import numpy as np
import pytest
from scipy.stats import rankdata, sem
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold

import maxmargin
from maxmargin import ChainSVC, CrossValidated, MulticlassSVC, MultilabelSVC
from maxmargin.estimators import selection
from support.estimators import KINDS

VALUES = [0.03, 0.1, 1.0]


def rows(seed=0, n=90):
    """Return three classes that overlap, in noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 6)) + 1.2 * np.eye(3, 6)[y], y


def pairs_of(y, k=3):
    return list(StratifiedKFold(k, shuffle=True, random_state=5).split(y[:, None], y))


@pytest.fixture
def to_the_end(monkeypatch):
    """Train the folds as far as `fit` does, so that scores can be compared with others."""
    monkeypatch.setattr(selection, "_COARSER", 1.0)
    monkeypatch.setattr(selection, "_COARSE", 0.0)


def scores_of(model):
    return np.array([column for name, column in model.cv_results_.items() if name.startswith("split")])


def test_scores_are_those_of_a_grid_search(to_the_end, monkeypatch):
    monkeypatch.setattr(selection, "_ERRORS", math.inf)  # all folds of all values
    X, y = rows(n=30)
    pairs = pairs_of(y)
    model = MulticlassSVC(C=CrossValidated(VALUES, pairs), tol=1e-3, random_state=0).fit(X, y)
    grid = GridSearchCV(MulticlassSVC(tol=1e-3, random_state=0), {"C": VALUES}, cv=pairs).fit(X, y)
    found, expected = model.cv_results_, grid.cv_results_
    assert found["params"] == expected["params"]
    assert set(found) == set(expected)
    for name in ("mean_test_score", "split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_allclose(1.0 + found[name], expected[name])
    np.testing.assert_allclose(found["std_test_score"], expected["std_test_score"])
    assert found["rank_test_score"].tolist() == rankdata(-found["mean_test_score"], "min").tolist()


def test_the_model_is_that_of_the_chosen_number():
    X, y = rows()
    chosen = MulticlassSVC(C="auto", random_state=0).fit(X, y)
    again = MulticlassSVC(C=chosen.C_, random_state=0).fit(X, y)
    assert (chosen.coef_ == again.coef_).all()
    assert not hasattr(again, "cv_results_")


def test_the_largest_score_is_chosen_and_the_smallest_C_of_several():
    X, y = rows()
    model = MulticlassSVC(C="auto", random_state=0).fit(X, y)
    table = model.cv_results_
    best = np.nanmax(table["mean_test_score"])
    assert table["param_C"][table["mean_test_score"] == best].min() == model.C_
    assert (np.diff(table["param_C"]) > 0.0).all()


def test_values_are_tried_upwards_until_the_score_no_longer_rises(monkeypatch):
    """What tells the classes apart is on a small scale, so that the default is far too small."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = np.column_stack([0.1 * y, rng.normal(size=(120, 5))])
    monkeypatch.setattr(MulticlassSVC, "_as_number", lambda self, value, examples: 1.0)
    model = MulticlassSVC(C="auto", random_state=0).fit(X, y)
    table = model.cv_results_
    np.testing.assert_allclose(table["param_C"], [0.333, *3.0 ** np.arange(len(table["params"]) - 1)])
    assert len(table["params"]) > 3
    assert (np.diff(table["mean_test_score"][:-1]) > 0.0).all()
    assert model.C_ in table["param_C"][-2:]


def test_values_are_tried_downwards_as_long_as_the_smallest_is_best(monkeypatch):
    monkeypatch.setattr(MulticlassSVC, "_as_number", lambda self, value, examples: 100.0)
    rng = np.random.default_rng(0)
    X, y = rows()
    model = MulticlassSVC(C="auto", random_state=0).fit(np.hstack([X, rng.normal(size=(90, 60))]), y)
    tried = model.cv_results_["param_C"]
    assert tried[-1] == 100.0
    np.testing.assert_allclose(tried[1:] / tried[:-1], 3.0, rtol=1e-2)
    assert len(tried) > 2
    assert tried[0] <= model.C_ <= 33.3


def test_one_standard_error_chooses_the_smallest_C_within_it():
    X, y = rows(1)
    model = MulticlassSVC(C=CrossValidated(one_standard_error=True), random_state=0).fit(X, y)
    table, scores = model.cv_results_, scores_of(model)
    means = scores.mean(axis=0)
    best = np.nanargmax(means)
    within = means >= means[best] - sem(scores[:, best])
    assert table["param_C"][within].min() == model.C_
    assert not within[0]  # smaller values were tried until one was beyond


@pytest.mark.parametrize("errors", [1.0, 2.0])
def test_standard_errors_are_those_of_differences(errors):
    rng, weights = np.random.default_rng(0), np.ones(30)
    fold = selection.Fold(None, 60, 1.0, None, weights)  # type: ignore[arg-type]
    search = selection._Search.__new__(selection._Search)
    search._folds = [fold, fold]
    for shift in np.linspace(0.0, 0.05, 21):
        best = rng.normal(size=(2, 30))
        losses = best + 0.1 * rng.normal(size=(2, 30)) + shift
        difference = np.concatenate(list(losses - best))
        trial = selection.Trial(1.0, None, list(best), np.zeros(2), np.zeros((2, 2)), [])
        expected = difference.mean() > errors * sem(difference, ddof=0)
        assert search._is_worse(list(losses), trial, errors) == expected


def test_a_fold_that_is_not_needed_is_not_trained():
    X, y = rows(n=150)
    y = np.where(np.arange(150) % 4, y, (y + 1) % 3)  # a quarter is wrong
    X = np.hstack([X, np.random.default_rng(1).normal(size=(150, 60))])
    model = MulticlassSVC(C=CrossValidated([0.003, 30.0, 90.0], 5), tol=0.1, random_state=0).fit(X, y)
    last = scores_of(model)[:, -1]
    assert math.isfinite(last[0])
    assert np.isnan(last[-1])
    assert len(model.cv_results_["param_C"]) == 2  # larger values are not tried
    assert np.isnan(model.cv_results_["mean_test_score"][-1])
    assert model.cv_results_["rank_test_score"].tolist() == [1, 2]


def test_threads_do_not_change_what_is_chosen():
    X, y = rows(n=120)
    options = CrossValidated([0.01, 0.1, 10.0], 4)
    one, three = (MulticlassSVC(C=options, random_state=0, n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(scores_of(one), scores_of(three))
    assert one.C_ == three.C_


def test_a_seed_gives_the_same_folds():
    X, y = rows()
    first, again, other = (MulticlassSVC(C="auto", random_state=seed).fit(X, y) for seed in (3, 3, 4))
    np.testing.assert_array_equal(scores_of(first), scores_of(again))
    assert first.C_ == again.C_
    assert not np.array_equal(scores_of(first)[:, 0], scores_of(other)[:, 0])


def test_an_example_of_weight_two_is_one_that_occurs_twice(to_the_end):
    X, y = rows(n=45)
    weights = 1.0 + np.arange(45) % 2
    twice = np.repeat(np.arange(45), weights.astype(int))
    pairs = pairs_of(y)
    places = [np.flatnonzero(twice == i) for i in range(45)]
    repeated = [tuple(np.concatenate([places[i] for i in part]) for part in pair) for pair in pairs]
    by_weight = MulticlassSVC(C=CrossValidated(VALUES, pairs), tol=1e-3, random_state=0)
    by_weight.fit(X, y, sample_weight=weights)
    copied = MulticlassSVC(C=CrossValidated(VALUES, repeated), tol=1e-3, random_state=0)
    copied.fit(X[twice], y[twice])
    np.testing.assert_allclose(scores_of(by_weight)[:, :2], scores_of(copied)[:, :2])
    assert by_weight.C_ == copied.C_


def test_groups_stay_together():
    """Examples of a group are copies: if copies are in other folds, the largest C is best."""
    rng = np.random.default_rng(0)
    X, y, groups = (
        np.repeat(rng.normal(size=(24, 40)), 3, axis=0),
        np.repeat(np.arange(24) % 2, 3),
        np.repeat(np.arange(24), 3),
    )
    pairs = list(GroupKFold(4).split(X, y, groups))
    apart = MulticlassSVC(C=CrossValidated([0.1, 1.0], pairs), random_state=0).fit(X, y)
    mixed = MulticlassSVC(C=CrossValidated([0.1, 1.0], 4), random_state=0).fit(X, y)
    assert scores_of(mixed)[:, -1].min() > -0.01
    assert scores_of(apart)[0, 0] < -0.2


def test_a_splitter_gets_the_labels_of_single_examples():
    X, y = rows()
    splitter = StratifiedKFold(3, shuffle=True, random_state=5)
    by_splitter = MulticlassSVC(C=CrossValidated(VALUES, splitter), random_state=0).fit(X, y)
    by_pairs = MulticlassSVC(C=CrossValidated(VALUES, pairs_of(y)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(scores_of(by_splitter), scores_of(by_pairs))


@pytest.mark.parametrize("name", KINDS)
def test_every_estimator_chooses_C(name):
    kind = KINDS[name]
    model = kind.new(C=CrossValidated(cv=2), max_iter=30)
    model.fit(kind.X, kind.y)
    assert model.C_ in model.cv_results_["param_C"]
    assert "C=CrossValidated(" in repr(clone(model))
    assert clone(model).fit(kind.X, kind.y).C_ == model.C_


def test_kernels_choose_C_around_one():
    X, y = rows(n=60)
    model = MulticlassSVC(kernel="rbf", C="auto", random_state=0).fit(X, y)
    assert 1.0 in model.cv_results_["param_C"]
    chain = ChainSVC(kernel="rbf", C="auto", random_state=0).fit(list(X[:, None]), list(y[:, None]))
    assert 1.0 in chain.cv_results_["param_C"]


def test_a_fold_with_a_single_class_is_no_error():
    X, y = rows(n=30)
    pairs = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(3)]
    model = MulticlassSVC(C=CrossValidated([0.1, 1.0], pairs), random_state=0).fit(X, y)
    assert (scores_of(model)[:, 0] < -0.8).all()  # no model has seen examples of its class
    single = MulticlassSVC(C=CrossValidated([0.1], [(np.arange(3) * 3, y != 0)] * 2), random_state=0)
    with pytest.raises(ValueError, match="cv must be two or more pairs of arrays of ints"):
        single.fit(X, y)


def test_later_calls_of_partial_fit_keep_C():
    X, y = rows(n=120)
    model = MulticlassSVC(C="auto", random_state=0).partial_fit(X[:60], y[:60])
    first, table = model.C_, model.cv_results_
    model.partial_fit(X[60:], y[60:])
    assert first == model.C_
    assert model.cv_results_ is table
    assert not hasattr(model.set_params(C=1.0).fit(X, y), "cv_results_")


def test_model_files_hold_the_search(tmp_path):
    X, y = rows()
    model = MulticlassSVC(C=CrossValidated([0.1, 1.0, 10.0], 4), tol=0.1, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    loaded = maxmargin.load(tmp_path / "model")
    assert loaded.C_ == model.C_
    assert loaded.cv_results_.keys() == model.cv_results_.keys()
    for name, column in model.cv_results_.items():
        np.testing.assert_array_equal(loaded.cv_results_[name], column)
    assert loaded.C == "scale"  # an object is left out of files
    auto = MulticlassSVC(C="auto", random_state=0).fit(X, y)
    auto.save(tmp_path / "auto")
    assert maxmargin.load(tmp_path / "auto").C == "auto"


def test_a_limit_of_time_ends_the_search():
    X, y = rows()
    with pytest.warns(UserWarning, match="time limit"):
        model = MulticlassSVC(C="auto", time_limit=1e-9, random_state=0).fit(X, y)
    assert model.C_ == MulticlassSVC(random_state=0).fit(X, y).C_
    assert len(model.cv_results_["param_C"]) == 0


def test_an_interrupt_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = rows()
    model = MulticlassSVC(C="auto", random_state=0).fit(X, y)
    state = dict(vars(model))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(selection, "solve", interrupted)
    for n_jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            model.set_params(n_jobs=n_jobs).fit(X, y)
        assert vars(model.set_params(n_jobs=None)) == state


def test_callbacks_are_called_for_the_model_alone():
    X, y = rows()
    seen = []
    model = MulticlassSVC(C="auto", random_state=0, callbacks=[seen.append]).fit(X, y)
    again = []
    MulticlassSVC(C=model.C_, random_state=0, callbacks=[again.append]).fit(X, y)
    assert len(seen) == len(again)


def test_a_log_says_what_is_tried(monkeypatch, capsys):
    monkeypatch.setattr("maxmargin.solving.display._DELAY", 0.0)
    X, y = rows()
    MulticlassSVC(C=CrossValidated([0.125]), random_state=0, verbose=2).fit(X, y)
    assert "MulticlassSVC: C = 0.125, fold 1 of 3: pass " in capsys.readouterr().err


def test_a_checkpoint_continues_with_the_same_C(tmp_path):
    X, y = rows()
    file = str(tmp_path / "checkpoint")
    model = MulticlassSVC(C="auto", random_state=0, checkpoint=file).fit(X, y)
    again = MulticlassSVC(C="auto", random_state=0, checkpoint=file).fit(X, y)
    assert (again.coef_ == model.coef_).all()
    with pytest.raises(ValueError, match=r"^MulticlassSVC: random_state must be an int where C is chosen"):
        MulticlassSVC(C="auto", checkpoint=file).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cv": 1}, "cv must be an int >= 2, a splitter or a list of pairs of arrays, got 1"),
        ({"cv": "ten"}, "cv must be an int >= 2, a splitter or a list of pairs of arrays, got 'ten'"),
        ({"Cs": []}, "Cs must be one or more numbers > 0, got an empty list"),
        ({"Cs": [1.0, -1.0]}, r"Cs must be one or more numbers > 0, got -1.0"),
        ({"l1_ratios": [0.5, 1.0]}, r"l1_ratios must be one or more numbers in \[0, 1\), got 1.0"),
        ({"Cs": [math.inf]}, r"Cs must be one or more numbers > 0, got inf"),
    ],
)
def test_options_are_checked(arguments, message):
    with pytest.raises(ValueError, match=f"^CrossValidated: {message}"):
        CrossValidated(**arguments)


def test_too_few_examples_and_folds_of_others_are_refused():
    X, y = rows(n=30)
    with pytest.raises(
        ValueError, match=r"^MulticlassSVC: C must be a number where there are fewer examples"
    ):
        MulticlassSVC(C="auto").fit(X[:2], y[:2])
    pairs = pairs_of(y)
    with pytest.raises(ValueError, match=r"numbers, from 0 to 28, of the 29 examples"):
        MulticlassSVC(C=CrossValidated(cv=pairs)).fit(X, y, sample_weight=np.arange(30))
    with pytest.raises(ValueError, match=r"^MulticlassSVC: The 'groups' parameter"):
        MulticlassSVC(C=CrossValidated(cv=GroupKFold(3))).fit(X, y)
    with pytest.raises(ValueError, match=r"The 'C' parameter of MulticlassSVC must be"):
        MulticlassSVC(C="best").fit(X, y)


def test_the_share_of_the_L1_norm_is_chosen_together_with_C(tmp_path, to_the_end):
    rng = np.random.default_rng(0)
    X, y = rows(n=45)
    X, pairs = np.hstack([X, rng.normal(size=(45, 20))]), pairs_of(y)
    options = CrossValidated([0.1, 1.0], l1_ratios=[0.6, 0.0], cv=pairs)
    model = MulticlassSVC(C=options, tol=1e-3, random_state=0).fit(X, y)
    found = model.cv_results_
    assert found["params"][:2] == [{"C": 0.1, "l1_ratio": 0.0}, {"C": 1.0, "l1_ratio": 0.0}]
    assert set(found["param_l1_ratio"]) == {0.0, 0.6}
    for k, parameters in enumerate(found["params"]):
        one = MulticlassSVC(**parameters, tol=1e-3, random_state=0)
        for j, (a, b) in enumerate(pairs):
            score = found[f"split{j}_test_score"][k]
            assert math.isnan(score) or abs(1.0 + score - one.fit(X[a], y[a]).score(X[b], y[b])) < 0.07
    best = found["params"][np.nanargmax(found["mean_test_score"])]
    assert (model.C_, model.l1_ratio_) == (best["C"], best["l1_ratio"])
    again = MulticlassSVC(**best, tol=1e-3, random_state=0).fit(X, y)
    assert (model.coef_ == again.coef_).all()
    assert model.l1_ratio is None  # the user's
    model.save(tmp_path / "model")
    loaded = maxmargin.load(tmp_path / "model")
    assert loaded.l1_ratio_ == model.l1_ratio_
    assert loaded.cv_results_["params"] == found["params"]
    assert not hasattr(model.set_params(C=0.1).fit(X, y), "l1_ratio_")


def test_later_calls_of_partial_fit_keep_the_share_of_the_L1_norm():
    X, y = rows(n=90)
    options = CrossValidated([0.3], l1_ratios=[0.5])
    model = MulticlassSVC(C=options, random_state=0).partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    whole = (
        MulticlassSVC(C=0.3, l1_ratio=0.5, random_state=0)
        .partial_fit(X[:60], y[:60])
        .partial_fit(X[60:], y[60:])
    )
    assert (model.coef_ == whole.coef_).all()


def test_splits_that_can_be_read_once_are_kept():
    X, y = rows()
    options = CrossValidated(cv=KFold(3).split(X))
    models = [MulticlassSVC(C=options, random_state=0).fit(X, y) for _ in range(2)]
    assert models[0].C_ == models[1].C_


def test_sets_of_labels_are_right_as_a_whole_or_wrong(to_the_end):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(30, 3)) > 0.0).astype(int)
    pairs = list(KFold(3).split(X))
    model = MultilabelSVC(C=CrossValidated([0.1], pairs), tol=1e-3, random_state=0).fit(X, Y)
    single = MultilabelSVC(C=0.1, tol=1e-3, random_state=0)
    right = [single.fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in pairs]
    np.testing.assert_allclose(1.0 + scores_of(model)[:, 0], right)

"""Probabilities of estimators: their form, the temperature and where it comes from."""

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from maxmargin import ChainSVC, GraphSVC, MatchingSVC, MulticlassSVC, MultilabelSVC, SegmentSVC, StructuredSVC
from maxmargin.estimators import confidence, estimator
from maxmargin.methods.rules import n_visits
from maxmargin.runtime import limits
from maxmargin.solving import objective, run
from maxmargin.solving.decoding import part_shapes
from support.estimators import KINDS

NAMES = ("multiclass", "chain", "segments", "dependency", "graph", "multilabel")
LISTS = ("chain", "segments", "dependency", "graph")


def words(seed: int, n: int = 12, n_labels: int = 3) -> tuple[Any, Any]:
    """Return sequences whose labels depend on their features, with some noise."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 6), 3)) for _ in range(n)]
    return X, [(x[:, :n_labels] + 0.7 * rng.normal(size=(len(x), n_labels))).argmax(axis=1) for x in X]


def drawn(rng: np.random.Generator, p: Any) -> Any:
    """Draw a state for each row of probabilities."""
    return (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)


def kernel_values(model: Any, X: Any) -> Any:
    """Return the values of scikit-learn's Gaussian kernel, with the default gamma, at support vectors."""
    return rbf_kernel(X, X[model.support_], gamma=1.0 / (X.shape[1] * X.var()))


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_has_the_form_of_the_examples(name: str) -> None:
    kind = KINDS[name]
    model = (
        kind.new(**({"structure": "tree"} if name == "multilabel" else {}))
        .fit(kind.X, kind.y)
        .calibrate(kind.X, kind.y)
    )
    assert model.temperature_ > 0.0
    found = model.predict_marginals(kind.X)
    n_states = {"dependency": 4, "graph": 2}.get(name, 3)
    assert len(found) == len(kind.X)
    for p in found if name in LISTS else [found]:
        assert p.shape[1] == n_states
        assert ((p >= 0.0) & (p <= 1.0)).all()
        if name != "multilabel":
            assert p.sum(axis=1) == pytest.approx(np.ones(len(p)), abs=1e-12)
    threaded = model.set_params(n_jobs=2).predict_marginals(kind.X)
    assert all((a == b).all() for a, b in zip(found, threaded, strict=True))


@pytest.mark.parametrize("name", LISTS)
def test_no_examples_have_no_probabilities(name: str) -> None:
    kind = KINDS[name]
    assert kind.new().fit(kind.X, kind.y).calibrate(kind.X, kind.y).predict_marginals([]) == []


@pytest.mark.parametrize("name", NAMES)
def test_without_a_temperature_the_error_says_what_to_do(name: str) -> None:
    kind = KINDS[name]
    model = kind.new().fit(kind.X, kind.y)
    advice = r"call calibrate\(X, y\) .* or fit with probability=True"
    with pytest.raises(NotFittedError, match=advice) as caught:
        model.predict_marginals(kind.X)
    assert str(caught.value).startswith(f"{type(model).__name__}: ")
    assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError):
        kind.new().calibrate(kind.X, kind.y)


@pytest.mark.parametrize("make", [MulticlassSVC, MultilabelSVC])
def test_predict_proba_is_there_only_with_probabilities(make: Any) -> None:
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2
    model = make(verbose=0, random_state=0)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        _ = model.fit(X, y).predict_proba
    assert f"{make.__name__}: predict_proba is not available" in str(caught.value.__cause__)
    assert hasattr(make(probability=True), "predict_proba")
    assert model.calibrate(X, y).predict_proba(X).shape == (9, 2)
    assert (model.predict_proba(X) == model.predict_marginals(X)).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multiclass_is_a_softmax_of_scores(kernel: str, n_classes: int, fit_intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 3)), np.array(["a", "b", "c", "d"])[np.arange(20) % n_classes]
    model = MulticlassSVC(kernel=kernel, fit_intercept=fit_intercept, verbose=0, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    scores = scores if n_classes > 2 else np.column_stack([0.0 * scores, scores])
    model.calibrate(X, y)
    assert model.predict_proba(X) == pytest.approx(softmax(scores / model.temperature_, axis=1), abs=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_independent_labels_are_logistic(kernel: str) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(10, 3)), rng.integers(0, 2, (10, 3))
    y[:2] = [[0, 0, 0], [1, 1, 1]]
    model = MultilabelSVC(structure="independent", kernel=kernel, verbose=0, random_state=0).fit(X, y)
    model.calibrate(X, y)
    values = X @ model.coef_.T if kernel == "linear" else kernel_values(model, X) @ model.dual_coef_.T
    expected = expit((values + model.intercept_) / model.temperature_)
    assert model.predict_proba(X) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_at_a_low_temperature_the_prediction_is_certain(order: int) -> None:
    X, y = words(3, 6)
    y = [np.sort(labels)[::-1] for labels in y]
    model = ChainSVC(order=order, forbidden=[(0, 1)], verbose=0, random_state=0).fit(X, y).calibrate(X, y)
    model.temperature_ = 1e-6
    for p, labels in zip(model.predict_marginals(X), model.predict(X), strict=True):
        assert (model.classes_[p.argmax(axis=1)] == labels).all()
        assert p.max(axis=1) == pytest.approx(np.ones(len(p)), abs=1e-9)


@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_the_temperature_of_a_gibbs_distribution_is_found(temperature: float) -> None:
    """Labels are drawn from marginals: the likelihood of single tokens does not depend on how they concur."""
    rng = np.random.default_rng(4)
    model = ChainSVC(C=10.0, loss="hamming", verbose=0, random_state=0).fit(*words(4))
    X, _ = words(5, 300)
    model.temperature_ = temperature
    y = [model.classes_[drawn(rng, p)] for p in model.predict_marginals(X)]
    assert model.calibrate(X, y).temperature_ == pytest.approx(temperature, rel=0.15)


def test_units_of_scores_are_units_of_temperature() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y, temperatures = (X + rng.normal(size=(60, 3))).argmax(axis=1), []
    for unit in (1e-3, 1.0, 1e6):
        model = MulticlassSVC(fit_intercept=False, verbose=0, random_state=0).fit(X, y)
        model._w = unit * model._w
        temperatures.append(model.calibrate(X, y).temperature_ / unit)
    assert temperatures == pytest.approx([temperatures[0]] * 3, rel=1e-6)


def test_one_mistake_is_never_ruled_out() -> None:
    """Where all predictions are right, no temperature is too low for the likelihood alone."""
    X, y = np.array([[-1.0], [1.0]] * 20), [0, 1] * 20
    model = MulticlassSVC(verbose=0, random_state=0).fit(X, y).calibrate(X, y)
    assert model.predict_proba(X).max(axis=1) == pytest.approx(np.full(40, 40 / 41), abs=1e-3)


def test_without_scores_the_temperature_is_one() -> None:
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    model = MulticlassSVC(fit_intercept=False, verbose=0, random_state=0).fit(X, y).calibrate(X, y)
    assert model.temperature_ == 1.0
    assert model.predict_proba(X) == pytest.approx(np.full((4, 2), 0.5), abs=1e-12)


def test_unknown_labels_are_left_out() -> None:
    (X, y), (X_new, y_new) = words(6, 5), words(7, 5)
    model = ChainSVC(verbose=0, random_state=0).fit(X, y)
    expected = model.calibrate(X_new, y_new).temperature_
    longer = [*X_new, X_new[0][:1]], [*y_new, [99]]
    assert model.calibrate(*longer).temperature_ == pytest.approx(expected, rel=2e-3)
    expected = model.temperature_
    with pytest.raises(ValueError, match="ChainSVC: y must have labels that fit has seen, got none"):
        model.calibrate(X_new[:1], [[99] * len(X_new[0])])
    assert model.temperature_ == expected
    segments = SegmentSVC(verbose=0, random_state=0).fit(X[:2], [[(0, 1, "A")], [(0, 1, "B")]])
    tokens = [x[:1] for x in X]
    some = segments.calibrate(tokens[:3], [[(0, 1, "A")], [(0, 1, "B")], []]).temperature_
    unknown = [[(0, 1, "A")], [(0, 1, "B")], [], [(0, 1, "Z")]]
    assert segments.calibrate(tokens[:4], unknown).temperature_ == pytest.approx(some, rel=2e-3)


@pytest.mark.parametrize(("weighted", "kernel"), [(False, "linear"), (True, "linear"), (False, "rbf")])
def test_probability_is_calibration_on_folds(weighted: bool, kernel: str) -> None:
    X, y = words(8, 7)
    weights = np.random.default_rng(8).uniform(0.5, 2.0, 7) if weighted else np.ones(7)
    model = ChainSVC(kernel=kernel, gamma=0.5, verbose=0, random_state=7)
    folds = []
    for train, test in KFold(5, shuffle=True, random_state=7).split(X):
        given = {"sample_weight": weights[train]} if weighted else {}
        part = clone(model).fit([X[i] for i in train], [y[i] for i in train], **given)
        folds.append((part, [X[i] for i in test], np.concatenate([y[i] for i in test]), test))

    def loss(log_t: float) -> float:
        p, counts = [], []
        for part, X_test, truth, test in folds:
            part.temperature_ = np.exp(log_t)
            p.append(np.concatenate(part.predict_marginals(X_test))[np.arange(len(truth)), truth])
            counts.append(np.repeat(weights[test], [len(x) for x in X_test]))
        p, counts = np.concatenate(p), np.concatenate(counts)
        return -float(counts @ np.log(p) + counts @ np.log(np.maximum(1.0 - p, 1e-300)) / counts.sum())

    by_hand = np.exp(minimize_scalar(loss, bounds=(-5.0, 4.0), method="bounded").x)
    fitted = clone(model).set_params(probability=True).fit(X, y, sample_weight=weights if weighted else None)
    assert fitted.temperature_ == pytest.approx(by_hand, rel=5e-3)
    plain = clone(model).fit(X, y, sample_weight=weights if weighted else None)
    assert (fitted.transitions_ == plain.transitions_).all()


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        *((name, "linear") for name in NAMES),
        *((name, "rbf") for name in ("multiclass", "chain")),
        *(pytest.param(name, "rbf", marks=pytest.mark.long) for name in ("segments", "graph", "multilabel")),
    ],
)
def test_probability_works_with_every_model(name: str, kernel: str) -> None:
    kind = KINDS[name]
    parameters = {} if kernel == "linear" else {"kernel": kernel}
    model = kind.new(probability=True, tol=0.5, **parameters).fit(kind.X, kind.y)
    assert model.temperature_ > 0.0
    found = pickle.loads(pickle.dumps(model)).predict_marginals(kind.X)
    assert all((a == b).all() for a, b in zip(found, model.predict_marginals(kind.X), strict=True))


def test_fit_forgets_the_temperature_and_partial_fit_finds_another() -> None:
    X, y = words(9, 6)
    model = ChainSVC(verbose=0, random_state=0).fit(X, y).calibrate(X, y)
    assert not hasattr(model.fit(X, y), "temperature_")
    model = ChainSVC(probability=True, verbose=0, random_state=0)
    first = model.partial_fit(X[:3], y[:3], classes=[0, 1, 2]).temperature_
    assert model.partial_fit(X[3:], y[3:]).temperature_ != first
    assert not hasattr(model.set_params(probability=False).partial_fit(X[:1], y[:1]), "temperature_")
    assert not hasattr(clone(model), "temperature_")


def test_searches_score_by_log_loss() -> None:
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    X[np.arange(30), y % 2] += 2.0
    model = MulticlassSVC(probability=True, verbose=0, random_state=0)
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, scoring="neg_log_loss", cv=2).fit(X, y)
    assert -1.1 < search.best_score_ < 0.0
    assert np.isfinite(cross_val_score(model, X, y, cv=2, scoring="roc_auc_ovr")).all()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Time that passes only in visits of examples: a second each, in steps, certificates and sums."""
    clock = SimpleNamespace(now=0.0, given=[])
    advance, hinges, sums, solve = run.advance, objective.hinges, confidence._loss, estimator.solve

    def slow_advance(method: Any, state: Any, problem: Any, visits: Any) -> Any:
        clock.now += n_visits(visits)
        return advance(method, state, problem, visits)

    def slow_hinges(problem: Any, w: Any, first: int, out: Any, scratch: Any) -> None:
        clock.now += len(out)
        hinges(problem, w, first, out, scratch)

    def slow_sums(data: Any, temperature: float) -> float:
        clock.now += sum(len(part.shapes) for part in data)
        return sums(data, temperature)

    def noted_solve(*args: Any, **options: Any) -> Any:
        clock.given.append((clock.now, options["time_limit"]))
        return solve(*args, **options)

    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(run, "advance", slow_advance)
    monkeypatch.setattr(objective, "hinges", slow_hinges)
    monkeypatch.setattr(confidence, "_loss", slow_sums)
    monkeypatch.setattr(estimator, "solve", noted_solve)
    return clock


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_trainings_share_the_time_limit(clock: Any) -> None:
    X, y = words(3, 30)
    model = ChainSVC(C=10.0, tol=0.0, max_iter=10**6, time_limit=7000.0, probability=True, verbose=0)
    model.set_params(random_state=0).fit(X, y)
    assert model.time_limit == 7000.0
    assert model.temperature_ > 0.0
    assert 5000.0 < clock.now <= 7100.0  # what is left over is that of the temperature
    assert len(clock.given) == 6
    assert clock.given[0] == (0.0, pytest.approx(3500.0))  # half of it for the training that predicts
    for left, (begin, seconds) in zip(range(6, 1, -1), clock.given[1:], strict=True):
        assert seconds == pytest.approx((7000.0 - begin) / left)


def test_trainings_that_end_early_leave_their_time_to_others(clock: Any) -> None:
    X, y = words(3, 30)
    limit = 1e6
    ChainSVC(tol=0.5, time_limit=limit, probability=True, verbose=0, random_state=0).fit(X, y)
    first, *folds = [seconds for _, seconds in clock.given]
    assert first == pytest.approx(0.5 * limit)
    assert folds == sorted(folds)
    assert folds[-1] > 0.4 * limit
    clock.given.clear()
    ChainSVC(tol=0.5, probability=True, verbose=0, random_state=0).fit(X, y)
    assert [seconds for _, seconds in clock.given] == [None] * 6


def test_the_search_for_the_temperature_ends_in_time(clock: Any) -> None:
    X, y = words(4, 20)
    model = ChainSVC(verbose=0, random_state=0).fit(X, y)
    question = model._structure.ask(model, X)
    problem, states = question.problem, question.states(y)
    data = [confidence.held_out(problem, model._w, part_shapes(problem), states, None)]
    best = confidence.best_temperature(data)
    begin = clock.now
    rough = confidence.best_temperature(data, limits.now() + 50.0)
    assert clock.now == begin + 60.0  # three of them, as the third begins before
    assert confidence._loss(data, best) <= confidence._loss(data, rough)
    begin = clock.now
    assert confidence.best_temperature(data, limits.now() - 1.0) > 0.0
    assert clock.now == begin + 20.0


def test_probability_works_with_signs() -> None:
    kind = KINDS["graph"]
    model = kind.new(probability=True, nonnegative={"nodes": [0]}).fit(kind.X, kind.y)
    assert (model.coef_[:, 0] >= 0.0).all()
    assert model.predict_marginals(kind.X)[0].sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)


def test_models_without_sums_refuse() -> None:
    square = (np.eye(4), [(0, 1), (1, 2), (2, 3), (3, 0)])
    for n_labels, inference in ((2, "cut"), (3, "messages")):
        model = GraphSVC(verbose=0, random_state=0).fit([square], [np.arange(4) % n_labels])
        assert model.inference_ == inference
        with pytest.raises(ValueError, match="GraphSVC: probabilities need graphs without cycles") as caught:
            model.calibrate([square], [np.arange(4) % n_labels])
        assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match="GraphSVC: probabilities need"):
            clone(model).set_params(probability=True).fit([square, square], [np.arange(4) % n_labels] * 2)
    kind = KINDS["multilabel"]
    with pytest.raises(
        ValueError, match="MultilabelSVC: probabilities need structure='tree' or 'independent'"
    ):
        kind.new(structure="full", probability=True).fit(kind.X, kind.y)
    assert not hasattr(MatchingSVC, "predict_marginals")
    assert not hasattr(StructuredSVC, "predict_marginals")


def test_probability_needs_two_examples() -> None:
    with pytest.raises(ValueError, match="ChainSVC: probability=True needs at least 2 examples, got 1"):
        ChainSVC(probability=True, verbose=0).fit([np.ones((2, 1))], [[0, 1]])

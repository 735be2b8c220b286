"""A structure of one's own: one module and one line in the table give an estimator, files and commands."""

import inspect
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import maxmargin
from maxmargin import cli, estimators
from maxmargin.cli import models, warm
from maxmargin.estimators import confidence, explanation, inspection
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Examples, tally
from maxmargin.estimators.explanation import Contribution, Part, RowReader, named_by
from maxmargin.estimators.inspection import WeightTable
from maxmargin.estimators.structure import COUNT, Layout, Question, Structure
from maxmargin.structures.classes.model import Multiclass
from support.estimators import KINDS


class Reader:
    """Reads the answer to one question."""

    def __init__(self, rows: RowReader, weights: Any) -> None:
        self.rows, self.weights = rows, weights

    def parts(self, codes: Any) -> list[Part]:
        return [Part(0, None)]

    def state(self, codes: Any, part: Part) -> object:
        return bool(codes[0])

    def output(self, codes: Any) -> object:
        return bool(codes[0])

    def contributions(self, codes: Any) -> list[Contribution]:
        return list(self.rows.contributions(0, None, bool(codes[0]), self.weights[codes[0]]))


def table(X: Any) -> Any:
    return np.array(X.toarray() if hasattr(X, "toarray") else list(X), dtype=np.float64)


def problem_of(rows: Any, answers: Any = None) -> Any:
    codes = np.zeros(len(rows), dtype=np.int64) if answers is None else answers
    return Multiclass.from_encoded(rows, codes, 2)


class Answers(Structure["AnswerSVC", Any, list[bool], list[float]]):
    """Yes or no to each of some questions, which are lists of numbers."""

    fields: ClassVar = {"n_features_in_": COUNT}
    trials: ClassVar = {"numbers": lambda: ([[0.0, 1.0], [1.0, 0.0]], [True, False])}

    def encode(self, model: Any, parts: Any, weights: Any, call: Any) -> Any:
        rows = table(parts[0])
        if call.first:
            model.n_features_in_ = rows.shape[1]
        return Examples((rows, (np.array(parts[1]) > 0).astype(np.int64)), weights)

    def problem(self, model: Any, examples: Any) -> Any:
        return problem_of(*examples.data)

    def ask(self, model: Any, X: Any) -> Any:
        return Question(
            problem_of(table(X)),
            lambda codes: [bool(code) for code in codes],
            lambda codes, y: tally(codes == (np.array(y) > 0), np.arange(len(codes) + 1)),
            lambda codes, margins: margins.tolist(),
        )

    def reader(self, model: Any, x: Any) -> Any:
        rows = table([x])
        return problem_of(rows), Reader(
            RowReader(rows, "number", named_by(range(rows.shape[1]))), model.coef_
        )

    def layout(self, model: Any) -> Layout:
        n = model.n_features_in_
        return Layout(2 * n, lambda: problem_of(np.zeros((1, n))).map)

    def expose(self, model: Any) -> None:
        model.coef_ = self.layout(model).unpack(model._w)[0]

    def features(self, model: Any) -> list[WeightTable]:
        return [WeightTable("number", range(model.n_features_in_), [False, True], model.coef_.T)]


class AnswerSVC(MaxMarginEstimator[Any, list[bool], list[float]]):
    """Yes or no.

    Parameters
    ----------
    %(C)s
    %(training)s
    """

    _structure: ClassVar = Answers()
    _texts: ClassVar = {
        "example": "question",
        "examples": "questions",
        "X": "X : list of lists of numbers",
        "y": "y : list of bools",
        "predict": "list of bools",
        "margins": "list of floats",
        "kinds": 'The kind is "number".',
        "score": "Return the share of right answers.",
    }
    coef_: Any

    def __init__(
        self,
        C: float = 1.0,
        *,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    predict_single = explanation.predict_single
    predict_margins = confidence.predict_margins
    explain = explanation.explain
    top_features = inspection.top_features


X = [[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.1]]
Y = [True, False, True, False]
SVMLIGHT = "1 2:1\n-1 1:1\n1 1:0.2 2:0.9\n-1 1:0.8 2:0.1\n"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = estimators.Entry(__name__, "answers", ("Classes",))
    monkeypatch.setitem(estimators.ESTIMATORS, "AnswerSVC", entry)


@pytest.fixture
def model() -> AnswerSVC:
    return AnswerSVC(C=10.0, random_state=0).fit(X, Y)


def test_a_structure_of_ones_own_is_trained_with_a_certificate(model: AnswerSVC) -> None:
    assert model.predict(X) == Y
    assert model.predict_single([0.1, 1.1]) is True
    assert model.score(X, Y) == 1.0
    assert model.certified_
    assert model.gap_ <= 0.05 * model.history_.primal.min()
    more = AnswerSVC(C=10.0, random_state=0).partial_fit(X[:2], Y[:2]).partial_fit(X[2:], Y[2:])
    assert more.predict(X) == Y


def test_a_structure_of_ones_own_has_margins_and_explanations(model: AnswerSVC) -> None:
    margins, found = model.predict_margins(X), model.explain(X[0])
    assert len(margins) == 4
    assert min(margins) > 0.0
    assert found.output is True
    assert found.changes[0].margin == pytest.approx(margins[0])
    assert model.top_features(k=1)["kind"].tolist() == ["number"]


def test_a_structure_of_ones_own_has_files_and_pickles(model: AnswerSVC, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    for again in (maxmargin.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(again) is AnswerSVC
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert again.predict(X) == Y


def test_a_structure_of_ones_own_has_only_the_methods_that_it_names(model: AnswerSVC) -> None:
    assert not hasattr(model, "predict_marginals")
    assert not hasattr(AnswerSVC, "top_transitions")
    assert "Yes or no" in (AnswerSVC.__doc__ or "")
    assert "list of bools" in (AnswerSVC.predict.__doc__ or "")


def test_commands_train_and_tag_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").write_text(SVMLIGHT)
    options = ("--format", "svmlight", "--quiet", "-C", "10")
    assert cli.main(("train", "data", "--model", "model", "--estimator", "answers", *options)) == 0
    assert "AnswerSVC" in capsys.readouterr().out
    assert cli.main(("tag", "model", "data", "--quiet")) == 0
    assert capsys.readouterr().out.split() == ["True", "False", "True", "False"]
    assert cli.main(("inspect", "model")) == 0
    assert "AnswerSVC from svmlight: 3 features" in capsys.readouterr().out
    assert type(models.new_estimator("answers", {"C": 2.0})) is AnswerSVC


def test_its_trials_are_compiled_beforehand() -> None:
    assert "AnswerSVC" in warm.compiled()
    warm.run(warm.FirstFit("AnswerSVC", "numbers"))


def test_every_estimator_of_the_table_is_in_the_table_of_tests() -> None:
    tested = {type(kind.new()).__name__ for kind in KINDS.values()}
    assert tested == set(estimators.ESTIMATORS) - {"AnswerSVC"} == set(estimators.__all__)


def test_a_structure_has_at_most_ten_functions() -> None:
    functions = [name for name, value in vars(Structure).items() if inspect.isfunction(value)]
    assert len(functions) <= 10, functions


@pytest.mark.parametrize("name", estimators.__all__)
def test_estimators_have_a_structure_instead_of_bases(name: str) -> None:
    cls = estimators.estimator_class(name)
    ours = [base for base in cls.__mro__ if base.__module__.startswith("maxmargin")]
    assert len(ours) == 3, ours
    assert type(cls._structure).__mro__[1] is Structure
    for base in cls.__mro__:
        assert sum(each.__module__.startswith("maxmargin") for each in base.__bases__) <= 2

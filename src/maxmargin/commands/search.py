"""``maxmargin train --search``: C by cross-validation."""

import argparse
from collections.abc import Callable, Sequence
from typing import cast

from maxmargin.commands.models import Estimator
from maxmargin.commands.output import note
from maxmargin.commands.tasks import Labels, SomeTask, TrainingSet
from maxmargin.encoding.numbered import NumberedSequences
from maxmargin.evaluation import are_phrase_tags, phrase_scores

Scorer = Callable[[Estimator, object, Sequence[Sequence[str]]], float]
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
FOLDS = 3


def chosen_C(
    estimator: Estimator, batch: TrainingSet, task: SomeTask, arguments: argparse.Namespace
) -> float:
    """Return the best of some values around the estimator's C, by cross-validation, and say what it found."""
    from sklearn.model_selection import GridSearchCV, KFold

    X = batch.X.listed() if isinstance(batch.X, NumberedSequences) else batch.X
    scoring, name = _scoring(batch, task)
    C = _number(estimator, X, batch.y)
    values = [float(f"{C * factor:.3g}") for factor in FACTORS]
    folds = KFold(FOLDS, shuffle=True, random_state=arguments.seed)
    search = GridSearchCV(estimator, {"C": values}, scoring=scoring, cv=folds, refit=False)
    found = search.fit(X, batch.y).cv_results_["mean_test_score"]
    for C, score in zip(values, found, strict=True):
        note(f"search: C = {C:g}: {name} {score:.4f}", quiet=arguments.quiet)
    best = values[int(found.argmax())]
    note(f"search: C = {best:g} is best in {FOLDS}-fold cross-validation", quiet=arguments.quiet)
    return best


def _number(estimator: Estimator, X: object, y: object) -> float:
    """Return C; where it is "scale", the number that a fit to these data finds."""
    if not isinstance(estimator.C, str):
        return estimator.C
    from sklearn.base import clone

    # A gap of any size will do, so that training ends where it begins.
    fitted: Estimator = clone(estimator).set_params(max_iter=1, tol=1e9, verbose=0).fit(X, y)
    return fitted.C_


def _scoring(batch: TrainingSet, task: SomeTask) -> tuple[Scorer | None, str]:
    """Return the score to choose by, and its name: F1 of phrases, or that of the estimator."""
    y = cast("Sequence[Labels]", batch.y) if task.outcome == "labels" else ()
    labels = [label for sequence in y for label in sequence]
    if labels and isinstance(labels[0], str) and are_phrase_tags(map(str, labels)):
        return _phrase_f1, "F1 of phrases"
    return None, {"labels": "accuracy", "heads": "UAS", "classes": "accuracy", "sets": "subset accuracy"}[
        task.outcome
    ]


def _phrase_f1(model: Estimator, X: object, y: Sequence[Sequence[str]]) -> float:
    predicted: object = getattr(model, "predict_tags", model.predict)(X)
    return phrase_scores(y, cast("Sequence[Sequence[str]]", predicted)).overall.f1

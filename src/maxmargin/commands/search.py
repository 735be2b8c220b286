"""``maxmargin train --search``: C by cross-validation."""

import argparse
from typing import Any

from maxmargin.commands.output import note
from maxmargin.commands.tasks import Batch, Task
from maxmargin.encoding.numbered import NumberedSequences
from maxmargin.evaluation import are_phrase_tags, phrase_scores

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
FOLDS = 3


def chosen_C(estimator: Any, batch: Batch, task: Task, arguments: argparse.Namespace) -> float:
    """Return the best of some values around the estimator's C, by cross-validation, and say what it found."""
    from sklearn.model_selection import GridSearchCV, KFold

    X = batch.X.listed() if isinstance(batch.X, NumberedSequences) else batch.X
    scoring, name = _scoring(batch, task)
    values = [float(f"{estimator.C * factor:.3g}") for factor in FACTORS]
    folds = KFold(FOLDS, shuffle=True, random_state=arguments.seed)
    search = GridSearchCV(estimator, {"C": values}, scoring=scoring, cv=folds, refit=False)
    found = search.fit(X, batch.y).cv_results_["mean_test_score"]
    for C, score in zip(values, found, strict=True):
        note(f"search: C = {C:g}: {name} {score:.4f}", quiet=arguments.quiet)
    best = values[int(found.argmax())]
    note(f"search: C = {best:g} is best in {FOLDS}-fold cross-validation", quiet=arguments.quiet)
    return best


def _scoring(batch: Batch, task: Task) -> tuple[Any, str]:
    """Return the score to choose by, and its name: F1 of phrases, or that of the estimator."""
    is_text = task.outcome == "labels" and isinstance(
        next(label for labels in batch.y for label in labels), str
    )
    if is_text and are_phrase_tags(label for labels in batch.y for label in labels):
        return _phrase_f1, "F1 of phrases"
    return None, {"labels": "accuracy", "heads": "UAS", "classes": "accuracy", "sets": "subset accuracy"}[
        task.outcome
    ]


def _phrase_f1(model: Any, X: Any, y: Any) -> float:
    tags = getattr(model, "predict_tags", model.predict)
    return phrase_scores(y, tags(X)).overall.f1

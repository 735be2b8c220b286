"""``maxmargin train``, from a data file to a model file, and ``maxmargin encode``, for large data files."""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

from maxmargin.cli.models import (
    Estimator,
    Model,
    edge_features,
    import_estimator,
    import_scikit_learn,
    new_estimator,
)
from maxmargin.cli.output import note, noted_warnings, result
from maxmargin.cli.tasks import (
    Attributes,
    Classes,
    Columns,
    JsonLines,
    LabelSets,
    SequenceRows,
    SomeTask,
    TrainingSet,
    Trees,
)
from maxmargin.files.detection import ATTRIBUTES, COLUMNS, CONLLU, JSON, SVMHMM, SVMLIGHT, Detected, detect
from maxmargin.files.sources import Source
from maxmargin.runtime.limits import without_collection

if TYPE_CHECKING:
    from maxmargin.files.corpus.opening import Corpus


def run(arguments: argparse.Namespace) -> int:
    """Train a model and write it."""
    begin = time.perf_counter()
    task, batch = _encoded(arguments) if os.path.isdir(arguments.file) else _read(arguments)
    examples, parts = (f"{noun}s" for noun in task.nouns)
    note(f"{batch.n} {examples}, {batch.size} {parts}; {task.note}", quiet=arguments.quiet)
    read = time.perf_counter()
    estimator = new_estimator(_chosen(task, arguments), _parameters(arguments))
    with noted_warnings():
        _fit(estimator, batch, arguments)
    if arguments.search:
        _note_search(estimator, arguments)
    fitted = time.perf_counter()
    model = Model(estimator, task)
    model.save(arguments.model)
    if arguments.resume:
        os.remove(_checkpoint(arguments))
    seconds = {"reading": read - begin, "training": fitted - read, "writing": time.perf_counter() - fitted}
    data = _summary(model, batch, arguments.model) | {"seconds": seconds}
    result(_text(model, arguments.model, sum(seconds.values())), data, arguments.json)
    return 0


def _read(arguments: argparse.Namespace) -> tuple[SomeTask, TrainingSet]:
    """Return the task of a file, and all its examples."""
    with Source(arguments.file, arguments.encoding) as source:
        task = _task(source, arguments)
        with without_collection(), _imported(_chosen(task, arguments)):
            return task, task.training(source)


@contextmanager
def _imported(estimator: str) -> Iterator[None]:
    """Import an estimator while compiled code in this block reads the data.

    An error waits for the import, too: a process that ends within one can crash.
    """

    def attempt() -> None:
        with suppress(ImportError):  # raised again by the code that needs it
            import_estimator(estimator)

    thread = Thread(target=attempt)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _chosen(task: SomeTask, arguments: argparse.Namespace) -> str:
    """Return the name of the estimator to train."""
    return arguments.estimator or task.estimators[0]


def _encoded(arguments: argparse.Namespace) -> tuple[SomeTask, TrainingSet]:
    """Return the task and the examples of a directory that ``encode`` has written."""
    if arguments.template or arguments.min_count:
        raise ValueError(
            f"{arguments.file}: expected no --template or --min-count for encoded data; give them to encode"
        )
    import_scikit_learn()
    from maxmargin.files.corpus.opening import open_corpus

    corpus = open_corpus(arguments.file)
    recipe = corpus.manifest.recipe
    classes: tuple[type[SomeTask], ...] = (Attributes, Columns, JsonLines)
    task = next(cls for cls in classes if cls.name == recipe.format)(**recipe.settings)
    _check_estimator(task, arguments)
    return task, TrainingSet(corpus.X, corpus.y, len(corpus.X), len(corpus.y.codes))


def _fit(estimator: Estimator, batch: TrainingSet, arguments: argparse.Namespace) -> None:
    """Train; with a checkpoint beside the model if the run is to be resumed after a crash."""
    if arguments.resume:
        path = _checkpoint(arguments)
        if os.path.exists(path):
            note(f"resuming from {path}", quiet=arguments.quiet)
        estimator.set_params(checkpoint=path)
    estimator.fit(batch.X, batch.y)
    estimator.set_params(checkpoint=None)


def _note_search(estimator: Estimator, arguments: argparse.Namespace) -> None:
    """Say how the values of C that were tried did."""
    table = estimator.cv_results_
    for C, score in zip(table["param_C"], table["mean_test_score"], strict=True):
        known = "left, as it is worse" if score != score else f"{-score:.4g}"
        note(f"search: C = {C:g}: mean loss {known}", quiet=arguments.quiet)
    note(f"search: C = {estimator.C_:g} is chosen by cross-validation", quiet=arguments.quiet)


def _checkpoint(arguments: argparse.Namespace) -> str:
    return f"{arguments.model}.checkpoint"


def _task(source: Source, arguments: argparse.Namespace) -> SomeTask:
    """Return the task of a file, by its first lines and the arguments."""
    found = detect(source)
    if arguments.format != "auto" and arguments.format != found.name:
        found = Detected(arguments.format, "as asked")
    note(f"{source.name}: {found.name}: {found.seen}", quiet=arguments.quiet)
    task = _TASKS[found.name](source, arguments)
    _check_estimator(task, arguments)
    if arguments.template is not None and not isinstance(task, Columns):
        raise ValueError(f"--template: expected a column file, got the format {found.name}")
    return task


def _check_estimator(task: SomeTask, arguments: argparse.Namespace) -> None:
    estimator = arguments.estimator
    if estimator is not None and estimator not in task.estimators:
        expected = " or ".join(task.estimators)
        raise ValueError(f"--estimator: expected {expected} for {task.data}, got {estimator}")


def _columns(source: Source, arguments: argparse.Namespace) -> SomeTask:
    from maxmargin.cli.tasks import column_task
    from maxmargin.files.columns import column_features

    return column_task(column_features(source, arguments.template))


def _rows(source: Source, arguments: argparse.Namespace) -> SomeTask:
    """Return the task of rows with sets of labels if that is asked for, or if the first label is a set."""
    labels = source.peek().decode("utf-8", "replace").split(None, 1)[0]
    is_set = (
        "," in labels or ":" in labels if arguments.estimator is None else arguments.estimator == "multilabel"
    )
    return LabelSets() if is_set else Classes()


_TASKS: dict[str, Callable[[Source, argparse.Namespace], SomeTask]] = {
    COLUMNS: _columns,
    ATTRIBUTES: lambda source, arguments: Attributes(),
    SVMHMM: lambda source, arguments: SequenceRows(),
    SVMLIGHT: _rows,
    CONLLU: lambda source, arguments: Trees(arguments.tags),
    JSON: lambda source, arguments: JsonLines(),
}


def _parameters(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the parameters of the estimator: those that were given, and those of a command."""
    names = ("C", "loss", "tol", "max_iter", "time_limit", "min_count")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if arguments.search:
        if "C" in given:
            raise ValueError(f"-C: expected none with --search, which chooses it, got {given['C']:g}")
        given["C"] = "auto"
    fixed = {"random_state": arguments.seed, "n_jobs": arguments.jobs, "verbose": 0 if arguments.quiet else 2}
    return {**fixed, **given, **dict(arguments.set or ())}


def _summary(model: Model, batch: TrainingSet, path: str) -> dict[str, object]:
    """Return the summary of a trained model."""
    estimator, task = model
    return {
        "model": path,
        "format": task.name,
        "estimator": type(estimator).__name__,
        f"{task.nouns[0]}s": batch.n,
        f"{task.nouns[1]}s": batch.size,
        "features": int(estimator.n_features_in_),
        **edge_features(estimator),
        "labels": _labels(model),
        "C": estimator.C_,
        "tol": estimator.tol,
        "objective": _objective(estimator),
        "gap": estimator.gap_,
        "certified": estimator.certified_,
        "passes": estimator.n_iter_,
    }


def _labels(model: Model) -> list[object] | None:
    """Return the labels that the task has read, or else those that the estimator knows, if any."""
    labels = getattr(model.task, "labels", None) or getattr(model.estimator, "classes_", None)
    return None if labels is None else list(getattr(labels, "tolist", lambda: labels)())


def _objective(estimator: Estimator) -> float:
    return float(estimator.history_.primal.min())


def _text(model: Model, path: str, seconds: float) -> str:
    estimator, labels = model.estimator, _labels(model)
    objective = _objective(estimator)
    share = f"within {estimator.gap_ / max(objective, 1e-300):.1%} of it"
    edges = "".join(f", {n} of edges" for n in edge_features(estimator).values())
    return (
        f"{path}: {type(estimator).__name__} with {int(estimator.n_features_in_)} features{edges}"
        f"{'' if labels is None else f', {len(labels)} labels'}; objective {objective:.5g}, the optimum is "
        f"{share if estimator.certified_ else 'unknown'}; {estimator.n_iter_} passes, {seconds:.1f} s"
    )


def encode(arguments: argparse.Namespace) -> int:
    """Encode data files to a directory of arrays, which `run` takes, too."""
    from maxmargin.files.corpus.reading import encode_files

    begin = time.perf_counter()
    corpus = encode_files(
        arguments.files,
        arguments.output,
        format=arguments.format,
        template=arguments.template,
        min_count=arguments.min_count or 1,
        hash_bits=arguments.hash_bits,
        encoding=arguments.encoding,
        verbose=0 if arguments.quiet else 2,
    )
    seconds = time.perf_counter() - begin
    manifest = corpus.manifest
    text = (
        f"{corpus.path}: {len(corpus.X)} sequences, {len(corpus.y.codes)} tokens, {manifest.n_columns} "
        f"features, {len(manifest.classes)} labels; {seconds:.1f} s"
    )
    result(text, _contents(corpus) | {"seconds": seconds}, arguments.json)
    return 0


def _contents(corpus: "Corpus") -> dict[str, object]:
    return {
        "corpus": corpus.path,
        "format": corpus.manifest.recipe.format,
        "sequences": len(corpus.X),
        "tokens": len(corpus.y.codes),
        "features": corpus.manifest.n_columns,
        "labels": corpus.manifest.classes,
    }

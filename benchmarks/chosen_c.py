"""C chosen by cross-validation: its score beside the best of a dense grid, and its cost beside one fit.

    python benchmarks/chosen_c.py --data FOLDER [--only usaddress,tags] [--share 0.1] [--parameters JSON]

Five folds of the training examples of a task. In each, on four fifths: the default, ``C="auto"``, one
standard error, and every C of a grid, at factors of the root of 3 around the default (around 1, with a
kernel). Scores are those of the fifth that is left, in points; a difference is a mean over folds, with its
standard error. The best of the grid is chosen by these scores, so it is ahead of any choice without them.
Seconds are processor time of `fit`, divided by those of a fit with the number that was chosen. usaddress and
persons need the packages of their projects.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import json
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from _panel import PANEL, Examples, Task, of_share
from _problems import if_there
from _scores import SUBSETS
from downstream import Split, folds, of_files
from maxmargin import ChainSVC, CrossValidated

# In points, and times the seconds of one fit.
BEHIND, SECONDS = 0.3, 5.0
STEPS = np.arange(-2.0, 2.1, 0.5)
STRINGS = {
    "usaddress": ("usaddress", "labeled.xml.gz"),
    "persons": ("probablepeople", "person_labeled.xml.gz"),
}
CHOICES = {"auto": "auto", "one standard error": CrossValidated(one_standard_error=True)}


class Fold(NamedTuple):
    """What one fold has shown: scores by name, values of C and ratios of seconds by choice."""

    scores: dict[str, float]
    C: dict[str, float]
    seconds: dict[str, tuple[float, float]]


def task_of(name: str) -> Task:
    """Return a task of the panel, or that of labelled strings, whose score counts whole ones."""
    if name in PANEL:
        return PANEL[name]
    return Task(lambda home: NotImplemented, ChainSVC, SUBSETS, ())


def examples_of(name: str, share: float, home: str) -> Examples:
    """Return the examples of a task, all strings or a share of the training examples."""
    if name in STRINGS:
        return of_files(home, *STRINGS[name])
    return of_share(PANEL[name].load(home), share).train


def measured(task: Task, split: Split, parameters: dict[str, Any]) -> Fold:
    """Train all models on the examples of a fold."""
    scores, numbers, seconds = dict[str, float](), dict[str, float](), dict[str, tuple[float, float]]()

    def fit(name: str, C: Any) -> tuple[float, float]:
        settings = parameters if C is None else {**parameters, "C": C}
        model = task.estimator(random_state=0, verbose=0, **settings)
        begin = time.process_time()
        model.fit(split.train.X, split.train.y)
        lasted = time.process_time() - begin
        counts = task.score.counts(split.test.truth, getattr(model, task.predict)(split.test.X))
        scores[name] = 100.0 * task.score.value(counts)
        return model.C_, lasted

    middle, _ = fit("default", None)
    for name, C in CHOICES.items():
        numbers[name], lasted = fit(name, C)
        seconds[name] = lasted, fit(f"{name}, again", numbers[name])[1]
    if parameters.get("kernel", "linear") != "linear":
        middle = 1.0
    for step in STEPS:
        fit(f"{step:g}", middle * 3.0**step)
    return Fold(scores, numbers, seconds)


def measure(name: str, options: argparse.Namespace) -> None:
    """Print a line for each choice."""
    task, parameters = task_of(name), json.loads(options.parameters)
    load = partial(examples_of, name, options.share)
    splits = list(folds(load, options.data, 1))
    few = splits[0].train.take(np.arange(min(60, len(splits[0].train.y))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured(
            task, splits[0]._replace(train=few), {**parameters, "max_iter": 1}
        )  # compiles or loads kernels
        found = [measured(task, split, parameters) for split in splits]
    scores = {each: np.array([fold.scores[each] for fold in found]) for each in found[0].scores}
    best = max((f"{step:g}" for step in STEPS), key=lambda step: scores[step].mean())
    for choice in CHOICES:
        own, fitted = np.array([fold.seconds[choice] for fold in found]).sum(axis=0)
        behind, ahead = scores[choice] - scores[best], scores[choice] - scores["default"]
        values = ", ".join(f"{fold.C[choice]:.3g}" for fold in found)
        cells = name, choice, f"{scores['default'].mean():.2f}", f"{scores[choice].mean():.2f}"
        cells += with_error(ahead), f"{scores[best].mean():.2f}", with_error(behind), values
        missed = behind.mean() < -BEHIND or own > SECONDS * fitted
        print(f"| {' | '.join(cells)} | {own / fitted:.1f} | {'MISSED' if missed else ''} |", flush=True)


def with_error(differences: Any) -> str:
    """Return a mean with its standard error."""
    return f"{differences.mean():+.2f} ({differences.std(ddof=1) / np.sqrt(len(differences)):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", default=os.environ.get("MAXMARGIN_DATA", "."), help="directory with the data"
    )
    parser.add_argument("--only", default=",".join([*STRINGS, *PANEL]), help="tasks, by commas")
    parser.add_argument("--share", type=float, default=0.1, help="of the examples of a panel's task")
    parser.add_argument("--parameters", default="{}", help="of the estimator, as JSON")
    options = parser.parse_args()
    heads = (
        "task",
        "C",
        "default",
        "score",
        "ahead",
        "best of the grid",
        "behind",
        "chosen",
        "ratio of seconds",
        "",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name in options.only.split(","):
        if_there(partial(measure, name, options))


if __name__ == "__main__":
    main()

"""Taggers that projects train, by folds: ours and crfsuite on the features that the projects make.

    python benchmarks/downstream.py --data FOLDER --store FILE [--only usaddress,persons] [--shuffles 3]

Five folds of the distinct strings, in several random orders; all models of a fold are trained in turn, on one
thread. Measured are strings that are right as a whole, seconds of the processor from the features as they
come to the trained model, and bytes of the model file. Errors are those of paired differences over strings.

usaddress and persons are the labelled strings of usaddress and probablepeople, whose features their packages
make; "usaddress, its own test file" trains on all its training files, and "..., labeled.xml" on the file
that its published model is trained on. The other tasks are those of the panel that are tagged, with their
training examples, or a share of them (--share). Runs are kept in the file of --store, which a later call
continues.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import gzip
import html
import importlib
import json
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from _panel import FEW, FOLDS, PANEL, Examples, of_share
from _problems import if_there
from _rivals import named_features
from _scores import count_whole
from maxmargin import ChainSVC

RECIPE = "recipe: L-BFGS, c1 = 0.1, c2 = 0.01"


class Fitted(NamedTuple):
    """A trained model: what labels sequences, and the bytes of its file."""

    predict: Callable[[Any], list[Any]]
    size: int


def chain(**settings: Any) -> Callable[[Any, Any, Path], Fitted]:
    """Return a function that trains a chain with these settings."""

    def fit(X: Any, y: Any, path: Path) -> Fitted:
        model = ChainSVC(random_state=0, verbose=0, **settings).fit(X, y)
        model.save(path)
        return Fitted(model.predict, path.stat().st_size)

    return fit


def chosen(*grid: Mapping[str, list[float]]) -> Callable[[Any, Any, Path], Fitted]:
    """Return a function that trains a chain with the settings of most whole strings in three folds."""

    def fit(X: Any, y: Any, path: Path) -> Fitted:
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(
            ChainSVC(random_state=0, verbose=0), list(grid), scoring=whole_strings, cv=folds
        )
        model = search.fit(X, y).best_estimator_
        model.save(path)
        return Fitted(model.predict, path.stat().st_size)

    return fit


def whole_strings(model: Any, X: Any, y: Any) -> float:
    """Return the share of sequences whose labels are all right."""
    return float(np.mean([count_whole(*pair)[0] for pair in zip(y, model.predict(X), strict=True)]))


def crfsuite(algorithm: str = "lbfgs", **settings: float) -> Callable[[Any, Any, Path], Fitted]:
    """Return a function that trains crfsuite with these settings."""

    def fit(X: Any, y: Any, path: Path) -> Fitted:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm, settings, verbose=False)
        for tokens, labels in zip(named_features(X), y, strict=True):
            trainer.append(tokens, list(map(str, labels)))
        trainer.train(str(path))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(path))
        return Fitted(lambda X: [tagger.tag(x) for x in named_features(X)], path.stat().st_size)

    return fit


# What is compared: our models, and the rivals that each of them is compared with.
OURS: Mapping[str, Callable[[Any, Any, Path], Fitted]] = {
    "as it comes": chain(),
    "C = auto": chain(C="auto"),
    "C = auto, l1_ratio = 0.4": chain(C="auto", l1_ratio=0.4),
    "C = 0.5": chain(C=0.5),
    "C = 0.3, l1_ratio = 0.4": chain(C=0.3, l1_ratio=0.4),
    "C, l1_ratio by folds": chosen({"C": [0.15, 0.5, 1.5]}, {"C": [0.3, 1.0], "l1_ratio": [0.1, 0.4]}),
}
RIVALS: Mapping[str, Callable[[Any, Any, Path], Fitted]] = {
    RECIPE: crfsuite(c1=0.1, c2=0.01),
    "L-BFGS as it comes": crfsuite(),
    "L-BFGS, c1 = c2 = 0.1": crfsuite(c1=0.1, c2=0.1),
    "averaged perceptron": crfsuite("averaged-perceptron"),
}


class Split(NamedTuple):
    """Strings to train on, strings to test on, and the numbers of the latter among all."""

    train: Examples
    test: Examples
    numbers: list[int]


class Run(NamedTuple):
    """Which strings of a test set are right, by number, the seconds of training and the bytes of the file."""

    numbers: list[int]
    right: list[float]
    seconds: float
    size: int


def labelled_strings(path: Path) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the words of the strings of a file, but for punctuation alone, and their labels."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        strings = re.findall(r"<(AddressString|Name)>(.*?)</\1>", file.read(), re.DOTALL)
    for _, string in strings:
        pieces = re.findall(r"<(\w+)>(.*?)</\1>", string, re.DOTALL)
        pairs = [(word, label) for label, piece in pieces for word in html.unescape(piece).split()]
        pairs = [(word, label) for word, label in pairs if re.search(r"\w", word)]
        if pairs:
            yield tuple(word for word, _ in pairs), [label for _, label in pairs]


def of_files(home: str, project: str, pattern: str, distinct: bool = True) -> Examples:
    """Return the strings of some files of a project, with the features that its package makes."""
    paths = sorted((Path(home) / "downstream" / project).glob(pattern))
    if not paths:
        raise FileNotFoundError(f"There are no files {project}/{pattern} in {home}/downstream.")
    strings = [pair for path in paths for pair in labelled_strings(path)]
    if distinct:
        first = dict(reversed(strings))
        strings = [(words, first[words]) for words in dict.fromkeys(words for words, _ in strings)]
    describe = importlib.import_module(project).tokens2features
    X, y = [describe(list(words)) for words, _ in strings], [labels for _, labels in strings]
    return Examples(X, y, y)


def folds(load: Callable[[str], Examples], home: str, shuffle: int) -> Iterator[Split]:
    """Yield the folds of one random order."""
    examples = load(home)
    n = len(examples.y)
    for fold in np.array_split(np.random.default_rng(shuffle).permutation(n), FOLDS):
        others = np.setdiff1d(np.arange(n), fold)
        yield Split(examples.take(others), examples.take(fold), fold.tolist())


def test_file(pattern: str, home: str, shuffle: int) -> Iterator[Split]:
    """Yield usaddress's own test file, with training files in a random order."""
    train, test = (of_files(home, "usaddress", each, False) for each in (pattern, "test_labeled.xml.gz"))
    order = np.random.default_rng(shuffle).permutation(len(train.y))
    yield Split(train.take(order), test, list(range(len(test.y))))


def _panel_task(name: str, share: float, home: str) -> Examples:
    return of_share(PANEL[name].load(home), share).train


def tasks(share: float) -> dict[str, Callable[[str, int], Iterator[Split]]]:
    """Return the tasks: from the folder of data and the number of an order to splits."""
    loaders: dict[str, Callable[[str], Examples]] = {
        "usaddress": partial(of_files, project="usaddress", pattern="labeled.xml.gz"),
        "persons": partial(of_files, project="probablepeople", pattern="person_labeled.xml.gz"),
    }
    loaders |= {name: partial(_panel_task, name, share) for name, task in PANEL.items() if task.is_tagging}
    found: dict[str, Callable[[str, int], Iterator[Split]]] = {
        name: partial(folds, load) for name, load in loaders.items()
    }
    # Every training file, none of which is called test_.
    own = {
        "usaddress, its own test file": "[!t]*.xml.gz",
        "usaddress, its own test file, labeled.xml": "labeled.xml.gz",
    }
    return found | {name: partial(test_file, pattern) for name, pattern in own.items()}


def run(fit: Callable[[Any, Any, Path], Fitted], split: Split) -> Run:
    """Train and test; a run that does not converge is judged by its score."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        fitted = fit(split.train.X, split.train.y, Path(folder) / "model")
        seconds = time.process_time() - begin
        predicted = fitted.predict(split.test.X)
    truth = [list(map(str, labels)) for labels in split.test.truth]
    right = [count_whole(t, list(map(str, p)))[0] for t, p in zip(truth, predicted, strict=True)]
    return Run(split.numbers, right, seconds, fitted.size)


class Store:
    """Runs by task, order, fold and model, in a file that a later call continues."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.found = path, dict[tuple[Any, ...], Run]()
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                key, *row = json.loads(line)
                self.found[tuple(key)] = Run(*row)

    def keep(self, key: tuple[Any, ...], found: Run) -> None:
        """Add a run."""
        self.found[key] = found
        if self.path is not None:
            with self.path.open("a") as stream:
                stream.write(json.dumps([key, *found]) + "\n")

    def of(self, name: str, shuffles: int, model: str) -> list[Run]:
        """Return the runs of a model."""
        return [
            each
            for key, each in self.found.items()
            if key[0] == name and key[1] < shuffles and key[3] == model
        ]


def measure(name: str, splits: Callable[[str, int], Iterator[Split]], options: Any, store: Store) -> None:
    """Make the runs of a task that are not in the store, and print its table."""
    models = {**OURS, **RIVALS}
    label = name if options.share == 1.0 else f"{name}, share {options.share:g}"
    for shuffle in range(options.shuffles):
        for k, split in enumerate(splits(options.data, shuffle)):
            missing = [model for model in models if (label, shuffle, k, model) not in store.found]
            few = split.train.take(np.arange(min(FEW, len(split.train.y))))
            for model in missing:
                if model in OURS:
                    run(models[model], split._replace(train=few))  # compiles
                found = run(models[model], split)
                store.keep((label, shuffle, k, model), found)
                share, which = np.mean(found.right), f"{label}, order {shuffle}, fold {k}, {model}"
                print(f"{which}: {share:.3f} in {found.seconds:.2f} s", flush=True)
    print_table(label, {model: store.of(label, options.shuffles, model) for model in models})


def by_string(runs: list[Run]) -> Any:
    """Return how often each string is right, a share of the orders."""
    numbers = np.concatenate([each.numbers for each in runs])
    right = np.concatenate([each.right for each in runs])
    return np.bincount(numbers, right) / np.bincount(numbers)


def print_table(name: str, runs: Mapping[str, list[Run]]) -> None:
    """Print whole strings right, differences in points with standard errors, and ratios to the recipe's."""
    seconds, sizes = (
        {model: float(np.mean([getattr(each, field) for each in found])) for model, found in runs.items()}
        for field in ("seconds", "size")
    )
    right = {model: by_string(found) for model, found in runs.items()}
    ahead = " | ".join(f"{model} ahead" for model in OURS)
    print(f"\n| {name} | whole strings | {ahead} | seconds | / recipe | kB | / recipe |")
    print(f"|{'---|' * (6 + len(OURS))}")
    for model in runs:
        cells = [difference(right[ours] - right[model]) if model in RIVALS else "" for ours in OURS]
        cells += [f"{seconds[model]:.2f}", f"{seconds[model] / seconds[RECIPE]:.4f}"]
        cells += [f"{sizes[model] / 1e3:.0f}", f"{sizes[model] / sizes[RECIPE]:.2f}"]
        print(f"| {model} | {100 * right[model].mean():.1f} | {' | '.join(cells)} |")
    print(flush=True)


def difference(values: Any) -> str:
    """Return a paired difference in points, its standard error, and whether it is below by two of them."""
    mean, error = 100 * values.mean(), 100 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{mean:+.1f} ± {error:.1f}" + (" BELOW" if mean < -2 * error else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="only some tasks, by semicolons; all by default")
    parser.add_argument("--shuffles", type=int, default=3, help="random orders of the strings")
    parser.add_argument("--share", type=float, default=1.0, help="share of the examples of panel tasks")
    parser.add_argument("--store", type=Path, help="file that keeps the runs")
    parser.add_argument(
        "--data", default=os.environ.get("MAXMARGIN_DATA", "."), help="directory with the data"
    )
    options = parser.parse_args()
    known, store = tasks(options.share), Store(options.store)
    for name in options.only.split(";") if options.only else known:
        if_there(partial(measure, name, known[name], options, store))


if __name__ == "__main__":
    main()

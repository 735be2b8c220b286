"""MultilabelSVC against one classifier per label and chains of classifiers, with defaults and with C chosen.

    python benchmarks/multilabel.py [--only scene] [--model MultilabelSVC] [--data DIRECTORY] [--tune]

Test scores in percent: subset accuracy (all labels right), Hamming loss, micro-averaged F1; and seconds. With
--tune, C is also chosen from a grid by subset accuracy on a third of the training data that is held out.

scene
    Photographs and up to three of six labels.
digits
    Six properties of a digit: even, above four, prime, ...
two digits
    Which of ten digits occur in a picture of two that are laid over each other.
dense, sparse
    Made at random: 20 labels of 100 features, and 36 labels of counts of 1,000 words.
tags
    Which of 36 tags occur in a short sentence, from its words among the 1,000 most frequent.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

from _problems import if_there
from maxmargin import MultilabelSVC
from maxmargin.datasets import load_scene, load_ud_ewt

GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LONGEST, N_WORDS, N_TAGS = 12, 1000, 36


class Split(NamedTuple):
    """Training and test data."""

    X: Any
    X_test: Any
    y: Any
    y_test: Any


def halves(X: Any, y: Any) -> Split:
    """Return two halves, with the labels that some examples of the first have and some have not."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    varies = y.min(axis=0) < y.max(axis=0)
    return Split(X, X_test, y[:, varies], y_test[:, varies])


def scene(data: str | None) -> Split:
    photographs = load_scene(data_home=data)
    return Split(photographs.train.X, photographs.test.X, photographs.train.y, photographs.test.y)


def digits(data: str | None) -> Split:
    X, digit = load_digits(return_X_y=True)
    properties = [(0, 2, 4, 6, 8), (5, 6, 7, 8, 9), (2, 3, 5, 7), (0, 3, 6, 9), (0, 6, 8, 9), (1, 4, 7)]
    return halves(X / 16.0, np.column_stack([np.isin(digit, values) for values in properties]) * 1)


def two_digits(data: str | None) -> Split:
    X, digit = load_digits(return_X_y=True)
    a, b = np.random.default_rng(1).integers(len(X), size=(2, 3000))
    return halves(
        np.maximum(X[a], X[b]) / 16.0, np.eye(10, dtype=int)[digit[a]] | np.eye(10, dtype=int)[digit[b]]
    )


def dense(data: str | None) -> Split:
    X, y = make_multilabel_classification(2000, 100, n_classes=20, n_labels=4, length=100, random_state=1)
    return halves((X - X.mean(axis=0)) / X.std(axis=0), y)


def sparse(data: str | None) -> Split:
    X, y = make_multilabel_classification(
        4000, 1000, n_classes=36, n_labels=3, length=300, sparse=True, random_state=2
    )
    return halves(X.tocsr().astype(float), y)


def tags(data: str | None) -> Split:
    treebank = load_ud_ewt(data_home=data, tags="xpos")
    train, test = (
        [sentence for sentence in part.X if 2 <= len(sentence) <= LONGEST]
        for part in (treebank.train, treebank.test)
    )
    train = train[:2500]
    words = CountVectorizer(analyzer=lambda s: {w.lower() for w, _ in s}, max_features=N_WORDS, dtype=float)
    X = words.fit_transform(train)
    counts = Counter(tag for sentence in train for tag in {tag for _, tag in sentence})
    names = [tag for tag, _ in counts.most_common(N_TAGS)]
    y, y_test = (
        np.array([[name in {tag for _, tag in sentence} for name in names] for sentence in part]) * 1
        for part in (train, test)
    )
    return Split(X, words.transform(test), y, y_test)


SETS: dict[str, Callable[[str | None], Split]] = {
    "scene": scene,
    "digits": digits,
    "two digits": two_digits,
    "dense": dense,
    "sparse": sparse,
    "tags": tags,
}


def ours(**parameters: object) -> Callable[..., Any]:
    return lambda **C: MultilabelSVC(random_state=0, verbose=0, time_limit=120, **parameters, **C)


MODELS: dict[str, Callable[..., Any]] = {
    "MultilabelSVC": ours(),
    "MultilabelSVC, tree": ours(structure="tree"),
    "MultilabelSVC, independent": ours(structure="independent"),
    "one LinearSVC per label": lambda **C: OneVsRestClassifier(LinearSVC(**C)),
    "chain of LinearSVC": lambda **C: ClassifierChain(LinearSVC(**C)),
    "chain of LogisticRegression": lambda **C: ClassifierChain(LogisticRegression(max_iter=1000, **C)),
}


def scores(model: Any, split: Split) -> tuple[float, float, float, float]:
    """Return subset accuracy, Hamming loss and F1 in percent, and the seconds of training and prediction."""
    started = time.perf_counter()
    predicted = np.asarray(model.fit(split.X, split.y).predict(split.X_test)).astype(int)
    seconds = time.perf_counter() - started
    truth = np.asarray(split.y_test)
    micro = f1_score(truth, predicted, average="micro", zero_division=0)
    found = accuracy_score(truth, predicted), hamming_loss(truth, predicted), micro
    return (*(100.0 * value for value in found), seconds)  # type: ignore[return-value]


def chosen(make: Callable[..., Any], split: Split) -> float:
    """Return the C of largest subset accuracy on held-out training data."""
    inner = Split(*train_test_split(split.X, split.y, test_size=1 / 3, random_state=0))
    return max(GRID, key=lambda C: scores(make(C=C), inner)[0])


def measure(name: str, arguments: argparse.Namespace) -> None:
    split = SETS[name](arguments.data)
    print(f"\n{name}: {split.X.shape[0]} examples, {split.X.shape[1]} features, {split.y.shape[1]} labels")
    for model in arguments.model or MODELS:
        make = MODELS[model]
        runs: list[dict[str, float]] = [{}]
        if arguments.tune:
            runs.append({"C": chosen(make, split)})
        for parameters in runs:
            subset, wrong, micro, seconds = scores(make(**parameters), split)
            given = f"C={parameters['C']:g}" if parameters else "default"
            print(
                f"  {model:<28} {given:<8} {subset:5.1f} {wrong:5.1f} {micro:5.1f} {seconds:7.1f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(SETS), action="append")
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--data")
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in arguments.only or SETS:
        if_there(partial(measure, name, arguments))


if __name__ == "__main__":
    main()

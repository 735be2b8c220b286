"""Systems outside this project, trained anew for more and more iterations: they show no weights before."""

import itertools
import math
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmark_utils.data import MIN_COUNT, Raw, hamming_error
from benchmark_utils.trajectory import Row

ITERATIONS = (1, 2, 5, 10, 20, 50, 100)


def iterations_upto(passes: int) -> list[int]:
    """Return the numbers of iterations to train for."""
    return [k for k in ITERATIONS if k <= passes]


def crfsuite_tokens(raw: Raw, min_count: int) -> tuple[Any, Any]:
    """Return training and test tokens as crfsuite takes them: frequent names, or pixels with names."""
    if isinstance(raw.X[0][0][0], str):
        counts = Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(raw.X)))
        frequent = {name for name, count in counts.items() if count >= min_count}
        return _only(raw.X, frequent), _only(raw.X_test, frequent)
    return _pixels(raw.X), _pixels(raw.X_test)


def _only(X: Any, known: set[str]) -> Any:
    return [[[name for name in token if name in known] for token in tokens] for tokens in X]


def _pixels(X: Any) -> Any:
    return [[{f"x{j}": float(token[j]) for j in np.flatnonzero(token)} for token in word] for word in X]


class CrfSuite:
    """python-crfsuite at work on the features that this project's chains have.

    Parameters
    ----------
    raw : Raw
        Training and test sequences.
    algorithm : str
        ``"ap"``, the averaged perceptron, or ``"l2sgd"``.
    min_count : int
        Leave out named features of fewer tokens.
    """

    def __init__(self, raw: Raw, algorithm: str, min_count: int = MIN_COUNT) -> None:
        import pycrfsuite

        train, self.test = crfsuite_tokens(raw, min_count)
        self.trainer = pycrfsuite.Trainer(algorithm, verbose=False)
        begin = time.process_time()
        for tokens, labels in zip(train, raw.y, strict=True):
            self.trainer.append(pycrfsuite.ItemSequence(tokens), [str(label) for label in labels])
        self.n, self.seconds_to_load = len(train), time.process_time() - begin
        self.error = hamming_error([[str(label) for label in labels] for labels in raw.y_test])

    def train(self, iterations: int) -> tuple[float, list[list[str]]]:
        """Train for so many iterations; return the seconds it took and the labels of the test set."""
        import pycrfsuite

        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model")
            self.trainer.set_params({"max_iterations": iterations})
            begin = time.process_time()
            self.trainer.train(path)
            seconds = time.process_time() - begin
            tagger = pycrfsuite.Tagger()
            tagger.open(path)
            labels = [tagger.tag(pycrfsuite.ItemSequence(tokens)) for tokens in self.test]
            tagger.close()
        return seconds, labels

    def row(self, iterations: int) -> Row:
        """Return the test error after so many iterations; the objective is another one."""
        seconds, labels = self.train(iterations)
        calls, nan = iterations * self.n, math.nan
        return Row(float(iterations), calls, seconds, nan, nan, nan, self.error(np.concatenate(labels)))


def crammer_singer_row(raw: Raw, problem: Any, lam: float, iterations: int) -> Row:
    """Return liblinear's objective and test error after so many iterations, of n steps each."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    n = len(raw.y)
    model = LinearSVC(
        multi_class="crammer_singer", C=1.0 / (lam * n), fit_intercept=False, tol=1e-12, max_iter=iterations
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.process_time()
        model.fit(raw.X, raw.y)
        seconds = time.process_time() - begin
    primal = primal_of_classes(problem, model.coef_, lam)
    error = 1.0 - model.score(raw.X_test, raw.y_test)
    return Row(float(iterations), iterations * n, seconds, primal, math.nan, math.nan, error)


def primal_of_classes(problem: Any, coef: Any, lam: float) -> float:
    """Return the objective at weights given class by class."""
    from maxmargin.runtime.arrays import aligned_zeros
    from maxmargin.solving import objective
    from maxmargin.structures.problem import sizes

    w = aligned_zeros(sizes(problem).weights)
    problem.unpack(w).unary[:] = coef
    return objective.primal(problem, w, lam)

"""python-crfsuite, trained on the features of a chain."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# As they come: what sklearn_crfsuite.CRF() runs, and the fastest of the others.
ALGORITHMS = {"lbfgs": "CRF, L-BFGS", "averaged-perceptron": "averaged perceptron"}


def crfsuite_tagger(X: Any, y: Any, algorithm: str = "lbfgs", **settings: object) -> Any:
    """Return the tagger of a model trained on sequences of named features."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, settings, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger.open(path)
    return tagger


def named_features(X: Any) -> Any:
    """Return sequences with a dict of each row's entries that are not zero, if rows are arrays."""
    if not isinstance(X[0], np.ndarray):
        return X
    return [[{str(k): float(row[k]) for k in np.flatnonzero(row)} for row in rows] for rows in X]

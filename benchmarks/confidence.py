"""Are probabilities right? The calibration of the labels of tokens, with python-crfsuite's beside it.

    python benchmarks/confidence.py [--data DIRECTORY] [--only conll2000|ocr]

CoNLL-2000 and OCR are read from --data or $MAXMARGIN_DATA. A fifth of the training examples is held out for
`calibrate`; crfsuite is trained on the other four fifths, too. `probability=True` needs no held-out examples.

The expected calibration error compares the probability of the most likely label with how often it is right,
in 15 bins of equal width. The log-loss is the mean of -log p(true label), over tokens whose label was seen in
training.
"""

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from _crfsuite import MIN_COUNT
from _measure import Figure, Target, print_figures
from _problems import if_there
from maxmargin import ChainSVC
from maxmargin.datasets import load_conll2000, load_ocr

CALIBRATION = Target(must=1.5)
BINS = 15
OURS = {"loss": "hamming", "C": 0.1, "tol": 0.1, "verbose": 0, "random_state": 0}
# What sklearn_crfsuite.CRF() sets.
THEIRS = {"c1": 0.0, "c2": 1.0, "feature.minfreq": MIN_COUNT}
LEAST = 1e-300

Floats = NDArray[np.float64]


class Data(NamedTuple):
    """Training and test sequences and their labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def calibration_error(p: Floats, right: NDArray[np.bool_]) -> float:
    """Return the mean over tokens of the difference of confidence and accuracy in the token's bin."""
    bins = np.minimum((BINS * p).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, p - right)).sum() / len(p))


def figures(name: str, p: Floats, labels: Any, truth: Any, target: Target | None = None) -> list[Figure]:
    """Return calibration error, log-loss and accuracy for probabilities of labels, one row per token."""
    labels, truth = np.asarray(labels), np.asarray(truth)
    right = labels[p.argmax(axis=1)] == truth
    rows, columns = np.nonzero(truth[:, None] == labels)
    return [
        Figure(f"{name}: calibration error", 100.0 * calibration_error(p.max(axis=1), right), "%", target),
        Figure(f"{name}: log-loss", float(-np.log(np.maximum(p[rows, columns], LEAST)).mean())),
        Figure(f"{name}: most likely label is right", 100.0 * float(right.mean()), "%"),
    ]


def our_figures(model: ChainSVC, data: Data, target: Target | None) -> list[Figure]:
    p, how = np.concatenate(model.predict_marginals(data.X_test)), f"t = {model.temperature_:.3g}"
    how = f"probability=True, {how}" if model.probability else f"calibrate, {how}"
    return figures(f"ChainSVC, {how}", p, model.classes_, np.concatenate(data.y_test), target)


def their_figures(data: Data) -> list[Figure]:
    """Return the figures of python-crfsuite, trained by L-BFGS."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=THEIRS, verbose=False)
    for tokens, labels in zip(data.X, data.y, strict=True):
        trainer.append(tokens, labels)
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))
        tagger.open(str(Path(folder) / "model"))
    rows, known = [], sorted(tagger.labels())
    for tokens in data.X_test:
        tagger.set(tokens)
        rows += [[tagger.marginal(label, t) for label in known] for t in range(len(tokens))]
    return figures("crfsuite, L-BFGS", np.array(rows), known, np.concatenate(data.y_test))


def split(data: Data) -> tuple[Data, Any, Any]:
    """Return the data with four fifths of the training examples, and the other fifth."""
    order = np.random.default_rng(0).permutation(len(data.X))
    chosen = [[part[i] for i in order] for part in (data.X, data.y)]
    n = len(order) * 4 // 5
    return data._replace(X=chosen[0][:n], y=chosen[1][:n]), chosen[0][n:], chosen[1][n:]


def measure(name: str, data: Data, settings: dict[str, Any], target: Target | None, rival: bool) -> None:
    """Print the figures of one data set."""
    print(f"{name}: ChainSVC({', '.join(f'{key}={value!r}' for key, value in settings.items())})")
    kept, X_held, y_held = split(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrated = ChainSVC(**settings).fit(kept.X, kept.y).calibrate(X_held, y_held)
        validated = ChainSVC(**settings, probability=True).fit(data.X, data.y)
    found = our_figures(calibrated, data, target) + our_figures(validated, data, target)
    print_figures(found + (their_figures(kept) if rival else []))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="directory of the data sets")
    parser.add_argument("--only", choices=("conll2000", "ocr"))
    options = parser.parse_args()

    def conll2000() -> None:
        data = Data(*load_conll2000(data_home=options.data))
        measure("CoNLL-2000", data, {**OURS, "min_count": MIN_COUNT}, CALIBRATION, rival=True)

    def ocr() -> None:
        measure("OCR letters", Data(*load_ocr(data_home=options.data)), OURS, None, rival=False)

    for name, run in (("ocr", ocr), ("conll2000", conll2000)):
        if options.only in (None, name):
            if_there(run)


if __name__ == "__main__":
    main()

"""Model files of CoNLL-2000 beside python-crfsuite's: the same attributes, about the same F1, all in one run.

    python benchmarks/model_files.py [--quick] [--data DIRECTORY]

The data are read from --data or $MAXMARGIN_DATA. Both train on all attributes, crfsuite by 100 iterations of
L-BFGS (a few with --quick). A file is loaded in new processes, which import the estimator before the clock
starts and do nothing else: the first load of a process is what users wait for. The predictions of the loaded
model are compared with those of the trained one, bit by bit.
"""

import argparse
import json
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from _measure import Figure, Target, print_figures, run_python
from _problems import if_there
from maxmargin import ChainSVC, load
from maxmargin.datasets import chunk_f1, load_conll2000

C = 0.3
SIZE, MILLISECONDS = Target(must=1.0), Target(must=200.0)
# Wall-clock and processor milliseconds of the first load in a process.
LOAD = """
import json, sys, time
from maxmargin import ChainSVC, load
begin = time.perf_counter(), time.process_time()
model = load(sys.argv[1])
print(json.dumps([1e3 * (time.perf_counter() - begin[0]), 1e3 * (time.process_time() - begin[1])]))
"""


def trained(X: Any, y: Any, quick: bool) -> ChainSVC:
    """Return a chain, trained with its defaults but for C."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a run that is cut short
        return ChainSVC(C=C, max_iter=2 if quick else 1000, verbose=0, random_state=0).fit(X, y)


def train_crfsuite(X: Any, y: Any, path: str, quick: bool) -> None:
    """Write the model of crfsuite's defaults."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 3 if quick else 100}, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(path)


def crfsuite_labels(path: str, X: Any) -> list[list[str]]:
    """Return what crfsuite's model predicts."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return [tagger.tag(tokens) for tokens in X]


def check_same(model: ChainSVC, loaded: Any, X: Any) -> None:
    """Raise unless both models predict the same, and their margins have the same bits."""
    if loaded.predict(X) != model.predict(X):
        raise AssertionError("the loaded model predicts other labels")
    pairs = zip(loaded.predict_margins(X), model.predict_margins(X), strict=True)
    if any(a.tobytes() != b.tobytes() for a, b in pairs):
        raise AssertionError("the loaded model has other margins")


def size_figures(model: ChainSVC, theirs: Path, folder: Path) -> list[Figure]:
    """Save the model in both types, and return the sizes in megabytes and as shares of crfsuite's."""
    their_size = theirs.stat().st_size
    figures = [Figure("crfsuite's file", their_size / 1e6, "MB")]
    for dtype in ("float32", None):
        model.save(folder / "ours", dtype=dtype)
        size, name = (folder / "ours").stat().st_size, f"ChainSVC's file, {dtype or 'float64'}"
        figures += [
            Figure(name, size / 1e6, "MB"),
            Figure(f"{name} / crfsuite's", size / their_size, "x", SIZE),
        ]
    return figures


def loading_figures(path: Path, repetitions: int) -> list[Figure]:
    """Return the milliseconds of the first load in a process, by both clocks."""
    found = [json.loads(run_python("-c", LOAD, str(path))) for _ in range(repetitions)]
    return [
        Figure(f"first load, {clock}, median", statistics.median(column), "ms", MILLISECONDS)
        for clock, column in zip(("wall clock", "processor"), zip(*found, strict=True), strict=True)
    ]


def measure(data: str | None, quick: bool) -> None:
    """Print the table."""
    X, y, X_test, y_test = load_conll2000(data_home=data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, theirs = trained(X, y, quick), folder / "theirs"
        train_crfsuite(X, y, str(theirs), quick)
        figures = [
            Figure("ChainSVC's F1", chunk_f1(y_test, model.predict(X_test))),
            Figure("crfsuite's F1", chunk_f1(y_test, crfsuite_labels(str(theirs), X_test))),
            *size_figures(model, theirs, folder),
            *loading_figures(folder / "ours", 3 if quick else 9),
        ]
        check_same(model, load(folder / "ours"), X_test)
    share = np.count_nonzero(model.coef_) / model.coef_.size
    print(f"{model.n_features_in_} attributes, {share:.1%} of the weights are not zero")
    print_figures(figures)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="models that are hardly trained, fewer processes"
    )
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    if_there(lambda: measure(options.data, options.quick))


if __name__ == "__main__":
    main()

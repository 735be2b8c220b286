"""The demonstration: train a chain, certify it, compare it with an unstructured classifier, plot."""

import sys
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.datasets import load_digit_words
from maxmargin.decoding import decode_all
from maxmargin.display import CertificateLines, ProgressLine
from maxmargin.methods import Accelerated, Pairwise
from maxmargin.plotting import plot_convergence
from maxmargin.problems import Chain
from maxmargin.result import Progress, Result, Status
from maxmargin.solve import solve

# Each C, among 0.003, 0.01, 0.03, 0.1 and 0.3, gives the smallest error of digits in 5-fold cross-validation
# on the training words, with folds by distinct word. The held-out words were not used.
CHAIN_C, SINGLE_C = 0.01, 0.1
TOL = 3e-4
CHECK_EVERY = 10
SEED = 0
INTERRUPTED = 130
_WIDTH = 96

Say = Callable[[str], None]


class Words(NamedTuple):
    """Words as arrays: one row of pixels and one digit per position."""

    X_train: list[FloatArray]
    y_train: list[IntArray]
    X_test: list[FloatArray]
    y_test: list[IntArray]


class Errors(NamedTuple):
    """The shares of wrong digits and of wrong words among the held-out words."""

    digits: float
    words: float


def run(plot: Path, *, quiet: bool = False) -> int:
    """Run the demonstration and print to standard output.

    Parameters
    ----------
    plot : Path
        File of the convergence plot.
    quiet : bool
        Print only the result.

    Returns
    -------
    int
        Exit code: 0, or 130 if the user interrupted the training.
    """
    tell: Say = (lambda text: None) if quiet else _say
    data = Words(*load_digit_words())
    tell(_introduction(data))
    _warn_of_compilation(tell)
    result = train(data, quiet=quiet)
    _say(_certificate(result))
    if result.status is Status.INTERRUPTED:
        _say("Interrupted; run the demo again to see it to the end.")
        return INTERRUPTED
    _say(_comparison(chain_errors(result, data), single_errors(data)))
    _say(_plotted(result, plot))
    return 0


def train(data: Words, *, quiet: bool = False) -> Result:
    """Train the chain and show how primal and dual approach each other.

    Parameters
    ----------
    data : Words
    quiet : bool
        Show nothing.

    Returns
    -------
    Result
    """
    problem = Chain.from_sequences(data.X_train, data.y_train)
    method = Accelerated(Pairwise(lam=1.0 / (CHAIN_C * len(data.X_train))))
    on_terminal = sys.stderr.isatty()
    with ProgressLine("training", enabled=on_terminal and not quiet, delay=0) as line:
        callbacks: list[Callable[[Progress], None]] = [line]
        if not on_terminal and not quiet:
            callbacks = [CertificateLines()]
        return solve(
            problem, method, tol=TOL, check_every=CHECK_EVERY, callbacks=callbacks, random_state=SEED
        )


def chain_errors(result: Result, data: Words) -> Errors:
    """Return the errors of the chain on the held-out words."""
    classes = np.unique(np.concatenate(data.y_train))
    offsets = np.cumsum([0, *map(len, data.X_test)])
    problem = Chain.for_prediction(np.concatenate(data.X_test), offsets, len(classes))
    return _errors(classes[decode_all(problem, result.w)], data.y_test)


def single_errors(data: Words) -> Errors:
    """Return the errors of a classifier of single digits on the same words and pixels."""
    from maxmargin.estimators import MulticlassSVC

    model = MulticlassSVC(C=SINGLE_C, tol=TOL, verbose=0, random_state=SEED)
    model.fit(np.concatenate(data.X_train), np.concatenate(data.y_train))
    return _errors(model.predict(np.concatenate(data.X_test)), data.y_test)


def _errors(predicted: IntArray, truth: list[IntArray]) -> Errors:
    wrong = predicted != np.concatenate(truth)
    bounds = np.cumsum([0, *map(len, truth)])
    return Errors(float(wrong.mean()), float(np.mean([wrong[a:b].any() for a, b in pairwise(bounds)])))


def _warn_of_compilation(tell: Say) -> None:
    directory = cache_directory()
    if directory is None:
        tell("Compiling kernels, some 15 seconds at every start: no directory for them is writeable.")
    elif not any(directory.iterdir()):
        tell("Compiling kernels: some 15 seconds, once per installation.")


def _introduction(data: Words) -> str:
    n_digits = sum(map(len, data.X_train))
    return (
        "This trains a structural SVM to read words of handwritten digits: it labels all digits of a word "
        "together, and learns from examples which digit follows which. The data are "
        f"{len(data.X_train)} words ({n_digits} digits) to train on and {len(data.X_test)} others to test, "
        "English words keyed on a telephone, each key one of scikit-learn's scanned digits with noise "
        "added. The words, all in -ing and -ion, were chosen so that structure helps."
    )


def _certificate(result: Result) -> str:
    last = result.history.rows[-1]
    return (
        f"After {last.passes:.0f} passes over the words, {last.seconds:.1f} seconds, the objective is "
        f"{result.primal:.5f}, and no weights can bring it below {result.dual:.5f}: the answer is "
        f"certified to be within {result.gap:.2g} of the best ({result.status.value}; tol is {TOL:g})."
    )


def _comparison(chain: Errors, single: Errors) -> str:
    return (
        f"On the held-out words the chain gets {chain.digits:.1%} of the digits and {chain.words:.1%} of "
        f"the words wrong; a multiclass SVM that sees one digit at a time, on the same pixels, gets "
        f"{single.digits:.1%} and {single.words:.1%} wrong. C, {CHAIN_C:g} for the chain and {SINGLE_C:g} "
        f"for the other, was chosen by cross-validation on the training words alone."
    )


def _plotted(result: Result, path: Path) -> str:
    """Write the plot; return a sentence that says where it is, or why there is none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "No plot, as matplotlib is not installed; run: pip install maxmargin[plot]"
    figure = Figure(figsize=(6.4, 5.6), dpi=150, layout="constrained")
    plot_convergence(result.history, figure.subplots(2, 1, sharex=True), tol=TOL)
    figure.savefig(path)
    return f"The convergence plot is in {path}."


def _say(text: str) -> None:
    print(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False), flush=True)

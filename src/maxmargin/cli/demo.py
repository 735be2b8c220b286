"""The demonstration: train a chain, certify it, compare it with an unstructured classifier, and draw both."""

import sys
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling.kernel_cache import cache_directory, has_kernels
from maxmargin.datasets import load_digit_words
from maxmargin.methods import Accelerated, BlockFrankWolfe, Pairwise
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.display import CertificateLines, ProgressLine
from maxmargin.solving.driver import solve
from maxmargin.solving.result import History, Progress, Result, Status, plot_convergence
from maxmargin.structures.problem import AnyProblem
from maxmargin.structures.sequences.model import Chain

# Each C, among 0.003, 0.01, 0.03, 0.1 and 0.3, gives the smallest error of digits in 5-fold cross-validation
# on the training words, with folds by distinct word. The held-out words were not used.
CHAIN_C, SINGLE_C = 0.01, 0.1
TOL = 3e-4
SEED = 0
INTERRUPTED = 130
_WIDTH = 96
# Held-out words that the plot shows, and the height and width of a scan in pixels.
_SHOWN, _PIXELS = 8, 8
_RIGHT, _WRONG, _GREY = "#009E73", "#D55E00", "#666666"

Say = Callable[[str], None]


class Words(NamedTuple):
    """Words as arrays: one row of pixels and one digit per position."""

    X_train: list[FloatArray]
    y_train: list[IntArray]
    X_test: list[FloatArray]
    y_test: list[IntArray]


class Readings(NamedTuple):
    """The digits of all held-out words, one after another, as the chain and the other classifier read."""

    chain: IntArray
    single: IntArray


class Errors(NamedTuple):
    """The shares of wrong digits and of wrong words among the held-out words."""

    digits: float
    words: float


def run(plot: Path, *, quiet: bool = False) -> int:
    """Run the demonstration and print to standard output.

    Parameters
    ----------
    plot : Path
        File of the picture: the convergence, and some held-out words.
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
    paper = None if result.status is Status.INTERRUPTED else train_as_in_paper(data, result)
    if paper is None or paper.status is Status.INTERRUPTED:
        _say("Interrupted; run the demo again to see it to the end.")
        return INTERRUPTED
    _say(_rival(paper))
    readings = Readings(chain_reading(result, data), single_reading(data))
    _say(_comparison(*(errors(reading, data.y_test) for reading in readings)))
    _say(_plotted(plot, result.history, paper.history, data, readings))
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
    method = Accelerated(Pairwise(lam=_lam(data)))
    on_terminal = sys.stderr.isatty()
    with ProgressLine("training", enabled=on_terminal and not quiet, delay=0) as line:
        callbacks: list[Callable[[Progress], None]] = [line]
        if not on_terminal and not quiet:
            callbacks = [CertificateLines()]
        return solve(_problem(data), method, tol=TOL, check_every=1, callbacks=callbacks, random_state=SEED)


def train_as_in_paper(data: Words, other: Result) -> Result:
    """Train the same chain by the paper's BCFW with line search, for as many passes as another run took."""
    method, passes = BlockFrankWolfe(lam=_lam(data)), int(other.history.passes[-1])
    return solve(_problem(data), method, tol=TOL, max_passes=passes, check_every=1, random_state=SEED)


def _problem(data: Words) -> AnyProblem:
    return Chain.from_sequences(data.X_train, data.y_train)


def _lam(data: Words) -> float:
    return 1.0 / (CHAIN_C * len(data.X_train))


def chain_reading(result: Result, data: Words) -> IntArray:
    """Return the digits of the held-out words as the chain reads them."""
    classes = np.unique(np.concatenate(data.y_train))
    offsets = np.cumsum([0, *map(len, data.X_test)])
    problem = Chain.for_prediction(np.concatenate(data.X_test), offsets, len(classes))
    return classes[decode_all(problem, result.w)]


def single_reading(data: Words) -> IntArray:
    """Return the digits of the held-out words as a classifier of single digits reads them."""
    from maxmargin.structures.classes.estimator import MulticlassSVC

    model = MulticlassSVC(C=SINGLE_C, tol=TOL, verbose=0, random_state=SEED)
    model.fit(np.concatenate(data.X_train), np.concatenate(data.y_train))
    found: IntArray = model.predict(np.concatenate(data.X_test))
    return found


def errors(reading: IntArray, truth: list[IntArray]) -> Errors:
    """Return the shares of digits and of words that are read wrongly."""
    wrong = [(part != word) for part, word in zip(_by_word(reading, truth), truth, strict=True)]
    return Errors(float(np.concatenate(wrong).mean()), float(np.mean([part.any() for part in wrong])))


def _by_word(reading: IntArray, truth: list[IntArray]) -> list[IntArray]:
    return [reading[a:b] for a, b in pairwise(np.cumsum([0, *map(len, truth)]).tolist())]


def _warn_of_compilation(tell: Say) -> None:
    if has_kernels():
        return
    if cache_directory() is None:
        tell("Compiling kernels, some 20 seconds at every start: no directory for them is writeable.")
    else:
        tell("Compiling kernels: some 20 seconds, once per installation.")


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


def _rival(paper: Result) -> str:
    return (
        f"BCFW, the method of the paper, is certified to be within {paper.gap:.2g} of the best after "
        f"{paper.history.passes[-1]:.0f} passes."
    )


def _comparison(chain: Errors, single: Errors) -> str:
    return (
        f"On the held-out words the chain gets {chain.digits:.1%} of the digits and {chain.words:.1%} of "
        f"the words wrong; a multiclass SVM that sees one digit at a time, on the same pixels, gets "
        f"{single.digits:.1%} and {single.words:.1%} wrong. C, {CHAIN_C:g} for the chain and {SINGLE_C:g} "
        f"for the other, was chosen by cross-validation on the training words alone."
    )


def _plotted(path: Path, history: History, paper: History, data: Words, readings: Readings) -> str:
    """Write the picture; return a sentence that says where it is, or why there is none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "No plot, as matplotlib is not installed; run: pip install maxmargin[plot]"
    figure: Any = Figure(figsize=(13.0, 6.4), dpi=150, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.0, 1.1])
    panels = left.subplots(2, 1, sharex=True)
    plot_convergence(history, panels, tol=TOL)
    gap = np.minimum.accumulate(paper.primal) - np.maximum.accumulate(paper.dual)
    panels[1].plot(paper.passes, gap, "--", color=_GREY, marker="o", markersize=3.5, label="gap of BCFW")
    panels[1].legend(frameon=False)
    _draw_words(right, data, readings)
    figure.savefig(path)
    return f"The convergence and some held-out words are drawn in {path}."


def _draw_words(figure: Any, data: Words, readings: Readings) -> None:
    """Draw the first held-out words that at least one of the two misreads, each with its three readings."""
    read = [_by_word(reading, data.y_test) for reading in readings]
    words = zip(data.X_test, data.y_test, *read, strict=True)
    shown = [(x, lines) for x, *lines in words if any((line != lines[0]).any() for line in lines)][:_SHOWN]
    figure.suptitle("The first held-out words that at least one model misreads; mistakes are bold")
    width = _PIXELS * max((len(x) for x, _ in shown), default=1)
    axes = np.ravel(figure.subplots(max(len(shown), 1), 1, squeeze=False))
    for ax in axes:
        ax.axis("off")
    for ax, (x, lines) in zip(axes, shown, strict=False):
        ax.imshow(np.hstack([scan.reshape(_PIXELS, _PIXELS) for scan in x]), cmap="Greys")
        ax.set(xlim=(-0.5 - 2 * _PIXELS, width - 0.5), ylim=(2.3 * _PIXELS, -0.5))
        _write_readings(ax, lines)


def _write_readings(ax: Any, lines: list[IntArray]) -> None:
    """Write the digits below the scans of a word: the truth, and both readings."""
    for row, (name, reading) in enumerate(zip(("written", "chain", "one by one"), lines, strict=True)):
        y, style = (1.25 + 0.4 * row) * _PIXELS, {"va": "center", "fontsize": "small"}
        ax.text(-2.0, y, name, color=_GREY, ha="right", **style)
        for place, (digit, true) in enumerate(zip(reading.tolist(), lines[0].tolist(), strict=True)):
            colour = _GREY if row == 0 else _RIGHT if digit == true else _WRONG
            weight = "normal" if digit == true else "bold"
            x = _PIXELS * (place + 0.5) - 0.5
            ax.text(x, y, digit, color=colour, ha="center", weight=weight, **style)


def _say(text: str) -> None:
    print(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False), flush=True)

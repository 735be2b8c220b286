"""Draw the figures of the guides: ``MAXMARGIN_DATA=... python docs/make_figures.py [NAME ...]``.

Most are the pictures of the scripts in `examples`, which are run here on real data. The site shows the files;
building it runs none of this.
"""

import runpy
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    ChainSVC,
    Checkpoint,
    FrankWolfe,
    MulticlassSVC,
    Pairwise,
    solve,
)
from maxmargin.datasets import load_conll2000, load_digit_words, load_ocr
from maxmargin.displays import FeaturesDisplay
from maxmargin.problems import Chain

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
# Text stays text, and the same data give the same file.
STYLE = {"svg.fonttype": "none", "font.size": 9, "axes.grid": False, "figure.constrained_layout.use": True}


def of_example(name: str, width: float, height: float) -> Callable[[], None]:
    """Return a function that runs an example and leaves its picture as the current figure."""

    def draw() -> None:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        plt.gcf().set_size_inches(width, height)

    return draw


def draw_margins() -> None:
    """Draw how many wrong labels one finds by looking at the tokens of smallest margin first."""
    X, y, X_test, y_test = load_conll2000()
    model = ChainSVC(C=0.1, min_count=3, random_state=0).fit(X, y)
    pairs = zip(model.predict(X_test), y_test, strict=True)
    wrong = np.concatenate([np.asarray(labels) != np.asarray(truth) for labels, truth in pairs])
    order = np.argsort(np.concatenate(model.predict_margins(X_test)))
    looked_at = np.arange(1, len(wrong) + 1) / len(wrong)
    found = np.cumsum(wrong[order]) / wrong.sum()
    print(f"margins: {found[looked_at <= 0.05][-1]:.3f} of the wrong labels in 5 % of the tokens")
    axes = curves(5.0, 3.0)
    keep = np.unique(np.linspace(0, len(wrong) - 1, 200).astype(int))
    axes.plot(100 * looked_at[keep], 100 * found[keep], color=BLUE, label="smallest margin first")
    axes.plot([0, 100], [0, 100], "--", color=GREY, label="in any order")
    axes.set(xlabel="tokens looked at, %", ylabel="wrong labels found, %", xlim=(0, 100), ylim=(0, 100))
    axes.legend(frameon=False, loc="lower right")


def draw_choosing_c() -> None:
    """Draw score and passes against C."""
    X_rest, y_rest, X_fold, y_fold = load_ocr(fold=0)
    Cs, right, passes = np.geomspace(0.01, 10, 10), [], []
    for C in Cs:
        model = ChainSVC(C=C, random_state=0).fit(X_fold, y_fold)
        right.append(100 * model.score(X_rest, y_rest))
        passes.append(model.n_iter_)
        print(f"choosing_c: C = {C:.3g}, {right[-1]:.2f} %, {passes[-1]} passes")
    axes = curves(5.0, 3.0)
    axes.semilogx(Cs, right, "o-", color=BLUE)
    axes.axvline(0.15, color=GREY, linestyle=":")
    axes.text(0.16, min(right), "default", color=GREY)
    axes.set(xlabel="C")
    axes.set_ylabel("letters right, %", color=BLUE)
    other = axes.twinx()
    other.semilogx(Cs, passes, "s--", color=VERMILION)
    other.set_ylim(bottom=0)
    other.set_ylabel("passes", color=VERMILION)


def draw_certificate() -> None:
    """Draw the two bounds of a run, and the gap between them."""
    history = solve(
        digit_words(),
        Accelerated(Pairwise(lam=1 / 300)),
        tol=1e-4,
        check_every=1,
        max_passes=60,
        random_state=0,
    ).history
    upper, lower = np.minimum.accumulate(history.primal), np.maximum.accumulate(history.dual)
    _, (left, right) = plt.subplots(1, 2, figsize=(7.0, 2.8))
    left.fill_between(history.passes, lower, upper, color=BLUE, alpha=0.15, linewidth=0)
    left.plot(history.passes, upper, color=VERMILION, label="best primal")
    left.plot(history.passes, lower, "--", color=BLUE, label="best dual")
    left.set(xlabel="passes", ylabel="objective", xlim=(1, 40))
    left.legend(frameon=False)
    right.semilogy(history.passes, upper - lower, color=BLUE)
    right.set(xlabel="passes", ylabel="gap")
    for axes in (left, right):
        axes.grid(alpha=0.3, linewidth=0.5)


def draw_large_data() -> None:
    """Draw the processor time of `fit` against the number of sentences."""
    X, y, _, _ = load_conll2000()
    ChainSVC(random_state=0).fit(X[:50], y[:50])  # may compile
    sizes, seconds = [len(X) // share for share in (16, 8, 4, 2, 1)], []
    for size in sizes:
        times = []
        for _ in range(3):
            begin = time.process_time()
            model = ChainSVC(random_state=0).fit(X[:size], y[:size])
            times.append(time.process_time() - begin)
        seconds.append(min(times))
        print(f"large_data: {size} sentences, {seconds[-1]:.2f} s, {model.n_iter_} passes")
    axes = curves(5.0, 3.0)
    axes.plot(sizes, seconds, "o-", color=BLUE)
    axes.set(xlabel="training sentences", ylabel="processor seconds of fit", xlim=(0, None), ylim=(0, None))


def draw_methods() -> None:
    """Draw the gap of several methods against passes."""
    problem, lam = digit_words(), 1 / 300
    methods = {
        "FrankWolfe": (FrankWolfe(lam), GREEN, ":"),
        "BlockFrankWolfe": (BlockFrankWolfe(lam), GREY, "-."),
        "Averaged(BlockFrankWolfe)": (Averaged(BlockFrankWolfe(lam), "weighted"), VERMILION, "--"),
        "Accelerated(Pairwise)": (Accelerated(Pairwise(lam)), BLUE, "-"),
    }
    axes = curves(6.0, 3.2)
    for name, (method, color, line) in methods.items():
        history = solve(problem, method, tol=0.0, check_every=1, max_passes=100, random_state=0).history
        gap = np.minimum.accumulate(history.primal) - np.maximum.accumulate(history.dual)
        axes.loglog(history.passes, gap, line, color=color, label=name)
        print(f"methods: {name}, gap {gap[-1]:.3g} after {history.passes[-1]:.0f} passes")
    axes.set(xlabel="passes", ylabel="gap", xlim=(1, 100))
    axes.legend(frameon=False)


def draw_checkpoint() -> None:
    """Draw the gap of a run that was cut and continued, and of one that was not."""
    problem, method = digit_words(), Accelerated(Pairwise(lam=1 / 300))

    def run(passes: int, **other: Any) -> Any:
        return solve(problem, method, tol=0.0, check_every=1, max_passes=passes, **other)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        cut = run(12, checkpoint=Checkpoint(path, every="1 pass"), random_state=0)
        rest, whole = run(40, start=path), run(40, random_state=0)
    print(f"checkpoint: same weights: {np.array_equal(rest.weights, whole.weights)}")
    axes = curves(5.5, 3.0)
    axes.semilogy(
        whole.history.passes, whole.history.gap, color=GREY, linewidth=5, alpha=0.35, label="never stopped"
    )
    for history, line, color, name in (
        (rest.history, "--", BLUE, "continued from the file"),
        (cut.history, "-", VERMILION, "until it was stopped"),
    ):
        axes.semilogy(history.passes, history.gap, line, color=color, label=name)
    axes.set(xlabel="passes", ylabel="gap")
    axes.legend(frameon=False)


def draw_units() -> None:
    """Draw the accuracy on columns of different units, as they come and standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    axes, Cs = curves(5.5, 3.0), np.geomspace(1e-4, 10, 11)
    for steps, line, color, name in (
        ([StandardScaler()], "o-", BLUE, "standardised"),
        ([], "s--", VERMILION, "as they come"),
    ):
        models = (make_pipeline(*steps, MulticlassSVC(C=C, max_iter=200, random_state=0)) for C in Cs)
        right = [100 * cross_val_score(model, X, y, cv=5).mean() for model in models]
        print(f"units: {name}, {', '.join(f'{score:.1f}' for score in right)} %")
        axes.semilogx(Cs, right, line, color=color, label=name)
    axes.set(xlabel="C", ylabel="right in cross-validation, %")
    axes.legend(frameon=False)


def draw_weights() -> None:
    """Draw the largest weights of two labels."""
    X, y, _, _ = load_conll2000()
    model = ChainSVC(min_count=3, random_state=0).fit(X, y)
    _, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.2))
    FeaturesDisplay.from_estimator(model, "B-NP", k=10, ax=left)
    FeaturesDisplay.from_estimator(model, "B-VP", k=10, ax=right)


def digit_words() -> Any:
    """Return the problem of 300 words of scanned digits."""
    X, y, _, _ = load_digit_words(n_train=300, n_test=1, random_state=0)
    return Chain.from_sequences(X, y)


def curves(width: float, height: float) -> Any:
    """Return the axes of a new figure, with a grid."""
    _, axes = plt.subplots(figsize=(width, height))
    axes.grid(alpha=0.3, linewidth=0.5)
    return axes


FIGURES: dict[str, Callable[[], None]] = {
    "alignment": of_example("plot_alignment", 5.5, 5.0),
    "certificate": draw_certificate,
    "checkpoint": draw_checkpoint,
    "choosing_c": draw_choosing_c,
    "kernels": of_example("plot_kernels", 5.5, 4.0),
    "large_data": draw_large_data,
    "margins": draw_margins,
    "methods": draw_methods,
    "nuclei": of_example("plot_nuclei", 7.0, 3.0),
    "own_oracle": of_example("plot_own_oracle", 4.0, 5.2),
    "parsing": of_example("plot_parsing", 7.0, 2.4),
    "phrases": of_example("plot_phrases", 6.5, 3.2),
    "scene": of_example("plot_scene", 5.0, 4.2),
    "units": draw_units,
    "weights": draw_weights,
    "snakes": of_example("plot_snakes", 7.0, 2.4),
    "words": of_example("plot_words", 5.5, 4.8),
}


def main(names: list[str]) -> None:
    """Draw the figures with these names, or all of them."""
    mpl.use("Agg")
    sys.path.insert(0, str(EXAMPLES))
    for name in names or FIGURES:
        with mpl.rc_context(STYLE | {"svg.hashsalt": name}):
            FIGURES[name]()
            plt.savefig(DOCS / "figures" / f"{name}.svg", metadata={"Date": None})
        plt.close("all")


if __name__ == "__main__":
    main(sys.argv[1:])

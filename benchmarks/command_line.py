"""The command line beside python-crfsuite: whole processes on the same attribute files, start included.

    python benchmarks/command_line.py [--parts PART ...] [--rounds N] [--folder DIR] [--data DIR]

The attributes are those of `window_features` on CoNLL-2000, 19 per token, read from --data or
$MAXMARGIN_DATA. The parts:

``tolerance`` trains on the first four fifths of the training sentences and prints F1 on the last fifth for
some values of --tol; `LOOSE` is the largest within a tenth of a point of the best. Not run by default.
``train`` compares `maxmargin train`, as it comes and with `LOOSE`, with a script that runs 100 iterations of
L-BFGS, once.
``tag`` compares `maxmargin tag` with a script that uses crfsuite's tagger, one after another in each round,
on the test set. It also times processes that only import what the estimator rests on: no program that imports
this can tag faster.
``long`` does so on many copies of the test set, which shows what the start of a process costs.

Models in --folder are used, not trained again, but by ``train``. Kernels are compiled before the first round.
Processor seconds are disturbed less by other work than those on the clock.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _measure import Figure, Target, Times, print_figures, ratio, run_python
from _problems import if_there
from maxmargin.datasets import load_conll2000
from maxmargin.evaluation import phrase_scores

ITERATIONS, F1 = 100, 0.936
TRAINING = Target(must=0.1)
TAGGING = Target(must=2.0, floor=True)
COPIES = 40
PARTS = ("train", "tag", "long")
TOLERANCE = "tolerance"
# The values of --tol that held-out sentences choose from, and the one that they chose: F1 is 0.9353, 0.9383,
# 0.9385 and 0.9390, after 5, 10, 15 and 20 passes.
TOLERANCES = (0.5, 0.2, 0.1, 0.05)
LOOSE = 0.2
# Installed packages have bytecode. Here it is kept even where the environment forbids it.
BYTECODE = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": os.path.join(tempfile.gettempdir(), "maxmargin-bytecode"),
}
# What a process imports before the first line of the package runs.
IMPORTS = {
    "NumPy": "import numpy",
    "NumPy, SciPy's sparse matrices, Numba": "import numpy, scipy.sparse, numba",
    "these and scikit-learn's base": "import numpy, scipy.sparse, numba, sklearn.base",
    "maxmargin.ChainSVC": "from maxmargin import ChainSVC",
}
TRAIN = """
import sys, pycrfsuite
trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": int(sys.argv[3])}, verbose=False)
X, y = [], []
for line in open(sys.argv[1], encoding="utf-8"):
    label, *attributes = line.rstrip("\\n").split("\\t")
    if label:
        X.append([name.replace("\\\\:", ":").replace("\\\\\\\\", "\\\\") for name in attributes])
        y.append(label)
    elif X:
        trainer.append(X, y)
        X, y = [], []
trainer.train(sys.argv[2])
"""
TAG = """
import sys, pycrfsuite
tagger = pycrfsuite.Tagger()
tagger.open(sys.argv[2])
with open(sys.argv[3], "w", encoding="utf-8") as out:
    X = []
    for line in open(sys.argv[1], encoding="utf-8"):
        label, *attributes = line.rstrip("\\n").split("\\t")
        if label:
            X.append([name.replace("\\\\:", ":").replace("\\\\\\\\", "\\\\") for name in attributes])
        elif X:
            out.write("\\n".join(tagger.tag(X)) + "\\n\\n")
            X = []
"""


def write_attributes(path: Path, X: Iterable[Any], y: Iterable[Any]) -> None:
    """Write sequences as an attribute file."""
    with open(path, "w", encoding="utf-8") as stream:
        for tokens, labels in zip(X, y, strict=True):
            for names, label in zip(tokens, labels, strict=True):
                escaped = (name.replace("\\", "\\\\").replace(":", "\\:") for name in names)
                stream.write("\t".join([label, *escaped]) + "\n")
            stream.write("\n")


def command(*arguments: object) -> Callable[[], object]:
    """Return a call of the command in a new process."""
    return lambda: run_python("-m", "maxmargin", *map(str, arguments), **BYTECODE)


def script(text: str, *arguments: object) -> Callable[[], object]:
    """Return a run of a script in a new process."""
    return lambda: run_python("-c", text, *map(str, arguments), **BYTECODE)


class Seconds(NamedTuple):
    """The seconds of a task on the clock, and those of processors."""

    clock: Times
    processor: Times


def in_turn(tasks: dict[str, Callable[[], object]], rounds: int) -> tuple[Seconds, ...]:
    """Return the seconds of tasks that run one after another, round by round."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            before = os.times()
            task()
            after = os.times()
            processor = sum(after[2:4]) - sum(before[2:4])
            seconds[name].append((after.elapsed - before.elapsed, processor))
            print(f"{name}: {after.elapsed - before.elapsed:.2f} s, {processor:.2f} s", file=sys.stderr)
    return tuple(Seconds(*map(Times, zip(*values, strict=True))) for values in seconds.values())


def compared(name: str, mine: Seconds, rival: Seconds, target: Target) -> list[Figure]:
    """Return the ratios of seconds, ours to theirs, or theirs to ours where the target is a floor."""
    figures = []
    for kind in Seconds._fields:
        pair = getattr(mine, kind), getattr(rival, kind)
        kept = target if kind == "clock" else None
        figures.append(
            ratio(f"{name}, {kind}", [pair[::-1] if target.floor else pair], target)._replace(target=kept)
        )
    return figures


def f1_of(path: Path, truth: Sequence[Any]) -> float:
    """Return the F1 score of phrases of the labels in a file, one per line."""
    sequences = path.read_text(encoding="utf-8").strip().split("\n\n")
    return phrase_scores(truth, [lines.split("\n") for lines in sequences]).overall.f1


class Files(NamedTuple):
    """The files of a run."""

    train: Path
    test: Path
    long: Path
    ours: Path
    loose: Path
    theirs: Path
    out: Path
    out_theirs: Path

    @classmethod
    def within(cls, folder: Path) -> "Files":
        return cls(*(folder / name for name in cls._fields))

    def training(self, options: list[str]) -> dict[str, Callable[[], object]]:
        """Return the two ways to train."""
        return {
            "maxmargin": command("train", self.train, "--model", self.ours, "--quiet", *options),
            "crfsuite": script(TRAIN, self.train, self.theirs, ITERATIONS),
        }

    def loose_training(self, options: list[str]) -> Callable[[], object]:
        """Return our way with the tolerance that held-out sentences chose."""
        return command("train", self.train, "--model", self.loose, "--quiet", *options, "--tol", LOOSE)

    def tagging(self, path: Path) -> dict[str, Callable[[], object]]:
        """Return the two ways to tag."""
        return {
            "maxmargin": command("tag", self.ours, path, "--output", self.out, "--quiet"),
            "crfsuite": script(TAG, path, self.theirs, self.out_theirs),
        }


def training_figures(files: Files, rounds: int, options: list[str]) -> list[Figure]:
    """Return the seconds of training; crfsuite trains once, as it takes a minute."""
    ours, theirs = files.training(options).items()
    ours[1]()  # compiles what is not compiled yet
    tasks = dict([ours, (f"maxmargin, tol={LOOSE}", files.loose_training(options))])
    mine, (rival,) = in_turn(tasks, rounds), in_turn(dict([theirs]), 1)
    rival = Seconds(*(Times(times.seconds * rounds) for times in rival))
    named = dict(zip([*tasks, "crfsuite"], [*mine, rival], strict=True))
    figures = [Figure(f"train: {name}", times.clock.median, "s") for name, times in named.items()]
    for name, times in zip(tasks, mine, strict=True):
        figures += compared(f"train: {name} / crfsuite", times, rival, TRAINING)
    return figures


def loose_figure(files: Files, truth: Sequence[Any]) -> Figure:
    """Return F1 on the test set after training with the tolerance that held-out sentences chose."""
    command("tag", files.loose, files.test, "--output", files.out, "--quiet")()
    return Figure(f"F1: maxmargin, tol={LOOSE}", f1_of(files.out, truth), "", Target(must=F1, floor=True))


def tolerance_figures(folder: Path, X: Sequence[Any], y: Sequence[Any]) -> list[Figure]:
    """Return F1 on the last fifth of the training sentences, for models of the others."""
    most, rest, model, out = (folder / name for name in ("most", "rest", "model", "predicted"))
    n = len(X) * 4 // 5
    write_attributes(most, X[:n], y[:n])
    write_attributes(rest, X[n:], y[n:])
    figures = []
    for tol in TOLERANCES:
        command("train", most, "--model", model, "--quiet", "--tol", tol)()
        command("tag", model, rest, "--output", out, "--quiet")()
        figures.append(Figure(f"tol={tol}: F1 on held-out sentences", f1_of(out, y[n:])))
    return figures


def tagging_figures(name: str, files: Files, path: Path, rounds: int) -> list[Figure]:
    """Return the seconds of tagging a file, and the ratio of tokens a second."""
    mine, rival = in_turn(files.tagging(path), rounds)
    named = {"maxmargin": mine, "crfsuite": rival}
    figures = [Figure(f"tag {name}: {who}", times.clock.median, "s") for who, times in named.items()]
    return figures + compared(f"tag {name}: maxmargin / crfsuite, tokens a second", mine, rival, TAGGING)


def import_figures(rounds: int) -> list[Figure]:
    """Return the seconds of processes that only import."""
    tasks = {name: script(text) for name, text in IMPORTS.items()}
    in_turn(tasks, 1)  # writes bytecode
    seconds = in_turn(tasks, rounds)
    return [
        Figure(f"process that imports {name}", times.clock.median, "s")
        for name, times in zip(IMPORTS, seconds, strict=True)
    ]


def measure(folder: Path, data: str | None, arguments: argparse.Namespace) -> None:
    """Print the figures."""
    X, y, X_test, y_test = load_conll2000(data_home=data)
    files, rounds, parts = Files.within(folder), arguments.rounds, arguments.parts
    write_attributes(files.train, X, y)
    write_attributes(files.test, X_test, y_test)
    figures = tolerance_figures(folder, X, y) if TOLERANCE in parts else []
    if "train" in parts:
        figures += [*training_figures(files, rounds, arguments.options), loose_figure(files, y_test)]
    for path, train in zip(
        (files.ours, files.theirs), files.training(arguments.options).values(), strict=True
    ):
        if not path.exists():
            train()
    in_turn(files.tagging(files.test), 1)  # compiles what is not compiled yet, and writes bytecode
    if "tag" in parts:
        figures += import_figures(rounds)
        figures += tagging_figures("test set", files, files.test, rounds)
        figures.append(Figure("F1: maxmargin", f1_of(files.out, y_test), "", Target(must=F1, floor=True)))
        figures.append(Figure("F1: crfsuite", f1_of(files.out_theirs, y_test)))
    if "long" in parts:
        files.long.write_text(files.test.read_text(encoding="utf-8") * COPIES, encoding="utf-8")
        figures += tagging_figures(f"{COPIES} copies", files, files.long, rounds)
    print_figures(figures)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=(TOLERANCE, *PARTS), default=PARTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where files and models are kept (default: nowhere)")
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="options of maxmargin train")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if_there(lambda: measure(folder, arguments.data, arguments))


if __name__ == "__main__":
    main()

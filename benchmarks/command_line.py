"""The command line beside python-crfsuite: whole processes on the same attribute files, start included.

    python benchmarks/command_line.py [--rounds N] [--data DIRECTORY]

The attributes are those of `window_features` on CoNLL-2000, 19 per token, read from --data or
$MAXMARGIN_DATA. Each round trains with `maxmargin train` and with a script that runs 100 iterations of
L-BFGS, then tags with `maxmargin tag` and with a script that uses crfsuite's tagger, one after another. Files
with the test set once and many times over show what the start of a process costs. Kernels are compiled
before the first round. Processor seconds are disturbed less by other work than those on the clock.
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
    return lambda: run_python("-m", "maxmargin", *map(str, arguments))


def script(text: str, *arguments: object) -> Callable[[], object]:
    """Return a run of a script in a new process."""
    return lambda: run_python("-c", text, *map(str, arguments))


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


def measure(folder: Path, data: str | None, rounds: int, options: list[str]) -> None:
    """Print the figures."""
    X, y, X_test, y_test = load_conll2000(data_home=data)
    train, test, long = (folder / name for name in ("train.txt", "test.txt", "long.txt"))
    write_attributes(train, X, y)
    write_attributes(test, X_test, y_test)
    long.write_text(test.read_text(encoding="utf-8") * COPIES, encoding="utf-8")
    ours, theirs, out, out_theirs = (folder / name for name in ("ours", "theirs", "out", "out_theirs"))
    training = {
        "maxmargin train": command("train", train, "--model", ours, "--quiet", *options),
        "crfsuite": script(TRAIN, train, theirs, ITERATIONS),
    }
    training["maxmargin train"]()  # compiles what is not compiled yet
    mine, rival = in_turn(training, rounds)
    named = {"maxmargin": mine, "crfsuite": rival}
    figures = [Figure(f"train: {name}", times.clock.median, "s") for name, times in named.items()]
    figures += compared("train: maxmargin / crfsuite", mine, rival, TRAINING)
    for name, path, n_copies in (("test set", test, 1), (f"{COPIES} copies of it", long, COPIES)):
        tagging = {
            "maxmargin tag": command("tag", ours, path, "--output", out, "--quiet"),
            "crfsuite": script(TAG, path, theirs, out_theirs),
        }
        tagging["maxmargin tag"]()
        mine, rival = in_turn(tagging, rounds)
        tokens, named = n_copies * sum(map(len, y_test)), {"maxmargin": mine, "crfsuite": rival}
        figures += [Figure(f"tag {name}: {who}", tokens / t.clock.median, "/s") for who, t in named.items()]
        figures += compared(f"tag {name}: maxmargin / crfsuite, tokens a second", mine, rival, TAGGING)
        if n_copies == 1:
            floor = Target(must=F1, floor=True)
            figures.append(Figure("F1: maxmargin", f1_of(out, y_test), "", floor))
            figures.append(Figure("F1: crfsuite", f1_of(out_theirs, y_test)))
    print_figures(figures)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    parser.add_argument("options", nargs="*", help="options of maxmargin train, after --")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if_there(lambda: measure(Path(folder), arguments.data, arguments.rounds, arguments.options))


if __name__ == "__main__":
    main()

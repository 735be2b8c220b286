"""The command line beside python-crfsuite: whole processes on the same attribute files, start included.

    python benchmarks/command_line.py [--rounds N] [--data DIRECTORY]

The attributes are those of `window_features` on CoNLL-2000, 19 per token, read from --data or $MAXMARGIN_DATA.
Each round trains with `maxmargin train` and with a script that runs 100 iterations of L-BFGS, then tags with
`maxmargin tag` and with a script that uses crfsuite's tagger, one after another. Files with the test set once
and many times over show what the start of a process costs. Kernels are compiled before the first round.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

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


def in_turn(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Return the seconds of tasks that run one after another, round by round."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - begin)
            print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    return {name: Times(tuple(values)) for name, values in seconds.items()}


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
    seconds = in_turn(training, rounds)
    figures = [Figure(f"train: {name}", times.median, "s") for name, times in seconds.items()]
    figures.append(ratio("train: maxmargin / crfsuite", [tuple(seconds.values())], TRAINING))
    for name, path, n_copies in (("test set", test, 1), (f"{COPIES} copies of it", long, COPIES)):
        tagging = {
            "maxmargin tag": command("tag", ours, path, "--output", out, "--quiet"),
            "crfsuite": script(TAG, path, theirs, out_theirs),
        }
        tagging["maxmargin tag"]()
        seconds = in_turn(tagging, rounds)
        tokens = n_copies * sum(map(len, y_test))
        figures += [Figure(f"tag {name}: {who}", tokens / t.median, "/s") for who, t in seconds.items()]
        mine, rival = seconds.values()
        figures.append(ratio(f"tag {name}: maxmargin / crfsuite, tokens a second", [(rival, mine)], TAGGING))
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

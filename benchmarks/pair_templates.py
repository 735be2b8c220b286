"""What features of pairs of labels cost and give: templates of CRF++ on CoNLL-2000, from files to scores.

    python benchmarks/pair_templates.py [--names NAME ...] [--folder DIR] [--data DIR] [-- OPTION ...]

All templates have the 19 lines for single labels of CRF++'s template for chunking. They differ in those for
pairs of labels: ``B`` alone, which trains a chain, and ``B01:%x[...]``, which trains a graph. Each is trained
by `maxmargin train` with the options after ``--``, and tags the test set by `maxmargin tag`, in processes of
their own whose kernels are compiled before. Printed are seconds of the processor, start included, the largest
resident memory of the process, the number of passes, the size of the model file, and F1 of phrases.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from _problems import if_there
from maxmargin.evaluation import phrase_scores
from maxmargin.files.columns import read_columns
from maxmargin.files.sources import Source

UNIGRAMS = [
    *(f"U0{k}:%x[{k - 2},0]" for k in range(5)),
    "U05:%x[-1,0]/%x[0,0]",
    "U06:%x[0,0]/%x[1,0]",
    *(f"U1{k}:%x[{k - 2},1]" for k in range(5)),
    *(f"U1{k}:%x[{k - 7},1]/%x[{k - 6},1]" for k in range(5, 9)),
    *(f"U2{k}:%x[{k - 2},1]/%x[{k - 1},1]/%x[{k},1]" for k in range(3)),
]
BIGRAMS = {
    "B": ["B"],
    "tag": ["B01:%x[0,1]"],
    "B, tag": ["B", "B01:%x[0,1]"],
    "tags": ["B01:%x[-1,1]/%x[0,1]"],
    "B, tags": ["B", "B01:%x[-1,1]/%x[0,1]"],
    "B, word": ["B", "B01:%x[0,0]"],
}
FEW = 40  # sentences that compile the kernels


class Run(NamedTuple):
    """What a process printed, its seconds of the processor and its largest resident memory in MB."""

    said: str
    seconds: float
    megabytes: float


def run(*arguments: object) -> Run:
    """Run the command in a new process."""
    command = [sys.executable, "-m", "maxmargin", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return Run(said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def f1_of(path: Path) -> float:
    """Return F1 of phrases of the last column of a file, against the one before it."""
    with Source(str(path)) as source:
        sentences = list(read_columns(source))
    return phrase_scores([s.column(-2) for s in sentences], [s.column(-1) for s in sentences]).overall.f1


def first_sentences(data: Path, path: Path) -> None:
    """Write the first sentences of the training file."""
    with Source(str(data / "train.txt.gz")) as source:
        some = [s for s, _ in zip(read_columns(source), range(FEW), strict=False)]
    path.write_text("".join(f"{line}\n" for s in some for line in [*map(" ".join, s.rows), ""]))


def measure(data: Path, folder: Path, names: list[str], options: list[str]) -> None:
    """Train and tag with each template, and print what it took."""
    first_sentences(data, folder / "few")
    print("pairs     train s      MB  passes  tag s  model MB  features  of pairs      F1")
    for name in names:
        template, model = folder / f"template {name}", folder / f"model {name}"
        template.write_text("\n".join([*UNIGRAMS, *BIGRAMS[name], ""]))
        train = "--template", template, "--model", model, "--json", "--quiet"
        run("train", folder / "few", *train)  # compiles
        run("tag", model, folder / "few", "--output", folder / "out", "--quiet")
        trained = run("train", data / "train.txt.gz", *train, *options)
        tagged = run("tag", model, data / "test.txt.gz", "--output", folder / "out", "--quiet")
        said: dict[str, Any] = json.loads(trained.said)
        sizes, MB = (said["features"], said.get("edge_features", 0)), model.stat().st_size / 1e6
        print(
            f"{name:8} {trained.seconds:8.1f} {trained.megabytes:7.0f} {said['passes']:7} "
            f"{tagged.seconds:6.1f} {MB:9.1f} {sizes[0]:9} {sizes[1]:9} {f1_of(folder / 'out'):7.4f}",
            flush=True,
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", nargs="+", choices=BIGRAMS, default=list(BIGRAMS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MAXMARGIN_DATA", "../shared/data")))
    arguments, options = parser.parse_known_args()
    options = [option for option in options if option != "--"]
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        if_there(lambda: measure(arguments.data / "conll2000", folder, arguments.names, options))


if __name__ == "__main__":
    main()

"""Large vocabularies: memory, passes and model files where templates make millions of features.

    python benchmarks/large_templates.py [--sequences 250] [--seed 0] [--wapiti PROGRAM]

The data have the shape of those that people train Wapiti on to find the parts of papers: column files with 30
columns (the word, its case, its first and last letters, where it stands on the page, its font, dictionaries),
a template of 57 lines, sequences of 50 to 3,000 tokens, and 42 labels. They are random: labels come in runs,
each label has words of its own, and words are drawn by a power law without end, so that most features are
rare. There are 2,500 sequences at full size, and a tenth of them by default; the seed makes the data.

`maxmargin train` learns from the file in a process of its own, whose kernels are compiled before: with
weights for all features and labels, and with those that occur together (`all_possible_states=False`). The
peak of its resident memory is compared with one vector of weights in float64, which can be counted in two
ways: a weight for each feature and label, or only for those that occur together in the training data. Memory
with the data encoded is that of a process that has read and encoded the file. Passes and decoding passes are
timed in turn, in one process. With --wapiti, that program is trained on the same file with the same template
for a few iterations.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from _measure import Figure, Target, Times, print_figures, ratio, resident_bytes, run_python

LABELS, SHORTEST, LONGEST, FULL = 42, 50, 3000, 2500
STAY, POWER, OWN = 0.93, 0.72, 0.5  # of runs of labels, of the law of words, and how many are the label's own
PASSES, ROUNDS, ITERATIONS = 3, 3, 3
STATES = {"true": "all weights", "false": "weights of what occurs together"}
LETTERS = np.array(
    ["ba", "ke", "lo", "mi", "nu", "per", "sta", "tion", "ra", "den", "gi", "Co", "Sy", "Ma", "o", "ing"]
)
MEMORY, PASS, FILE = Target(must=2.5), Target(must=1.5), Target(must=1.0)
# Columns: 0 the word, 1 its lower case, 2 to 5 and 6 to 9 its first and last letters, 10 to 28 of the layout.
WORD, LAYOUT = 10, range(10, 30 - 1)
TEMPLATE = [
    *(f"%x[{k},0]" for k in range(-3, 4)),
    *(f"%x[{k},0]/%x[{k + 1},0]" for k in range(-2, 2)),
    *(f"%x[{k},1]" for k in range(-1, 2)),
    *(f"%x[0,{c}]" for c in range(2, WORD)),
    *(f"%x[0,{c}]" for c in LAYOUT),
    *(f"%x[{k},{c}]" for c in (10, 12, 16) for k in (-1, 1)),
    *(f"%x[-1,{c}]/%x[0,{c}]" for c in (10, 12, 16, 28)),
    *(f"%x[0,1]/%x[0,{c}]" for c in (10, 12)),
    *(f"%x[-1,{c}]/%x[0,{c}]/%x[1,{c}]" for c in (10, 16, 5, 9)),
]


def words(rng: np.random.Generator, labels: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return a word for each token: half of them drawn from an order of words that its label has."""
    rank = np.minimum(rng.random(len(labels)) ** (-1.0 / POWER), 1e9).astype(np.int64)
    own = rng.random(len(labels)) < OWN
    number = np.where(own, (rank * 2654435761 + labels * 40503 * 65537) % 1000000007, rank * 7919)
    text = LETTERS[number % 16]
    for _ in range(5):
        number //= 16
        text = np.where(number > 0, np.strings.add(text, LETTERS[number % 16]), text)
    return text


def columns(rng: np.random.Generator, labels: NDArray[np.int64]) -> list[list[str]]:
    """Return the columns of the tokens of a sequence; the last is the label."""
    text, n = words(rng, labels).tolist(), len(labels)
    found = [text, [word.lower() for word in text]]
    found += [[word[:k] for word in text] for k in range(1, 5)]
    found += [[word[-k:] for word in text] for k in range(1, 5)]
    for c in LAYOUT:  # from 2 to 20 values, which depend on the label one time in four
        values = 2 + (c * 7) % 19
        usual = (labels * (c + 3) + c) % values
        drawn = np.where(rng.random(n) < 0.25, usual, rng.integers(values, size=n))
        found.append([f"{chr(97 + c - WORD)}{value}" for value in drawn.tolist()])
    return [*found, [f"<label{k}>" for k in labels.tolist()]]


def write_data(path: Path, n: int, seed: int) -> int:
    """Write n sequences to a file; return the number of tokens."""
    rng, tokens = np.random.default_rng(seed), 0
    with path.open("w") as file:
        for _ in range(n):
            length = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
            starts = rng.random(length) > STAY
            starts[0] = True
            labels = rng.integers(LABELS, size=starts.sum())[np.cumsum(starts) - 1]
            file.writelines(f"{' '.join(row)}\n" for row in zip(*columns(rng, labels), strict=True))
            file.write("\n")
            tokens += length
    return tokens


class Run(NamedTuple):
    """What a process printed, its seconds of the processor and the peak of its resident memory in bytes."""

    said: str
    seconds: float
    peak: float


def run(*command: object) -> Run:
    """Run a program in a process of its own."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed")
    return Run(said, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


def measure_passes(path: Path, template: Path) -> None:
    """Print counts of weights, memory once the file is encoded, and the seconds of both kinds of passes."""
    from maxmargin import ChainSVC, solve
    from maxmargin.cli.tasks import column_task
    from maxmargin.encoding.labels import encode_labels
    from maxmargin.encoding.sequences import SequenceEncoder
    from maxmargin.files.columns import column_features
    from maxmargin.files.sources import Source
    from maxmargin.problems import Chain
    from maxmargin.solving.decoding import decode_all

    with Source(str(path)) as source:
        batch = column_task(column_features(source, str(template))).training(source)
    rows, offsets = SequenceEncoder().fit_transform(batch.X)
    labels, classes = encode_labels(batch.y, offsets)
    del batch
    encoded = resident_bytes()
    pairs = np.unique(rows.indices.astype(np.int64) * len(classes) + np.repeat(labels, np.diff(rows.indptr)))
    found: dict[str, Any] = {
        "weights": rows.shape[1] * len(classes),
        "together": len(pairs),
        "entries": rows.nnz,
        "encoded": encoded,
    }
    model, n = ChainSVC(), len(offsets) - 1
    for states in STATES:
        problem = Chain.from_encoded(
            rows, offsets, labels, len(classes), loss="hamming", all_possible_states=states == "true"
        )
        method = model._method(1.0 / (model.C * n), problem)
        result = solve(problem, method, tol=0.0, max_passes=1 + PASSES, random_state=0, n_jobs=1)
        passes: list[float] = []
        decodings: list[float] = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            decode_all(problem, result.w)
            decodings.append(time.perf_counter() - begin)
            some, more = (
                solve(problem, method, tol=0.0, max_passes=k, random_state=0, n_jobs=1).history.rows[-1]
                for k in (1, 1 + PASSES)
            )
            passes.append((more.seconds - some.seconds) / PASSES)
        found[states] = {"passes": passes, "decodings": decodings}
    print(json.dumps(found))


def figures(folder: Path, n: int, seed: int, wapiti: str | None) -> list[Figure]:
    """Return all figures."""
    path, few, template = folder / "train", folder / "few", folder / "template"
    patterns = folder / "patterns"
    template.write_text("".join(f"U{k:02}:{line}\n" for k, line in enumerate(TEMPLATE)) + "B\n")
    patterns.write_text("".join(f"u{k:02}:{line}\n" for k, line in enumerate(TEMPLATE)) + "b\n")
    tokens = write_data(path, n, seed)
    write_data(few, 4, seed + 1)
    of_passes = json.loads(run_python(__file__, "--passes", str(path), str(template)))
    vector, together = 8.0 * of_passes["weights"], 8.0 * of_passes["together"]
    found = [
        Figure("tokens", tokens),
        Figure("entries of tokens", of_passes["entries"]),
        Figure("weights: features times labels", of_passes["weights"]),
        Figure("weights: features and labels that occur together", of_passes["together"]),
        Figure("one vector of the weights", vector / 1e6, "MB"),
        Figure("one vector of those that occur together", together / 1e6, "MB"),
        Figure("memory with the data encoded", of_passes["encoded"] / 1e6, "MB"),
    ]
    for states, name in STATES.items():
        model, target = folder / f"model {states}", MEMORY if states == "false" else None
        train = "train", "--template", template, "--model", model, "--json", "--quiet"
        options = "--set", f"all_possible_states={states}", "--jobs", "1"
        run(sys.executable, "-m", "maxmargin", *train, few, *options)  # compiles
        trained = run(sys.executable, "-m", "maxmargin", *train, path, *options)
        said: dict[str, Any] = json.loads(trained.said)
        pairs = [tuple(Times(tuple(of_passes[states][kind])) for kind in ("passes", "decodings"))]
        size, beyond = model.stat().st_size, trained.peak - of_passes["encoded"]
        found += [
            Figure(f"{name}: peak", trained.peak / 1e6, "MB"),
            Figure(f"{name}: peak / one vector", trained.peak / vector, "x", target),
            Figure(f"{name}: peak beyond the data / one vector", beyond / vector, "x"),
            Figure(f"{name}: peak / one vector of those together", trained.peak / together, "x"),
            ratio(f"{name}: seconds of a pass / of a decoding pass", pairs, PASS),
            Figure(f"{name}: model file", size / 1e6, "MB"),
            Figure(f"{name}: model file / one vector", size / vector, "x", FILE),
            Figure(f"{name}: seconds of the processor", trained.seconds, "s"),
            Figure(f"{name}: passes", said["passes"]),
        ]
    if wapiti is not None:
        rival = run(wapiti, "train", "-p", patterns, "-i", ITERATIONS, path, folder / "rival")
        found += [
            Figure(f"Wapiti, {ITERATIONS} iterations: seconds of the processor", rival.seconds, "s"),
            Figure(f"Wapiti, {ITERATIONS} iterations: peak", rival.peak / 1e6, "MB"),
            Figure("Wapiti: peak / one vector", rival.peak / vector, "x"),
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=FULL // 10, help=f"{FULL} at full size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wapiti", help="the program of Wapiti, if it is there")
    parser.add_argument("--passes", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.passes:
        measure_passes(*options.passes)
        return
    with tempfile.TemporaryDirectory() as folder:
        print_figures(figures(Path(folder), options.sequences, options.seed, options.wapiti))


if __name__ == "__main__":
    main()

"""Data larger than memory: private memory and time of training on a corpus, and the speed of encoding.

    python benchmarks/corpus.py [--sequences 1000000] [--tokens 400000] [--passes 8] [--folder DIRECTORY]

The data are made with a seed: sequences of 20 tokens with 15 features each and ten labels, as those of tagged
words. The corpus to train on is written through `CorpusWriter`, as its text
would take four times the space; encoding is timed on less. Each training runs in a process of its own, whose
private memory (RssAnon) is read every few milliseconds: mapped files are not in it. The process that trains
on few sequences comes first and compiles, so that what compiling takes is not in the memory of the other.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _measure import Figure, Target, print_figures, run_python
from maxmargin import ChainSVC, Progress, encode_files, open_corpus
from maxmargin.encoding.sequences import NumberedSequences
from maxmargin.files.corpus import Recipe
from maxmargin.files.corpus.writing import CorpusWriter

LENGTH, FEATURES, NAMES, LABELS = 20, 15, 10_000, 10
FEW = 10_000
_CHUNK, _SECONDS = 10_000, 0.005
# Weight vectors that memory may grow by, and bytes an example.
_VECTORS, _BYTES = 8, 2000


class Chunk(NamedTuple):
    """Some sequences: the number of the name of each feature of each token, and the labels of tokens."""

    names: np.ndarray[Any, np.dtype[np.int32]]
    labels: np.ndarray[Any, np.dtype[np.int64]]


def made(n: int, seed: int = 0) -> Iterator[Chunk]:
    """Yield n sequences in chunks.

    Some words are frequent, and some rare. A word has a label, or two, between which the label before
    decides, and one label in fifty is any. The features of a token are words and pairs of words around
    it, and endings of its own and its neighbours' words, all by number.
    """
    rng = np.random.default_rng(seed)
    usual, other = rng.integers(LABELS, size=(2, NAMES))
    is_open = rng.random(NAMES) < 0.3
    for begin in range(0, n, _CHUNK):
        shape = min(_CHUNK, n - begin), LENGTH
        words = (NAMES * rng.random(shape) ** 3).astype(np.int64)
        labels = usual[words]
        for t in range(1, LENGTH):
            changes = is_open[words[:, t]] & (labels[:, t - 1] >= LABELS // 2)
            labels[changes, t] = other[words[changes, t]]
        odd = rng.random(shape) < 0.02
        labels[odd] = rng.integers(LABELS, size=int(odd.sum()))
        yield Chunk(_features(words), labels)


def _features(words: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the numbers of the names of the features of each token."""
    around = np.pad(words, ((0, 0), (2, 2)), constant_values=NAMES - 1)
    near = [around[:, k : k + LENGTH] for k in range(5)]
    pairs = [(7919 * near[k] + near[k + 1]) % NAMES for k in (1, 2)]
    endings = [near[k] % size for size in (10, 100) for k in (1, 2, 3)]
    longest = [near[k] % 1000 for k in (1, 2)]
    found = np.stack([*near, *pairs, *endings, *longest], axis=2)
    return (found + NAMES * np.arange(FEATURES)).astype(np.int32)


def write_corpus(n: int, path: Path) -> None:
    """Write a corpus of n sequences."""
    names = [f"f{k // NAMES}={k % NAMES}" for k in range(FEATURES * NAMES)]
    with CorpusWriter(path, Recipe("attributes", {})) as writer:
        if writer.is_complete:
            return
        for chunk in made(n):
            m = len(chunk.names)
            counts, offsets = np.full(m * LENGTH, FEATURES), LENGTH * np.arange(m + 1)
            X = NumberedSequences(names, chunk.names.ravel(), None, counts, offsets)
            writer.append(X, [[f"L{label}" for label in labels] for labels in chunk.labels.tolist()])
        writer.finish()


def write_attributes(n_tokens: int, path: Path) -> None:
    """Write an attribute file."""
    with path.open("w") as stream:
        for chunk in made(n_tokens // LENGTH):
            for names, labels in zip(chunk.names.tolist(), chunk.labels.tolist(), strict=True):
                for numbers, label in zip(names, labels, strict=True):
                    attributes = (f"f{k // NAMES}={k % NAMES}" for k in numbers)
                    stream.write("\t".join([f"L{label}", *attributes]) + "\n")
                stream.write("\n")


def write_columns(n_tokens: int, path: Path) -> None:
    """Write a column file of words, parts of speech and labels."""
    with path.open("w") as stream:
        for chunk in made(n_tokens // LENGTH):
            for names, labels in zip(chunk.names.tolist(), chunk.labels.tolist(), strict=True):
                rows = zip(names, labels, strict=True)
                stream.writelines(
                    f"word{numbers[0]} P{numbers[1] % 40} L{label}\n" for numbers, label in rows
                )
                stream.write("\n")


TEMPLATE = """
U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]\nU05:%x[-1,0]/%x[0,0]\nU06:%x[0,0]/%x[1,0]
U10:%x[-2,1]\nU11:%x[-1,1]\nU12:%x[0,1]\nU13:%x[1,1]\nU14:%x[2,1]\nU15:%x[-2,1]/%x[-1,1]\nU16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]\nU18:%x[1,1]/%x[2,1]\nU20:%x[-2,1]/%x[-1,1]/%x[0,1]\nU21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]\nB
"""


def encoding_figures(folder: Path, n_tokens: int) -> list[Figure]:
    """Return tokens encoded per second of processor time, which is that of one core, of each kind of file."""
    template = folder / "template"
    template.write_text(TEMPLATE)
    write_attributes(n_tokens, folder / "attributes")
    write_columns(n_tokens, folder / "columns")
    fast, slow = Target(100_000, floor=True), Target(60_000, floor=True)
    return [
        _timed(folder, "attributes", "from attributes", fast),
        _timed(folder, "attributes", "from attributes, hashed", fast, hash_bits=20),
        _timed(folder, "columns", "through a template of 19", slow, template=template),
    ]


def _timed(folder: Path, file: str, name: str, target: Target, **options: Any) -> Figure:
    encode_files(_head(folder / file), folder / f"first {name}", **options)  # compiles
    begin, processor = time.perf_counter(), time.process_time()
    corpus = encode_files(folder / file, folder / name, verbose=0, **options)
    processor, wall = time.process_time() - processor, time.perf_counter() - begin
    n = len(corpus.y.codes)
    note = f"{n / wall:.0f} by the clock on the wall"
    return Figure(f"tokens a second {name}", n / processor, "", target, note)


def _head(path: Path) -> Path:
    """Return a file with the first sequences of another."""
    short = path.with_name(f"{path.name} head")
    with path.open() as stream:
        short.write_text("".join(line for _, line in zip(range(50 * (LENGTH + 1)), stream, strict=False)))
    return short


def training_figures(folder: Path, n: int, passes: int) -> list[Figure]:
    """Return private memory, and the time of a pass for many and few examples."""
    found = {}
    for size in (FEW, n):
        path = folder / f"corpus of {size}"
        write_corpus(size, path)
        found[size] = json.loads(run_python(__file__, "--train", str(path), "--passes", str(passes)))
    many = found[n]
    memory = (many["peak"] - _VECTORS * many["vector"]) / n
    per_example = {size: 1e6 * result["seconds"] / size for size, result in found.items()}
    note = ", ".join(f"{value:.1f} us at {size}" for size, value in per_example.items())
    figures = [
        Figure("private bytes an example, without 8 weight vectors", memory, "", Target(_BYTES)),
        Figure(
            f"time an example of a pass, {n} / {FEW}",
            per_example[n] / per_example[FEW],
            "x",
            Target(1.3),
            note,
        ),
    ]
    print(json.dumps(found), file=sys.stderr)
    return figures


def train(path: str, passes: int) -> dict[str, Any]:
    """Train on a corpus, and return its memory, and the seconds of the median pass."""
    ends: list[float] = []

    def note(progress: Progress) -> None:
        ends.append(time.process_time())

    with PrivateMemory() as memory:
        begin, corpus = time.perf_counter(), open_corpus(path)
        opened = time.perf_counter() - begin
        model = ChainSVC(max_iter=passes, check_every=1000, callbacks=[note], random_state=0, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(corpus)
    return {
        "peak": memory.peak,
        "opening": opened,
        "vector": model._w.nbytes,
        "seconds": float(np.median(np.diff(ends))),
        "gap": model.gap_ / float(model.history_.primal.min()),
        "passes": model.n_iter_,
    }


def private_bytes() -> int:
    """Return the private memory of this process: RssAnon of /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


class PrivateMemory:
    """A context in which ``peak`` tracks the largest private memory."""

    def __enter__(self) -> "PrivateMemory":
        self.peak, self._over = private_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(_SECONDS):
            self.peak = max(self.peak, private_bytes())

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=1_000_000, help="to train on (default: 1000000)")
    parser.add_argument("--tokens", type=int, default=400_000, help="to encode (default: 400000)")
    parser.add_argument("--passes", type=int, default=8, help="of training (default: 8)")
    parser.add_argument("--only", choices=("encoding", "training"), help="only these figures")
    parser.add_argument("--folder", help="where to keep the data for another run (default: nowhere)")
    parser.add_argument("--write", action="store_true", help="only write the corpora to train on")
    parser.add_argument("--train", metavar="CORPUS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        print(json.dumps(train(options.train, options.passes)))
        return
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(options.folder or folder)
        if options.write:
            for size in (FEW, options.sequences):
                write_corpus(size, kept / f"corpus of {size}")
            return
        if options.only != "training":
            figures += encoding_figures(Path(folder), options.tokens)
        if options.only != "encoding":
            figures += training_figures(kept, options.sequences, options.passes)
    print_figures(figures)


if __name__ == "__main__":
    main()

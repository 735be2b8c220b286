"""Models in use, beside python-crfsuite: single sentences, and fresh processes to their first prediction.

    python benchmarks/production.py [--rounds N] [--data DIR]

Both train briefly on CoNLL-2000, read from --data or $MAXMARGIN_DATA: how long predictions take does not
depend on how good they are. Tokens are dicts of texts, 19 each, or lists of the same names. Processes import,
open their model and label one sentence; those of crfsuite once by python-crfsuite's `Tagger` alone, and once
after importing sklearn_crfsuite, if that is installed. A first round compiles what is not compiled yet. The
checkpoint is that of the same training.
"""

import argparse
import json
import math
import statistics
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from _measure import Figure, Target, Times, interleaved, print_figures, ratio, run_python
from _problems import if_there
from maxmargin import ChainSVC, Predictor, load
from maxmargin.datasets import load_conll2000
from maxmargin.files.container import read
from maxmargin.files.sealed import CHECKPOINT

SENTENCES, AT_ONCE = 400, 20
# The seconds of crfsuite's rivals when the targets were set, on one machine: 0.25 ms a sentence, 1.4 s.
SINGLE, PROCESS, MEGABYTES, CHECKPOINT_BYTES = Target(1.6), Target(0.86), Target(200.0), Target(10.0)
MEASURED = """
import json, sys, time
begin = time.perf_counter()
with open(sys.argv[2], encoding="utf-8") as stream:
    x = json.load(stream)
{}
seconds = time.perf_counter() - begin
with open("/proc/self/status") as stream:  # Linux; the peak that getrusage tells may be that of the parent
    peak = next(int(line.split()[1]) for line in stream if line.startswith("VmHWM:"))
print(json.dumps([seconds, peak / 1024]))
"""
RIVAL = "sklearn_crfsuite"
TAGGER = "import pycrfsuite; tagger = pycrfsuite.Tagger(); tagger.open(sys.argv[1]); tagger.tag(x)"
PROGRAMS = {
    "Predictor": "import maxmargin; maxmargin.Predictor(sys.argv[1]).predict_single(x)",
    "load": "import maxmargin; maxmargin.load(sys.argv[1]).predict_single(x)",
    "python-crfsuite": TAGGER,
    RIVAL: f"import {RIVAL}; {TAGGER}",
}


def as_dicts(X: Any) -> Any:
    """Return the tokens as dicts of texts, from lists of names such as "word[0]=the"."""
    return [[dict(name.split("=", 1) for name in token) for token in tokens] for tokens in X]


def train(X: Any, y: Any, folder: Path) -> list[Figure]:
    """Write a model of each; return the sizes of our files."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 5}, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(str(folder / "theirs"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a run that is cut short
        model = ChainSVC(checkpoint=folder / "checkpoint", max_iter=10, verbose=0, random_state=0).fit(X, y)
    model.save(folder / "ours")
    header, arrays, _ = read(folder / "checkpoint", CHECKPOINT)
    vectors = [name for name, shape in header["shapes"].items() if math.prod(shape) == model._w.size]
    held = sum(array.nbytes for name, array in arrays.items() if name.partition(".")[0] in vectors)
    share = np.count_nonzero(model._w) / model._w.size
    return [
        Figure("model file", (folder / "ours").stat().st_size / 1e6, "MB"),
        Figure("checkpoint", (folder / "checkpoint").stat().st_size / 1e6, "MB"),
        Figure(
            f"checkpoint: bytes a weight, {len(vectors)} vectors", held / model._w.size, "", CHECKPOINT_BYTES
        ),
        Figure("share of weights that are not zero", share),
    ]


def single_figures(kind: str, X: Any, folder: Path, rounds: int) -> list[Figure]:
    """Return the milliseconds of single sentences, and the ratios to crfsuite's."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "theirs"))
    calls = {
        "Predictor.predict_single": Predictor(folder / "ours").predict_single,
        "ChainSVC.predict_single": load(folder / "ours").predict_single,
        "crfsuite Tagger.tag": tagger.tag,
    }
    if [calls["Predictor.predict_single"](x) for x in X] != [calls["ChainSVC.predict_single"](x) for x in X]:
        raise AssertionError("the two ways predict other labels")
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for k in [*range(0, len(X), AT_ONCE)] * rounds:
        tasks = {name: partial(_each, call, X[k : k + AT_ONCE]) for name, call in calls.items()}
        for name, times in interleaved(tasks, 1).items():
            seconds[name] += times.seconds
    found = {name: Times(tuple(values)) for name, values in seconds.items()}
    *ours, theirs = found
    figures = [Figure(f"{name}, {kind}", 1e3 * found[name].median / AT_ONCE, "ms") for name in found]
    for name, target in zip(ours, (SINGLE, None), strict=True):
        compared = statistics.median(a / b for a, b in zip(seconds[name], seconds[theirs], strict=True))
        figures.append(Figure(f"{name} / {theirs}, {kind}", compared, "x", target))
    return figures


def _each(call: Callable[[Any], object], X: Any) -> None:
    for x in X:
        call(x)


def process_figures(x: Any, folder: Path, rounds: int) -> list[Figure]:
    """Return the seconds and the megabytes of processes that label one sentence."""
    (folder / "sentence").write_text(json.dumps(x), encoding="utf-8")
    is_there = find_spec("sklearn_crfsuite") is not None
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS if name != RIVAL or is_there}
    for number in range(rounds + 1):
        for name in found:
            model = str(folder / ("theirs" if "crfsuite" in name else "ours"))
            said = run_python("-c", MEASURED.format(PROGRAMS[name]), model, str(folder / "sentence"))
            if number:
                found[name].append(tuple(json.loads(said)))
    figures = []
    for name, values in found.items():
        seconds, megabytes = zip(*values, strict=True)
        figures.append(Figure(f"process, {name}", statistics.median(seconds), "s"))
        target = MEGABYTES if name == "Predictor" else None
        figures.append(Figure(f"process, {name}: peak memory", statistics.median(megabytes), "MB", target))
    if is_there:
        ours, theirs = (Times(tuple(s for s, _ in found[name])) for name in ("Predictor", RIVAL))
        figures.append(ratio(f"process, Predictor / {RIVAL}", [(ours, theirs)], PROCESS))
    return figures


def measure(data: str | None, rounds: int) -> None:
    """Print the table."""
    X, y, X_test, _ = load_conll2000(data_home=data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = train(as_dicts(X), y, folder)
        names = X_test[:SENTENCES]
        for kind, given in (("dicts", as_dicts(names)), ("lists of strings", names)):
            figures += single_figures(kind, given, folder, rounds)
        figures += process_figures(as_dicts(names[:1])[0], folder, rounds)
    print_figures(figures)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    if_there(lambda: measure(options.data, options.rounds))


if __name__ == "__main__":
    main()

"""This checkout against another, in turn and in one run: seconds, and whether bits agree.

    python benchmarks/against.py CHECKOUT [--only TASK ...] [--rounds N] [--data DIRECTORY]

Every task runs in a new process for each checkout and round, on one thread, and repeats its work there; the
least processor time counts, as load only adds to it. Printed are the median over rounds of the ratio within a
round (this checkout over the other), and whether what was computed, such as every row of a history, is the
same to the last bit.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
REPETITIONS, LETTERS = 3, 20_000
Work = Callable[[], object]


def ocr_chain() -> Any:
    from maxmargin.datasets import load_ocr
    from maxmargin.problems import Chain

    X, y, _, _ = load_ocr()
    return Chain.from_sequences(X, y)


def letters() -> Any:
    import numpy as np

    from maxmargin.datasets import load_ocr
    from maxmargin.problems import Multiclass

    X, y, _, _ = load_ocr()
    chosen = np.random.default_rng(0).permutation(sum(map(len, y)))[:LETTERS]
    return Multiclass.from_arrays(np.concatenate(X)[chosen], np.concatenate(y)[chosen])


def passes(problem: Any, lam: float, n: int) -> Work:
    """Accelerated passes with a certificate every five."""
    from maxmargin import Accelerated, Pairwise, solve

    def run() -> object:
        result = solve(
            problem, Accelerated(Pairwise(lam)), tol=0.0, max_passes=n, check_every=5, random_state=0
        )
        return [(row.passes, row.primal, row.dual) for row in result.history.rows], result.w.tobytes()

    return run


def conll() -> tuple[Any, Any]:
    from maxmargin.datasets import load_conll2000

    X, y, _, _ = load_conll2000()
    return X[:4000], y[:4000]


def passes_ocr() -> Work:
    problem = ocr_chain()
    return passes(problem, 0.001, 20)


def passes_letters() -> Work:
    return passes(letters(), 0.001, 20)


def fit_conll() -> Work:
    from maxmargin import ChainSVC

    X, y = conll()

    def run() -> object:
        model = ChainSVC(min_count=3, random_state=0, verbose=0, max_iter=10, tol=1e-6).fit(X, y)
        return model.history_.primal.tolist(), model.coef_.tobytes()

    return run


def encode_conll() -> Work:
    from maxmargin.encoding.sequences import SequenceEncoder

    X, _ = conll()

    def run() -> object:
        rows = SequenceEncoder().fit_transform(X).rows
        return rows.indices.tobytes(), rows.indptr.tobytes()

    return run


def predict_conll() -> Work:
    from maxmargin import ChainSVC

    X, y = conll()
    model = ChainSVC(min_count=3, random_state=0, verbose=0, max_iter=3).fit(X, y)
    return lambda: model.predict(X)


def predict_one() -> Work:
    from maxmargin import ChainSVC

    X, y = conll()
    model = ChainSVC(min_count=3, random_state=0, verbose=0, max_iter=3).fit(X[:500], y[:500])
    return lambda: [model.predict_single(x) for x in X[:300]]


def predict_ocr() -> Work:
    from maxmargin import ChainSVC
    from maxmargin.datasets import load_ocr

    X, y, _, _ = load_ocr()
    model = ChainSVC(random_state=0, verbose=0, max_iter=3).fit(X, y)
    return lambda: [labels.tobytes() for labels in model.predict(X)]


def _program(program: str) -> Work:
    def run() -> object:
        begin = os.times()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        end = os.times()
        run.seconds = end.children_user + end.children_system - begin.children_user - begin.children_system
        return done.stdout

    return run


def import_package() -> Work:
    return _program("import maxmargin")


def import_estimator() -> Work:
    return _program("from maxmargin import ChainSVC, load")


def tag() -> Work:
    """The command `maxmargin tag`, on one sentence."""
    folder = tempfile.mkdtemp()
    data, model = os.path.join(folder, "data"), os.path.join(folder, "model")
    Path(data).write_text("A\tx\ta\nB\ty\tb\n\nB\ty\tc\nA\tx\td\n\n" * 20)
    main = "from maxmargin.cli import main; import sys; sys.exit(main({}))"
    _program(main.format(["train", data, "--model", model, "--quiet"]))()
    text = os.path.join(folder, "text")
    Path(text).write_text("x\ta\ny\tb\n\n")
    work = _program(main.format(["tag", model, text]))
    work()
    return work


TASKS = {
    "passes of a chain, OCR": passes_ocr,
    "passes of classes, letters": passes_letters,
    "ten passes of ChainSVC, CoNLL": fit_conll,
    "encoding, CoNLL": encode_conll,
    "predict, CoNLL": predict_conll,
    "predict, OCR": predict_ocr,
    "predict_single, CoNLL": predict_one,
    "import maxmargin": import_package,
    "import ChainSVC": import_estimator,
    "maxmargin tag": tag,
}


def work(name: str) -> None:
    """Print the least seconds and a digest of the answer, as a line of JSON."""
    run = TASKS[name]()
    answer, seconds = run(), []  # compiles
    for _ in range(REPETITIONS):
        begin = time.process_time()
        answer = run()
        seconds.append(getattr(run, "seconds", time.process_time() - begin))
    print(json.dumps([min(seconds), hashlib.sha256(repr(answer).encode()).hexdigest()]))


def measured(name: str, checkout: Path, data: str | None) -> tuple[float, str]:
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout / "src")}
    if data is not None:
        environment["MAXMARGIN_DATA"] = data
    command = [sys.executable, __file__, ".", "--work", name]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    seconds, digest = json.loads(done.stdout.splitlines()[-1])
    return seconds, digest


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare this checkout with another.")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", nargs="+", metavar="TASK", default=list(TASKS), help=", ".join(TASKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work)
        return
    here = Path(__file__).parents[1]
    print(f"{'':32} {'this':>9} {'other':>9} {'ratio':>7}  same bits")
    for name in arguments.only:
        rounds = [
            (measured(name, arguments.checkout, arguments.data), measured(name, here, arguments.data))
            for _ in range(arguments.rounds)
        ]
        ratio = statistics.median(ours[0] / other[0] for other, ours in rounds)
        ours, other = (min(pair[k][0] for pair in rounds) for k in (1, 0))
        same = len({digest for pair in rounds for _, digest in pair}) == 1
        print(f"{name:32} {ours:8.4f}s {other:8.4f}s {ratio:7.3f}  {'yes' if same else 'NO'}", flush=True)


if __name__ == "__main__":
    main()

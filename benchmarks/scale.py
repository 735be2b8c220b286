"""What threads and parts gain: seconds of two threads against one, and passes of many parts.

    python benchmarks/scale.py [--rounds 7] [--only OCR] [--data DIRECTORY]

Seconds are those of whole runs of `solve` with compiled kernels and a certificate after each pass, in turn:
the default method on one thread; on two, of which the second makes certificates beside the next pass; and
`Accelerated(Divided(Pairwise))` with two parts on two threads. What the machine can give is measured beside
it: how many runs of the default method, two at once on a thread each, end in the time of one. Passes do not
depend on the machine.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from _measure import Figure, Target, interleaved, print_figures, ratio
from _problems import conll_problem, if_there, ocr_problem
from maxmargin import Accelerated, Divided, Pairwise, Result, solve
from maxmargin.datasets import load_conll2000
from maxmargin.structures.problem import sizes

PARTS = 1, 2, 4, 8


class Setting(NamedTuple):
    """A problem at one lam, the gap at which to stop, and what two threads must gain."""

    name: str
    problem: Any
    lam: float
    gap: float
    gain: Target | None


def run(setting: Setting, parts: int, n_jobs: int) -> Result:
    """Train to the gap with a certificate after each pass."""
    inner = Pairwise(lam=setting.lam)
    method = Accelerated(Divided(inner, parts) if parts > 1 else inner)
    return solve(
        setting.problem, method, tol=setting.gap, check_every=1, random_state=0, n_jobs=n_jobs, max_passes=200
    )


def two_at_once(setting: Setting) -> None:
    """Make two runs of the default method at the same time, on a thread each."""
    with ThreadPoolExecutor(2) as pool:
        for made in [pool.submit(run, setting, 1, 1) for _ in range(2)]:
            made.result()


def threads_figures(setting: Setting, rounds: int) -> list[Figure]:
    """Return how much faster two threads come to the gap than the method without parts on one."""
    tasks: dict[str, Callable[[], Any]] = {
        "one": lambda: run(setting, 1, 1),
        "two": lambda: run(setting, 1, 2),
        "parts": lambda: run(setting, 2, 2),
        "both": lambda: two_at_once(setting),
    }
    for task in tasks.values():
        task()
    times, name = interleaved(tasks, rounds), f"{setting.name} to {setting.gap:g}"
    gain, one = setting.gain or Target(1.0, floor=True), times["one"]
    limit = 2.0 * one.ratio_to(times["both"])
    return [
        ratio(f"{name}: one thread / two threads", [(one, times["two"])], gain),
        Figure(f"{name}: one thread / two threads, two parts", one.ratio_to(times["parts"]), "x"),
        Figure(f"{name}: two runs in turn / two at once", limit, "x"),
    ]


def passes_figures(setting: Setting) -> list[Figure]:
    """Return the passes to the gap for several numbers of parts."""
    target = Target(36, 28) if setting.name == "OCR, 0.01" else None
    return [
        Figure(
            f"{setting.name} to {setting.gap:g}: passes, {parts} {'parts' if parts > 1 else 'part'}",
            len(run(setting, parts, 1).history.rows),
            target=target if parts == 8 else None,
        )
        for parts in PARTS
    ]


def ocr_settings(data: str | None) -> list[Setting]:
    problem = ocr_problem(data)
    return [
        Setting("OCR, 0.01", problem, 0.01, 0.001, None),
        Setting("OCR, 1/n", problem, 1.0 / sizes(problem).examples, 0.05, Target(1.4, 1.6, floor=True)),
    ]


def conll_settings(data: str | None) -> list[Setting]:
    X, y, _, _ = load_conll2000(data_home=data)
    problem = conll_problem(X, y)
    return [
        Setting("CoNLL, 1/n", problem, 1.0 / sizes(problem).examples, 0.0065, Target(1.5, 1.7, floor=True))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="only problems whose names begin so: OCR, CoNLL")
    parser.add_argument("--data", help="directory with OCR and CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()

    def measure(make: Callable[[str | None], list[Setting]]) -> None:
        for setting in make(options.data):
            print_figures([*threads_figures(setting, options.rounds), *passes_figures(setting)])

    for name, make in {"OCR": ocr_settings, "CoNLL": conll_settings}.items():
        if name.startswith(options.only):
            if_there(lambda make=make: measure(make))


if __name__ == "__main__":
    main()

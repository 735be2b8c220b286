"""The paper's experiments, from one command.

    python benchmarks/paper run [--profile full] [--only OCR ...] [--jobs 2] [--anew]
    python benchmarks/paper figures [--profile full]
    python benchmarks/paper table1
    python benchmarks/paper crfsuite

OCR and CoNLL-2000 are read from $MAXMARGIN_DATA. `run` goes on from where it was stopped. A method is one
file in ``solvers/``, a problem one in ``datasets/``; ``benchopt run benchmarks/paper`` runs any of them too.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse

from _plan import PROFILES
from _run import processors, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/paper", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run what has not been run yet")
    runs.add_argument("--only", nargs="+", default=[], help="names of datasets or methods")
    runs.add_argument("--jobs", type=int, default=processors(), help="processes to share the runs among")
    runs.add_argument("--anew", action="store_true", help="run all again, also what is stored")
    for command in (runs,):
        command.add_argument("--profile", choices=PROFILES, default="full")
    options = parser.parse_args()
    if options.command == "run":
        return min(1, run(options.profile, options.only, options.jobs, options.anew))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The paper's experiments, from one command.

    python benchmarks/paper run [--profile full] [--only OCR accelerated ...] [--seeds 3] [--jobs 2] [--anew]
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
from pathlib import Path

import _store
from _crfsuite import crfsuite
from _curves import Results
from _document import bounds_section, claims_section, figure_section, fill
from _figures import DOCS, draw_all
from _plan import PROFILES, chosen
from _rates import table1
from _run import processors, run

PAGE = "experiments.md"


def figures(profile: str, docs: Path) -> None:
    """Draw the figures, fill the page with them and with their numbers, and publish all results beside it."""
    frame = _store.read(profile, docs)
    results = Results(frame)
    drawn = draw_all(results, docs / "figures")
    sections = {name: figure_section(results, name) for name in drawn}
    fill(docs / PAGE, {"bounds": bounds_section(results), "claims": claims_section(results), **sections})
    _store.publish(frame, profile, docs)
    print(f"Drew {', '.join(drawn)} and filled {docs / PAGE}.")


def section(name: str, docs: Path) -> None:
    """Measure what a table of its own shows; print it and put it into the page."""
    content = {"table1": table1, "crfsuite": crfsuite}[name]()
    print(content)
    fill(docs / PAGE, {name: content})


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="benchmarks/paper", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run what has not been run yet")
    runs.add_argument("--only", nargs="+", default=[], help="problems, methods, values of lam")
    runs.add_argument("--seeds", type=int, help="runs of each method, at most; the profile's by default")
    runs.add_argument("--jobs", type=int, default=processors(), help="processes to share the runs among")
    runs.add_argument("--anew", action="store_true", help="run all again, also what is stored")
    draws = commands.add_parser("figures", help="draw the figures and fill the page with the numbers")
    for command in (runs, draws):
        command.add_argument("--profile", choices=PROFILES, default="full")
    rates = commands.add_parser("table1", help="measure oracle calls against 1/eps, n and lam")
    races = commands.add_parser("crfsuite", help="measure seconds against python-crfsuite")
    for command in (draws, rates, races):
        command.add_argument("--docs", type=Path, default=DOCS, help="directory of the page")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.command == "run":
        groups = chosen(PROFILES[options.profile](), options.only, options.seeds)
        return min(1, run(options.profile, groups, options.jobs, options.anew))
    if options.command == "figures":
        figures(options.profile, options.docs)
    else:
        section(options.command, options.docs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

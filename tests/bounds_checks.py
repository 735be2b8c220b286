"""Compiled kernels with bounds checks: every index of theirs is within its array.

``python tests/bounds_checks.py FOLDER`` compiles accelerated pairwise steps for each model, and each method
for multiclass problems, with NUMBA_BOUNDSCHECK=1; it notes in FOLDER what is done, and goes on where it
stopped. Interpreted kernels, which the other tests run, raise IndexError by themselves, but for negative
indices.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before Numba is imported
    sys.path.append(str(Path(__file__).parent))
    os.environ["NUMBA_BOUNDSCHECK"] = "1"


def runs() -> dict[str, tuple[Callable[[int], Any], Any]]:
    """Return problems, by seed, and the methods to run on them."""
    from fuzz.methods import PLAIN
    from maxmargin import Accelerated, Averaged, BlockFrankWolfe, Cached, Divided, Pairwise
    from support import catalogue as made

    models: dict[str, Callable[[int], Any]] = {
        "multiclass": made.multiclass_case,
        "chain": made.chain_case,
        "second order": lambda seed: made.chain_case(seed, order=2),
        "segments": made.segment_case,
        "matching": lambda seed: made.matching_case(seed, fertility=1),
        "trees": made.tree_case,
        "projective trees": lambda seed: made.tree_case(seed, projective=True),
        "tree": made.graph_case,
        "cut": lambda seed: made.graph_case(seed, (1, 2, 3), 2, inference="cut"),
        "messages": lambda seed: made.graph_case(seed, inference="messages"),
    }
    methods = {name: make(0.1) for name, make in PLAIN.items()}
    methods |= {
        "averaged": Averaged(BlockFrankWolfe(0.1)),
        "cached": Cached(Pairwise(0.1), 8.0),
        "divided": Divided(Pairwise(0.1)),
    }
    found = {f"accelerated on {name}": (case, Accelerated(Pairwise(0.1))) for name, case in models.items()}
    return found | {
        f"{name} on multiclass": (made.multiclass_case, method) for name, method in methods.items()
    }


def check(make: Callable[[int], Any], method: Any) -> None:
    """Run a method on a few problems, with each sampling, and predict."""
    from maxmargin import solve
    from maxmargin.methods.protocol import traits
    from maxmargin.solving.decoding import decode_all

    samplings = ("permutation", "gap") if traits(method).notes_gaps else ("permutation",)
    for seed in range(5):
        problem = make(seed).problem
        for sampling in samplings:
            result = solve(problem, method, tol=0.0, max_passes=12, sampling=sampling, random_state=seed)
            decode_all(problem, result.w)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(given.folder / "kernels")  # apart from kernels without checks
    journal = given.folder / "bounds.json"
    done = json.loads(journal.read_text()) if journal.exists() else {}
    end, left = time.monotonic() + 60.0 * given.minutes, {k: v for k, v in runs().items() if k not in done}
    for name, run in left.items():
        if time.monotonic() > end:
            break
        try:
            check(*run)
            done[name] = "within bounds"
        except IndexError as error:
            done[name] = f"IndexError: {error}"
        journal.write_text(json.dumps(done, indent=1))
        print(name, done[name], flush=True)
    return int(any(value.startswith("IndexError") for value in done.values()))


if __name__ == "__main__":
    sys.exit(main())

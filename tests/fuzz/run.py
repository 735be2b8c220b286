"""Long runs of the fuzzers: seeded, counted in a file, and continued where they stopped.

``python tests/fuzz/run.py solves --cases 20000 --state fuzz.json`` goes on until so many cases were checked;
``--minutes`` ends it earlier, and the same command goes on. What is wrong is printed, smallest example first,
and noted in the file with the seed that shows it again.
"""

import argparse
import json
import sys
import time
import traceback
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1]))

from fuzz.calls import calls
from fuzz.compiled import of_one_type
from fuzz.files import files
from fuzz.solves import solves
from maxmargin.compiling.interpreting import interpreted

FUZZERS = {"solves": solves, "calls": calls, "files": files}
_PIECE = 50
LONG = settings(
    max_examples=_PIECE,
    database=None,
    deadline=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    print_blob=False,
)


def piece(fuzzer: Any, number: int) -> int:
    """Check the cases of one seed; return how many there were."""
    count = 0

    @seed(number)
    @LONG
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        nonlocal count
        count += fuzzer(data.draw)

    check()
    return count


def run(name: str, cases: int, state: Path, first: int, minutes: float, is_compiled: bool = False) -> bool:
    """Check pieces until there are enough cases or time is up; return whether all were right."""
    known = json.loads(state.read_text()) if state.exists() else {}
    at = known.setdefault(name, {"pieces": 0, "cases": 0, "wrong": []})
    end = time.monotonic() + 60.0 * minutes
    while at["cases"] < cases and time.monotonic() < end:
        number = first * 10**6 + at["pieces"]
        try:
            is_grouped = is_compiled and name == "solves"
            at["cases"] += piece(of_one_type(number) if is_grouped else FUZZERS[name], number)
        except Exception as error:
            traceback.print_exc(limit=-6)
            at["wrong"].append({"seed": number, "what": f"{type(error).__name__}: {error}"[:500]})
        at["pieces"] += 1
        state.write_text(json.dumps(known, indent=1))
    print(f"{name}: {at['cases']} cases in {at['pieces']} pieces, {len(at['wrong'])} wrong", flush=True)
    return not at["wrong"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuzzer", choices=[*FUZZERS])
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--state", type=Path, required=True, help="file in which the cases are counted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument(
        "--compiled", action="store_true", help="compile kernels; solves of one type at a time"
    )
    parsed = parser.parse_args(arguments)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "Custom: all weights are zero")  # some tiny problems have no signal
    with nullcontext() if parsed.compiled else interpreted():
        found = run(parsed.fuzzer, parsed.cases, parsed.state, parsed.seed, parsed.minutes, parsed.compiled)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())

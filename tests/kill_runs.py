"""Kill runs (-9) at random moments, let them continue from their files, and compare the results bit for bit.

    python tests/kill_runs.py FOLDER --kills 100 --seed 0

trains small problems in processes of their own, until so many have been killed. Half of the runs write files
as often as they can, so that many are killed within a write. What was found is appended to
FOLDER/kills.jsonl; another call with the same folder goes on from there. The exit code is 1 if a result
differs.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

import numpy as np

LAM = 1e-3
METHODS = ("accelerated", "averaged", "cached", "divided", "exact", "pairwise", "subgradient")
SAMPLINGS = ("permutation", "uniform", "gap")
_EVERY = 0.2
_PATIENCE = {False: 50.0, True: 1.0}
_STARTED, _BEGUN, _WRITTEN, _RESUMED, _KILLED = "started", "begun", "written", "resumed", "killed"


Configuration = tuple[str, str, bool]  # method, sampling, and whether files are written eagerly


def configurations() -> list[Configuration]:
    """Return all kinds of runs."""
    by_gap = {"accelerated", "averaged", "cached", "pairwise"}
    pairs = [(m, s) for m in METHODS for s in SAMPLINGS if s != "gap" or m in by_gap]
    return [(*pair, is_eager) for pair in pairs for is_eager in (False, True)]


def made_method(name: str) -> Any:
    """Return the method of a run."""
    import maxmargin as mm

    return {
        "accelerated": mm.Accelerated(mm.Pairwise(LAM)),
        "averaged": mm.Averaged(mm.BlockFrankWolfe(LAM)),
        "cached": mm.Accelerated(mm.Cached(mm.Pairwise(LAM), oracle_cost=8.0)),
        "divided": mm.Accelerated(mm.Divided(mm.Pairwise(LAM), 3)),
        "exact": mm.BlockExact(LAM),
        "pairwise": mm.Pairwise(LAM),
        "subgradient": mm.Averaged(mm.Subgradient(LAM)),
    }[name]


def made_problem() -> Any:
    """Return a multiclass problem whose states take some milliseconds to write."""
    from maxmargin.problems import Multiclass

    rng = np.random.default_rng(0)
    y = np.arange(4000) % 8
    return Multiclass.from_arrays(rng.normal(size=(8, 30))[y] + 3.0 * rng.normal(size=(4000, 30)), y)


def train(method: str, sampling: str, is_eager: bool, folder: Path) -> None:
    """Train in this process, continue from the file if there is one, and write the result's digest."""
    from maxmargin import Checkpoint, solve
    from maxmargin.files import checkpoint as checkpoints

    problem, file, log = made_problem(), folder / "run", folder / "log"
    checkpoints._PATIENCE = _PATIENCE[is_eager]
    _note_in(log)
    result = solve(
        problem,
        made_method(method),
        tol=0.0,
        max_passes=40,
        check_every=3,
        sampling=sampling,
        random_state=1,
        checkpoint=Checkpoint(file, every=0.0 if is_eager else _EVERY),
        start=file if file.exists() else None,
    )
    digest = hashlib.blake2b(result.w.tobytes() + result.weights.tobytes())
    for name in ("passes", "oracle_calls", "primal", "dual", "gap"):
        digest.update(result.history[name].tobytes())
    digest.update(repr((result.primal, result.dual, result.gap, result.status)).encode())
    (folder / "result").write_text(digest.hexdigest())


@cache
def warm(method: str, sampling: str) -> None:
    """Load the kernels of a run, so that copies of this process have them."""
    from maxmargin import solve

    solve(made_problem(), made_method(method), max_passes=1, sampling=sampling, random_state=1)


def _note_in(log: Path) -> None:
    """Note each moment at which a state is or could be written: the number of visits, and the time."""
    from maxmargin.files.checkpoint import Keeper
    from maxmargin.solving.resume import Files

    is_due, save, continued = Keeper.is_due, Keeper.save, Files.continued
    handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def say(what: str, at: Any) -> None:
        os.write(handle, f"{what} {at.visited} {time.monotonic()}\n".encode())

    def asked(keeper: Keeper, at: Any) -> bool:
        say(_STARTED, at)
        return is_due(keeper, at)

    def saved(keeper: Keeper, at: Any) -> None:
        say(_BEGUN, at)
        save(keeper, at)
        say(_WRITTEN, at)

    def went_on(files: Files, fresh: Any) -> Any:
        at = continued(files, fresh)
        if files.start is not None:
            say(_RESUMED, at)
        return at

    Keeper.is_due, Keeper.save, Files.continued = asked, saved, went_on  # type: ignore[method-assign]


def lines_of(log: Path) -> list[tuple[str, int, float]]:
    """Return what processes noted: what, the number of visits, and when."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(what, int(visits), float(when)) for what, visits, when in lines]


def begin(configuration: Configuration, folder: Path, way: str) -> BaseProcess:
    """Start a process that trains."""
    process = get_context(way).Process(target=train, args=(*configuration, folder))  # type: ignore[attr-defined]
    process.start()
    return cast(BaseProcess, process)


def wait_for(process: BaseProcess, log: Path, n_lines: int) -> None:
    """Wait until the process has noted something, or ended."""
    while process.is_alive() and len(lines_of(log)) <= n_lines:
        time.sleep(0.01)


def reference(configuration: Configuration, folder: Path, way: str) -> tuple[str, float]:
    """Return the digest of a run that is not killed, and the seconds of its training."""
    home = folder / "-".join(map(str, configuration))
    if not (home / "result").exists():
        empty(home)
        _succeed(begin(configuration, home, way))
    moments = [when for _, _, when in lines_of(home / "log")]
    return (home / "result").read_text(), moments[-1] - moments[0]


def empty(home: Path) -> None:
    """Make a folder, or remove what is in it."""
    home.mkdir(parents=True, exist_ok=True)
    for left in home.iterdir():
        left.unlink()


def _succeed(process: BaseProcess) -> None:
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"kill_runs: a run failed with exit code {process.exitcode}")


def kill_once(
    configuration: Configuration, folder: Path, way: str, seconds: float, rng: np.random.Generator
) -> bool:
    """Start or continue a run and kill it at a random moment; return False if it ended before."""
    known = len(lines_of(folder / "log"))
    process = begin(configuration, folder, way)
    wait_for(process, folder / "log", known)
    process.join(float(rng.uniform(0.0, seconds)))
    if process.is_alive():
        when = time.monotonic()
        process.kill()  # -9
        process.join()
        with (folder / "log").open("a") as log:
            log.write(f"{_KILLED} 0 {when}\n")
        return True
    _succeed(process)
    return False


def losses(log: Path, is_eager: bool) -> list[dict[str, Any]]:
    """Return what each kill lost, and how much it might: the larger of ``every`` and the patience."""
    lines, found, first = lines_of(log), [], 0
    for k, (what, _, killed) in enumerate(lines):
        if what == _KILLED and k + 1 < len(lines):
            own, (after, resumed, _) = lines[first:k], lines[k + 1]
            first = k + 1
            kept = [when for _, visits, when in own if after == _RESUMED and visits == resumed]
            bound = max(0.0 if is_eager else _EVERY, _PATIENCE[is_eager] * _longest_write(own))
            lost = killed - (kept[0] if kept else own[0][2])
            found.append({"lost": lost, "bound": bound, "in_write": own[-1][0] == _BEGUN})
    return found


def _longest_write(lines: list[tuple[str, int, float]]) -> float:
    pairs = pairwise(lines)
    return max((b[2] - a[2] for a, b in pairs if (a[0], b[0]) == (_BEGUN, _WRITTEN)), default=0.0)


def one_run(folder: Path, way: str, seed: int) -> dict[str, Any]:
    """Kill a run until it ends by itself or has been killed three times; return what was found."""
    rng = np.random.default_rng(seed)
    choices = configurations()
    configuration = choices[int(rng.integers(len(choices)))]
    if way == "fork":
        warm(configuration[0], configuration[1])
    expected, seconds = reference(configuration, folder / "references", way)
    home, kills = folder / f"run{seed}", 0
    empty(home)
    while kills < 3 and kill_once(configuration, home, way, seconds, rng):
        kills += 1
    if not (home / "result").exists():
        _succeed(begin(configuration, home, way))
    same = (home / "result").read_text() == expected
    left = [path.name for path in home.iterdir() if path.name.endswith(".part")]
    return {
        "seed": seed,
        "run": configuration,
        "kills": kills,
        "same": same,
        "left": left,
        "losses": losses(home / "log", configuration[2]),
    }


def kill_runs(folder: Path, kills: int, seed: int, way: str = "spawn") -> bool:
    """Kill runs until there are enough kills; return whether all results are the same."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "kills.jsonl"
    known = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    while sum(run["kills"] for run in known) < kills:
        known.append(one_run(folder, way, seed + len(known)))
        with journal.open("a") as stream:
            stream.write(json.dumps(known[-1]) + "\n")
    print(summary(known))
    return all(run["same"] and not run["left"] for run in known)


def summary(runs: list[dict[str, Any]]) -> str:
    """Return what was found, in a few words."""
    losses = [loss for run in runs for loss in run["losses"]]
    lost = max((loss["lost"] for loss in losses), default=0.0)
    beyond = max((loss["lost"] - loss["bound"] for loss in losses), default=0.0)
    return (
        f"{sum(run['kills'] for run in runs)} kills of {len(runs)} runs, "
        f"{sum(loss['in_write'] for loss in losses)} killed within a write; "
        f"{sum(run['same'] for run in runs)} results the same; at most {lost:.2f} s lost, "
        f"{max(beyond, 0.0):.2f} s more than the bound"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fork", action="store_true", help="copy this process, which saves the imports")
    given = parser.parse_args(arguments)
    way = "fork" if given.fork else "spawn"
    return 0 if kill_runs(given.folder, given.kills, given.seed, way) else 1


if __name__ == "__main__":
    sys.exit(main())

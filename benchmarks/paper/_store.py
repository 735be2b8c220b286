"""Where results lie: a file for all seeds of a method on a problem at one lam, whole or not there."""

from pathlib import Path
from typing import Any

import pandas as pd

from _plan import Group

HERE = Path(__file__).parent
OUTPUTS = HERE / "outputs"
_MEASURED = ("passes", "oracle_calls", "seconds", "primal", "dual", "gap", "test_error")
_RENAMED = {
    "dataset_name": "dataset",
    "p_obj_lam": "lam",
    "solver_name": "method",
    "idx_rep": "seed",
    **{f"objective_{name}": name for name in _MEASURED},
}


def path_of(group: Group, profile: str) -> Path:
    """Return the file of a group of runs."""
    name = f"{group.dataset}_{group.lam}_{group.solver}".replace("/", "-over-").replace(" ", "-")
    return OUTPUTS / profile / f"{name}.parquet"


def keep(found: Path, group: Group, profile: str) -> None:
    """Move benchopt's file to its place, at once and whole."""
    target = path_of(group, profile)
    target.parent.mkdir(parents=True, exist_ok=True)
    found.replace(target)


def read(profile: str) -> Any:
    """Return all results of a profile as a frame: a row for each checkpoint of each run."""
    files = sorted((OUTPUTS / profile).glob("*.parquet"))
    if not files:
        raise SystemExit(
            f"No results in {OUTPUTS / profile}; run: python benchmarks/paper run --profile {profile}"
        )
    frame = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    return frame.rename(columns=_RENAMED)[list(_RENAMED.values())]

"""Where results lie: a file for all seeds of a method on a problem at one lam, whole or not there.

The page's results are published beside it in one table, so that a method can be run anew without the others.
"""

from pathlib import Path

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


def read(profile: str, docs: Path) -> pd.DataFrame:
    """Return all results of a profile: a row for each checkpoint of each run.

    Groups that are not stored here are taken from the published table.
    """
    files = sorted((OUTPUTS / profile).glob("*.parquet"))
    stored = [pd.read_parquet(file).rename(columns=_RENAMED)[list(_RENAMED.values())] for file in files]
    known = {group for frame in stored for group in _groups(frame)}
    published = _published(profile, docs)
    others = [] if published is None else [published[[g not in known for g in _groups(published)]]]
    if not stored and not others:
        raise SystemExit(
            f"No results in {OUTPUTS / profile}; run: python benchmarks/paper run --profile {profile}"
        )
    return pd.concat([*stored, *others], ignore_index=True)


def publish(frame: pd.DataFrame, profile: str, docs: Path) -> None:
    """Write the table of all results; equal results give the same bytes."""
    order = frame.sort_values(["dataset", "lam", "method", "seed", "passes"], kind="stable")
    target = _table(profile, docs)
    compression = {"method": "gzip", "mtime": 0}
    # The gap is left out, as it is a difference of two columns; so are digits that no figure shows.
    order.drop(columns="gap").to_csv(target, index=False, float_format="%.11g", compression=compression)


def _published(profile: str, docs: Path) -> pd.DataFrame | None:
    path = _table(profile, docs)
    if not path.exists():
        return None
    frame = pd.read_csv(path, dtype={"lam": str})
    frame["gap"] = frame["primal"] - frame["dual"]
    return frame[list(_RENAMED.values())]


def _table(profile: str, docs: Path) -> Path:
    return docs / f"experiments_{profile}.csv.gz"


def _groups(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return problem, lam and method of every row."""
    return list(zip(frame["dataset"], frame["lam"], frame["method"], strict=True))

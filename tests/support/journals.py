"""Sweeps over numbered cases that go on where they stopped."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def swept(
    folder: Path, cases: int, seed: int, check: Callable[[int, Path], Case], minutes: float = float("inf")
) -> list[Case]:
    """Check cases until there are enough, or time is up; return all that the journal of the folder knows."""
    folder.mkdir(parents=True, exist_ok=True)
    journal, end = folder / "cases.jsonl", time.monotonic() + 60.0 * minutes
    known = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    while len(known) < cases and time.monotonic() < end:
        known.append(check(seed + len(known), folder))
        with journal.open("a") as stream:
            stream.write(json.dumps(known[-1]) + "\n")
    return known

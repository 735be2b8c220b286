"""Runs killed (-9) at random moments, in processes of their own: a few of those of ``tests/kill_runs.py``."""

import json
from pathlib import Path

import pytest

import kill_runs


@pytest.mark.slow
def test_killed_runs_end_with_the_same_bits(tmp_path: Path) -> None:
    assert kill_runs.main([str(tmp_path), "--kills", "2", "--seed", "3"]) == 0
    found = [json.loads(line) for line in (tmp_path / "kills.jsonl").read_text().splitlines()]
    assert sum(run["kills"] for run in found) >= 2
    assert kill_runs.main([str(tmp_path), "--kills", "2"]) == 0  # nothing is left to do
    assert len((tmp_path / "kills.jsonl").read_text().splitlines()) == len(found)

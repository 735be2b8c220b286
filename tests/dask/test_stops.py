"""Ctrl-C and time limits with workers that are processes: the run ends with bounds, and so does all work."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("long_run.py")


@contextmanager
def a_run(time_limit: float) -> Iterator[subprocess.Popen[str]]:
    """Start a run in a process group of its own."""
    path = os.pathsep.join([str(SCRIPT.parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(time_limit)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what the run says at its end."""
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def test_a_time_limit_ends_all_work() -> None:
    with a_run(8.0) as process:
        found = answer(process)
    assert found["status"] == "TIME_LIMIT"
    assert 0.0 <= found["dual"] < found["primal"]  # which is infinite if there was no time for a certificate
    assert found["idle"]


@pytest.mark.parametrize("everyone", [False, True], ids=["client", "terminal"])
def test_an_interrupt_ends_all_work(everyone: bool) -> None:
    """A terminal interrupts all processes of the group, so that workers end: the best point is left."""
    with a_run(3600.0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"  # there is a certificate
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
        found = answer(process)
    assert found["status"] == "INTERRUPTED"
    assert 0.0 <= found["dual"] < found["primal"] < math.inf
    assert found["idle"]

"""Ctrl-C while kernels compile: it is delivered afterwards, and the process can continue."""

import json
import os
import subprocess
import sys

import numba
import pytest

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]

# Presses Ctrl-C at chosen passes of the compiler, counted from the start of the process, and solves until
# nothing interrupts any more.
PROGRAM = """
import json, signal, sys, threading
from numba.core import event
import numpy as np
from maxmargin import BlockFrankWolfe, solve
from maxmargin.problems import Multiclass

X = np.random.default_rng(0).normal(size=(30, 3))
problem = Multiclass.from_arrays(X, np.arange(30) % 3)
moments, in_thread = json.loads(sys.argv[1])

class Press(event.Listener):
    count = 0
    def on_start(self, _):
        self.count += 1
        for _ in range(moments.count(self.count)):
            signal.raise_signal(signal.SIGINT)
    def on_end(self, _):
        pass

def run():
    result = solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=3, random_state=0)
    return [result.status.name, result.weights.tolist()]

def attempt():
    try:
        return run()
    except KeyboardInterrupt:
        return ["KeyboardInterrupt", press.count]

press = Press()
event.register("numba:run_pass", press)
answers = []
if in_thread:
    worker = threading.Thread(target=run)
    worker.start()
    try:
        worker.join()
    except KeyboardInterrupt:
        answers.append(["KeyboardInterrupt", press.count])
    worker.join()
while not answers or answers[-1][0] != "MAX_PASSES":
    answers.append(attempt())
print(json.dumps([answers, press.count]))
"""


def run(moments, folder, *, in_thread=False):
    """Return how each solve of a new process with an empty cache ended, and the number of compiler passes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([moments, in_thread])],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "ignored" not in done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    answers, passes = run([], tmp_path_factory.mktemp("cache"))
    assert [status for status, _ in answers] == ["MAX_PASSES"]
    return answers[0][1], passes


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["once", "twice"])
def test_an_interrupt_is_delivered_and_the_next_solve_is_the_same(undisturbed, tmp_path, times):
    weights, passes = undisturbed
    moments = [1, passes // 3, passes // 2, passes - 1]
    answers, made = run(times * moments, tmp_path)
    *interrupted, last = answers
    assert last == ["MAX_PASSES", weights]
    assert made == passes  # nothing was compiled a second time: each kernel was finished first
    assert interrupted != []
    assert {status for status, _ in interrupted} <= {"KeyboardInterrupt", "INTERRUPTED"}


@pytest.mark.slow
def test_an_interrupt_while_a_thread_compiles_reaches_the_main_thread(undisturbed, tmp_path):
    weights, passes = undisturbed
    answers, _ = run([passes // 3], tmp_path, in_thread=True)
    assert answers[0][0] == "KeyboardInterrupt"
    assert answers[-1] == ["MAX_PASSES", weights]

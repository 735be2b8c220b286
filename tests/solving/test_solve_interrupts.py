"""Ctrl-C: the best point so far comes back, with bounds that hold."""

import itertools
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

from maxmargin import Accelerated, Averaged, BlockFrankWolfe, FrankWolfe, Pairwise, Status, solve
from maxmargin.methods import accelerated
from maxmargin.problems import Multiclass
from maxmargin.runtime.limits import uninterrupted
from maxmargin.structures.problem import sizes
from support.crammer_singer import least_objective, objective
from support.plain import NEEDED, asked, both_workspaces

LAM, N, K = 0.05, 12, 3
Y = np.arange(N) % K
X = 1.5 * np.eye(K)[Y] + 0.5 * np.random.default_rng(1).normal(size=(N, K))
ROUNDING = 1e-10  # some of these runs come nearer to the optimum than liblinear
METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "bcfw-wavg": Averaged(BlockFrankWolfe(LAM)),
    "bcfw-tavg": Averaged(BlockFrankWolfe(LAM), "suffix"),
    "fw": FrankWolfe(LAM),
    "fw-wavg": Averaged(FrankWolfe(LAM)),
    "pairwise": Pairwise(LAM),
    "accelerated": Accelerated(Pairwise(LAM), kappa=0.1),  # a given one costs no oracle call
    "accelerated bcfw": Accelerated(BlockFrankWolfe(LAM), kappa=0.1),
}


class Watched:
    """A multiclass problem as a plain Python object, that does something in the middle of its k-th call."""

    def __init__(self, event, function="argmax", calls=()):
        self.problem = Multiclass.from_arrays(X, Y)
        self.event, self.function, self.calls = event, function, frozenset(calls)
        self.count = 0

    def sizes(self):
        return sizes(self.problem)

    def workspace(self):
        return both_workspaces(self.problem)

    def unpack(self, w):
        return self.problem.unpack(w)


def _method(name):
    def method(self, *args):
        answer = asked(self.problem, name, *args)
        if name == self.function:
            self.count += 1
            if self.count in self.calls:
                self.event()
        return answer

    return method


for _name in NEEDED:
    setattr(Watched, _name, _method(_name))


def interrupt():
    raise KeyboardInterrupt


def press():
    """What a terminal does at Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def optimum():
    """The least objective, by liblinear."""
    return least_objective(X, Y, LAM)


def assert_brackets(result, optimum):
    assert result.status is Status.INTERRUPTED
    assert result.primal == pytest.approx(objective(result.weights, X, Y, LAM), rel=1e-12)
    assert result.dual - ROUNDING <= optimum <= result.primal + ROUNDING
    assert result.gap == result.primal - result.dual


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_interrupt_in_a_callback_keeps_the_bounds(method, optimum):
    def third(progress):
        if progress.passes == 3:
            raise KeyboardInterrupt

    result = solve(Watched(None), method, tol=0.0, callbacks=[third], random_state=0)
    assert_brackets(result, optimum)
    assert result.history.passes.tolist() == [3.0]
    assert result.dual > 0  # of this point, not of the start


@pytest.mark.parametrize("call", [1, 2, N, N + 5, 3 * N + 1])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_interrupt_in_the_middle_of_a_step_keeps_the_bounds(method, call, optimum):
    problem = Watched(interrupt, "argmax", [call])
    result = solve(problem, method, tol=0.0, check_every=2, random_state=0)
    assert_brackets(result, optimum)


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in METHODS if "accelerated" not in name])
def test_weights_that_moved_without_their_dual_variables_have_bounds(method, optimum):
    # The weights have changed, the dual loss that belongs to them has not: no bound follows from the two.
    # Near the optimum, where losses fall again, the value of such a pair is above it at some of these calls.
    for call in [1, 3, 20, *range(220, 300)]:
        problem = Watched(interrupt, "push", [call])
        result = solve(problem, METHODS[method], tol=0.0, max_passes=100, check_every=50, random_state=0)
        assert_brackets(result, optimum)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_interrupt_in_a_certificate_keeps_the_last_one(method, optimum):
    problem = Watched(interrupt, "argmax", [N + 3])
    result = solve(problem, method, tol=0.0, check_every=1, random_state=0)
    assert_brackets(result, optimum)
    assert result.history.passes.tolist() == [1.0]


@pytest.mark.parametrize("method", ["accelerated", "accelerated bcfw"])
def test_an_interrupt_between_accelerated_passes_keeps_the_bounds(method, optimum, monkeypatch):
    # In the middle of the vectors, so that one half of a mean is of this pass and the other of the last.
    # Three walks in turn: every other number meets each of them.
    for last in range(1, 40, 2):
        walks = itertools.count(1)

        def interrupted(walk, *args, walks=walks, last=last):
            if next(walks) < last:
                return walk(*args)
            walk(*(arg[: len(arg) // 2] if isinstance(arg, np.ndarray) else arg for arg in args))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            for name in ("mix_in_slices", "difference_products", "move_on"):
                patch.setattr(accelerated, name, partial(interrupted, getattr(accelerated, name)))
            result = solve(Watched(None), METHODS[method], tol=0.0, check_every=2, random_state=0)
        assert_brackets(result, optimum)


def test_an_interrupt_in_every_certificate_is_raised():
    problem = Watched(interrupt, "argmax", range(N + 1, 10**6))
    with pytest.raises(KeyboardInterrupt):
        solve(problem, METHODS["bcfw"], tol=0.0, check_every=1, random_state=0)


def test_an_interrupt_in_the_last_certificate_leaves_the_one_before(optimum):
    # One certificate after the first pass; then a step and the certificate that follows are interrupted.
    problem = Watched(interrupt, "argmax", [2 * N + 5, 2 * N + 9])
    result = solve(problem, METHODS["bcfw"], tol=0.0, check_every=1, random_state=0)
    assert_brackets(result, optimum)
    assert result.history.passes.tolist() == [1.0]


@pytest.mark.parametrize("function", ["argmax", "push"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_ctrl_c_pressed_once_is_heard_after_the_step(method, function, optimum):
    before = signal.getsignal(signal.SIGINT)
    result = solve(Watched(press, function, [N + 5]), method, tol=0.0, random_state=0)
    assert_brackets(result, optimum)
    assert result.dual > 0  # of this point, not of the start: the steps begun were done
    assert result.history.oracle_calls[-1] >= N + 5
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_pressed_twice_is_heard_at_once(optimum):
    problem = Watched(press, "argmax", [3, 4])
    result = solve(problem, METHODS["fw"], tol=0.0, random_state=0)
    assert_brackets(result, optimum)
    assert result.history.oracle_calls.tolist() == [0]


def test_uninterrupted_keeps_errors():
    before = signal.getsignal(signal.SIGINT)

    def press_and_fail():
        with uninterrupted():
            press()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        press_and_fail()
    assert signal.getsignal(signal.SIGINT) is before


def test_uninterrupted_calls_the_users_handler():
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with uninterrupted():
            press()
            assert heard == []
        assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_in_another_thread_is_not_interrupted():
    results = []
    problem = Multiclass.from_arrays(X, Y)
    thread = threading.Thread(
        target=lambda: results.append(solve(problem, METHODS["bcfw"], tol=0.0, max_passes=2))
    )
    thread.start()
    thread.join()
    assert results[0].status is Status.MAX_PASSES


PROGRAM = """
import numpy as np
from maxmargin import BlockFrankWolfe, solve
from maxmargin.problems import Multiclass

rng = np.random.default_rng(0)
problem = Multiclass.from_arrays(rng.normal(size=(500, 20)), np.arange(500) % 5)
ready = lambda progress: print("ready", flush=True) if progress.passes == 1 else None
limits = {"tol": 0.0, "max_passes": 10**9, "time_limit": 60.0}
result = solve(problem, BlockFrankWolfe(1e-4), **limits, callbacks=[ready], random_state=0)
print(result.status.name, result.dual, result.primal)
"""


def test_a_process_is_interrupted():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    status, dual, primal = said.split()
    assert process.returncode == 0
    assert status == "INTERRUPTED"
    assert 0 <= float(dual) <= float(primal)

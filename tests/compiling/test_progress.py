"""What is said while kernels compile, and that no more is compiled than is new."""

import gc
import io
import threading

import numpy as np
import pytest

from maxmargin.compiling import kernel
from maxmargin.compiling.interpreting import interpreted
from maxmargin.compiling.progress import Compilation, CompilingLine, announced, watched
from maxmargin.methods import Accelerated, BlockExact, BlockFrankWolfe, Pairwise
from maxmargin.methods.sweep import hinges, sweep
from maxmargin.problems import Multiclass, SlackRescaled, Weighted
from maxmargin.runtime.limits import without_collection
from maxmargin.solving.driver import solve
from maxmargin.structures.problem import sizes
from support.catalogue import chain_case, multiclass_case


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and when it has been written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


def test_watchers_are_told_of_beginning_and_end():
    told = []
    with watched(told.append), announced(solve, ()):
        told.append("compiling")
    with announced(solve, ()):
        pass
    assert told == [Compilation("solve", ()), "compiling", Compilation("solve", (), ended=True)]


def test_watchers_are_told_of_the_end_after_an_error():
    told = []
    with pytest.raises(ZeroDivisionError), watched(told.append), announced(solve, ()):
        raise ZeroDivisionError
    assert [each.ended for each in told] == [False, True]


def test_a_compilation_is_described_in_words():
    assert str(Compilation("sweep", ("ChainMap", "Pairwise"))) == "sweep for ChainMap, Pairwise"
    assert str(Compilation("add_scaled", ())) == "add_scaled"


def test_the_line_appears_and_is_cleared():
    terminal = Terminal()
    with CompilingLine(delay=0.0, stream=terminal), announced(solve, ()):
        assert terminal.written.wait(60)
    said = terminal.getvalue()
    assert said.startswith("\rcompiling solve (kernel 1, ")
    last, cleared, end = said.rpartition("\r")[0].rpartition("\r")
    assert (end.strip(), cleared) == ("", "\r")
    assert last


def test_a_short_wait_and_a_file_see_nothing():
    terminal, file = Terminal(), io.StringIO()
    with CompilingLine(delay=60.0, stream=terminal), CompilingLine(0.0, file), announced(solve, ()):
        pass
    assert terminal.getvalue() == file.getvalue() == ""


def test_collection_is_as_before_afterwards():
    assert gc.isenabled()
    with without_collection():
        assert not gc.isenabled()
        with without_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@kernel
def _twice(problem, w):
    return w[0] + w[0]


def _problem() -> Multiclass:
    rng = np.random.default_rng(3)
    return Multiclass.from_encoded(rng.normal(size=(30, 4)), rng.integers(3, size=30), 3)


@pytest.mark.compiled
def test_a_kernel_says_what_it_is_compiled_for():
    told = []
    with watched(told.append):
        assert _twice(_problem(), np.ones(2)) == 2.0
    begun = Compilation("_twice", ("MulticlassMap", "MulticlassOracle"))
    assert told == [begun, begun._replace(ended=True)]


@pytest.mark.compiled
@pytest.mark.parametrize(
    "method",
    [BlockFrankWolfe(0.01), pytest.param(Accelerated(Pairwise(0.01)), marks=pytest.mark.slow)],
    ids=str,
)
def test_weights_compile_nothing_more(method):
    plain, weights = _problem(), np.random.default_rng(4).uniform(0.5, 2.0, 30)
    solve(plain, method, max_passes=2, random_state=0)
    before = [len(loop.cached.signatures) for loop in (sweep, hinges)]
    told = []
    with watched(told.append):
        compiled = solve(Weighted(plain, weights), method, max_passes=2, random_state=0)
    assert [len(loop.cached.signatures) for loop in (sweep, hinges)] == before
    assert told == []
    with interpreted():
        same = solve(Weighted(plain, weights), method, max_passes=2, random_state=0)
    assert compiled.weights.tobytes() == same.weights.tobytes()
    assert compiled.gap == same.gap


@pytest.mark.compiled
def test_rescaled_classes_compile_no_solver_of_blocks_unless_it_is_used():
    problem, told = SlackRescaled(multiclass_case(71).problem), []
    with watched(told.append):
        solve(problem, BlockFrankWolfe(0.01), max_passes=2, random_state=0)
    assert "solve_rescaled" not in {each.name for each in told}
    with watched(told.append):
        compiled = solve(problem, BlockExact(0.01), max_passes=2, random_state=0)
    assert "solve_rescaled" in {each.name for each in told}
    with interpreted():
        same = solve(problem, BlockExact(0.01), max_passes=2, random_state=0)
    assert compiled.weights.tobytes() == same.weights.tobytes()


@pytest.mark.compiled
@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_rescaled_slacks_compile_their_search_alone(order):
    plain, method = chain_case(70, loss="hamming", order=order).problem, BlockFrankWolfe(0.01)
    solve(plain, method, max_passes=2, random_state=0)
    slacks, weights, told = SlackRescaled(plain), np.linspace(0.5, 2.0, sizes(plain).examples), []
    with watched(told.append):
        compiled = [
            solve(each, method, max_passes=2, random_state=0) for each in (slacks, Weighted(slacks, weights))
        ]
    assert {str(each) for each in told} <= {f"search_rescaled for {type(plain.oracle).__name__}"}
    with interpreted():
        same = [
            solve(each, method, max_passes=2, random_state=0) for each in (slacks, Weighted(slacks, weights))
        ]
    for one, other in zip(compiled, same, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        assert one.gap == other.gap

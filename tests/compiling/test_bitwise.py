"""Cached, compiled and interpreted loops give the same bits."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import Away, BlockFrankWolfe, Pairwise
from maxmargin.compiling import is_wrapper, kernel
from maxmargin.compiling.numba_private.pipeline import ARE_WHOLE, PART
from maxmargin.compiling.places import is_ours
from maxmargin.methods.between_visits import NO_ACCELERATION, Acceleration
from maxmargin.methods.blocks import Blocks, empty_blocks
from maxmargin.methods.planes import Planes
from maxmargin.methods.protocol import DONE, start
from maxmargin.methods.rules import ByGap, Listed
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import batch_corner, hinges, push_blocks, sweep
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import argmax
from maxmargin.structures.problem import as_problem, sizes
from maxmargin.structures.products import head_norm2
from support.active_sets import planes_of, with_room
from support.bitwise_runs import RUNS, bits, run
from support.catalogue import Case, chain_case, layout, matching_case, multiclass_case, tree_case
from support.maps import as_move
from support.runs import random_order

pytestmark = pytest.mark.compiled
METHOD = BlockFrankWolfe(0.05)
MODES = ("cached", "compiled", "interpreted")
# Each run compiles kernels for some seconds, so only one is for every day. The job `slow` runs these, which
# have most kinds of models, methods and wrappers.
DAILY, OFTEN = "multiclass, BCFW", ("functions, accelerated", "kernel of classes, BCFW")


def marked(names: Iterable[str]) -> list[Any]:
    """Return parameters of which all but the daily one are slow."""
    marks = {name: [pytest.mark.slow] for name in names if name != DAILY}
    for name in OFTEN:
        marks.get(name, []).append(pytest.mark.every_case)
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


def bits_of_another_process(
    request: pytest.FixtureRequest, test: Any, before: str = "", **settings: str
) -> dict[str, dict[str, list[str]]]:
    """Return the runs of those cases of a test that are chosen, in a process that runs ``before`` first."""
    chosen: list[Any] = [
        item for item in request.session.items if getattr(item, "originalname", "") == test.__name__
    ]
    names = [item.callspec.params["name"] for item in chosen]
    script = Path(__file__).parents[1] / "support" / "bitwise_runs.py"
    program = f"{before}\nimport runpy, sys\nrunpy.run_path({str(script)!r}, run_name='__main__')"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | settings
    command = [sys.executable, "-W", "error", "-c", program, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def without_compiler(request: pytest.FixtureRequest) -> dict[str, dict[str, list[str]]]:
    """Return the runs of a process in which everything is plain Python."""
    return bits_of_another_process(
        request, test_runs_have_the_same_bits_without_the_compiler, NUMBA_DISABLE_JIT="1"
    )


@pytest.mark.parametrize("name", marked(RUNS))
def test_runs_have_the_same_bits_without_the_compiler(
    name: str, without_compiler: dict[str, dict[str, list[str]]]
) -> None:
    compiled = run(name)
    assert len(compiled["gap"]) == 8
    assert compiled == without_compiler[name]


# One run of every model: names are those of a model and of a method.
OF_EVERY_MODEL = list({name.split(", ")[0]: name for name in RUNS}.values())


@pytest.fixture(scope="module")
def by_numba_alone(request: pytest.FixtureRequest) -> dict[str, dict[str, list[str]]]:
    """Return the runs of a process whose version of Numba is not tested, so that our pipeline is not used."""
    before = (
        "import numba, warnings\nnumba.__version__ = '0.1'\n"
        "warnings.filterwarnings('ignore', 'maxmargin: Numba is 0.1')\n"
        "from maxmargin.compiling.numba_private.pipeline import ARE_WHOLE, KERNEL, PART\n"
        "assert not ARE_WHOLE and 'pipeline_class' not in {*KERNEL, *PART}"
    )
    return bits_of_another_process(
        request, test_runs_have_the_same_bits_by_our_pipeline_and_by_that_of_numba, before
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_EVERY_MODEL)
def test_runs_have_the_same_bits_by_our_pipeline_and_by_that_of_numba(
    name: str, by_numba_alone: dict[str, dict[str, list[str]]]
) -> None:
    assert ARE_WHOLE
    assert "pipeline_class" in PART
    assert run(name) == by_numba_alone[name]


def test_every_model_is_compiled_by_both_pipelines() -> None:
    problems = [as_problem(RUNS[name][0]().problem) for name in OF_EVERY_MODEL]
    halves = {type(half) for problem in problems for half in (problem.map, problem.oracle)}
    models = {cls for cls in (*argmax.registry, *score.registry) if is_ours(cls) and not is_wrapper(cls)}
    assert models
    assert not [cls for cls in models if not any(issubclass(half, cls) for half in halves)]


def test_names_of_runs_exist() -> None:
    assert {*RUNS, *CASES} >= {DAILY, *OFTEN}


def test_squares_are_rounded_alike() -> None:
    """In the interpreter, x**2 differs from x * x for one number in a thousand; compiled, it is x * x."""
    drawn = np.random.default_rng(0).normal(size=10_000)
    for x in (drawn[0], *(x for x in drawn if x**2 != x * x)):
        move = as_move(np.array([x]))
        assert head_norm2(1, move) == unwrap(head_norm2)(1, move) == x * x


def numbers(value: Any) -> list[str]:
    """Return the bits of all arrays and numbers in nested tuples; of a pool only the entries in use."""
    if isinstance(value, Planes):
        planes = [planes_of(value, i) for i in range(len(value.extent))]
        value = (planes, value.extent, value.used, value.entries, value.used_entries, value.work)
    if isinstance(value, Blocks):
        entries = [slice(a, a + n) for a, n, _ in value.extent]
        value = (*(value.where[e] for e in entries), *(value.value[e] for e in entries), *value[2:])
    if isinstance(value, tuple | list):
        return [bit for field in value for bit in numbers(field)]
    return bits(np.ravel(value))


def called(loop: kernel, mode: str, *args: Any) -> Any:
    return getattr(loop, mode)(*args)


CASES = {
    "chain": lambda: chain_case(51, (3, 2, 4)),
    "multiclass": lambda: multiclass_case(51, n=6),
    "matching": lambda: matching_case(51, fertility=2),
    "trees": lambda: tree_case(51),
    "projective trees of sparse rows": lambda: tree_case(
        52, single_root=False, projective=True, rows="sparse"
    ),
}


@pytest.fixture(params=marked(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def results_of_all_loops(case: Case, mode: str) -> dict[str, list[str]]:
    """Run every loop of the package once; return the bits of what it wrote and returned."""
    problem, size = case.problem, sizes(case.problem)
    w = layout(problem, np.random.default_rng(0).normal(size=case.data.psi[0].shape[1]))
    order, state = random_order(problem, 25, seed=2), start(METHOD, problem)
    state = state._replace(z=empty_blocks(size.examples, 100 * size.statistics))  # enough for the whole sweep
    alone = Acceleration(
        interval=3,
        stretch=5,
        end=25,
        examples=25,
        last=np.zeros(2, dtype=np.int64),
        mean=np.zeros(size.weights),
        kappa=np.array([0.01]),
        growth=0.05,
        centre=np.zeros(size.weights),
        centre_move=0.1 * w,
        follow=0.3,
        gamma=np.zeros(size.examples),
    )
    moved = called(sweep, mode, problem, METHOD, state, state.w, Listed(order), new_scratch(problem), alone)
    assert tuple(moved) == (25, DONE)
    assert alone.kappa[0] == pytest.approx(0.05)  # grown by four stretches
    assert alone.mean.any()
    assert alone.gamma.any()
    found = {"sweep": numbers(state), "alone": numbers(alone)}
    out, corner, rebuilt = np.zeros(size.examples), np.zeros(size.weights), np.zeros(size.weights)
    labels = np.zeros(sum(len(outputs[0]) for outputs in case.data.outputs), dtype=np.int64)
    called(hinges, mode, problem, w, 0, out, new_scratch(problem))
    total = called(batch_corner, mode, problem, w, 0.1, 0, size.examples, 0.0, corner, new_scratch(problem))
    called(push_blocks, mode, problem.map, state.z, 0.1, rebuilt, new_scratch(problem).block)
    called(predictions, mode, problem, w, 0, size.examples, labels, *decoding_work(problem))
    return found | {
        "hinges": numbers(out),
        "batch_corner": numbers((total, corner)),
        "push_blocks": numbers(rebuilt),
        "predictions": numbers(labels),
    }


def test_loops_have_the_same_bits_in_all_modes(case: Case) -> None:
    cached, compiled, interpreted = (results_of_all_loops(case, mode) for mode in MODES)
    assert sweep.mode(case.problem, METHOD) == "cached"
    assert any(float.fromhex(bit) for bit in cached["push_blocks"])
    assert cached == compiled
    assert cached == interpreted


# Each entry compiles a kernel, so each method has only one kind of problem.
ACTIVE = {
    "pairwise": (lambda: chain_case(51, (3, 2, 4)), Pairwise(0.05)),
    "away": (lambda: multiclass_case(51, n=6), Away(0.05)),
}


def visits_by_gap(n: int) -> ByGap:
    """Return visits, half of them drawn by gap."""
    rng = np.random.default_rng(3)
    order = np.where(rng.random(40) < 0.5, -1, rng.integers(n, size=40))
    return ByGap(order, rng.random(40), np.zeros(2 << (n - 1).bit_length()))


def swept_by_gap(problem: Any, method: Any, mode: str) -> list[str]:
    """Return the bits of the state, of the tree of gaps and of what the loop returned."""
    state, visits = start(method, problem), visits_by_gap(sizes(problem).examples)
    state = state._replace(planes=with_room(state.planes))
    moved = called(
        sweep, mode, problem, method, state, state.w, visits, new_scratch(problem), NO_ACCELERATION
    )
    assert tuple(moved) == (40, DONE)
    return numbers((state, visits, moved))


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTIVE)
def test_active_sets_are_the_same_in_all_modes(name: str) -> None:
    made, method = ACTIVE[name]
    problem = made().problem
    cached, compiled, interpreted = (swept_by_gap(problem, method, mode) for mode in MODES)
    assert len(cached) > 100
    assert cached == compiled
    assert cached == interpreted

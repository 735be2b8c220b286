"""The cache of compiled code, on copies of the package and in processes of their own.

Each fault of Numba's own cache has a test here: stale code after an edit in another file, a user's
class that spoils the index, a renamed class, a file per run, a compilation per kind of array.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin.compiling import helper
from maxmargin.compiling.kernel_cache import KEPT_CACHES
from support.package_copies import (
    BUILT_IN,
    MEASURED,
    TRAIN,
    WARNED,
    X,
    cold,
    command_environment,
    copy_package,
    measured,
    reference,
    run,
)

pytestmark = pytest.mark.compiled

TWICE = 2.0 * (1.0 - np.eye(3))
# A user's model: multiclass, where every mistake costs FACTOR.
USER_CLASS = """
from maxmargin.problems import Multiclass
from maxmargin.structures.oracle import argmax, loss
from maxmargin.structures.classes.model import MulticlassOracle

class CostlyOracle(MulticlassOracle):
    __slots__ = ()

class Costly:
    @staticmethod
    def from_arrays(X, y):
        problem = Multiclass.from_arrays(X, y)
        return problem._replace(oracle=CostlyOracle(*problem.oracle))

@loss.register(CostlyOracle)
def costly_loss(classes, i, y):
    return FACTOR * classes.cost[classes.labels[i], y[0]]

@argmax.register(CostlyOracle)
def costly_argmax(classes, i, theta, y, work):
    y[0] = 0
    cost = classes.cost[classes.labels[i]]
    for k in range(1, classes.n_labels):
        if theta[k] + FACTOR * cost[k] > theta[y[0]] + FACTOR * cost[y[0]]:
            y[0] = k
"""
USER = TRAIN + "from user_module import Costly\nreport(measure(Costly))\n"


@pytest.fixture(scope="module")
def warm_copy(tmp_path_factory):
    """Return a copy of the package that has trained a built-in model once, and its report."""
    root = tmp_path_factory.mktemp("warm")
    copy_package(root)
    return root, run(root, BUILT_IN)


@pytest.fixture(scope="module")
def measured_copy(tmp_path_factory):
    """Return a copy of the package that has measured hinges once, and its report."""
    root = tmp_path_factory.mktemp("measured")
    copy_package(root)
    return root, run(root, MEASURED)


@pytest.fixture
def package(measured_copy, tmp_path):
    """Return a directory with such a copy that a test may change; names of caches do not depend on paths."""
    shutil.copytree(measured_copy[0] / "maxmargin", tmp_path / "maxmargin")
    return tmp_path


def write_user_module(package, factor):
    (package / "user_module.py").write_text(USER_CLASS.replace("FACTOR", factor))


def test_first_process_compiles_and_second_loads_for_all_inputs(warm_copy):
    root, first = warm_copy
    inputs = """
from maxmargin.problems import Multiclass
X = np.array(X)
frozen = X.copy()
frozen.flags.writeable = False
for variant in ((10 * X).astype(np.int16), np.asfortranarray(X), frozen):
    train(Multiclass, variant)
train(Multiclass, lam=1)
train(Multiclass, lam=np.float32(0.1))
report(train(Multiclass))
"""
    second = run(root, TRAIN + f"X = {X!r}\n" + inputs)
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (second["hits"], second["misses"]) == (1, 0)
    assert first["signatures"] == second["signatures"] == 1
    assert first["numbers"] == second["numbers"] == reference()
    assert Path(first["directory"]).parent == root / "maxmargin" / "__pycache__"
    assert second["files"] == first["files"] != []


@pytest.mark.slow
def test_edit_in_another_file_than_the_loop_is_seen(package):
    edited = package / "maxmargin" / "structures" / "classes" / "model.py"
    again = USER_CLASS[USER_CLASS.index("@loss") :].replace("FACTOR", "2.0").replace("Costly", "Multiclass")
    names = "\nfrom maxmargin.structures.oracle import argmax, loss\n"
    edited.write_text(edited.read_text() + names + again)
    said = run(package, MEASURED)
    assert said["numbers"] == measured(loss=TWICE) != measured()
    assert said["hits"] == 0


@pytest.mark.slow
def test_users_model_is_compiled_anew_and_leaves_nothing_behind(package, measured_copy):
    write_user_module(package, "1.0")
    assert run(package, USER)["numbers"] == measured()
    write_user_module(package, "2.0")
    said = run(package, USER)
    assert said["numbers"] == measured(loss=TWICE)
    assert said["files"] == measured_copy[1]["files"]
    (package / "user_module.py").unlink()
    said = run(package, MEASURED)
    assert said["numbers"] == measured()
    assert said["hits"] == 1


@pytest.mark.slow
def test_renamed_class_does_no_harm(package):
    for file in (package / "maxmargin").rglob("*.py*"):
        if file.suffix not in (".py", ".pyi"):
            continue
        file.write_text(re.sub(r"\bMulticlass(Map|Oracle)?\b", r"Categories\1", file.read_text()))
    said = run(package, MEASURED.replace("Multiclass", "Categories"))
    assert said["numbers"] == measured()


@pytest.mark.slow
def test_class_of_a_script_adds_no_file(package, measured_copy):
    # Also a helper that gets an object of a class defined in the script.
    moves = """
from maxmargin.structures.feature_map import Move, new_move, reset

class MyMove(Move):
    __slots__ = ()

reset(MyMove(*new_move(3)))
"""
    script = TRAIN + USER_CLASS.replace("FACTOR", "2.0") + moves + "report(measure(Costly))\n"
    said = run(package, script)
    assert said["numbers"] == measured(loss=TWICE)
    assert said["files"] == measured_copy[1]["files"]


def test_helper_of_a_user_is_not_kept():
    def add(a, b):
        return a + b

    assert helper(add).compiled().stats.cache_path is None


@pytest.mark.slow
def test_four_cold_processes_at_once_share_one_cache(package):
    cold(package)
    cache = package / "cache"
    sparse = MEASURED.replace(
        "measure(Multiclass)", "measure(Multiclass, scipy.sparse.csr_array(np.array(X)))"
    )
    sparse = f"import scipy.sparse\nX = {X!r}\n" + sparse
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=command_environment(package, NUMBA_CACHE_DIR=str(cache)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for program in (MEASURED, sparse, MEASURED, sparse)
    ]
    said = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    np.testing.assert_allclose([each["numbers"] for each in said], [measured()] * 4, rtol=1e-12)
    for program in (MEASURED, sparse):
        assert run(package, program, NUMBA_CACHE_DIR=str(cache))["hits"] == 1
    # NUMBA_CACHE_DIR is honoured: everything is there, and nothing in the package.
    assert Path(said[0]["directory"]).parent == cache / "maxmargin"
    assert not list((package / "maxmargin").rglob("kernels-*"))


@pytest.mark.slow
def test_without_a_directory_each_process_compiles(package):
    cold(package)
    no_directory = package / "file"
    no_directory.touch()
    said = run(package, WARNED + MEASURED, NUMBA_CACHE_DIR=str(no_directory))
    assert said["numbers"] == measured()
    assert said["directory"] == "None"
    assert len(said["warnings"]) == 1
    assert re.match(
        r"maxmargin: compiled kernels are not kept on disk, .*file/maxmargin: .*; set NUMBA_CACHE_DIR",
        said["warnings"][0],
    )


@pytest.mark.slow
def test_falls_back_to_the_users_cache(package):
    folder = package / "maxmargin" / "__pycache__"
    (package / "home" / "maxmargin").mkdir(parents=True)
    for compiled in folder.iterdir():
        compiled.rename(package / "home" / "maxmargin" / compiled.name)
    folder.rmdir()
    folder.touch()  # so that no directory can be made here
    said = run(package, MEASURED, XDG_CACHE_HOME=str(package / "home"))
    assert Path(said["directory"]).parent == package / "home" / "maxmargin"
    assert said["hits"] == 1


@pytest.mark.slow
def test_without_compilation_numbers_are_the_same(package):
    said = run(package, MEASURED, NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(said["numbers"], measured(), rtol=1e-12)
    assert said["signatures"] == 0


@pytest.mark.slow
def test_damaged_files_are_compiled_anew(package):
    folder = next((package / "maxmargin" / "__pycache__").iterdir())
    files = sorted(folder.iterdir())
    contents = [file.read_bytes() for file in files]
    half = len(files) // 2
    for file, content in zip(files[:half], contents, strict=False):
        file.write_bytes(content[:-1])
    # Undamaged files, but of another function or signature.
    for file, content in zip(files[half:], contents[half - 1 :], strict=False):
        file.write_bytes(content)
    said = run(package, MEASURED)
    assert said["numbers"] == measured()
    assert run(package, MEASURED)["hits"] == 1


@pytest.mark.slow
def test_directory_can_be_removed_while_running(package):
    removal = "import shutil\nshutil.rmtree(cache_directory())\n"
    said = run(package, MEASURED.replace("report(measure(", removal + "report(measure("))
    assert said["numbers"] == measured()
    assert said["files"] != []


@pytest.mark.slow
def test_old_directories_are_pruned(package):
    folder = package / "maxmargin" / "__pycache__"
    current = next(folder.iterdir())
    os.utime(current, (1, 1))  # old, but in use now
    for age in range(6):
        old = folder / f"kernels-{age}"
        old.mkdir()
        os.utime(old, (100 - age, 100 - age))
    run(package, MEASURED)
    left = {path.name for path in folder.iterdir()}
    assert left == {current.name} | {f"kernels-{age}" for age in range(KEPT_CACHES - 1)}

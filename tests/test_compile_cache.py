"""The cache of compiled code, on copies of the package and in processes of their own.

Each trap of Numba's own cache has a test here: stale code after an edit in another file, a user's
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

import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.compiling import helper
from maxmargin.compiling.kernel_cache import KEPT_CACHES
from maxmargin.problems import Multiclass

X = [[0.5, 1.0], [1.5, -1.0], [-0.5, 2.0], [1.0, 1.0], [-1.0, -2.0], [0.3, -0.7]]
Y = [0, 1, 2, 0, 1, 2]
TWICE = 2.0 * (1.0 - np.eye(3))

# Trains on X and Y with the class Model, and says what came of it.
TRAIN = f"""
import json
from pathlib import Path
import numpy as np
import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.methods._sweep import sweep

def train(Model, X={X!r}, lam=0.1):
    problem = Model.from_arrays(X, {Y!r})
    return solve(problem, BlockFrankWolfe(lam), tol=0.0, max_passes=3, random_state=0)

def report(result):
    stats = getattr(sweep.cached, "stats", None)
    folder = cache_directory()
    print(json.dumps({{
        "weights": result.weights.tolist(),
        "bounds": [result.dual, result.primal],
        "hits": sum(stats.cache_hits.values()) if stats else None,
        "misses": sum(stats.cache_misses.values()) if stats else None,
        "signatures": len(getattr(sweep.cached, "signatures", ())),
        "directory": str(folder),
        "files": sorted(p.name for p in folder.iterdir()) if folder else None,
        "package": str(Path(maxmargin.__file__).parent),
        "warnings": [str(each.message) for each in globals().get("caught", ())],
    }}))
"""
# Notes warnings, which are errors otherwise.
WARNED = """
import warnings
catching = warnings.catch_warnings(record=True)
caught = catching.__enter__()
warnings.simplefilter("always")
"""
BUILT_IN = TRAIN + "from maxmargin.problems import Multiclass\nreport(train(Multiclass))\n"
# A model of the user's: multiclass, with every mistake costing FACTOR.
USER_CLASS = """
from maxmargin.problems import Multiclass
from maxmargin.problems._protocol import argmax, loss

class Costly(Multiclass):
    __slots__ = ()

@loss.register(Costly)
def _(problem, i, y):
    return FACTOR * problem.cost[problem.labels[i], y[0]]

@argmax.register(Costly)
def _(problem, i, theta, y, work):
    y[0] = 0
    cost = problem.cost[problem.labels[i]]
    for k in range(1, problem.n_labels):
        if theta[k] + FACTOR * cost[k] > theta[y[0]] + FACTOR * cost[y[0]]:
            y[0] = k
"""
USER = TRAIN + "from user_module import Costly\nreport(train(Costly))\n"


def command_environment(root, **extra):
    """A process that finds the copy of the package in ``root`` and no other cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    # Byte code is told stale by the second of the edit, which is too coarse for a test.
    return kept | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(root)} | extra


def run(root, program, **extra):
    """Run the text of a program and return what it reported."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=command_environment(root, **extra),
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert Path(said["package"]) == root / "maxmargin"
    return said


def reference(**options):
    """The same training in this process."""
    problem = Multiclass.from_arrays(X, Y, **options)
    return solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=3, random_state=0).weights.tolist()


@pytest.fixture(scope="module")
def warm_copy(tmp_path_factory):
    """A copy of the package that has trained a built-in model once, and what it said."""
    root = tmp_path_factory.mktemp("warm")
    source = Path(maxmargin.__file__).parent
    shutil.copytree(source, root / "maxmargin", ignore=shutil.ignore_patterns("__pycache__"))
    return root, run(root, BUILT_IN)


@pytest.fixture
def package(warm_copy, tmp_path):
    """A directory with such a copy, for a test to change; the caches' names do not depend on the place."""
    shutil.copytree(warm_copy[0] / "maxmargin", tmp_path / "maxmargin")
    return tmp_path


def cold(package):
    """Forget what was compiled."""
    shutil.rmtree(package / "maxmargin" / "__pycache__")


def write_user_module(package, factor):
    (package / "user_module.py").write_text(USER_CLASS.replace("FACTOR", factor))


def test_first_process_compiles_and_second_loads(warm_copy):
    root, first = warm_copy
    second = run(root, BUILT_IN)
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (second["hits"], second["misses"]) == (1, 0)
    assert first["weights"] == second["weights"] == reference()
    assert Path(first["directory"]).parent == root / "maxmargin" / "__pycache__"
    assert second["files"] == first["files"] != []


def test_edit_in_another_file_than_the_loop_is_seen(package):
    edited = package / "maxmargin" / "problems" / "multiclass.py"
    again = USER_CLASS[USER_CLASS.index("@loss") :].replace("FACTOR", "2.0").replace("Costly", "Multiclass")
    names = "\nfrom maxmargin.problems._protocol import argmax, loss\n"
    edited.write_text(edited.read_text() + names + again)
    said = run(package, BUILT_IN)
    assert said["weights"] == reference(loss=TWICE) != reference()
    assert said["hits"] == 0


def test_users_model_is_compiled_anew_and_leaves_nothing_behind(package, warm_copy):
    write_user_module(package, "1.0")
    assert run(package, USER)["weights"] == reference()
    write_user_module(package, "2.0")
    said = run(package, USER)
    assert said["weights"] == reference(loss=TWICE)
    assert said["files"] == warm_copy[1]["files"]
    (package / "user_module.py").unlink()
    said = run(package, BUILT_IN)
    assert said["weights"] == reference()
    assert said["hits"] == 1


def test_renamed_class_does_no_harm(package):
    for file in (package / "maxmargin").rglob("*.py"):
        file.write_text(re.sub(r"\bMulticlass\b", "Categories", file.read_text()))
    said = run(package, BUILT_IN.replace("Multiclass", "Categories"))
    assert said["weights"] == reference()


def test_class_of_a_script_adds_no_file(package, warm_copy):
    # Also a helper that is handed a class of the script's.
    moves = """
from maxmargin.methods._move import Move, new_move, reset

class MyMove(Move):
    __slots__ = ()

reset(MyMove(*new_move(3)))
"""
    script = TRAIN + USER_CLASS.replace("FACTOR", "2.0") + moves + "report(train(Costly))\n"
    said = run(package, script)
    assert said["weights"] == reference(loss=TWICE)
    assert said["files"] == warm_copy[1]["files"]


def test_helper_of_a_user_is_not_kept():
    def add(a, b):
        return a + b

    assert helper(add).compiled.stats.cache_path is None


def test_other_inputs_compile_nothing_more(package):
    inputs = """
from maxmargin.problems import Multiclass
X = np.array(X)
frozen = X.copy()
frozen.flags.writeable = False
for variant in (X.astype(np.float32), np.asfortranarray(X), frozen):
    train(Multiclass, variant)
train(Multiclass, lam=1)
train(Multiclass, lam=np.float32(0.1))
report(train(Multiclass))
"""
    said = run(package, TRAIN + f"X = {X!r}\n" + inputs)
    assert said["signatures"] == 1
    assert (said["hits"], said["misses"]) == (1, 0)


def test_four_cold_processes_at_once(package):
    cold(package)
    cache = package / "cache"
    sparse = BUILT_IN.replace("train(Multiclass)", "train(Multiclass, scipy.sparse.csr_array(np.array(X)))")
    sparse = f"import scipy.sparse\nX = {X!r}\n" + sparse
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=command_environment(package, NUMBA_CACHE_DIR=str(cache)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for program in (BUILT_IN, sparse, BUILT_IN, sparse)
    ]
    said = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    np.testing.assert_allclose([each["weights"] for each in said], [reference()] * 4, rtol=1e-12)
    for program in (BUILT_IN, sparse):
        assert run(package, program, NUMBA_CACHE_DIR=str(cache))["hits"] == 1
    # The variable is honoured: everything is there, and nothing in the package.
    assert Path(said[0]["directory"]).parent == cache / "maxmargin"
    assert not list((package / "maxmargin").rglob("kernels-*"))


def test_without_a_directory_each_process_compiles(package):
    cold(package)
    no_directory = package / "file"
    no_directory.touch()
    said = run(package, WARNED + BUILT_IN, NUMBA_CACHE_DIR=str(no_directory))
    assert said["weights"] == reference()
    assert said["directory"] == "None"
    assert len(said["warnings"]) == 1
    assert re.match(
        r"maxmargin: compiled kernels are not kept on disk, .*file/maxmargin: .*; set NUMBA_CACHE_DIR",
        said["warnings"][0],
    )


def test_falls_back_to_the_users_cache(package):
    folder = package / "maxmargin" / "__pycache__"
    (package / "home" / "maxmargin").mkdir(parents=True)
    for compiled in folder.iterdir():
        compiled.rename(package / "home" / "maxmargin" / compiled.name)
    folder.rmdir()
    folder.touch()  # no directory can be made here
    said = run(package, BUILT_IN, XDG_CACHE_HOME=str(package / "home"))
    assert Path(said["directory"]).parent == package / "home" / "maxmargin"
    assert said["hits"] == 1


def test_without_compilation(package):
    said = run(package, BUILT_IN, NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(said["weights"], reference(), rtol=1e-12)
    assert said["signatures"] == 0


# What to remove from Numba before the package is imported, and what the warning says is lost.
PRIVATE_NAMES = {
    "serialize": ('sys.modules["numba.core.serialize"] = None', "not kept on disk"),
    "_reduce": ("del numba.core.compiler.CompileResult._reduce", "not kept on disk"),
    "magic_tuple": ("del numba.core.codegen.CPUCodegen.magic_tuple", "not kept on disk"),
    "has_dynamic_globals": ("del numba.core.codegen.CodeLibrary.has_dynamic_globals", "not kept on disk"),
    "_parts": ('sys.modules["maxmargin.compiling.parts"] = None', "longer to compile"),
    "arrayobj": ("del numba.np.arrayobj.make_array", "prefetching"),
    "cgutils": ("del numba.core.cgutils.get_or_insert_function", "prefetching"),
    "options": (
        "mixin = numba.core.cpu.CPUTargetOptions.__mro__[1]\n"
        "for name in ('_nrt', 'no_cfunc_wrapper', 'forceinline'): delattr(mixin, name)",
        "_nrt, no_cfunc_wrapper",
    ),
}
REMOVE = """
import sys, numba.core.cpu, numba.core.codegen, numba.np.arrayobj, numba.core.cgutils, numba.extending
kept = sys.modules["numba.core.serialize"], numba.np.arrayobj.make_array
names = vars(numba.core.cgutils).copy()
{removal}
import maxmargin
# Only the package is to miss them: Numba has them under other names.
sys.modules["numba.core.serialize"], numba.np.arrayobj.make_array = kept
vars(numba.core.cgutils).update(names)
"""


@pytest.mark.parametrize(("removal", "lost"), PRIVATE_NAMES.values(), ids=PRIVATE_NAMES)
def test_without_a_private_name_of_numba_results_are_the_same(package, removal, lost):
    cold(package)
    said = run(package, WARNED + REMOVE.format(removal=removal) + BUILT_IN)
    assert said["weights"] == reference()
    assert (said["hits"], said["misses"]) == (0, 1)
    assert len(said["warnings"]) == 1
    assert lost in said["warnings"][0]
    assert (said["directory"] == "None") is ("disk" in lost)


def test_damaged_files_are_compiled_anew(package):
    folder = next((package / "maxmargin" / "__pycache__").iterdir())
    files = sorted(folder.iterdir())
    contents = [file.read_bytes() for file in files]
    half = len(files) // 2
    for file, content in zip(files[:half], contents, strict=False):
        file.write_bytes(content[:-1])
    # Whole files, but of another function or signature.
    for file, content in zip(files[half:], contents[half - 1 :], strict=False):
        file.write_bytes(content)
    said = run(package, BUILT_IN)
    assert said["weights"] == reference()
    assert run(package, BUILT_IN)["hits"] == 1


def test_directory_removed_while_running(package):
    removal = "import shutil\nshutil.rmtree(cache_directory())\n"
    said = run(package, BUILT_IN.replace("report(train(", removal + "report(train("))
    assert said["weights"] == reference()
    assert said["files"] != []


def test_old_directories_are_pruned(package):
    folder = package / "maxmargin" / "__pycache__"
    current = next(folder.iterdir())
    os.utime(current, (1, 1))  # long unused, but used now
    for age in range(6):
        old = folder / f"kernels-{age}"
        old.mkdir()
        os.utime(old, (100 - age, 100 - age))
    run(package, BUILT_IN)
    left = {path.name for path in folder.iterdir()}
    assert left == {current.name} | {f"kernels-{age}" for age in range(KEPT_CACHES - 1)}

"""Programs that train on copies of the package, each in a process and with a kernel cache of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.problems import Multiclass
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.problem import sizes

X = [[0.5, 1.0], [1.5, -1.0], [-0.5, 2.0], [1.0, 1.0], [-1.0, -2.0], [0.3, -0.7]]
Y = [0, 1, 2, 0, 1, 2]

# Trains on X and Y with the class Model, or measures the hinges of some weights, which needs one kernel that
# compiles in a third of the time; reports the numbers found and what the cache did.
TRAIN = f"""
import json
from pathlib import Path
import numpy as np
import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.methods.sweep import hinges, sweep
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.problem import sizes

def train(Model, X={X!r}, lam=0.1):
    problem = Model.from_arrays(X, {Y!r})
    return solve(problem, BlockFrankWolfe(lam), tol=0.0, max_passes=3, random_state=0)

def measure(Model, X={X!r}):
    problem = Model.from_arrays(X, {Y!r})
    return hinge_losses(problem, np.linspace(-1.0, 1.0, sizes(problem).weights))

def report(found):
    loop = hinges if isinstance(found, np.ndarray) else sweep
    stats = getattr(loop.cached, "stats", None)
    folder = cache_directory()
    print(json.dumps({{
        "numbers": getattr(found, "weights", found).tolist(),
        "hits": sum(stats.cache_hits.values()) if stats else None,
        "misses": sum(stats.cache_misses.values()) if stats else None,
        "signatures": len(getattr(loop.cached, "signatures", ())),
        "directory": str(folder),
        "files": sorted(p.name for p in folder.iterdir()) if folder else None,
        "package": str(Path(maxmargin.__file__).parent),
        "warnings": [str(each.message) for each in globals().get("caught", ())],
    }}))
"""
# Collects warnings, which would be errors otherwise.
WARNED = """
import warnings
catching = warnings.catch_warnings(record=True)
caught = catching.__enter__()
warnings.simplefilter("always")
"""
BUILT_IN = TRAIN + "from maxmargin.problems import Multiclass\nreport(train(Multiclass))\n"
MEASURED = BUILT_IN.replace("report(train(", "report(measure(")


def command_environment(root, **extra):
    """Return the environment of a process that finds the copy in ``root``, and no other kernel cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON", "MAXMARGIN_K"))}
    # Python compares times of edits by the second, too coarsely for tests that edit files.
    return kept | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(root)} | extra


def run(root, program, **extra):
    """Run a program and return what it reported."""
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
    """Return the weights of the same training in this process."""
    problem = Multiclass.from_arrays(X, Y, **options)
    return solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=3, random_state=0).weights.tolist()


def measured(**options):
    """Return the hinges of the same weights in this process."""
    problem = Multiclass.from_arrays(X, Y, **options)
    return hinge_losses(problem, np.linspace(-1.0, 1.0, sizes(problem).weights)).tolist()


def copy_package(root):
    """Copy the package, without compiled code, to ``root``."""
    source = Path(maxmargin.__file__).parent
    shutil.copytree(source, root / "maxmargin", ignore=shutil.ignore_patterns("__pycache__", "_kernels"))


def cold(package):
    """Remove the compiled code of a copy."""
    shutil.rmtree(package / "maxmargin" / "__pycache__")

"""Programs that train on copies of the package, each in a process and with a kernel cache of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.problems import Multiclass

X = [[0.5, 1.0], [1.5, -1.0], [-0.5, 2.0], [1.0, 1.0], [-1.0, -2.0], [0.3, -0.7]]
Y = [0, 1, 2, 0, 1, 2]

# Trains on X and Y with the class Model, and reports weights, bounds and what the cache did.
TRAIN = f"""
import json
from pathlib import Path
import numpy as np
import maxmargin
from maxmargin import BlockFrankWolfe, solve
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.methods.sweep import sweep

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
# Collects warnings, which would be errors otherwise.
WARNED = """
import warnings
catching = warnings.catch_warnings(record=True)
caught = catching.__enter__()
warnings.simplefilter("always")
"""
BUILT_IN = TRAIN + "from maxmargin.problems import Multiclass\nreport(train(Multiclass))\n"


def command_environment(root, **extra):
    """Return the environment of a process that finds the copy in ``root``, and no other kernel cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
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


def copy_package(root):
    """Copy the package, without compiled code, to ``root``."""
    source = Path(maxmargin.__file__).parent
    shutil.copytree(source, root / "maxmargin", ignore=shutil.ignore_patterns("__pycache__"))


def cold(package):
    """Remove the compiled code of a copy."""
    shutil.rmtree(package / "maxmargin" / "__pycache__")

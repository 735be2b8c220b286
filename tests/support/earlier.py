"""What the version before wrote: model files, checkpoints and pickles, kept so that this version reads them.

``python tests/support/earlier.py``, run with the source of the version before, wrote ``tests/data/before``
and ``tests/data/models/before``. The data are never written again by a later version.
"""

import pickle
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import (
    Accelerated,
    Averaged,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    Checkpoint,
    CuttingPlane,
    Divided,
    ExponentiatedGradient,
    NSlackCuttingPlane,
    Pairwise,
    Subgradient,
    pickle_training_data,
    solve,
)
from maxmargin.problems import Custom, GaussianKernel, Kernelised, SignConstrained, SlackRescaled, Weighted

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))

from support import catalogue, model_files
from support.estimators import KINDS

FOLDER = Path(__file__).parents[1] / "data" / "before"
LAM = 0.05
SETTINGS: dict[str, Any] = {"tol": 0.0, "check_every": 2, "random_state": 7}
METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
    "pairwise": Pairwise(LAM),
    "exact": BlockExact(LAM),
    "cached": Cached(Pairwise(LAM)),
    "accelerated": Accelerated(BlockFrankWolfe(LAM)),
    "divided": Divided(BlockFrankWolfe(LAM), 2),
    "cutting-plane": CuttingPlane(LAM),
    "n-slack": NSlackCuttingPlane(LAM),
    "exponentiated": ExponentiatedGradient(LAM),
    "subgradient": Subgradient(LAM),
}


def problems() -> dict[str, Any]:
    """Return a problem of each kind, and of each wrapper."""
    multiclass, _, X = catalogue.multiclass_case(1)
    chain = catalogue.chain_case(1).problem
    return {
        "multiclass": multiclass,
        "chain": chain,
        "second-order": catalogue.chain_case(1, order=2).problem,
        "segments": catalogue.segment_case(1).problem,
        "matching": catalogue.matching_case(1).problem,
        "trees": catalogue.tree_case(1).problem,
        "projective": catalogue.tree_case(1, projective=True, rows="sparse").problem,
        "graph": catalogue.graph_case(1).problem,
        "cut": catalogue.graph_case(1, inference="cut", n_labels=2).problem,
        "label-sets": catalogue.label_set_case(1).problem,
        "kernel": Kernelised(multiclass, np.array(X), GaussianKernel(0.5)),
        "weighted": Weighted(chain, [1.0, 2.0, 1.0, 0.5]),
        "slack": SlackRescaled(multiclass),
        "signs": SignConstrained(multiclass, nonnegative=[0, 2]),
    }


def custom() -> Any:
    """Return a problem of users' functions, which has no checkpoints."""
    return Custom(*model_files.FUNCTIONS.values(), [list("abc"), list("cab")], [1, 2])


def run(problem: Any, method: Any, passes: int, **options: Any) -> Any:
    """Return the result of a run of so many passes."""
    return solve(problem, method, max_passes=passes, **SETTINGS | options)


def runs() -> dict[str, tuple[Any, Any]]:
    """Return the problem and the method of each run that a checkpoint is of."""
    found = {name: (problem, METHODS["bcfw"]) for name, problem in problems().items()}
    multiclass = found["multiclass"][0]
    return found | {
        f"method-{name}": (multiclass, method) for name, method in METHODS.items() if name != "bcfw"
    }


def fitted(name: str, passes: int, checkpoint: Path | Checkpoint) -> Any:
    """Return an estimator after so many passes."""
    kind, settings = KINDS[name], {"tol": 0.0, "check_every": 2, "checkpoint": checkpoint}
    return kind.new(**settings, callbacks=[lambda progress: progress.passes < passes]).fit(kind.X, kind.y)


FITS = ("multiclass", "chain", "dependency")


def main() -> None:
    """Write all files."""
    from maxmargin.compiling.interpreting import interpreted

    model_files.__version__ = "before"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with interpreted():
        model_files.main()
        for name, (problem, method) in runs().items():
            run(problem, method, 2, checkpoint=FOLDER / f"{name}.run.checkpoint")
        for name in FITS:
            fitted(name, 2, Checkpoint(FOLDER / f"{name}.fit.checkpoint", every=0))
        for name, problem in (problems() | {"custom": custom()}).items():
            result = run(problem, METHODS["bcfw"], 2)
            held = {"problem": problem, "weights": problem.unpack(result.w), "result": result}
            (FOLDER / f"{name}.problem.pickle").write_bytes(pickle.dumps(held))
        (FOLDER / "methods.pickle").write_bytes(pickle.dumps(METHODS))
        for name, sample in model_files.samples().items():
            sample.model.set_params(warm_start=name in FITS)
            with pickle_training_data() if name in FITS else nullcontext():
                (FOLDER / f"{name}.estimator.pickle").write_bytes(pickle.dumps(sample.fitted()))


if __name__ == "__main__":
    np.seterr(all="raise")
    main()

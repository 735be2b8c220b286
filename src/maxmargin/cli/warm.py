"""Compile kernels ahead of time, for container images and before workers start.

Kernels are compiled by tiny fits, which need the same ones as users' fits.
"""

import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import joblib
import numpy as np
import scipy.sparse
from tqdm import tqdm

from maxmargin import estimators
from maxmargin.compiling import KERNELS, places
from maxmargin.compiling.kernel_cache import cache_directory
from maxmargin.estimators.parameters import DUAL_METHODS
from maxmargin.estimators.structure import Trials
from maxmargin.runtime.arrays import CsrMatrix, FloatArray
from maxmargin.runtime.wording import counted
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.driver import solve
from maxmargin.structures.classes.model import Multiclass
from maxmargin.structures.dependency.encode import Arcs
from maxmargin.structures.dependency.model import Dependency, DependencyProblem
from maxmargin.structures.graphs.loopy import LABELLINGS
from maxmargin.structures.graphs.model import Graph
from maxmargin.structures.matchings.encode import encode_links
from maxmargin.structures.matchings.model import Matching
from maxmargin.structures.problem import AnyProblem, sizes
from maxmargin.structures.segments.model import Segments
from maxmargin.structures.sequences.model import Chain, SecondOrderChain
from maxmargin.tagging.loops import ready_loops


class FirstFit(NamedTuple):
    """A fit that compiles kernels.

    Attributes
    ----------
    model : str
        An estimator, trained with default parameters; or a model, trained by ``method``.
    data : str
        What its examples are.
    method : str
        Name of a method; empty for an estimator.
    """

    model: str
    data: str
    method: str = ""

    def __str__(self) -> str:
        return f"{self.model}, {self.data}" + (f", {self.method}" if self.method else "")


# What the demo compares with.
DEMO = FirstFit("chain", "dense rows", "bcfw")


def default_fits(names: list[str]) -> list[FirstFit]:
    """Return the fits of these estimators with default parameters, for every kind of data."""
    return [FirstFit(name, data) for name in names for data in _trials(name)]


def compiled() -> list[str]:
    """Return the names of the estimators whose kernels can be compiled beforehand."""
    return [name for name in sorted(estimators.ESTIMATORS) if _trials(name)]


def _trials(name: str) -> Trials:
    return estimators.estimator_class(name)._structure.trials


def all_fits() -> list[FirstFit]:
    """Return the fits of every model by every method of the dual, for every kind of rows."""
    return [FirstFit(model, data, method) for model, data in _problems() for method in DUAL_METHODS]


def run(fit: FirstFit) -> None:
    """Train and predict, so that all kernels of the fit are compiled or loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are too few data to converge
        if fit.method:
            problem = _problems()[fit.model, fit.data]
            solve(problem, DUAL_METHODS[fit.method](1.0), max_passes=1, random_state=0)
            decode_all(problem, np.zeros(sizes(problem).weights))
        else:
            if fit.data == "attributes":
                ready_loops()  # tagging such files needs loops of its own
            X, y = _trials(fit.model)[fit.data]()
            estimator = estimators.estimator_class(fit.model)(max_iter=2, tol=0.0, verbose=0, random_state=0)
            estimator.fit(X, y).predict(X)


@cache
def _problems() -> dict[tuple[str, str], AnyProblem]:
    """Return a tiny problem for each model and each storage format of features."""
    return dict(_made_problems())


def _made_problems() -> Iterator[tuple[tuple[str, str], AnyProblem]]:
    sequence = np.array([0, 2]), np.array([0, 1]), 2
    builders: list[tuple[str, Callable[[Any], Any]]] = [
        ("multiclass", lambda X: Multiclass.from_encoded(X, np.array([0, 1]), 2)),
        ("chain", lambda X: Chain.from_encoded(X, *sequence)),
        ("second-order chain", lambda X: SecondOrderChain.from_encoded(X, *sequence)),
        ("segments", lambda X: Segments.from_sequences([X], [[(0, 1, "a"), (1, 2, "b")]])),
        ("trees", partial(_trees, projective=False)),
        ("projective trees", partial(_trees, projective=True)),
    ]
    features = {
        "dense": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "sparse": scipy.sparse.csr_array(np.diag([2.0, 3.0])),
        "indicators": scipy.sparse.csr_array(np.eye(2)),
    }
    for (model, build), (storage, X) in itertools.product(builders, features.items()):
        yield (model, f"{storage} rows"), build(X)
    for inference in LABELLINGS:
        graph = (features["dense"], [[0, 1]])
        yield ("graph", f"by {inference}"), Graph.from_graphs([graph], [[0, 1]], inference=inference)
    links = encode_links([np.ones((1, 1, 1))])
    yield ("matching", "links"), Matching.from_encoded(links, np.ones(1, dtype=np.bool_))


def _trees(X: FloatArray | CsrMatrix, *, projective: bool) -> DependencyProblem:
    arcs, heads = Arcs(X, np.array([0, 1])), np.array([0])
    return Dependency.from_encoded(arcs, heads, projective=projective)


# A process ends after a few fits, as Numba keeps everything that it has compiled in memory.
_FITS_OF_A_PROCESS = 3
# Roughly the time of a fit with a cold cache on one core; the fits of one process share some of it.
_SECONDS_OF_A_FIT = 18
# A child runs this, with a list of fits on its standard input.
CHILD = "from maxmargin.cli.warm import work; work()"


class Compiled(NamedTuple):
    """The outcome of `compile_kernels`; ``str`` makes one line of it.

    Attributes
    ----------
    kernels : int
        Number of specialisations that are ready: one per kernel, model, kind of features and method.
    seconds : float
        Elapsed time; short if the kernels were on disk.
    directory : Path or None
        Where they are stored; None if no directory is writeable, so that each process compiles again.
    megabytes : float
        Peak memory of a process.
    """

    kernels: int
    seconds: float
    directory: Path | None
    megabytes: float = 0.0

    def __str__(self) -> str:
        if self.directory is None:
            return "no kernels compiled: no directory to keep them is writeable; set NUMBA_CACHE_DIR"
        used = f"{self.seconds:.1f} s and at most {self.megabytes:.0f} MB a process"
        return f"{self.kernels} kernels ready in {used}, in {self.directory}"


class _Outcome(NamedTuple):
    """A child's report after a fit: its number of new specialisations, and its peak memory so far."""

    kernels: int
    megabytes: float


class Plan(NamedTuple):
    """What `compile_kernels` is going to do; ``str`` makes one line of it."""

    fits: tuple[FirstFit, ...]
    n_jobs: int

    def __str__(self) -> str:
        minutes = math.ceil(len(self.fits) * _SECONDS_OF_A_FIT / self.n_jobs / 60)
        return (
            f"compiling for {counted(len(self.fits), 'kind')} of fits in {counted(self.n_jobs, 'process')} "
            f"of at most 1 GB: about {minutes} min, or less if some of it is on disk"
        )


def plan(
    estimators: Sequence[str] | None = None, *, every_method: bool = False, n_jobs: int | None = None
) -> Plan:
    """Return the plan of `compile_kernels` for these arguments; raise if there is no such estimator."""
    if isinstance(estimators, str):
        estimators = [estimators]
    known = compiled()
    unknown = [name for name in estimators or () if name not in known]
    if unknown:
        raise ValueError(f"compile_kernels: estimators must be among {', '.join(known)}, got {unknown[0]!r}.")
    fits = default_fits(list(estimators or known))
    if not estimators:
        fits.append(DEMO)
    if every_method:
        fits += all_fits()
    most = int(joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs))
    return Plan(tuple(fits), min(most, len(_groups(fits))))


def compile_kernels(
    estimators: Sequence[str] | None = None,
    *,
    every_method: bool = False,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Compiled:
    """Compile the kernels that estimators need, or make sure that they are on disk.

    By default these are the kernels for fits with default parameters, on dense, sparse and indicator
    features, and for the demo. Sample and class weights need no others. Kernels for other methods, slack
    rescaling, sign constraints, forbidden transitions and kernel functions are compiled when they are first
    used.

    The kernels are stored for the user who compiles them. Other users can load them if root compiled them
    into the installed package and made them readable (``chmod -R a+rX``).

    Parameters
    ----------
    estimators : sequence of str, optional
        Names, such as ``["ChainSVC"]``; all by default.
    every_method : bool
        Also compile every model for every method of the dual.
    n_jobs : int, optional
        Number of processes; one per processor by default.
    progress : bool
        Show a progress bar on a terminal; elsewhere, write a line to standard error after each fit.

    Returns
    -------
    Compiled
        ``(kernels, seconds, directory, megabytes)``.
    """
    planned, directory = plan(estimators, every_method=every_method, n_jobs=n_jobs), cache_directory()
    if directory is None:
        return Compiled(0, 0.0, None)
    # Compile for this very processor, ignoring kernels compiled beforehand.
    return _compiled(planned, directory, {places.VARIABLE: ""}, progress)


def compile_baseline(
    directory: str | os.PathLike[str],
    estimators: Sequence[str] | None = None,
    *,
    every_method: bool = False,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Compiled:
    """Compile kernels for a baseline that most processors support, for a wheel or a shared directory.

    Processes use them if the environment variable ``MAXMARGIN_KERNELS`` names the directory, or if it was
    ``maxmargin/_kernels`` when a wheel was built; see `maxmargin.compiling.places`.

    Parameters
    ----------
    directory : path
        Where to write them; made if missing. Other kernels in it are kept.
    estimators, every_method, n_jobs, progress
        As in `compile_kernels`.

    Returns
    -------
    Compiled
        ``(kernels, seconds, directory, megabytes)``.
    """
    if places.baseline_for(places.host()) is None:
        needed = places.baseline_settings()["NUMBA_CPU_NAME"]
        raise ValueError(
            f"compile_baseline: the processor must run code for {needed}, got {places.host()[1]}; use "
            "another machine."
        )
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    planned = plan(estimators, every_method=every_method, n_jobs=n_jobs)
    with tempfile.TemporaryDirectory() as cache:
        made = _compiled(planned, place, places.baseline_settings() | {"NUMBA_CACHE_DIR": cache}, progress)
        kept = Path(cache, "maxmargin")
        for file in filter(Path.is_file, kept.rglob("*")):
            copy = place / file.relative_to(kept)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)  # with the permissions of any new file, so that others can read it
    return made


def _compiled(planned: Plan, directory: Path, settings: Mapping[str, str], progress: bool) -> Compiled:
    """Run all fits in processes with these settings."""
    begin, outcomes = time.perf_counter(), list[_Outcome]()
    with tqdm(total=len(planned.fits), desc="compile", unit="fit", disable=None if progress else True) as bar:

        def note(fit: FirstFit, outcome: _Outcome) -> None:
            outcomes.append(outcome)
            bar.set_postfix_str(str(fit), refresh=False)
            bar.update()
            if progress and bar.disable:  # there is no terminal
                _log(fit, outcome, len(outcomes), len(planned.fits), time.perf_counter() - begin)

        with ThreadPoolExecutor(planned.n_jobs) as pool:
            list(pool.map(lambda group: _compile_in_child(group, settings, note), _groups(planned.fits)))
    kernels = sum(outcome.kernels for outcome in outcomes)
    largest = max((outcome.megabytes for outcome in outcomes), default=0.0)
    return Compiled(kernels, time.perf_counter() - begin, directory, largest)


def _log(fit: FirstFit, outcome: _Outcome, done: int, total: int, seconds: float) -> None:
    """Write to standard error that a fit has ended."""
    kernels = counted(outcome.kernels, "kernel")
    print(f"compile: {done} of {total} after {seconds:.0f} s: {fit}, {kernels}", file=sys.stderr, flush=True)


def _groups(fits: Iterable[FirstFit]) -> list[tuple[FirstFit, ...]]:
    """Return the fits of each process: a few of the same model, which share parts of kernels."""
    groups = []
    for _, same in itertools.groupby(fits, key=lambda fit: fit.model):
        some = tuple(same)
        groups += [some[k : k + _FITS_OF_A_PROCESS] for k in range(0, len(some), _FITS_OF_A_PROCESS)]
    return groups


def _compile_in_child(
    fits: tuple[FirstFit, ...], settings: Mapping[str, str], note: Callable[[FirstFit, _Outcome], None]
) -> None:
    """Run the fits in another process, and note each outcome."""
    source = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **settings},
    ) as child:
        to_child, from_child = cast(IO[str], child.stdin), cast(IO[str], child.stdout)
        json.dump(fits, to_child)
        to_child.close()
        for fit, line in zip(fits, from_child, strict=False):
            note(fit, _Outcome(*json.loads(line)))
    if child.returncode != 0:
        raise ChildProcessError(
            f"compile_kernels: a process that compiled for {fits[0]} ended with code {child.returncode}; its "
            "error is above."
        )


def work() -> None:
    """Run the fits that are listed on standard input, and write an outcome for each to standard output."""
    before = _n_specialisations()
    for fit in json.load(sys.stdin):
        run(FirstFit(*fit))
        now = _n_specialisations()
        print(json.dumps(_Outcome(now - before, _megabytes())), flush=True)
        before = now


def _megabytes() -> float:
    """Return the peak memory of this process so far; zero where this is not known."""
    try:
        import resource
    except ImportError:  # on Windows
        return 0.0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _n_specialisations() -> int:
    """Return the number of compiled versions of all kernels; zero if compilation is disabled."""
    return sum(len(getattr(loop.cached, "signatures", ())) for loop in KERNELS)

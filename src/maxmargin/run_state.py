"""The state of a run: all that the driver changes, so that a file of it is enough to continue bit for bit."""

import math
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral
from typing import Any

import numpy as np

from maxmargin import kinds
from maxmargin.arrays import FloatArray
from maxmargin.history import History, Measurement
from maxmargin.methods.sampling import Sampler, Visits, n_visits
from maxmargin.objective import Certificate
from maxmargin.persistence.checkpoint import Checkpoint, Identity, Keeper, NoKeeper, Path, read_state
from maxmargin.problems.contents import fingerprint
from maxmargin.problems.problem import AnyProblem
from maxmargin.resume import Beginning


@dataclass
class RunState:
    """What a run has reached.

    Attributes
    ----------
    state : object
        The state of the method.
    notes : tuple of arrays
        What the feature map noted in the run.
    sampler, rng : Sampler, Generator
        What the visits of the next passes are drawn from.
    visits : Visits
        The visits of the pass under way; none, between passes.
    done : int
        Number of them that have been made.
    best_w : array
        The best weights.
    best_primal, best_dual, best_ell : float
        Their objective, the best lower bound, and the largest dual loss.
    first_calls : int
        Number of oracle calls that a warm start took.
    passes, visited : int
        Number of passes and of visits.
    certified : int
        Number of visits at the last certificate.
    other_was_best : bool
        Whether the best of several weight vectors was not the first, in the last certificate.
    seconds, certificate_seconds : float
        Time spent on steps, and on the last certificate.
    history : History
    """

    state: Any
    notes: tuple[FloatArray, ...]
    sampler: Sampler
    rng: np.random.Generator
    visits: Visits
    best_w: FloatArray
    best_dual: float
    best_ell: float
    best_primal: float = math.inf
    first_calls: int = 0
    done: int = 0
    passes: int = 0
    visited: int = 0
    certified: int = 0
    other_was_best: bool = False
    seconds: float = 0.0
    certificate_seconds: float = 0.0
    history: History = field(default_factory=History)

    @property
    def is_within_pass(self) -> bool:
        """Whether a pass has begun that is not yet counted."""
        return n_visits(self.visits) > 0

    @property
    def rows(self) -> tuple[Measurement, ...]:
        """The certificates so far."""
        return self.history.rows

    def begin_pass(self) -> None:
        """Draw the visits of the next pass."""
        self.visits, self.done = self.sampler.draw(self.rng), 0

    def end_pass(self) -> None:
        """Count the pass."""
        self.visits, self.done, self.passes = self.sampler.none(), 0, self.passes + 1

    def note(self, found: Certificate, row: Measurement) -> None:
        """Add a certificate to the history, and keep the best bounds."""
        is_first = not self.rows
        self.history = History((*self.rows, row))
        self.certified = self.visited
        self.best_dual = max(self.best_dual, row.dual)
        if found.primal < self.best_primal or is_first:
            self.best_primal, self.best_w = found.primal, found.w.copy()


def new_run_state(
    problem: AnyProblem, beginning: Beginning, sampler: Sampler, rng: np.random.Generator
) -> RunState:
    """Return the state before the first pass. The lower bound is zero without a warm start."""
    w, dual = beginning.w, beginning.dual
    notes = kinds.notes(problem)
    return RunState(
        beginning.state, notes, sampler, rng, sampler.none(), w, dual, dual, first_calls=beginning.calls
    )


def identity_of(problem: AnyProblem, method: object, **settings: Any) -> Identity:
    """Return what a run is of; raise if problem or method cannot be recognised in another process.

    A seed is compared if it is a number; generators, and what RandomState gives, cannot be.
    """
    seed = settings["random_state"]
    settings["random_state"] = int(seed) if isinstance(seed, Integral) else None
    return Identity(_version(), _digest("problem", problem), _digest("method", method), settings)


def _version() -> str:
    """Return the minor version, within which runs give the same bits; nothing, if it is not installed."""
    try:
        return ".".join(version("maxmargin").split(".")[:2])
    except PackageNotFoundError:
        return ""


def _digest(name: str, subject: object) -> str:
    try:
        return fingerprint(subject)
    except TypeError as error:
        raise TypeError(f"Checkpoint: the {name} must be {error}; leave the checkpoint out.") from None


def keeper_of(checkpoint: Checkpoint | None, identity: Identity | None, at: RunState) -> Keeper | NoKeeper:
    """Return what stores the state of a run."""
    if checkpoint is None or identity is None:
        return NoKeeper()
    try:
        return Keeper(checkpoint, identity, at)
    except TypeError as error:
        raise TypeError(f"Checkpoint: the method must have {error}; leave the checkpoint out.") from None


def continued(path: Path, identity: Identity, fresh: RunState) -> RunState:
    """Return the state in a file; ``fresh`` is the state before the first pass of the same run."""
    notes = fresh.notes
    at = read_state(path, identity, fresh)
    for live, stored in zip(notes, at.notes, strict=True):
        live[...] = stored
    at.notes = notes  # the map writes to these
    return at

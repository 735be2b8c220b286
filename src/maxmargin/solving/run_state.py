"""The state of a run: everything that the driver changes, so that a file of it can resume bit for bit."""

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np

from maxmargin.files.checkpoint import Checkpoint, Identity, Keeper, NoKeeper, read_state
from maxmargin.files.container import Json, installed_version
from maxmargin.methods.sampling import Sampler, Visits, n_visits
from maxmargin.runtime.arrays import FloatArray
from maxmargin.solving.history import History, Measurement
from maxmargin.solving.objective import Certificate
from maxmargin.solving.resume import Beginning
from maxmargin.structures.problem import AnyProblem, fingerprint


class Place(NamedTuple):
    """A point in time of a run.

    Attributes
    ----------
    visited, calls : int
        Number of visits and of oracle calls so far.
    seconds : float
        Time spent on steps so far.
    time : float
        The reading of the clock.
    is_whole : bool
        Whether no step was left half done.
    """

    visited: int
    calls: int
    seconds: float
    time: float
    is_whole: bool


@dataclass
class RunState:
    """The progress of a run.

    Attributes
    ----------
    state : object
        The state of the method.
    notes : tuple of arrays
        What the feature map recorded in the run.
    sampler, rng : Sampler, Generator
        What the visits of the next passes are drawn from.
    visits : Visits
        The visits of the current pass; empty between passes.
    done : int
        Number of them that have been made.
    best_w : array
        The best weights.
    best_primal, best_dual, best_ell : float
        Their objective, the best lower bound, and a lower bound on the objective of zero weights: the largest
        dual loss, or the objective itself if it was measured.
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
    def left(self) -> int:
        """Number of visits of the pass that are left."""
        return n_visits(self.visits) - self.done

    @property
    def is_within_pass(self) -> bool:
        """Whether the run is within a pass."""
        return self.left > 0

    @property
    def rows(self) -> tuple[Measurement, ...]:
        """The certificates so far."""
        return self.history.rows

    def begin_pass(self) -> None:
        """Draw the visits of the next pass."""
        self.visits, self.done = self.sampler.draw(self.rng), 0

    def count(self, visits: int) -> None:
        """Count visits that have been made, and the pass if they were its last."""
        self.visited, self.done = self.visited + visits, self.done + visits
        if self.left == 0:
            self.visits, self.done, self.passes = self.sampler.none(), 0, self.passes + 1

    def note(self, found: Certificate, row: Measurement, visited: int) -> None:
        """Add a certificate, made after this many visits, to the history, and keep the best bounds."""
        is_first = not self.rows
        self.history = History((*self.rows, row))
        self.certified = visited
        self.best_dual = max(self.best_dual, row.dual)
        if is_first:
            self.best_primal, self.best_w = found.primal, found.w.copy()
        elif found.primal < self.best_primal:
            # No other code holds the copy, and overwriting it is faster than allocating another.
            self.best_primal, self.best_w[...] = found.primal, found.w

    def replace_best(self, w: FloatArray, primal: float) -> None:
        """Take other weights as the best, such as zero; the last row of the history is then theirs."""
        self.best_w, self.best_primal = w, primal
        row = self.rows[-1]._replace(primal=primal, dual=self.best_dual, gap=primal - self.best_dual)
        self.history = History((*self.rows, row))

    def correct_best(self, w: FloatArray, primal: float) -> None:
        """Replace the best weights and their objective, also in the history, by more accurate ones."""
        rows = (
            row._replace(primal=primal, gap=primal - row.dual) if row.primal == self.best_primal else row
            for row in self.rows
        )
        self.history, self.best_w, self.best_primal = History(tuple(rows)), w, primal


def new_run_state(
    notes: tuple[FloatArray, ...], beginning: Beginning, sampler: Sampler, rng: np.random.Generator
) -> RunState:
    """Return the state before the first pass. The lower bound is zero without a warm start."""
    w, dual = beginning.w, beginning.dual
    return RunState(
        beginning.state, notes, sampler, rng, sampler.none(), w, dual, dual, first_calls=beginning.calls
    )


class Files(NamedTuple):
    """The files of a run: its checkpoint, the file to continue from, and what both must belong to."""

    kept: Checkpoint | None
    start: str | None
    identity: Identity | None

    def continued(self, fresh: RunState) -> RunState:
        """Return the state in the file to continue from, else ``fresh``, the state before the first pass."""
        if self.start is None or self.identity is None:
            return fresh
        notes = fresh.notes
        at = read_state(self.start, self.identity, fresh)
        for live, stored in zip(notes, at.notes, strict=True):
            live[...] = stored
        at.notes = notes  # the map writes to these
        return at

    def keeper(self, at: RunState) -> Keeper | NoKeeper:
        """Return the keeper, which stores the state of the run when it is due."""
        if self.kept is None or self.identity is None:
            return NoKeeper()
        return Keeper(self.kept, self.identity, at)


def files_of(
    kept: Checkpoint | None,
    start: str | None,
    problem: AnyProblem,
    method: object,
    settings: dict[str, object],
) -> Files:
    """Return the files of a run; raise if another process could not recognise the problem or method."""
    if kept is None and start is None:
        return Files(None, None, None)
    seed = settings["random_state"]  # only numbers can be compared
    plain = settings | {"random_state": int(seed) if isinstance(seed, Integral) else None}
    compared = cast("dict[str, Json]", plain)
    identity = Identity(_version(), _digest("problem", problem), _digest("method", method), compared)
    return Files(kept, start, identity)


def _version() -> str:
    """Return the minor version, within which runs are bitwise equal; empty if it is not installed."""
    return ".".join(installed_version().split(".")[:2])


def _digest(name: str, subject: object) -> str:
    try:
        return fingerprint(subject)
    except TypeError as error:
        raise TypeError(f"Checkpoint: the {name} must be {error}; leave the checkpoint out.") from None

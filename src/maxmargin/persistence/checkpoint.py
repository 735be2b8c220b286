"""Checkpoints: the state of a run in a file, from which the run continues bit for bit.

A file holds the state, and the *identity* of the run: digests of its problem and method, and the settings
that determine its course. A file of another identity is refused.
"""

import math
import os
import re
import warnings
from numbers import Real
from typing import NamedTuple, Protocol, TypeVar

from maxmargin import states
from maxmargin.limits import now
from maxmargin.persistence import container
from maxmargin.persistence.atomic import remove_unfinished
from maxmargin.persistence.container import CHECKPOINT, Json
from maxmargin.wording import quoted, shown

# The next file is due at the earliest after this many times the seconds that the last write took.
_PATIENCE = 50.0
_PASSES = re.compile(r"([1-9][0-9]*) pass(es)?")

Path = str | os.PathLike[str]


class Counted(Protocol):
    """The part of a run's state that tells when to write it."""

    @property
    def passes(self) -> int:
        """Number of passes made."""


State = TypeVar("State", bound=Counted)


class _Checkpoint(NamedTuple):
    path: str
    every: float | str


class Checkpoint(_Checkpoint):
    """Where and how often a run stores its state, so that it can continue after a crash.

    The file is written beside the old one, synced to disk and renamed, so there is always a complete file. It
    is written again when the run ends or is interrupted. It is never removed: delete it when you no longer
    need it.

    The next file is due after ``every``, or after 50 times the duration of the last write if that is longer.
    So writing takes at most about 2 % of the time, apart from the first and the last file. A crash loses at
    most the longer of the two times, or slightly more during a certificate or a pass of a method that moves
    all blocks at once, as neither is divided. If a file cannot be written, there is one warning, and the run
    continues.

    Continue only from your own files: kernels follow the indices in them without checks.

    Parameters
    ----------
    path : str or path
        The file.
    every : float or str
        Seconds between two files; or passes, such as ``"5 passes"``.
    """

    __slots__ = ()

    def __new__(cls, path: Path, every: float | str = 60.0) -> "Checkpoint":
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"Checkpoint: path must be the path of a file, got {shown(path)}.")
        in_passes = isinstance(every, str) and _PASSES.fullmatch(every)
        if not in_passes and not (isinstance(every, Real) and 0.0 <= float(every) < math.inf):
            raise ValueError(
                f"Checkpoint: every must be a number of seconds >= 0, or passes such as '5 passes', "
                f"got {shown(every)}."
            )
        return super().__new__(cls, str(os.fspath(path)), every)

    @property
    def seconds(self) -> float:
        """Seconds between two files; zero if passes are counted instead."""
        return 0.0 if isinstance(self.every, str) else float(self.every)

    @property
    def passes(self) -> int:
        """Passes between two files; zero if seconds are counted instead."""
        return int(self.every.split()[0]) if isinstance(self.every, str) else 0


CheckpointLike = Checkpoint | Path


def as_checkpoint(given: CheckpointLike | None) -> Checkpoint | None:
    """Return a checkpoint, or the path of one, as a checkpoint."""
    return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)


class Identity(NamedTuple):
    """What identifies a run; files of other runs are refused.

    Attributes
    ----------
    version : str
        The version of maxmargin.
    problem, method : str
        Digests.
    settings : dict
        The parameters that determine the course of the run, by name; None is not compared.
    """

    version: str
    problem: str
    method: str
    settings: dict[str, Json]


class Keeper:
    """Writes the state of a run when it is due."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity, state: Counted) -> None:
        self.checkpoint, self.identity = checkpoint, identity
        self._template = states.skeleton(state)
        self._begin, self._cost, self._passes, self._warned = now(), 0.0, state.passes, False
        self._flat(state)  # raises at once if the state cannot be stored
        remove_unfinished(checkpoint.path)

    def is_due(self, state: Counted) -> bool:
        """Whether it is time to write the state.

        Time is counted from the state of the last file to the end of the next write.
        """
        elapsed = now() - self._begin + self._cost
        is_late = elapsed >= max(self.checkpoint.seconds, _PATIENCE * self._cost)
        return is_late and state.passes >= self._passes + self.checkpoint.passes

    def save(self, state: Counted) -> None:
        """Write the state; warn once if that is not possible."""
        begin, flat = now(), self._flat(state)
        try:
            header = {**self.identity._asdict(), "state": flat.tree}
            container.write(self.checkpoint.path, CHECKPOINT, flat.arrays, header)
        except (OSError, MemoryError) as error:
            self._warn(error)
        self._begin, self._cost, self._passes = begin, now() - begin, state.passes

    def _flat(self, state: Counted) -> states.Flat:
        """Take the state apart; raise now, rather than when it is needed, if it cannot be restored."""
        advice = "leave the checkpoint out"
        try:
            flat = states.flatten(state)
            states.restored(self._template, flat, adopt=lambda array: array)
        except states.Unfit as error:
            raise TypeError(f"Checkpoint: the method's state must keep {error}; {advice}.") from None
        except TypeError as error:
            raise TypeError(f"Checkpoint: the method must have {error}; {advice}.") from None
        return flat

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            warnings.warn(
                f"Checkpoint: {self.checkpoint.path} could not be written ({error}); training continues, and "
                "an earlier file is left as it was.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._warned = True


class NoKeeper:
    """Stands for a run without a checkpoint."""

    def is_due(self, state: Counted) -> bool:
        """Return False."""
        return False

    def save(self, state: Counted) -> None:
        """Do nothing."""


def read_state(path: Path, identity: Identity, template: State) -> State:
    """Return the state in a file, like the template; raise `FileError` if it is not of this identity."""
    header, arrays, _ = container.read(path, CHECKPOINT)
    difference = _difference(header, identity)
    if difference:
        container.fail(path, "a checkpoint of this run", f"one {difference}; remove it or give another path")
    try:
        state: State = states.restored(template, states.Flat(arrays, header.get("state")))
    except states.Unfit as error:
        container.fail(path, f"in a checkpoint {error}", "something else: the file is damaged; remove it")
    return state


def _difference(header: dict[str, Json], identity: Identity) -> str:
    """Return how the run of a file differs from this one; empty if it does not."""
    if header.get("version") != identity.version:
        return f"of maxmargin {quoted(header.get('version'))}, not {identity.version}"
    if header.get("problem") != identity.problem:
        return "of other data"
    if header.get("method") != identity.method:
        return "of another method, or with other parameters, such as C"
    settings = header.get("settings")
    for name, value in identity.settings.items():
        found = settings.get(name) if isinstance(settings, dict) else None
        if found != value and found is not None and value is not None:
            return f"with {name}={quoted(found)}, not {quoted(value)}"
    return ""

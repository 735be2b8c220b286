"""The scikit-learn layer: what all estimators share, and the table of them.

The table is all that files, the command line, compilation and tests know of estimators. It has what must be
known before an estimator is imported; all else its structure says.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from maxmargin._moved import former

if TYPE_CHECKING:
    from maxmargin.estimators.structure import AnyEstimator


class Entry(NamedTuple):
    """Where the class of an estimator is; its name and its tasks on the command line, if it is there."""

    module: str
    command: str = ""
    tasks: tuple[str, ...] = ()


def _room(name: str, command: str = "", *tasks: str) -> Entry:
    return Entry(f"maxmargin.structures.{name}.estimator", command, tasks)


_SEQUENCES = "Attributes", "Columns", "JsonLines"
ESTIMATORS = {
    "ChainSVC": _room("sequences", "chain", *_SEQUENCES, "SequenceRows"),
    "SegmentSVC": _room("segments", "segments", *_SEQUENCES),
    "GraphSVC": _room("graphs", "graph", "PairColumns"),
    "DependencySVC": _room("dependency", "dependency", "Trees"),
    "MulticlassSVC": _room("classes", "multiclass", "Classes"),
    "MultilabelSVC": _room("label_sets", "multilabel", "LabelSets"),
    "MatchingSVC": _room("matchings"),
    "StructuredSVC": _room("custom"),
}
__all__ = sorted(ESTIMATORS)


def estimator_class(name: str) -> "type[AnyEstimator]":
    """Return the class of an estimator by its name; its module is imported when it is needed."""
    found: type[AnyEstimator] = getattr(import_module(ESTIMATORS[name].module), name)
    return found


def of_command(command: str) -> str:
    """Return the name of the estimator with this name on the command line."""
    return next(name for name, entry in ESTIMATORS.items() if entry.command == command)


def commands(task: str | None = None) -> tuple[str, ...]:
    """Return the names of estimators on the command line: of all, or of those for a task."""
    entries = (entry for entry in ESTIMATORS.values() if entry.command)
    return tuple(entry.command for entry in entries if task is None or task in entry.tasks)


def __getattr__(name: str) -> object:
    if name in ESTIMATORS:
        return estimator_class(name)
    return former(__name__, name)

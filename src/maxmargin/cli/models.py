"""Models of the command line: an estimator, the task that says how its data are read, and what is learnt."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, cast

from maxmargin.cli.output import result
from maxmargin.cli.tasks import (
    Attributes,
    Classes,
    Columns,
    JsonLines,
    LabelSets,
    PairColumns,
    SequenceRows,
    SomeTask,
    Trees,
)
from maxmargin.estimators import estimator_class, of_command
from maxmargin.files.sealed import Json
from maxmargin.runtime.wording import quoted, shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from maxmargin.solving.result import History


# How commands import scikit-learn: without modules that it imports for functions that no command calls.
#
# `sklearn.utils.fixes` imports SciPy's statistics and pandas, and both take most of its time.
_UNUSED = ("pandas", "scipy.stats")


class _Postponed(ModuleType):
    """A module that is imported on first access to one of its attributes."""

    def __getattr__(self, name: str) -> object:
        _forget(self)
        return getattr(import_module(self.__name__), name)


def _forget(module: _Postponed) -> None:
    """Let the next import of this name find the module itself."""
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


@contextmanager
def postponed(*names: str) -> Iterator[None]:
    """Defer imports of some modules in this block until they are used; afterwards, imports work as usual."""
    later = [_Postponed(name) for name in names if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in later})
    try:
        yield
    finally:
        for module in later:
            _forget(module)


def import_scikit_learn() -> None:
    """Import the base classes of estimators."""
    with postponed(*_UNUSED):
        import_module("sklearn.base")


TASKS: dict[str, type[SomeTask]] = {
    cls.__name__: cls
    for cls in (Attributes, Classes, Columns, JsonLines, LabelSets, PairColumns, SequenceRows, Trees)
}


class Estimator(Protocol):
    """The interface of an estimator that commands use."""

    C_: float
    cv_results_: dict[str, Any]
    tol: float
    n_features_in_: int
    n_iter_: int
    gap_: float
    certified_: bool
    history_: "History"

    def set_params(self, **parameters: object) -> object:
        """Change parameters."""

    def fit(self, X: object, y: object) -> object:
        """Train."""

    def predict(self, X: object) -> object:
        """Return the outputs of examples."""

    def predict_margins(self, X: object) -> Sequence[object]:
        """Return the margins of the predictions, of each example."""

    def top_features(self, label: object = None, k: int = 20) -> "DataFrame":
        """Return the largest weights of features."""

    def save(self, path: str, *, notes: object) -> None:
        """Write the model to a file."""


class Model(NamedTuple):
    """An estimator and its task."""

    estimator: Estimator
    task: SomeTask

    def predict(self, X: object) -> Sequence[object]:
        """Return the outputs of examples, in the form of the task."""
        tags = getattr(self.estimator, "predict_tags", None)
        return self.task.outputs(self.estimator.predict(X) if tags is None else tags(X))

    def margins(self, X: object) -> Sequence[object]:
        """Return the margins of predictions, in the form of the task."""
        found: Sequence[object] = getattr(self.estimator, "_tag_margins", self.estimator.predict_margins)(X)
        return found

    def save(self, path: str) -> None:
        """Write both to a file."""
        notes = {"task": type(self.task).__name__, "settings": self.task.settings}
        self.estimator.save(path, notes=notes)


def import_estimator(name: str) -> Callable[..., Estimator]:
    """Return the class of an estimator; its module is imported if it is not yet."""
    import_scikit_learn()
    return cast("Callable[..., Estimator]", estimator_class(of_command(name)))


def new_estimator(name: str, parameters: dict[str, object]) -> Estimator:
    """Return an estimator that is not fitted yet; raise if it has no such parameters."""
    estimator = import_estimator(name)
    known = signature(estimator).parameters
    for given in parameters:
        if given not in known:
            near = get_close_matches(given, known, n=1)
            raise ValueError(
                f"{of_command(name)}: got the parameter {shown(given)}, expected "
                + (f"{near[0]}, perhaps" if near else f"one of {', '.join(known)}")
            )
    return estimator(**parameters)


def edge_features(estimator: Estimator) -> dict[str, int]:
    """Return the number of features of edges, by its name in summaries, if the estimator has some."""
    n = getattr(estimator, "n_edge_features_in_", None)
    return {} if n is None else {"edge_features": int(n)}


def load_model(path: str) -> Model:
    """Return the model that a file holds.

    Raises
    ------
    ValueError
        If the file holds no model, or one that the command line did not train.
    """
    import maxmargin

    import_scikit_learn()
    estimator = maxmargin.load(path)
    return Model(estimator, _restored(getattr(estimator, "notes_", None), path))


def is_model(path: str) -> bool:
    """Return whether a file begins as model files do: with the length of a JSON object, and a brace."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        head = stream.read(9)
    return head[8:] == b"{" and int.from_bytes(head[:8], "little") < os.path.getsize(path)


def _restored(notes: object, path: str) -> SomeTask:
    """Return the stored task; raise if it is not valid, as files may come from anywhere."""
    stored: dict[str, Json] = notes if isinstance(notes, dict) else {}
    cls = TASKS.get(str(stored.get("task")))
    if cls is None:
        raise ValueError(
            f"{path}: expected a model that 'maxmargin train' wrote, got one without its data format; "
            "use it from Python"
        )
    settings = stored.get("settings")
    if not isinstance(settings, dict) or settings.keys() != cls.kinds.keys():
        raise ValueError(f"{path}: expected the settings of {cls.__name__}, got {quoted(settings)}")
    for name, kind in cls.kinds.items():
        if not isinstance(settings[name], kind):
            raise ValueError(f"{path}: expected another {name}, got {quoted(settings[name])}")
    return cls(**settings)


# What a model has learnt: ``maxmargin inspect``.

_Row = dict[str, object]


class _Findings(TypedDict, total=False):
    """What is printed."""

    estimator: str
    format: str
    features: int
    edge_features: int
    labels: list[object] | None
    C: float
    gap: float
    certified: bool
    passes: int
    top_features: list[_Row]
    top_transitions: list[_Row]


def inspect(arguments: argparse.Namespace) -> int:
    """Print the settings of a model and its largest weights."""
    model = load_model(arguments.model)
    estimator, task = model
    labels = getattr(estimator, "classes_", None)
    data: _Findings = {
        "estimator": type(estimator).__name__,
        "format": task.name,
        "features": int(estimator.n_features_in_),
        "labels": None if labels is None else labels.tolist(),
        "C": estimator.C_,
        "gap": estimator.gap_,
        "certified": estimator.certified_,
        "passes": estimator.n_iter_,
        "top_features": _rows(_top_features(estimator, arguments)),
    }
    data |= cast("_Findings", edge_features(estimator))
    top_transitions = getattr(estimator, "top_transitions", None)
    if top_transitions is not None:
        data["top_transitions"] = _rows(top_transitions(arguments.k))
    result(_text(data), data, arguments.json)
    return 0


def _top_features(estimator: Estimator, arguments: argparse.Namespace) -> "DataFrame":
    if arguments.label is None:
        return estimator.top_features(k=arguments.k)
    labels = getattr(estimator, "classes_", None)
    if labels is None:
        raise ValueError(f"--label: expected no label, as {type(estimator).__name__} has none")
    known = {str(label): label for label in labels.tolist()}
    if arguments.label not in known:
        raise ValueError(f"--label: expected one of {', '.join(known)}, got {arguments.label!r}")
    return estimator.top_features(known[arguments.label], k=arguments.k)


def _rows(frame: "DataFrame") -> list[_Row]:
    """Return the rows of a frame as plain data."""
    found: list[_Row] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _text(data: _Findings) -> str:
    certified = f"gap {data['gap']:.3g}" if data["certified"] else "no certificate"
    edges = f", {data['edge_features']} of edges" if "edge_features" in data else ""
    labels = "" if data["labels"] is None else f", {len(data['labels'])} labels"
    lines = [
        f"{data['estimator']} from {data['format']}: {data['features']} features{edges}{labels}, "
        f"C = {data['C']:g}, {certified} after {data['passes']} passes"
    ]
    for name, rows in (
        ("features", data["top_features"]),
        ("transitions", data.get("top_transitions")),
    ):
        if rows:
            lines += ["", f"top {name}:", *_table(rows)]
    return "\n".join(lines)


def _table(rows: list[_Row]) -> list[str]:
    """Return the lines of a table: each weight, then its name."""
    return [
        "\t".join(
            [f"{row['weight']:+.4f}", *(str(v) for k, v in row.items() if k != "weight" and v is not None)]
        )
        for row in rows
    ]

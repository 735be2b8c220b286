"""Models in files: the state of a fitted estimator, stored without anything that could run.

A structure lists its fitted attributes. Weights are stored by meaning, so that files do not depend on their
layout in memory. The attributes that follow from weights are set as in `fit`.
"""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from maxmargin.estimators import ESTIMATORS, estimator_class
from maxmargin.estimators.state import LeftOut, check_parameters, snapshot
from maxmargin.estimators.structure import (
    COUNT,
    FLAG,
    HISTORY,
    NUMBER,
    TRIALS,
    AnyEstimator,
    Fields,
    read_fields,
    scalar,
    write_fields,
)
from maxmargin.files.container import NotPlain, Path, as_json, read, write
from maxmargin.files.parts import Draft, Stored
from maxmargin.files.sealed import MODEL, FileError, Json, fail
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import quoted, shown

_DTYPES: dict[str | None, type[np.floating]] = {
    None: np.float64,
    "float64": np.float64,
    "float32": np.float32,
}
# Parameters of more characters than this are not stored in the header.
_LONG = 4096
_WEIGHTS, _PARAMETERS = "weights.", "parameters."
NOTES = "notes"
CERTIFICATE: Fields = {
    "C_": NUMBER,
    "gap_": NUMBER,
    "certified_": FLAG,
    "history_": HISTORY,
    "n_iter_": COUNT,
    "l1_ratio_": NUMBER.or_unset(),
    "cv_results_": TRIALS.or_unset(),
}
_TEMPERATURE = scalar(float, float(np.finfo(np.float64).tiny)).or_unset()


@snapshot
def save(self: AnyEstimator, path: Path, *, dtype: str | None = None, notes: object = None) -> None:
    """Write the fitted model to a file, from which `maxmargin.load` reads it.

    The file has no code, and weights that are zero take no space. It holds what predictions need, the
    certificate and the parameters, but not the training data: `partial_fit` on a loaded model raises an
    error that says so. Functions, such as a kernel of your own, are not stored: give them to `load`
    again. Parameters that are not plain data (method objects, callbacks, random generators) have their
    defaults in the loaded model, unless they are given to `load`.

    Parameters
    ----------
    path : str or PathLike
        The file. An existing file is replaced once the new one is on disk.
    dtype : {"float32"} or None, default=None
        "float32" rounds weights, so that the file is smaller. By default, the loaded model predicts the
        same bit for bit.
    notes : plain data, default=None
        Further data to keep in the file: None, numbers, strings, and lists and dicts of these. A loaded
        model has them as ``notes_``.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin import MulticlassSVC, load
    >>> model = MulticlassSVC(random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model"))
    ...     load(os.path.join(folder, "model")).predict([[2.0]])
    array(['b'], dtype='<U1')
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be 'float32' or None, got {shown(dtype)}.")
    name = type(self).__name__
    if name not in ESTIMATORS or type(self) is not estimator_class(name):
        raise TypeError("a class of your own cannot be saved, as load would not know it; pickle it.")
    draft = Draft(_DTYPES[dtype])
    draft.header |= {"estimator": type(self).__name__}
    _write_parameters(draft, self.get_params(deep=False))
    write_fields(draft, _fields(self), self)
    layout = self._structure.layout(self)
    draft.reserve(8 * max(layout.size, layout.least))
    for name, part in _named(layout.unpack(self._w)).items():
        draft.put_sparse(_WEIGHTS + name, part)
    if notes is not None:
        draft.put_long(NOTES, notes)
    draft.finish()
    write(path, MODEL, draft.arrays, draft.header)


def _restore(model: AnyEstimator, stored: Stored) -> None:
    """Set all fitted attributes from a file; raise if they are not those of one model."""
    read_fields(stored, _fields(model), model)
    layout = model._structure.layout(model)
    stored.check_room(8 * layout.least, "weights")  # before a map of this size is made
    size = layout.size
    stored.check_room(8 * size, "weights")
    model._w = np.zeros(size)
    for name, part in _named(layout.unpack(model._w)).items():
        stored.take_sparse(_WEIGHTS + name, part)
    model._structure.expose(model)
    model._seen = LeftOut.FILE


def _fields(model: AnyEstimator) -> Fields:
    """Return the fields of a model: those of all, and those of its structure."""
    more = {"temperature_": _TEMPERATURE} if hasattr(model, "probability") else {}
    return {**CERTIFICATE, **more, **model._structure.fields}


def _named(parts: tuple[FloatArray, ...]) -> dict[str, FloatArray]:
    """Return the parts of weights, at least one-dimensional, by name."""
    return parts._asdict()  # type: ignore[attr-defined, no-any-return]


def _write_parameters(draft: Draft, parameters: dict[str, object]) -> None:
    """Store parameters: plain ones by value, the others by name."""
    plain: dict[str, Json] = {}
    functions: list[str] = []
    left_out: list[str] = []
    for name, value in parameters.items():
        try:
            found = as_json(value)
        except NotPlain:
            (functions if callable(value) else left_out).append(name)
            continue
        if len(json.dumps(found)) > _LONG:
            draft.put_long(_PARAMETERS + name, value)
        else:
            plain[name] = found
    draft.header |= {"parameters": plain, "functions": functions, "left_out": left_out}  # type: ignore[dict-item]


def read_parameters(stored: Stored, cls: type, given: dict[str, object]) -> dict[str, object]:
    """Return the arguments of ``__init__``; those that are not in the file have their defaults."""
    signature = inspect.signature(cls).parameters
    known = list(signature)
    functions, left_out = (stored.take_names(name, known) for name in ("functions", "left_out"))
    required = {name for name in known if signature[name].default is inspect.Parameter.empty}
    _check_given(stored, {*functions, *required}, {*functions, *left_out, *required}, given)
    found = stored.take_object("parameters", known)
    found |= {n: stored.take_long(_PARAMETERS + n) for n in known if stored.has(_PARAMETERS + n)}
    return found | given


def _check_given(stored: Stored, needed: set[str], possible: set[str], given: dict[str, object]) -> None:
    """Raise unless users give all functions that a model needs, and nothing that is in the file."""
    missing, more = sorted(needed - set(given)), sorted(set(given) - possible)
    if missing:
        call = ", ".join(f"{name}=..." for name in missing)
        raise ValueError(
            f"load: {stored.path} holds a {stored.owner} without its functions, which are not stored; give "
            f"them again: load(path, {call})."
        )
    if more:
        expected = ", ".join(sorted(possible)) or "no parameters"
        raise ValueError(f"load: {stored.path} takes {expected}, got {', '.join(more)}.")


def load(path: Path, **parameters: object) -> AnyEstimator:
    """Return the fitted estimator that a file holds.

    A file from a stranger is safe to load. Nothing in it is run or imported, and every part is checked: a
    file that is not a valid model raises a `FileError` of one line. Files of earlier versions can be loaded;
    parameters that they do not have take their defaults.

    Parameters
    ----------
    path : str or PathLike
        A file that ``save`` of an estimator has written.
    **parameters
        What files do not hold: functions, such as ``features``, ``loss`` and ``argmax`` of `StructuredSVC` or
        a ``kernel`` of your own, which must be given; and parameters that are not plain data, such as
        ``callbacks``, which may be.

    Returns
    -------
    estimator
        It predicts as the saved one does. It does not hold the training data, so `partial_fit` needs a `fit`
        first, and a warm start begins from scratch.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin import ChainSVC, load
    >>> model = ChainSVC(random_state=0).fit([[["the"], ["dog"]]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "tagger"))
    ...     load(os.path.join(folder, "tagger")).predict([[["the"], ["cat"]]])
    [['DET', 'NOUN']]
    """
    contents = read(path, MODEL)
    name = contents.header.pop("estimator", None)
    if not isinstance(name, str) or name not in ESTIMATORS:
        fail(path, f"an estimator of {', '.join(sorted(ESTIMATORS))}", quoted(name))
    cls: type[AnyEstimator] = estimator_class(name)
    stored = Stored(path, contents, cls.__name__)
    found = read_parameters(stored, cls, parameters)
    with _in_file(stored):
        model = cls(**found)
        check_parameters(model)
        _restore(model, stored)
    model.notes_ = stored.take_long(NOTES) if stored.has(NOTES) else None
    stored.finish()
    return model


@contextmanager
def _in_file(stored: Stored) -> Iterator[None]:
    """Turn errors of checks that are shared with `fit` into errors about the file."""
    try:
        yield
    except FileError:
        raise
    except (TypeError, ValueError) as error:
        fail(stored.path, f"a {stored.owner} as fit makes it", f"another: {error}")

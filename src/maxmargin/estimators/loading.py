"""Reading models from files."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from maxmargin.estimators._saving import NOTES, SavesModel, read_parameters
from maxmargin.estimators._state import check_parameters
from maxmargin.persistence.container import MODEL, FileError, Path, fail, read
from maxmargin.persistence.parts import Stored
from maxmargin.wording import quoted

# A module is imported when a file needs it.
_MODULES = {
    "ChainSVC": "chain",
    "DependencySVC": "dependency",
    "GraphSVC": "graph",
    "MatchingSVC": "matching",
    "MulticlassSVC": "multiclass",
    "MultilabelSVC": "multilabel",
    "SegmentSVC": "segments",
    "StructuredSVC": "structured",
}


def load(path: Path, **parameters: object) -> SavesModel:
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
    if not isinstance(name, str) or name not in _MODULES:
        fail(path, f"an estimator of {', '.join(_MODULES)}", quoted(name))
    cls: type[SavesModel] = getattr(import_module(f"{__package__}.{_MODULES[name]}"), name)
    stored = Stored(path, contents, cls.__name__)
    found = read_parameters(stored, cls, parameters)
    with _in_file(stored):
        model = cls(**found)
        check_parameters(model)
        model._restore(stored)
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

"""Predictions from a model file, in processes that start at once."""

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from maxmargin.tagging.tagger import as_tagger, read_chain

if TYPE_CHECKING:
    from maxmargin.estimators.structure import AnyEstimator


class Predictor:
    """The predictions of a model in a file, and nothing else.

    It predicts what ``load(path)`` predicts. `ChainSVC` with named features, ``order=1``, a linear kernel and
    labels that are strings needs neither NumPy, SciPy, Numba nor scikit-learn for it: processes start sooner
    and take less memory, and single sequences less time. Other models, and sequences of other forms than
    lists of dicts or of lists of strings, go through the estimator, which is loaded when it is first needed.

    Several threads may use one predictor. To replace a model, write its file and make another predictor.

    Parameters
    ----------
    path : str or PathLike
        A file that ``save`` of an estimator has written.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin import ChainSVC, Predictor
    >>> model = ChainSVC(random_state=0).fit([[["the"], ["dog"]]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "tagger"))
    ...     tagger = Predictor(os.path.join(folder, "tagger"))
    >>> tagger.predict_single([["the"], ["cat"]])
    ['DET', 'NOUN']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(path)
        self._version = _version_of(self._path)
        model = read_chain(self._path)
        self._tagger = None if model is None or model.gives_arrays else as_tagger(model)
        if self._tagger is None:
            self._estimator  # noqa: B018  # an error of the file comes now

    def predict(self, X: object) -> Any:
        """Return the outputs of highest score.

        Parameters
        ----------
        X : examples
            In the form that `predict` of the estimator takes.

        Returns
        -------
        list or array
            What `predict` of the estimator returns.
        """
        found = self._tagger.predict(X) if self._tagger is not None and isinstance(X, list | tuple) else None
        return self._estimator.predict(X) if found is None else found

    def predict_single(self, x: object) -> Any:
        """Return the output of highest score for one example.

        Parameters
        ----------
        x : example
            In the form that `predict` takes in a list.

        Returns
        -------
        object
            The item that `predict` returns for it.
        """
        return next(iter(self.predict([x])))

    @cached_property
    def _estimator(self) -> "AnyEstimator":
        from maxmargin.estimators.model_files import load

        if _version_of(self._path) != self._version:
            raise ValueError(
                f"Predictor: {self._path} must stay as it was, got another file; make another Predictor."
            )
        return load(self._path)

    def __reduce__(self) -> tuple[type["Predictor"], tuple[str]]:
        return type(self), (self._path,)


def _version_of(path: str) -> tuple[int, int, int] | None:
    """Return what tells two files at one path apart; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

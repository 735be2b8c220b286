"""Pickles and copies of estimators: the model, and the training data only if the user asks."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from maxmargin.estimators._state import twin
from maxmargin.persistence.version import installed_version
from maxmargin.problems.contents import n_bytes

_VERSION = "_maxmargin_version"
_WITH_DATA: ContextVar[bool] = ContextVar("with_data", default=False)


class LeftOut(Enum):
    """Placeholder for the examples of `partial_fit` in an estimator that was stored without them."""

    PICKLE = (
        "the pickle of this estimator left them out; pickle it within maxmargin.pickle_training_data(), or "
        "call fit"
    )
    FILE = "the file of this model does not hold them; call fit with all examples"


@contextmanager
def pickle_training_data() -> Iterator[None]:
    """Let pickles of estimators in this block hold the training data too.

    `partial_fit` and ``warm_start=True`` keep the training data, so that the next call can continue. A pickle
    leaves them out: it holds the model, and predicts as the estimator does. Pickle an estimator in this block
    to continue training elsewhere.

    Examples
    --------
    >>> import pickle
    >>> from maxmargin import MulticlassSVC, pickle_training_data
    >>> model = MulticlassSVC(random_state=0).partial_fit([[0.0], [1.0]], [0, 1])
    >>> with pickle_training_data():
    ...     data = pickle.dumps(model)
    >>> model = pickle.loads(data).partial_fit([[2.0]], [1])
    """
    token = _WITH_DATA.set(True)
    try:
        yield
    finally:
        _WITH_DATA.reset(token)


class OtherVersionWarning(InconsistentVersionWarning):  # type: ignore[misc]
    """An estimator was pickled by another version of maxmargin."""

    def __str__(self) -> str:
        return (
            f"{self.estimator_name}: the pickle is of maxmargin {self.original_sklearn_version}, this is "
            f"{self.current_sklearn_version}; it may not work or predict as before. Fit again, or keep "
            "models in files, by save and load."
        )


class TellsVersion(BaseEstimator):  # type: ignore[misc]
    """Base of estimators whose pickles record the version that made them, as scikit-learn's do."""

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), _VERSION: installed_version()}

    def __setstate__(self, state: dict[str, object]) -> None:
        state = dict(state)
        found = state.pop(_VERSION, "of unknown version")
        if found != installed_version():
            versions = {"current_sklearn_version": installed_version(), "original_sklearn_version": found}
            warnings.warn(OtherVersionWarning(estimator_name=type(self).__name__, **versions), stacklevel=2)
        super().__setstate__(state)


class PicklesModel(TellsVersion):
    """Base of estimators that keep what they train on in the attributes `_seen` and `_last`."""

    @property
    def kept_bytes_(self) -> int:
        """Bytes of the arrays that are kept for the next `partial_fit` or warm start."""
        return n_bytes((vars(self).get("_seen"), vars(self).get("_last")))

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        if not _WITH_DATA.get():
            state.pop("_last", None)
            if not isinstance(state.get("_seen"), LeftOut | None):
                state["_seen"] = LeftOut.PICKLE
        return state

    def __copy__(self) -> Self:
        return twin(self, dict(vars(self)))

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copied = memo[id(self)] = twin(self, {})
        copied.__dict__ = copy.deepcopy(dict(vars(self)), memo)
        return copied

"""The state of an estimator: a fit changes all of it at once or nothing, a prediction reads one state."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._errors import one_line

Method = TypeVar("Method", bound=Callable[..., Any])


def transaction(fit: Method) -> Method:
    """Let a method that fits check the parameters, work on a draft, and commit it at the end.

    Whatever stops it, bad data or Ctrl-C, leaves the estimator as it was. scikit-learn's own decorator does
    neither, and checks parameters in the first `partial_fit` only.
    """

    @wraps(fit)
    def committed(self: Any, *args: Any, **kwargs: Any) -> Any:
        with one_line(type(self).__name__):
            self._validate_params()
            draft = _twin(self, dict(vars(self)))
            fit(draft, *args, **kwargs)
        # A single store: other threads see the old model or the new one. Parameters stay the user's.
        self.__dict__ = {**vars(draft), **self.get_params(deep=False)}
        return self

    return cast("Method", committed)


def snapshot(method: Method) -> Method:
    """Let a method of a fitted estimator read one state, also if another thread fits the estimator anew."""

    @wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        view = _twin(self, vars(self))
        check_is_fitted(view)
        with one_line(type(self).__name__):
            return method(view, *args, **kwargs)

    return cast("Method", read)


def _twin(estimator: Any, state: dict[str, Any]) -> Any:
    """Return another estimator of the same class with this state."""
    twin = object.__new__(type(estimator))
    twin.__dict__ = state
    return twin

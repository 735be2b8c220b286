"""The state of an estimator: a fit changes all of it or nothing, and a prediction reads one state."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._errors import one_line
from maxmargin.estimators._sklearn_private import validate_parameters

# The attribute of a draft whose training was interrupted: the message.
INTERRUPTED = "_interrupted"

Estimator = TypeVar("Estimator", bound=BaseEstimator)
Method = TypeVar("Method", bound=Callable[..., Any])


def check_parameters(estimator: BaseEstimator, *names: str) -> None:
    """Raise unless the parameters, all or those named, meet their constraints; defaults need no check."""
    given, defaults = parameters_of(estimator), _defaults(type(estimator).__init__)
    chosen = {
        name: given[name] for name in names or given if name in given and given[name] is not defaults[name]
    }
    constraints = {name: estimator._parameter_constraints[name] for name in chosen}
    validate_parameters(constraints, chosen, caller_name=type(estimator).__name__)


def parameters_of(estimator: BaseEstimator) -> dict[str, object]:
    """Return ``estimator.get_params(deep=False)``, which would inspect the signature of the class again."""
    return {name: getattr(estimator, name) for name in _defaults(type(estimator).__init__)}


@cache
def _defaults(init: Callable[..., None]) -> dict[str, object]:
    """Return the parameters by name, with their defaults."""
    known = inspect.signature(init).parameters
    return {name: known[name].default for name in sorted(known.keys() - {"self"})}


def transaction(fit: Method) -> Method:
    """Make a method that fits check the parameters, work on a draft, and commit the draft at the end.

    An error leaves the estimator as it was, and so does Ctrl-C before training has begun. Ctrl-C during
    training keeps the best weights so far: the draft records this in its attribute `INTERRUPTED`, and
    KeyboardInterrupt is raised after the commit, so that searches and scripts stop. scikit-learn's own
    decorator does not use a draft, and checks parameters in the first `partial_fit` only.
    """

    @wraps(fit)
    def committed(self: BaseEstimator, *args: object, **kwargs: object) -> BaseEstimator:
        with one_line(type(self).__name__):
            check_parameters(self)
            draft = twin(self, dict(vars(self)))
            fit(draft, *args, **kwargs)
        interrupted = vars(draft).pop(INTERRUPTED, None)
        # A single store: other threads see the old model or the new one. Parameters stay the user's.
        self.__dict__ = {**vars(draft), **parameters_of(self)}
        if interrupted is not None:
            raise KeyboardInterrupt(interrupted)
        return self

    return cast("Method", committed)


def snapshot(method: Method) -> Method:
    """Make a method of a fitted estimator read one state, even if another thread fits the estimator again."""

    @wraps(method)
    def read(self: BaseEstimator, *args: object, **kwargs: object) -> object:
        view = twin(self, vars(self))
        check_is_fitted(view)
        with one_line(type(self).__name__):
            return method(view, *args, **kwargs)

    return cast("Method", read)


def twin(estimator: Estimator, state: dict[str, object]) -> Estimator:
    """Return another estimator of the same class with this state."""
    other = object.__new__(type(estimator))
    other.__dict__ = state
    return other

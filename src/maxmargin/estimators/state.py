"""The state of an estimator: a fit changes all of it or nothing, and a prediction reads one state.

Before a fit, parameters are checked as scikit-learn checks them. A pickle holds the model, and the training
data only if the user asks.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cache, wraps
from numbers import Integral
from typing import Any, NamedTuple, TypeVar, cast

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin.files.container import installed_version
from maxmargin.runtime.wording import errors_of, on_one_line

# The attribute of a draft whose training was interrupted: the message.
INTERRUPTED = "_interrupted"
_VERSION = "_maxmargin_version"
_WITH_DATA: ContextVar[bool] = ContextVar("with_data", default=False)
Estimator = TypeVar("Estimator", bound=BaseEstimator)
Method = TypeVar("Method", bound=Callable[..., Any])


def transaction(fit: Method) -> Method:
    """Make a method that fits check the parameters, work on a draft, and commit the draft at the end.

    An error leaves the estimator as it was, and so does Ctrl-C before training has begun. Ctrl-C during
    training keeps the best weights so far: the draft records this in its attribute `INTERRUPTED`, and
    KeyboardInterrupt is raised after the commit, so that searches and scripts stop. scikit-learn's own
    decorator does not use a draft, and checks parameters in the first `partial_fit` only.
    """

    @wraps(fit)
    def committed(self: BaseEstimator, *args: object, **kwargs: object) -> BaseEstimator:
        with errors_of(type(self).__name__):
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
        if "_w" not in vars(view):  # else it is fitted, and scikit-learn would make all tags to find it out
            check_is_fitted(view)
        with errors_of(type(self).__name__):
            return method(view, *args, **kwargs)

    return cast("Method", read)


def twin(estimator: Estimator, state: dict[str, object]) -> Estimator:
    """Return another estimator of the same class with this state."""
    other = object.__new__(type(estimator))
    other.__dict__ = state
    return other


def check_parameters(estimator: BaseEstimator, *names: str) -> None:
    """Raise unless the parameters, all or those named, meet their constraints; defaults need no check."""
    defaults = _defaults(type(estimator).__init__)
    given = {name: getattr(estimator, name) for name in names or defaults if name in defaults}
    chosen = {name: value for name, value in given.items() if value is not defaults[name]}
    constraints = {name: estimator._parameter_constraints[name] for name in chosen}
    try:
        validate_parameters(constraints, chosen, caller_name=type(estimator).__name__)
    except InvalidParameterError as error:  # its message has the name
        raise InvalidParameterError(on_one_line(str(error))) from None


def parameters_of(estimator: BaseEstimator) -> dict[str, object]:
    """Return ``estimator.get_params(deep=False)``, which would inspect the signature of the class again."""
    return {name: getattr(estimator, name) for name in _defaults(type(estimator).__init__)}


@cache
def _defaults(init: Callable[..., None]) -> dict[str, object]:
    """Return the parameters by name, with their defaults."""
    known = inspect.signature(init).parameters
    return {name: known[name].default for name in sorted(known.keys() - {"self"})}


class ParameterChecks(NamedTuple):
    """How to write constraints of parameters, how to check them, and the error of a check that fails.

    These are private names of scikit-learn, in a module that it may move or change in any release. They are
    tried out when this module is imported. If they do not work, parameters are not checked, and one warning
    says so. No other module of the package imports a private name of scikit-learn.

    Attributes
    ----------
    interval : callable
        ``interval(type, left, right, closed=...)``, the constraint that a number is in a range.
    strings, options : callables
        ``strings(set)`` and ``options(type, set)``, the constraint that a value is one of a set.
    methods : callable
        ``methods(name)``, the constraint that an object has a method.
    validate : callable
        ``validate(constraints, parameters, caller_name=...)`` raises `error` if a parameter is wrong.
    error : type of exception
    """

    interval: Callable[..., object]
    strings: Callable[..., object]
    options: Callable[..., object]
    methods: Callable[..., object]
    validate: Callable[..., None]
    error: type[Exception]


class InvalidParameter(ValueError):
    """Placeholder for scikit-learn's error of a wrong parameter. Nothing raises it."""


def _unchecked(*args: object, **kwargs: object) -> None:
    """Placeholder for a constraint and for its check. Accepts every value."""


def _scikit_learns() -> ParameterChecks:
    """Return the checks of scikit-learn; raise if they have moved or changed."""
    from sklearn.utils import _param_validation as private

    checks = ParameterChecks(
        private.Interval,
        private.StrOptions,
        private.Options,
        private.HasMethods,
        private.validate_parameter_constraints,
        private.InvalidParameterError,
    )
    _try_out(checks)
    return checks


def _try_out(checks: ParameterChecks) -> None:
    """Raise unless the checks accept a right parameter and refuse a wrong one."""
    constraints: Mapping[str, list[object]] = {
        "a": [checks.interval(Integral, 1, None, closed="left"), None],
        "b": [checks.strings({"x"}), "boolean", callable],
        "c": [checks.options(Integral, {1, 2}), checks.methods("keys")],
    }
    right: dict[str, object] = {"a": 1, "b": "x", "c": 2}
    checks.validate(constraints, right, caller_name="maxmargin")
    for wrong in ({"a": 0}, {"b": "y"}, {"c": 3}):
        try:
            checks.validate(constraints, right | wrong, caller_name="maxmargin")
        except checks.error:
            continue
        raise RuntimeError(f"the check of parameters accepts {wrong}")


def parameter_checks() -> ParameterChecks:
    """Return the checks of scikit-learn, or ones that accept everything, with a warning."""
    try:
        return _scikit_learns()
    except Exception as error:
        warnings.warn(
            f"maxmargin: the parameter checks of this version of scikit-learn cannot be used ({error!r}). "
            "Estimators work, but do not check their parameters: a wrong value raises a less helpful error, "
            "or none. Update maxmargin, or use an earlier version of scikit-learn.",
            RuntimeWarning,
            stacklevel=2,
        )
        return ParameterChecks(*(_unchecked,) * 5, InvalidParameter)


Interval, StrOptions, Options, HasMethods, validate_parameters, InvalidParameterError = parameter_checks()


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


def without_training_data(state: dict[str, object]) -> dict[str, object]:
    """Return the state of an estimator as a pickle holds it."""
    if not _WITH_DATA.get():
        state.pop("_last", None)
        if not isinstance(state.get("_seen"), LeftOut | None):
            state["_seen"] = LeftOut.PICKLE
    return state


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
        # Parameters that are newer than the pickle have their defaults.
        super().__setstate__({**_defaults(type(self).__init__), **state})

"""The private names of scikit-learn that estimators use: the checks of parameters.

scikit-learn checks parameters by constraints, in a module that it may move or change in any release. This
module tries the names out when it is imported. If they do not work, parameters are not checked, and one
warning says so. No other module of the package imports a private name of scikit-learn.
"""

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import NamedTuple


class ParameterChecks(NamedTuple):
    """How to write constraints of parameters, how to check them, and the error of a check that fails.

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

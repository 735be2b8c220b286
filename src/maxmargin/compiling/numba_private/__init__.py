"""All uses of Numba beyond its public interface; no other package has any.

Private names may change with any release of Numba. Each group of names is tested when its module is imported,
and has a fallback. Our own way to lower and link kernels, and to pass tuples, is used only with the versions
of Numba that it was tested with (`TESTED`): these classes rely on the meaning of names, too. With a
fallback, the package computes the same bits, but more slowly; the first compilation then issues one warning
that says what is lost.
"""

import warnings
from collections.abc import Callable

import numba

# The versions with which kernels of every model, compiled by our pipeline, gave the bits of the interpreter;
# trials cannot see that a name means something else. Minor versions, as Numba's patch releases only mend
# regressions: all patch releases of these until 0.68.1 were tested.
TESTED = ("0.61", "0.62", "0.63", "0.64", "0.65", "0.66", "0.67", "0.68")
IS_TESTED = ".".join(numba.__version__.split(".")[:2]) in TESTED

_LOSSES: list[str] = []


def warn_of_losses() -> None:
    """Issue one warning for everything that is lost; later calls do nothing."""
    if _LOSSES:
        losses = "; ".join(_LOSSES)
        _LOSSES.clear()
        cause = "private names of Numba have moved" if IS_TESTED else "it was not tested with this version"
        warnings.warn(
            f"maxmargin: Numba is {numba.__version__}, and {cause}: {losses}. Results are the same; install "
            f"a version of Numba that it was tested with, {TESTED[0]} to {TESTED[-1]}.",
            RuntimeWarning,
            stacklevel=2,
        )


def works(trial: Callable[[], object], loss: str) -> bool:
    """Return whether a trial of private names succeeds; if it fails, note what is lost."""
    try:
        trial()
    except Exception:  # a name that has moved, or that works differently: any kind of error
        _note(loss)
        return False
    return True


def works_as_tested(trial: Callable[[], object], loss: str) -> bool:
    """Return whether this version of Numba is tested and a trial succeeds; if not, note what is lost."""
    if not IS_TESTED:
        _note(loss)
    return IS_TESTED and works(trial, loss)


def _note(loss: str) -> None:
    if loss not in _LOSSES:  # several groups may have the same one
        _LOSSES.append(loss)


def nothing() -> None:
    """Serve as the function of trials; it is inspected but never called."""

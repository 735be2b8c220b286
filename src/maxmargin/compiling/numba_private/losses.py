"""What is lost where private names of Numba have moved."""

import warnings
from collections.abc import Callable

_LOSSES: list[str] = []


def warn_of_losses() -> None:
    """Issue one warning for everything that is lost; later calls do nothing."""
    if _LOSSES:
        losses = "; ".join(_LOSSES)
        _LOSSES.clear()
        warnings.warn(
            f"maxmargin: private names of this version of Numba have moved: {losses}. Results are the same; "
            "install a version of Numba that this version of maxmargin was tested with.",
            RuntimeWarning,
            stacklevel=2,
        )


def works(trial: Callable[[], object], loss: str) -> bool:
    """Return whether a trial of private names succeeds; if it fails, note what is lost."""
    try:
        trial()
    except Exception:  # a name that has moved, or that works differently: any kind of error
        if loss not in _LOSSES:  # several groups may have the same one
            _LOSSES.append(loss)
        return False
    return True


def nothing() -> None:
    """Serve as the function of trials; it is inspected but never called."""

"""What people look at: the progress line and the convergence plot."""

from types import TracebackType
from typing import Any, Self

from tqdm.auto import tqdm

from maxmargin.solve import Progress

_DELAY = 2.0


class ProgressLine:
    """A callback that shows passes, primal, dual and gap in one line.

    The line appears on a terminal once a run has lasted two seconds, or at once with ``delay=0``.

    Parameters
    ----------
    name : str
        Stands before the line.
    enabled : bool or None
        None for terminals only.
    delay : float
        Seconds before the line appears.
    """

    def __init__(self, name: str = "solve", *, enabled: bool | None = None, delay: float = _DELAY) -> None:
        self.name, self.enabled, self.delay = name, enabled, delay
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            self._bar = tqdm(
                total=progress.max_passes,
                desc=self.name,
                unit="pass",
                disable=None if self.enabled is None or self.enabled else True,
                delay=self.delay,
                leave=False,
            )
        if progress.last is not None:
            last = progress.last
            text = (
                f"primal {last.primal:.5g} dual {last.dual:.5g} gap {last.gap:.3g} (tol {progress.tol:.3g})"
            )
            self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(int(progress.passes) - self._bar.n)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

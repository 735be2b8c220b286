"""Progress line, certificates as text, and convergence plot."""

import sys
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from tqdm import tqdm

from maxmargin.arrays import FloatArray
from maxmargin.history import History, Measurement
from maxmargin.result import Progress

_DELAY = 2.0
# The bar comes last and takes the space that is left: tqdm cuts lines at the edge of the terminal.
_FORMAT = "{desc}: pass {n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix} {bar}"
# The colours of Okabe and Ito, which people with any colour vision can distinguish.
_BLUE, _VERMILION, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


class ProgressLine:
    """A callback that shows passes, primal, dual and gap in one line.

    The line appears on a terminal once a run has lasted two seconds, or at once with ``delay=0``, and
    disappears when the run ends. Nothing is written to a stream that is not a terminal. The remaining
    time is that until ``max_passes``; a run that reaches its tol ends sooner.

    Parameters
    ----------
    name : str
        Text at the beginning of the line.
    enabled : bool or None
        False for no line at all; True and None mean the same.
    delay : float
        Seconds before the line appears.
    stream : text stream, optional
        Where to write; standard error by default.

    Examples
    --------
    >>> from maxmargin import BlockFrankWolfe, solve
    >>> from maxmargin.problems import Multiclass
    >>> problem = Multiclass.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with ProgressLine("training") as line:
    ...     result = solve(problem, BlockFrankWolfe(lam=0.1), callbacks=[line], random_state=0)
    >>> result.gap <= 1e-3
    True
    """

    def __init__(
        self,
        name: str = "solve",
        *,
        enabled: bool | None = None,
        delay: float = _DELAY,
        stream: IO[str] | None = None,
    ) -> None:
        self.name, self.enabled, self.delay, self.stream = name, enabled, delay, stream
        self._bar: tqdm | None = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, progress: Progress) -> None:
        """Update the line; called after each pass."""
        if self._bar is None:
            self._bar = self._open(progress.max_passes)
        if progress.last is not None:
            self._bar.set_postfix_str(certificate_text(progress.last), refresh=False)
        self._bar.update(int(progress.passes) - self._bar.n)

    def _open(self, max_passes: int) -> tqdm:
        return tqdm(
            total=max_passes,
            desc=self.name,
            bar_format=_FORMAT,
            disable=True if self.enabled is False else None,  # None: disabled unless the stream is a terminal
            delay=self.delay,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr if self.stream is None else self.stream,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


class CertificateLines:
    """A callback that writes a line per certificate, for files and pipes.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard output by default.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream
        self._shown: Measurement | None = None

    def __call__(self, progress: Progress) -> None:
        """Write the last certificate, unless it has been written before."""
        last = progress.last
        if last is not None and last is not self._shown:
            print(f"pass {last.passes:4.0f}  {certificate_text(last)}", file=self.stream, flush=True)
            self._shown = last


def certificate_text(row: Measurement) -> str:
    """Return primal, dual and gap in a few words.

    Parameters
    ----------
    row : Measurement
        One row of a `History`.

    Returns
    -------
    str

    Examples
    --------
    >>> certificate_text(Measurement(10, 1000, 0.5, primal=0.25, dual=0.2, gap=0.05))
    'primal 0.25 dual 0.2 gap 0.05'
    """
    return f"primal {row.primal:.5g} dual {row.dual:.5g} gap {row.gap:.3g}"


def plot_convergence(history: History, axes: Any = None, *, tol: float | None = None) -> Any:
    """Plot primal and dual against passes, and below them, on a log axis, the certified gap.

    The certified gap is the difference between the best primal and the best dual so far. A run stops when it
    reaches tol.

    Parameters
    ----------
    history : History
        Such as ``result.history`` or ``model.history_``.
    axes : pair of matplotlib Axes, optional
        Where to draw the objectives and the gap; by default in a new figure of two panels.
    tol : float, optional
        The tolerance to mark in the panel of the gap.

    Returns
    -------
    array of two Axes
        The panels of the objectives and of the gap.
    """
    if len(history) == 0:
        raise ValueError("plot_convergence: history must hold at least one certificate, got an empty one.")
    if axes is None:
        axes = _new_panels()
    objectives, gap_panel = axes
    gap = np.minimum.accumulate(history.primal) - np.maximum.accumulate(history.dual)
    _plot_objectives(objectives, history)
    _plot_gap(gap_panel, history.passes, gap, tol)
    objectives.set_title(
        f"Certified: at most {gap[-1]:.2g} above the minimum after {history.passes[-1]:.0f} passes"
    )
    return axes


def _new_panels() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plot_convergence needs matplotlib, which is not installed; run: pip install maxmargin[plot]"
        ) from error
    return plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(6.4, 5.6))[1]


def _plot_objectives(ax: Any, history: History) -> None:
    passes, primal, dual = history.passes, history.primal, history.dual
    style = {"marker": "o", "markersize": 3.5}
    ax.fill_between(passes, dual, primal, color=_GREY, alpha=0.12, linewidth=0)
    ax.plot(passes, primal, color=_BLUE, label="primal: objective of the weights", **style)
    ax.plot(passes, dual, "--", color=_VERMILION, label="dual: no weights are below this", **style)
    ax.set_ylabel("objective")
    _tidy(ax)


def _plot_gap(ax: Any, passes: FloatArray, gap: FloatArray, tol: float | None) -> None:
    ax.plot(passes, gap, color=_GREEN, marker="o", markersize=3.5, label="gap: best primal − best dual")
    if tol is not None and tol > 0:
        ax.axhline(tol, color=_GREY, linestyle=":", label=f"tol = {tol:g}")
    # A gap of exactly zero means an optimum, but a log axis cannot show it.
    ax.set_yscale("log", nonpositive="mask")
    ax.set_xlabel("passes over the data")
    ax.set_ylabel("certified gap (log)")
    _tidy(ax)


def _tidy(ax: Any) -> None:
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)

"""The result of a run: the weights, all certificates as columns of measurements, and their plot."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from maxmargin.files import checkpoint
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Limits
from maxmargin.runtime.wording import counted, shown
from maxmargin.structures.problem import AnyProblem, unproved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Measurement(NamedTuple):
    """One certificate.

    Attributes
    ----------
    passes : float
        Passes over the data so far: oracle calls / n.
    oracle_calls : int
        Calls of the max oracle by the method: one for each visit of an example, none if a cache served it,
        two if the corner found in a batch was out of date. Calls for certificates are not counted; those
        that a warm start needs to compare examples are.
    seconds : float
        Time spent on optimisation, without certificates.
    primal, dual, gap : float
        Objective, its lower bound, and their difference.
    """

    passes: float
    oracle_calls: int
    seconds: float
    primal: float
    dual: float
    gap: float


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


@dataclass(eq=False, repr=False)
class History:
    """The certificates of a run, oldest first. Columns are arrays: ``history.gap`` or ``history["gap"]``."""

    columns: ClassVar = Measurement._fields
    rows: tuple[Measurement, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> FloatArray:
        if column not in self.columns:
            raise KeyError(f"History: column must be one of {', '.join(self.columns)}, got {column!r}.")
        return np.array([getattr(row, column) for row in self.rows])

    def __getattr__(self, column: str) -> FloatArray:
        if column not in self.columns:
            raise AttributeError(column)
        return self[column]

    def __repr__(self) -> str:
        last = f", last gap {self.rows[-1].gap:.3g}" if self.rows else ""
        return f"History({counted(len(self.rows), 'certificate')}{last})"

    def to_frame(self) -> "DataFrame":
        """Return a pandas DataFrame with one row per certificate."""
        return as_frame(list(self.rows), list(self.columns), "History.to_frame")


@checkpoint.parts.register(History)
def history_parts(history: History) -> list[FloatArray]:
    return [np.array(history.rows, dtype=np.float64).reshape(-1, len(Measurement._fields))]


@checkpoint.with_parts.register(History)
def history_with_parts(history: History, new: Sequence[FloatArray]) -> History:
    rows = (Measurement(*row)._replace(oracle_calls=int(row[1])) for row in new[0].tolist())
    return History(tuple(rows))


def as_frame(
    rows: Sequence[object], columns: Sequence[str], caller: str, *, names: Sequence[str] = ()
) -> "DataFrame":
    """Return a pandas DataFrame; raise a one-line error that names the caller if pandas is not installed.

    The columns ``names`` hold objects, which stay as they are: ints beside None do not become floats.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{caller} needs pandas, which is not installed; run: pip install maxmargin[frame]"
        ) from error
    if not names:
        return pd.DataFrame(rows, columns=list(columns))
    numbers = {name: float for name in columns if name not in names}
    return pd.DataFrame(rows, columns=list(columns), dtype=object).astype(numbers)


class Stopped(NamedTuple):
    """Where a run stopped: the problem, the method and its state; None if a step was left half done."""

    problem: AnyProblem
    method: object
    state: object


class Status(Enum):
    """Why a run ended."""

    CONVERGED = "the gap is small enough"
    MAX_PASSES = "the limit of passes was reached before the gap was small enough"
    TIME_LIMIT = "the time limit was reached before the gap was small enough"
    MISSED = "the gap is negative, as the approximate oracle missed maxima"
    STOPPED = "a callback asked to stop"
    INTERRUPTED = "the run was interrupted"


class Result(NamedTuple):
    r"""The best weights found, and bounds on their objective.

    Attributes
    ----------
    weights : array of shape (d,)
        The weights of lowest primal objective among those measured, without padding: for a chain the feature
        weights label by label, start, end, then transitions row by row. If zero weights have a lower
        objective, the weights are divided by a power of two until they are better, or are zero; the last row
        of the history is then theirs.
    primal : float
        Objective at ``weights``, a value of ``history.primal``, never above that of zero weights by more than
        ``tol``. It is an upper bound if the oracle is approximate but bounds its shortfall, as messages on
        graphs do, and an under-estimate if the oracle is approximate without a bound.
    dual : float
        Largest lower bound seen.
    gap : float
        ``primal - dual``, an upper bound on the suboptimality of ``weights``.
    certified : bool
        Whether ``gap`` is a guaranteed bound: the oracle is exact, or bounds its shortfall (by a relaxation),
        and the objective is known to be convex. An approximate oracle without such a bound under-estimates
        ``primal`` and ``gap``; ``dual`` is a lower bound for every convex objective. If ``gap`` is negative,
        the status is MISSED: the oracle's answers are below the maxima by at least ``-gap`` in the mean.
    status : Status
        Why the run ended.
    history : History
        All certificates.
    w : array
        The weights in the problem's own layout.
    stopped : Stopped
        Where the method stopped; ``solve(..., start=result)`` continues from here.
    """

    weights: FloatArray
    primal: float
    dual: float
    gap: float
    certified: bool
    status: Status
    history: History
    w: FloatArray
    stopped: Stopped

    def __repr__(self) -> str:
        return "\n".join(["Result", *(f"  {name:<11}  {text}" for name, text in self._summary())])

    def _repr_html_(self) -> str:
        """Return the table and, if matplotlib is installed, the convergence curve, for notebooks."""
        rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._summary())
        return f"<div><table>{rows}</table>{convergence_svg(self.history)}</div>"

    def _summary(self) -> list[tuple[str, str]]:
        """Return the names and values of the summary, as text."""
        last = self.history.rows[-1]
        share = f", {self.gap / abs(self.primal):.2%} of the objective" if self.primal else ""
        bound = "guaranteed" if self.certified else f"not guaranteed: {unproved(self.stopped.problem)}"
        if self.status is Status.MISSED:
            bound = f"no bound: the oracle's answers are too small by at least {-self.gap:.3g}"
        certificates = counted(len(self.history), "certificate")
        return [
            ("status", f"{self.status.name.lower()}: {self.status.value}"),
            ("objective", f"{self.primal:.6g}"),
            ("lower bound", f"{self.dual:.6g}"),
            ("gap", f"{self.gap:.3g}{share} ({bound})"),
            ("passes", f"{last.passes:.4g}, {last.seconds:.3g} s and {certificates}"),
            ("weights", f"{len(self.weights)}, of which {np.count_nonzero(self.weights)} are not zero"),
        ]


class Progress(NamedTuple):
    """The argument of callbacks after each pass: the last certificate, and the progress since.

    Attributes
    ----------
    passes, oracle_calls, seconds
        Progress of the run; a pass is n visits of examples, with or without oracle calls.
    last : Measurement or None
        The last certificate.
    limits : Limits
        When the run ends.
    """

    passes: float
    oracle_calls: int
    seconds: float
    last: Measurement | None
    limits: Limits


Callback = Callable[[Progress], object]
# The colours of Okabe and Ito, which people with any colour vision can distinguish.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
# Grey that can be read on white and on black: new figures have no background of their own.
INK = "#808080"
# Of runs in one plot; the others of these colours can be read on white and on black, too.
_RUNS = (BLUE, VERMILION, GREEN, "#CC79A7", "#E69F00", "#56B4E9")


class Recorded(Protocol):
    """A result of `solve`, or whatever else has a history."""

    @property
    def history(self) -> History:
        """All certificates of the run."""


Run = History | Recorded


def plot_convergence(
    history: Run | Mapping[str, Run], axes: "Sequence[Axes] | None" = None, *, tol: float | None = None
) -> "Sequence[Axes]":
    """Plot primal and dual against passes, and below them, on a log axis, the certified gap.

    The certified gap is the difference between the best primal and the best dual so far. A run stops when it
    reaches tol.

    Parameters
    ----------
    history : History, Result, or a dict of them
        Such as ``result.history`` or ``model.history_``. To compare runs, a dict of their names:
        ``{"BCFW": result, "Pairwise": other}``. Each run has a colour; its dual is dashed.
    axes : pair of matplotlib Axes, optional
        Where to draw the objectives and the gap; by default in a new figure of two panels.
    tol : float, optional
        The tolerance to mark in the panel of the gap.

    Returns
    -------
    array of two Axes
        The panels of the objectives and of the gap.
    """
    several = history if isinstance(history, Mapping) else None
    given = {"": history} if several is None else several
    runs = {str(name): _history_of(run) for name, run in given.items()}
    if not runs or not all(map(len, runs.values())):
        raise ValueError("plot_convergence: history must hold at least one certificate, got an empty one.")
    if axes is None:
        axes = _new_panels()
    objectives, gap_panel = axes
    if several is None:
        (run,) = runs.values()
        _plot_objectives(objectives, run)
        _plot_gap(gap_panel, run, "gap: best primal − best dual", GREEN)
        objectives.set_title(
            f"Certified: at most {_gap(run)[-1]:.2g} above the minimum after {run.passes[-1]:.0f} passes"
        )
    else:
        for k, (name, run) in enumerate(runs.items()):
            _plot_run(objectives, run, name, _RUNS[k % len(_RUNS)])
            _plot_gap(gap_panel, run, name, _RUNS[k % len(_RUNS)])
        objectives.set_title("Primal (solid) and dual (dashed)")
    _finish(objectives, gap_panel, tol)
    return axes


def _history_of(run: object) -> History:
    found = getattr(run, "history", run)
    if not isinstance(found, History):
        raise TypeError(
            f"plot_convergence: history must be a History, a Result or a dict of them, got {shown(run)}."
        )
    return found


def _gap(history: History) -> FloatArray:
    """Return the certified gap after each certificate."""
    gap: FloatArray = np.minimum.accumulate(history.primal) - np.maximum.accumulate(history.dual)
    return gap


def convergence_svg(history: History) -> str:
    """Return the convergence plot as an SVG element; empty if there is none to draw, or no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    if not len(history) or not np.isfinite(history.gap).any():
        return ""
    figure, stream = Figure(figsize=(6.4, 4.8), layout="constrained"), io.StringIO()
    axes = figure.subplots(2, 1, sharex=True)
    for ax in axes:
        suit_any_background(figure, ax)
    plot_convergence(history, axes)
    figure.savefig(stream, format="svg")
    text = stream.getvalue()
    return text[text.index("<svg") :]


def pyplot(caller: str) -> ModuleType:
    """Return matplotlib.pyplot; raise a one-line error that names the caller if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed; run: pip install maxmargin[plot]"
        ) from error
    return plt


def _new_panels() -> "Sequence[Axes]":
    plt = pyplot("plot_convergence")
    figure, axes = plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(6.4, 5.6))
    for ax in axes:
        suit_any_background(figure, ax)
    return axes


def suit_any_background(figure: "Figure", ax: "Axes") -> None:
    """Make the background transparent, and texts and lines of the axes grey."""
    figure.patch.set_facecolor("none")
    ax.set_facecolor("none")
    ax.tick_params(colors=INK)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_color(INK)
    ax.spines[:].set_edgecolor(INK)


def _plot_objectives(ax: "Axes", history: History) -> None:
    passes, primal, dual = history.passes, history.primal, history.dual
    style = {"marker": "o", "markersize": 3.5}
    ax.fill_between(passes, dual, primal, color=INK, alpha=0.12, linewidth=0)
    ax.plot(passes, primal, color=BLUE, label="primal: objective of the weights", **style)
    ax.plot(passes, dual, "--", color=VERMILION, label="dual: no weights are below this", **style)


def _plot_run(ax: "Axes", history: History, name: str, color: str) -> None:
    """Plot primal and dual of one run among several."""
    ax.plot(history.passes, history.primal, color=color, marker="o", markersize=3.5, label=name)
    ax.plot(history.passes, history.dual, "--", color=color, marker="o", markersize=3.5)


def _plot_gap(ax: "Axes", history: History, name: str, color: str) -> None:
    ax.plot(history.passes, _gap(history), color=color, marker="o", markersize=3.5, label=name)


def _finish(objectives: "Axes", ax: "Axes", tol: float | None) -> None:
    """Label the axes of the objectives and of the gap."""
    objectives.set_ylabel("objective")
    _tidy(objectives)
    if tol is not None and tol > 0:
        ax.axhline(tol, color=INK, linestyle=":", label=f"tol = {tol:g}")
    # A gap of exactly zero means an optimum, but a log axis cannot show it.
    ax.set_yscale("log", nonpositive="mask")
    ax.set_xlabel("passes over the data")
    if ax.get_xscale() == "linear":  # a user's axes may have another
        ax.locator_params(axis="x", integer=True)
    ax.set_ylabel("certified gap (log)")
    _tidy(ax)


def _tidy(ax: "Axes") -> None:
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, labelcolor=ax.xaxis.label.get_color())

"""Primal, dual and gap of a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from maxmargin.displays._canvas import final_step
from maxmargin.plotting import Run, plot_convergence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ConvergenceDisplay:
    """Primal, dual and certified gap against passes: see `maxmargin.plot_convergence`.

    Parameters
    ----------
    history : History, Result, or a dict of them
    tol : float, optional
        The tolerance to mark in the panel of the gap.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
        The panels of the objectives and of the gap.
    figure_ : matplotlib Figure
    """

    ax_: "Sequence[Axes]"
    figure_: "Figure"

    def __init__(self, history: Run | Mapping[str, Run], *, tol: float | None = None) -> None:
        self.history, self.tol = history, tol

    @classmethod
    def from_estimator(
        cls, estimator: object, *, tol: float | None = None, ax: "Sequence[Axes] | None" = None
    ) -> Self:
        """Plot the last run of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this package, or a pipeline that ends with one
        tol : float, optional
            The tolerance to mark in the panel of the gap.
        ax : pair of matplotlib Axes, optional

        Returns
        -------
        ConvergenceDisplay
        """
        return cls(final_step(estimator, cls.__name__, "history_").history_, tol=tol).plot(ax)

    @classmethod
    def from_history(
        cls,
        history: Run | Mapping[str, Run],
        *,
        tol: float | None = None,
        ax: "Sequence[Axes] | None" = None,
    ) -> Self:
        """Plot the history of a result, or compare those of several.

        Parameters
        ----------
        history : History, Result, or a dict of them
            Such as ``result.history``; a dict has the names of runs.
        tol : float, optional
            The tolerance to mark in the panel of the gap.
        ax : pair of matplotlib Axes, optional

        Returns
        -------
        ConvergenceDisplay
        """
        return cls(history, tol=tol).plot(ax)

    def plot(self, ax: "Sequence[Axes] | None" = None) -> Self:
        """Draw on two axes, or in a new figure.

        Parameters
        ----------
        ax : pair of matplotlib Axes, optional

        Returns
        -------
        ConvergenceDisplay
        """
        self.ax_ = plot_convergence(self.history, ax, tol=self.tol)
        self.figure_ = self.ax_[0].figure
        return self

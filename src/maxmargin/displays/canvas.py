"""Shared by all displays: axes to draw on, colours, checks of arguments; and the display of a run."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin.runtime.wording import described, errors_of
from maxmargin.solving.result import (
    BLUE,
    GREEN,
    INK,
    VERMILION,
    Run,
    plot_convergence,
    pyplot,
    suit_any_background,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The colours of Okabe and Ito, for labels.
LABELS = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", VERMILION, "#F0E442")
RIGHT, WRONG, MISSED = BLUE, VERMILION, GREEN
# From the colour of negative numbers through white to that of positive ones; safe for all colour vision.
DIVERGING = "RdBu_r"

Colour = str | tuple[float, ...]
Colours = dict[object, Colour]  # by label


class Display:
    """Base of the displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that `plot` drew on.
    figure_ : matplotlib Figure
    """

    ax_: "Axes"
    figure_: "Figure"

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw on these axes, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Display
            The display itself.
        """
        self._plot(ax)
        return self

    def _plot(self, ax: "Axes | None") -> None:
        """Hook: draw, after `_begin` has set the axes."""
        raise NotImplementedError

    def _begin(self, ax: "Axes | None", size: tuple[float, float] | None = None) -> str:
        """Set the axes, new ones of this size in inches if none are given; return the colour of texts."""
        if ax is not None:
            self.ax_, self.figure_ = ax, ax.figure
            return str(ax.xaxis.label.get_color())
        figure, self.ax_ = pyplot(f"{type(self).__name__}.plot").subplots(layout="constrained", figsize=size)
        self.figure_ = figure
        suit_any_background(figure, self.ax_)
        return INK

    def _legend(self, ink: str) -> None:
        """Add a legend of all labelled artists, to the right of the data."""
        if self.ax_.get_legend_handles_labels()[0]:
            place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
            self.ax_.legend(labelcolor=ink, frameon=False, markerscale=0.7, **place)


def final_step(estimator: BaseEstimator, needs: str) -> BaseEstimator:
    """Return a fitted estimator, the last step of a pipeline; raise unless it has what a display needs."""
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a fitted estimator, got {described(estimator)}.")
    check_is_fitted(estimator)
    model = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not hasattr(model, needs):
        raise TypeError(f"estimator must have {needs}, got {described(model)}, which has none.")
    return model


def as_words(words: Iterable[object] | None, n: int, name: str = "words") -> list[str]:
    """Return one text per token: its number if none are given."""
    if words is None:
        return [str(t) for t in range(n)]
    texts = [str(word) for word in words]
    if len(texts) != n:
        raise ValueError(f"{name} must have {n} entries, one per token, got {len(texts)}.")
    return texts


def check_lengths(first: Sized, second: Sized | None, names: Sequence[str]) -> None:
    """Raise unless the second, if it is given, is as long as the first."""
    if second is not None and len(second) != len(first):
        raise ValueError(f"{names[1]} must have {len(first)} entries, as {names[0]} has, got {len(second)}.")


def colours_of(labels: Iterable[object]) -> Colours:
    """Return a colour for each label: from seven that everyone can distinguish, or from a colour map."""
    known = list(dict.fromkeys(labels))
    if len(known) <= len(LABELS):
        return dict(zip(known, LABELS, strict=False))
    from matplotlib import colormaps

    shades = colormaps["viridis"].resampled(len(known))
    return {label: shades(k) for k, label in enumerate(known)}


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

    @errors_of("ConvergenceDisplay")
    def __init__(self, history: Run | Mapping[str, Run], *, tol: float | None = None) -> None:
        self.history, self.tol = history, tol

    @classmethod
    @errors_of("ConvergenceDisplay")
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
        return cls(final_step(estimator, "history_").history_, tol=tol).plot(ax)

    @classmethod
    @errors_of("ConvergenceDisplay")
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

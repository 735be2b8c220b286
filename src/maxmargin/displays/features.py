"""The largest weights of a label."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from maxmargin.displays._canvas import Display, final_step
from maxmargin.estimators._inspection import FeatureWeight, largest_features
from maxmargin.plotting import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Characters of a name that are shown.
_LONGEST = 60


class FeaturesDisplay(Display):
    """Bars of the feature weights of largest absolute value.

    Parameters
    ----------
    rows : list of FeatureWeight
        The largest first.
    label : object, optional
        The label that the weights belong to; None if they belong to several labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, rows: Sequence[FeatureWeight], *, label: object = None) -> None:
        self.rows, self.label = list(rows), label

    @classmethod
    def from_estimator(
        cls, estimator: object, label: object = None, *, k: int = 10, ax: "Axes | None" = None
    ) -> Self:
        """Plot the largest weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this package, or a pipeline that ends with one
        label : str or int, optional
            The label whose weights to show; by default those of all labels.
        k : int
            Number of bars.
        ax : matplotlib Axes, optional

        Returns
        -------
        FeaturesDisplay
        """
        model = final_step(estimator, cls.__name__, "top_features")
        return cls(largest_features(model, label, k), label=label).plot(ax)

    def _plot(self, ax: "Axes | None") -> None:
        """Draw the bars, the largest on top."""
        names, weights = [self._name(row) for row in self.rows], [row.weight for row in self.rows]
        width = 3.6 + 0.085 * max(map(len, names), default=0)
        ink = self._begin(ax, (width, 1.0 + 0.3 * max(len(names), 1)))
        colours = [BLUE if weight > 0 else VERMILION for weight in weights]
        self.ax_.barh(range(len(names)), weights, color=colours)
        self.ax_.axvline(0.0, color=ink, linewidth=0.8)
        self.ax_.set_yticks(range(len(names)), names)
        self.ax_.invert_yaxis()
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("weight" if self.label is None else f"weight for {self.label}")

    def _name(self, row: FeatureWeight) -> str:
        """Return the text beside a bar: the kind if there are several, feature, and label if it varies."""
        kinds = {each.kind for each in self.rows}
        words = [row.kind] if len(kinds) > 1 or row.feature is None else []
        words += [] if row.feature is None else [str(row.feature)]
        open_label = self.label is None and row.label is not None
        name = " ".join(words)
        shown = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        return shown + (f" → {row.label}" if open_label else "")

"""The largest weights of a label, and those of labels that follow each other or occur together."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from maxmargin.displays.canvas import DIVERGING, Display, final_step
from maxmargin.estimators.inspection import FeatureWeight, WeightTable, largest_features
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import errors_of
from maxmargin.solving.result import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


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

    @errors_of("FeaturesDisplay")
    def __init__(self, rows: Sequence[FeatureWeight], *, label: object = None) -> None:
        self.rows, self.label = list(rows), label

    @classmethod
    @errors_of("FeaturesDisplay")
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
        model = final_step(estimator, "top_features")
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


# Up to this many columns, cells have numbers.
_MOST_NUMBERS = 12


class TransitionsDisplay(Display):
    """A heat map of the weights of two labels.

    Parameters
    ----------
    weights : array of shape (n_before, n_after)
        NaN where there is no weight.
    before, after : lists
        The names of rows and columns.
    meaning : str
        What the numbers mean.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    @errors_of("TransitionsDisplay")
    def __init__(
        self,
        weights: FloatArray,
        before: Sequence[object],
        after: Sequence[object],
        *,
        meaning: str = "weight: column after row",
    ) -> None:
        self.weights, self.before, self.after, self.meaning = weights, list(before), list(after), meaning

    @classmethod
    @errors_of("TransitionsDisplay")
    def from_estimator(cls, estimator: object, *, feature: int | str = 0, ax: "Axes | None" = None) -> Self:
        """Plot the weights of pairs of labels of a fitted estimator.

        Parameters
        ----------
        estimator : ChainSVC, SegmentSVC, GraphSVC or MultilabelSVC, or a pipeline that ends with one
            For sets of labels, the numbers are what two labels gain if both or neither of them are chosen.
        feature : int or str
            The feature of edges whose weights to show, for GraphSVC: its number, or its name if it has one.
        ax : matplotlib Axes, optional

        Returns
        -------
        TransitionsDisplay
        """
        model = final_step(estimator, "top_transitions")
        tables = {table.kind: table for table in model._structure.transitions(model)}
        if "pair" in tables:
            return _of_pairs(cls, tables["pair"], model.classes_.tolist()[-len(model.intercept_) :]).plot(ax)
        if "edge" in tables:
            return _of_edges(cls, tables["edge"], model.classes_.tolist(), feature).plot(ax)
        return _of_sequences(cls, tables).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, cmap: str = DIVERGING, colorbar: bool = True) -> Self:
        """Draw the heat map; colours are symmetric around zero.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        cmap : str
            A diverging colour map of matplotlib.
        colorbar : bool

        Returns
        -------
        TransitionsDisplay
        """
        n, m = self.weights.shape
        ink = self._begin(ax, (3.0 + 0.5 * m, 1.6 + 0.42 * n))
        most = float(np.nanmax(np.abs(self.weights), initial=0.0)) or 1.0
        image = self.ax_.imshow(self.weights, cmap=cmap, vmin=-most, vmax=most)
        is_long = max(len(str(name)) for name in self.after) > 4
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        self.ax_.set_xticks(range(m), list(map(str, self.after)), **turned)
        self.ax_.set_yticks(range(n), list(map(str, self.before)))
        if m <= _MOST_NUMBERS:
            self._write_numbers(image)
        if colorbar:
            self._add_bar(image, ink)
        return self

    def _write_numbers(self, image: "AxesImage") -> None:
        """Write each weight into its cell, in black or white, whichever can be read."""
        # Two digits of the largest.
        digits = max(0, 1 - math.floor(math.log10(image.norm.vmax)))
        for (j, k), weight in np.ndenumerate(self.weights):
            if np.isfinite(weight):
                red, green, blue, _ = image.cmap(image.norm(weight))
                colour = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
                text = f"{weight:z.{digits}f}".replace("-", "−")
                self.ax_.text(k, j, text, ha="center", va="center", color=colour, fontsize="small")

    def _add_bar(self, image: "AxesImage", ink: str) -> None:
        bar = self.figure_.colorbar(image, ax=self.ax_)
        bar.set_label(self.meaning, color=ink)
        bar.ax.tick_params(colors=ink)
        bar.outline.set_edgecolor(ink)


Shown = TypeVar("Shown", bound=TransitionsDisplay)


def _of_sequences(cls: type[Shown], tables: dict[str, WeightTable]) -> Shown:
    """Return the display of transitions, with a row for the start and a column for the end."""
    pairs = tables["transition"].labels
    n = round(len(pairs) ** 0.5)
    names = [after for _, after in pairs[:n]]
    has_end = "end" in tables
    weights = np.full((n + 1, n + has_end), np.nan)
    weights[1:, :n] = tables["transition"].weights.reshape(n, n)
    weights[0, :n] = tables["start"].weights[0]
    if has_end:
        weights[1:, n] = tables["end"].weights[0]
    return cls(weights, ["start", *names], [*names, "end"] if has_end else names)


def _of_edges(cls: type[Shown], table: WeightTable, labels: list[object], feature: int | str) -> Shown:
    """Return the display of the weights of a feature of edges."""
    number = table.features.index(feature) if feature in table.features else feature
    if not isinstance(number, int) or number not in range(len(table.features)):
        most = f"{len(table.features) - 1}{'' if isinstance(table.features, range) else ', or a name'}"
        raise ValueError(f"{cls.__name__}: feature must be from 0 to {most}, got {feature!r}.")
    places, weights = {label: k for k, label in enumerate(labels)}, np.full(2 * (len(labels),), np.nan)
    for (before, after), weight in zip(table.labels, table.weights[number], strict=True):
        weights[places[before], places[after]] = weight
    return cls(weights, labels, labels, meaning=f"weight: edge feature {table.features[number]}")


def _of_pairs(cls: type[Shown], table: WeightTable, labels: list[object]) -> Shown:
    """Return the display of what two labels gain together."""
    by_state = dict(zip(table.features, table.weights, strict=True))
    gains = by_state["both"] + by_state["neither"] - by_state["first"] - by_state["second"]
    places, weights = {label: k for k, label in enumerate(labels)}, np.full(2 * (len(labels),), np.nan)
    for (first, second), gain in zip(table.labels, gains, strict=True):
        weights[places[first], places[second]] = weights[places[second], places[first]] = gain
    return cls(weights, labels, labels, meaning="what two labels gain together")

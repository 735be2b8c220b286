"""The heads of the words of a sentence."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin.displays.canvas import MISSED, RIGHT, WRONG, Display, as_words, check_lengths
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import errors_of, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DependencyDisplay(Display):
    """Arcs from heads to words. Where a predicted arc differs from the truth, the true arc is dashed.

    Parameters
    ----------
    heads : sequence of ints
        The head of each word, 0 for the root and 1 for the first word.
    true_heads : sequence of ints, optional
    words : list of str, optional
        By default their numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    @errors_of("DependencyDisplay")
    def __init__(
        self,
        heads: Sequence[int],
        *,
        true_heads: Sequence[int] | None = None,
        words: Iterable[object] | None = None,
    ) -> None:
        check_lengths(heads, true_heads, ("heads", "true_heads"))
        self.heads = _checked(heads, "heads")
        self.true_heads = None if true_heads is None else _checked(true_heads, "true_heads")
        numbers = range(1, len(heads) + 1)
        self.words = as_words(numbers if words is None else words, len(heads))

    @classmethod
    @errors_of("DependencyDisplay")
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        x: Iterable[tuple[str, str]] | FloatArray,
        *,
        y_true: Sequence[int] | None = None,
        words: Iterable[object] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the predicted tree of one sentence.

        Parameters
        ----------
        estimator : DependencySVC, or a pipeline that ends with one
        x : sentence
            In the form that ``predict`` takes in a list.
        y_true : sequence of ints, optional
            The true heads.
        words : list of str, optional
            By default those of ``x``, if it has words.
        ax : matplotlib Axes, optional

        Returns
        -------
        DependencyDisplay
        """
        if words is None and not isinstance(x, np.ndarray):
            x = list(x)
            words = [word for word, _ in x]
        return cls(estimator.predict([x])[0], true_heads=y_true, words=words).plot(ax)

    @classmethod
    @errors_of("DependencyDisplay")
    def from_predictions(
        cls,
        y_true: Sequence[int] | None,
        y_pred: Sequence[int],
        *,
        words: Iterable[object] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot heads that were predicted, beside the true ones.

        Parameters
        ----------
        y_true : sequence of ints or None
        y_pred : sequence of ints
        words : list of str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        DependencyDisplay
        """
        return cls(y_pred, true_heads=y_true, words=words).plot(ax)

    def _plot(self, ax: "Axes | None") -> None:
        """Draw the arcs over the words."""
        arcs = self._arcs()
        heights = _heights([(head, word) for head, word, _, _ in arcs])
        n, top = len(self.words), max(heights, default=1)
        widest = max(map(len, ["root", *self.words]))
        step = min(0.12 * widest + 0.15, 0.75)
        ink = self._begin(ax, (1.8 + step * (n + 1), 1.4 + 0.34 * top))
        for (head, word, colour, style), height in zip(arcs, heights, strict=True):
            self._draw(head, word, colour, style, height)
        turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if widest > 5 else {}
        self.ax_.set_xticks(range(n + 1), ["root", *self.words], **turned)
        self.ax_.set(yticks=[], xlim=(-0.6, n + 0.6), ylim=(0, top + 0.6))
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="x", length=0)
        self._add_legend(ink)

    def _arcs(self) -> list[tuple[int, int, str, str]]:
        """Return head, word, colour and style of all arcs."""
        truth = self.heads if self.true_heads is None else self.true_heads
        found = []
        for word, (head, true) in enumerate(zip(self.heads, truth, strict=True), start=1):
            found.append((head, word, RIGHT if head == true else WRONG, "solid"))
            if head != true:
                found.append((true, word, MISSED, "dashed"))
        return found

    def _draw(self, head: int, word: int, colour: str, style: str, height: int) -> None:
        """Draw an arc as a bracket whose arrow points at the word."""
        side = 1 if word > head else -1
        # Arcs leave a head next to the arrow that points at it; a missed arc arrives next to the wrong one.
        begin, end = head + 0.16 * side, word - (0.08 * side if style == "dashed" else 0.0)
        line = {"color": colour, "linestyle": style, "linewidth": 1.5}
        self.ax_.plot([begin, begin, end], [0, height, height], **line)
        arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **line}
        self.ax_.annotate("", (end, 0), (end, height), arrowprops=arrow)

    def _add_legend(self, ink: str) -> None:
        if self.true_heads is None:
            return
        for name, colour, style in (
            ("right", RIGHT, "solid"),
            ("wrong", WRONG, "solid"),
            ("missed", MISSED, "dashed"),
        ):
            self.ax_.plot([], [], color=colour, linestyle=style, label=name)
        self._legend(ink)


def _checked(heads: Sequence[int], name: str) -> list[int]:
    """Return the heads as ints; raise if one is not a word of the sentence."""
    found = np.asarray(heads)
    n = len(found)
    if found.ndim != 1 or (n and (found.dtype.kind not in "iu" or found.min() < 0 or found.max() > n)):
        raise ValueError(f"{name} must be ints from 0 to {n}, one per word, got {quoted(list(heads))}.")
    return [int(head) for head in found]


def _heights(arcs: list[tuple[int, int]]) -> list[int]:
    """Return a height for each arc, from 1, so that arcs that overlap have different heights."""
    heights = [0] * len(arcs)
    placed: list[tuple[int, int, int]] = []
    for k in sorted(range(len(arcs)), key=lambda k: abs(arcs[k][0] - arcs[k][1])):
        low, high = sorted(arcs[k])
        taken = {height for a, b, height in placed if a < high and b > low}
        heights[k] = min(set(range(1, len(arcs) + 1)) - taken)
        # Above everything that it spans, so that lines do not cross unnecessarily.
        heights[k] = max([heights[k], *(h + 1 for a, b, h in placed if low <= a and b <= high)])
        placed.append((low, high, heights[k]))
    return heights

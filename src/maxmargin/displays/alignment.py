"""The links between the words of two sentences."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from maxmargin.displays.canvas import MISSED, RIGHT, WRONG, Display, as_words, final_step
from maxmargin.encoding.kinds import checked_floats
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import errors_of
from maxmargin.structures.matchings.encode import encode_links, encode_masks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Mask = NDArray[np.bool_]


class AlignmentDisplay(Display):
    """A matrix of links: predicted ones as discs, sure ones as squares, possible ones as dotted squares.

    Parameters
    ----------
    predicted : array of bools of shape (n_sources, n_targets)
    sure, possible : arrays of the same shape, optional
        True links, and further ones that are not wrong.
    scores : array of the same shape, optional
        Drawn as shades of grey behind the links.
    sources, targets : lists of str, optional
        The words; by default their numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    @errors_of("AlignmentDisplay")
    def __init__(
        self,
        predicted: _Mask,
        sure: _Mask | None = None,
        possible: _Mask | None = None,
        *,
        scores: FloatArray | None = None,
        sources: Iterable[object] | None = None,
        targets: Iterable[object] | None = None,
    ) -> None:
        self.predicted, self.sure, self.possible, self.scores = predicted, sure, possible, scores
        self.sources = as_words(sources, predicted.shape[0], "sources")
        self.targets = as_words(targets, predicted.shape[1], "targets")

    @classmethod
    @errors_of("AlignmentDisplay")
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        x: object,
        *,
        sure: object = None,
        possible: object = None,
        sources: Iterable[object] | None = None,
        targets: Iterable[object] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the predicted links of one pair of sentences, over the scores of all links.

        Parameters
        ----------
        estimator : MatchingSVC, or a pipeline that ends with one
        x : array of shape (n_sources, n_targets, n_features)
            What ``predict`` takes in a list.
        sure, possible : matchings, optional
            True links, and further ones that are not wrong, in the forms that `fit` takes.
        sources, targets : lists of str, optional
            The words.
        ax : matplotlib Axes, optional

        Returns
        -------
        AlignmentDisplay
        """
        model = final_step(estimator, "places_")
        features = checked_floats(x, "x")
        scores = features @ model.coef_ + model.intercept_ if estimator is model else None
        predicted = estimator.predict([x])[0]
        masks = _masks(predicted, sure, possible, features.shape[:2])
        return cls(*masks, scores=scores, sources=sources, targets=targets).plot(ax)

    @classmethod
    @errors_of("AlignmentDisplay")
    def from_predictions(
        cls,
        predicted: object,
        sources: Iterable[object],
        targets: Iterable[object],
        *,
        sure: object = None,
        possible: object = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot links that were predicted.

        Parameters
        ----------
        predicted : matching
            In one of the forms that `MatchingSVC.predict` returns or `MatchingSVC.fit` takes.
        sources, targets : lists of str
            The words.
        sure, possible : matchings, optional
            True links, and further ones that are not wrong.
        ax : matplotlib Axes, optional

        Returns
        -------
        AlignmentDisplay
        """
        sources, targets = list(sources), list(targets)
        masks = _masks(predicted, sure, possible, (len(sources), len(targets)))
        return cls(*masks, sources=sources, targets=targets).plot(ax)

    def _plot(self, ax: "Axes | None") -> None:
        """Draw the matrix."""
        n, m = self.predicted.shape
        beside, below = (0.09 * max(map(len, words), default=0) for words in (self.sources, self.targets))
        ink = self._begin(ax, (2.6 + beside + 0.36 * m, 0.5 + below + 0.36 * max(n, 3)))
        if self.scores is not None:
            self.ax_.imshow(self.scores, cmap="Greys", alpha=0.6, aspect="equal")
        self.ax_.set(xlim=(-0.5, m - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
        self.ax_.set_xticks(range(m), self.targets, rotation=60, ha="right", rotation_mode="anchor")
        self.ax_.set_yticks(range(n), self.sources)
        self.ax_.set_xticks(np.arange(m - 1) + 0.5, minor=True)
        self.ax_.set_yticks(np.arange(n - 1) + 0.5, minor=True)
        self.ax_.grid(which="minor", color=ink, alpha=0.3, linewidth=0.5)
        self.ax_.tick_params(which="both", length=0)
        self._mark_links()
        self._legend(ink)

    def _mark_links(self) -> None:
        """Draw the three kinds of links; a predicted one that is not true has another colour."""
        true = [mask for mask in (self.sure, self.possible) if mask is not None]
        further = self.possible if self.sure is None or self.possible is None else self.possible & ~self.sure
        right = np.any([self.predicted & mask for mask in true], axis=0) if true else self.predicted
        marks = (
            ("predicted", self.predicted & right, {"marker": "o", "color": RIGHT}),
            ("predicted, wrong", self.predicted & ~right, {"marker": "X", "color": WRONG}),
            ("sure", self.sure, {"marker": "s", "markerfacecolor": "none", "color": MISSED}),
            ("possible", further, {"marker": "s", "markerfacecolor": "none", "color": "#CC79A7"}),
        )
        for name, mask, style in marks:
            if mask is not None and mask.any():
                size = {"markersize": 7 if name.startswith("predicted") else 14, "markeredgewidth": 1.8}
                rows, columns = np.nonzero(mask)
                self.ax_.plot(columns, rows, linestyle="none", label=name, **style, **size)


def _masks(
    predicted: object, sure: object, possible: object, shape: tuple[int, ...]
) -> tuple[_Mask, _Mask | None, _Mask | None]:
    """Return which links are predicted, sure and possible, given in any form."""
    blank = encode_links([np.zeros((*shape, 1))])

    def mask(links: object, name: str) -> _Mask:
        return encode_masks([links], blank, name=name).reshape(shape)

    others = [
        None if links is None else mask(links, name)
        for name, links in (("sure", sure), ("possible", possible))
    ]
    return mask(predicted, "predicted"), others[0], others[1]

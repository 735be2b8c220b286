"""The links between the words of two sentences."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import FloatArray
from maxmargin.displays._canvas import MISSED, RIGHT, WRONG, Display, as_words, final_step
from maxmargin.encoding.links import encode_links, encode_masks

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

    def __init__(
        self,
        predicted: _Mask,
        *,
        sure: _Mask | None = None,
        possible: _Mask | None = None,
        scores: FloatArray | None = None,
        sources: Iterable[object] | None = None,
        targets: Iterable[object] | None = None,
    ) -> None:
        self.predicted, self.sure, self.possible, self.scores = predicted, sure, possible, scores
        owner = type(self).__name__
        self.sources = as_words(sources, predicted.shape[0], owner, "sources")
        self.targets = as_words(targets, predicted.shape[1], owner, "targets")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: object,
        *,
        sure: object = None,
        possible: object = None,
        sources: Iterable[object] | None = None,
        targets: Iterable[object] | None = None,
        ax: Any = None,
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
        model = final_step(estimator, cls.__name__, "places_")
        features = np.asarray(x, dtype=np.float64)
        scores = features @ model.coef_ + model.intercept_ if estimator is model else None
        predicted = estimator.predict([x])[0]
        links, words = (predicted, sure, possible), {"sources": sources, "targets": targets}
        return cls._of(links, features.shape[:2], scores=scores, **words).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        predicted: object,
        sources: Iterable[object],
        targets: Iterable[object],
        *,
        sure: object = None,
        possible: object = None,
        ax: Any = None,
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
        links, shape = (predicted, sure, possible), (len(sources), len(targets))
        return cls._of(links, shape, sources=sources, targets=targets).plot(ax)

    @classmethod
    def _of(cls, links: tuple[object, object, object], shape: tuple[int, ...], **given: Any) -> Self:
        """Return a display of predicted, sure and possible links in any form."""
        if links[0] is None:
            raise ValueError(f"{cls.__name__}: predicted must be links, got None.")
        names = ("predicted", "sure", "possible")
        for name, each in zip(names, links, strict=True):
            given[name] = _mask(each, shape, cls.__name__, name)
        return cls(**given)

    def plot(self, ax: Any = None) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        AlignmentDisplay
        """
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
        return self

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


def _mask(links: object, shape: tuple[int, ...], owner: str, name: str) -> _Mask | None:
    """Return which links a matching has."""
    if links is None:
        return None
    blank = encode_links([np.zeros((*shape, 1))], owner=owner)
    return encode_masks([links], blank, owner=owner, name=name).reshape(shape)

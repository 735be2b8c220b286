"""Labelled segments over the words of a sentence."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin.displays.canvas import Colour, Colours, Display, as_words, colours_of
from maxmargin.runtime.wording import errors_of
from maxmargin.structures.segments.encode import Segment, list_segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Characters in a line, and the height of a line of text with its bands, in inches.
_WIDTH, _LINE, _BAND = 80, 0.34, 0.22
_CHARACTER = 0.095


class _Word(NamedTuple):
    """Where a word is: its line, and its first and last character."""

    line: int
    start: int
    stop: int


class SegmentsDisplay(Display):
    """The text, with a band below it for each segment, and below that another band for each true segment.

    Parameters
    ----------
    segments : list of tuples (start, stop, label)
    n_tokens : int
    true_segments : list of tuples (start, stop, label), optional
    words : list of str, optional
        By default the numbers of tokens.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    @errors_of("SegmentsDisplay")
    def __init__(
        self,
        segments: Sequence[Segment],
        n_tokens: int,
        *,
        true_segments: Sequence[Segment] | None = None,
        words: Iterable[object] | None = None,
    ) -> None:
        self.segments, self.true_segments = list(segments), true_segments
        self.words = as_words(words, n_tokens)

    @classmethod
    @errors_of("SegmentsDisplay")
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        x: Sequence[object],
        *,
        y_true: object = None,
        words: Iterable[object] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the predicted segments of one sequence.

        Parameters
        ----------
        estimator : SegmentSVC, or ChainSVC with tags such as "B-NP"; or a pipeline that ends with one
        x : sequence
            In the form that ``predict`` takes in a list.
        y_true : list, optional
            True segments, or tags.
        words : list of str, optional
            The words of the sequence.
        ax : matplotlib Axes, optional

        Returns
        -------
        SegmentsDisplay
        """
        x = x if hasattr(x, "shape") else list(x)
        n_tokens = x.shape[0] if hasattr(x, "shape") else len(x)
        return cls._of(y_true, estimator.predict([x])[0], n_tokens, words).plot(ax)

    @classmethod
    @errors_of("SegmentsDisplay")
    def from_predictions(
        cls, y_true: object, y_pred: object, *, words: Iterable[object], ax: "Axes | None" = None
    ) -> Self:
        """Plot segments that were predicted, beside the true ones.

        Parameters
        ----------
        y_true : list or None
            Segments ``(start, stop, label)``, or tags such as "B-NP", "I-NP" and "O".
        y_pred : list
            In the same forms.
        words : list of str
        ax : matplotlib Axes, optional

        Returns
        -------
        SegmentsDisplay
        """
        words = list(words)
        return cls._of(y_true, y_pred, len(words), words).plot(ax)

    @classmethod
    def _of(cls, y_true: object, y_pred: object, n_tokens: int, words: Iterable[object] | None) -> Self:
        """Return a display of segments in either form."""
        offsets = np.array([0, n_tokens])
        found, true = (None if y is None else list_segments([y], offsets)[0] for y in (y_pred, y_true))
        return cls(found or [], n_tokens, true_segments=true, words=words)

    def _plot(self, ax: "Axes | None") -> None:
        """Draw the text and the bands."""
        rows, places = self._rows(), _placed(self.words)
        height = _LINE + _BAND * len(rows) + 0.12
        n_lines = max((word.line for word in places), default=0) + 1
        width = max((word.stop for word in places), default=1)
        ink = self._begin(ax, (0.9 + _CHARACTER * width, 0.35 + height * n_lines))
        for word, place in zip(self.words, places, strict=True):
            style = {"color": ink, "family": "monospace", "va": "center", "fontsize": 11}
            self.ax_.text(place.start, -height * place.line - _LINE / 2, word, **style)
        colours = colours_of(label for _, segments in rows for _, _, label in segments)
        for row, (name, segments) in enumerate(rows):
            below = _LINE + _BAND * row
            for line in range(n_lines if len(rows) > 1 else 0):
                at = -height * line - below - _BAND / 2
                self.ax_.text(-1, at, name, color=ink, ha="right", va="center", fontsize=8)
            for segment in segments:
                self._draw(segment, places, below, height, colours)
        margin = -10 if len(rows) > 1 else -1
        self.ax_.set(xlim=(margin, width + 1), ylim=(-height * n_lines, 0.05))
        self.ax_.set_axis_off()

    def _rows(self) -> list[tuple[str, list[Segment]]]:
        """Return the names and segments of the bands."""
        rows = [("predicted", self.segments)]
        return rows if self.true_segments is None else [*rows, ("true", list(self.true_segments))]

    def _draw(
        self, segment: Segment, places: list[_Word], below: float, height: float, colours: Colours
    ) -> None:
        """Draw the band of a segment, in each line that it extends over."""
        start, stop, label = segment
        for line in sorted({place.line for place in places[start:stop]}):
            here = [place for place in places[start:stop] if place.line == line]
            left, right = here[0].start, here[-1].stop
            at = -height * line - below - _BAND / 2
            self.ax_.barh(at, right - left, 0.8 * _BAND, left=left, color=colours[label])
            text = str(label)
            # A band that is too narrow for its label shows only the beginning of the label.
            room = max(1, int((right - left) * 1.25))
            shown = text if len(text) <= room else text[:room]
            middle = (left + right) / 2
            style = {"ha": "center", "va": "center_baseline", "fontsize": 8, "family": "monospace"}
            self.ax_.text(middle, at, shown, color=_readable(colours[label]), **style)


def _placed(words: Sequence[str]) -> list[_Word]:
    """Return where words are, in lines of limited width."""
    found, line, at = [], 0, 0
    for word in words:
        if at and at + len(word) > _WIDTH:
            line, at = line + 1, 0
        found.append(_Word(line, at, at + len(word)))
        at += len(word) + 1
    return found


def _readable(colour: Colour) -> str:
    """Return black or white, whichever can be read on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.45 else "white"

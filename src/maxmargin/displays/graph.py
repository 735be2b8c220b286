"""The labels of the nodes of a graph, or of the pixels of an image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from maxmargin.displays.canvas import WRONG, Colours, Display, check_lengths, colours_of
from maxmargin.encoding.kinds import checked_floats
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described, errors_of, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class GraphDisplay(Display):
    """Nodes in the colours of their labels; wrong labels are marked.

    Parameters
    ----------
    labels : array
        The label of each node.
    edges : array of shape (n_edges, 2), optional
        The two nodes of each edge. Needed unless nodes are pixels.
    true_labels : array, optional
    shape : tuple (height, width), optional
        Says that nodes are the pixels of an image, row by row.
    positions : array of shape (n_nodes, 2), optional
        Where to draw nodes. By default, nodes joined by edges are drawn close to each other.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    @errors_of("GraphDisplay")
    def __init__(
        self,
        labels: ArrayLike,
        *,
        edges: ArrayLike | None = None,
        true_labels: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
        positions: ArrayLike | None = None,
    ) -> None:
        self.labels: list[Any] = np.ravel(labels).tolist()
        self.true_labels = None if true_labels is None else np.ravel(true_labels).tolist()
        check_lengths(self.labels, self.true_labels, ("labels", "true_labels"))
        n = len(self.labels)
        if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != n):
            raise ValueError(f"shape must be that of an image of {n} pixels, got {quoted(shape)}.")
        if shape is None and edges is None:
            raise ValueError("give edges, or the shape of the image whose pixels are the nodes.")
        self.shape = None if shape is None else (int(shape[0]), int(shape[1]))
        self.edges = np.zeros((0, 2), dtype=np.int64) if edges is None else _edges(edges, n)
        self.positions = positions if shape is not None else _positions(positions, self.edges, n)

    @classmethod
    @errors_of("GraphDisplay")
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        x: Sequence[ArrayLike],
        *,
        y_true: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
        positions: ArrayLike | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the predicted labels of one graph.

        Parameters
        ----------
        estimator : GraphSVC, or a pipeline that ends with one
        x : tuple (node_features, edges) or (node_features, edges, edge_features)
        y_true : array of labels, optional
        shape : tuple (height, width), optional
            Says that nodes are the pixels of an image, row by row.
        positions : array of shape (n_nodes, 2), optional
        ax : matplotlib Axes, optional

        Returns
        -------
        GraphDisplay
        """
        labels = estimator.predict([x])[0]
        return cls(labels, edges=x[1], true_labels=y_true, shape=shape, positions=positions).plot(ax)

    @classmethod
    @errors_of("GraphDisplay")
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        *,
        edges: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
        positions: ArrayLike | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot labels that were predicted, and mark those that are wrong.

        Parameters
        ----------
        y_true : array of labels or None
        y_pred : array of labels
            An array with two axes is an image.
        edges : array of shape (n_edges, 2), optional
        shape : tuple (height, width), optional
        positions : array of shape (n_nodes, 2), optional
        ax : matplotlib Axes, optional

        Returns
        -------
        GraphDisplay
        """
        if shape is None and np.ndim(y_pred) == 2:
            shape = np.shape(y_pred)
        return cls(y_pred, edges=edges, true_labels=y_true, shape=shape, positions=positions).plot(ax)

    def _plot(self, ax: "Axes | None") -> None:
        """Draw the image, or nodes and edges."""
        known = sorted({*self.labels, *(self.true_labels or [])})
        colours = colours_of(known)
        wrong = _wrong(self.labels, self.true_labels)
        ink = self._begin(ax)
        if self.shape is None:
            self._draw_graph(colours, wrong, ink)
        else:
            self._draw_image(known, colours, wrong)
        for label in sorted(set(self.labels)):
            self.ax_.plot([], [], "s", color=colours[label], label=str(label))
        if len(wrong):
            self.ax_.plot([], [], "x" if self.shape else "o", mfc="none", color=WRONG, label="wrong")
        self._legend(ink)
        self.ax_.set(xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)

    def _draw_image(self, known: list[object], colours: Colours, wrong: IntArray) -> None:
        from matplotlib.colors import ListedColormap, to_rgb

        numbers = {label: k for k, label in enumerate(known)}
        image = np.array([numbers[label] for label in self.labels]).reshape(self.shape or ())
        cmap = ListedColormap([to_rgb(colours[label]) for label in known])
        self.ax_.imshow(image, cmap=cmap, vmin=-0.5, vmax=len(known) - 0.5, interpolation="nearest")
        rows, columns = np.divmod(wrong, image.shape[1])
        size = min(6.0, 120.0 / max(image.shape))
        self.ax_.plot(columns, rows, "x", color="white", markersize=1.3 * size, markeredgewidth=0.5 * size)
        self.ax_.plot(columns, rows, "x", color=WRONG, markersize=size, markeredgewidth=0.25 * size)

    def _draw_graph(self, colours: Colours, wrong: IntArray, ink: str) -> None:
        places = np.asarray(self.positions)
        size = float(np.clip(4000 / max(len(places), 1), 15, 160))
        for a, b in self.edges.tolist():
            self.ax_.plot(*places[[a, b]].T, color=ink, linewidth=1.0, alpha=0.7, zorder=1)
        self.ax_.scatter(*places.T, s=size, color=[colours[label] for label in self.labels], zorder=2)
        rings = {"facecolors": "none", "edgecolors": WRONG, "linewidths": 2.0, "zorder": 3}
        self.ax_.scatter(*places[wrong].T, s=2.4 * size, **rings)
        self.ax_.margins(0.1)


def _wrong(labels: list[object], truth: list[object] | None) -> IntArray:
    """Return the numbers of nodes whose label is not the true one."""
    pairs = zip(labels, labels if truth is None else truth, strict=True)
    return np.array([v for v, (label, true) in enumerate(pairs) if label != true], dtype=np.int64)


def _edges(edges: ArrayLike, n: int) -> IntArray:
    """Return the ends of edges; raise unless they are nodes."""
    ends = np.asarray(edges)
    valid = ends.size == 0 or (ends.ndim == 2 and ends.shape[1] == 2 and ends.dtype.kind in "iu")
    if not valid or (ends.size and not 0 <= ends.min() <= ends.max() < n):
        raise ValueError(f"edges must be pairs of nodes 0 to {n - 1}, got {described(edges)}.")
    return ends.reshape(-1, 2).astype(np.int64)


def _positions(positions: ArrayLike | None, edges: IntArray, n: int) -> FloatArray:
    """Return where nodes are: as given, or by the two smoothest functions on the graph."""
    if positions is not None:
        found = checked_floats(positions, "positions")
        if found.shape != (n, 2):
            raise ValueError(f"positions must have shape ({n}, 2), got {found.shape}.")
        return found
    if n < 4:
        return np.column_stack([np.arange(n), np.zeros(n)])
    laplacian = np.zeros((n, n))
    a, b = edges.T
    np.add.at(laplacian, (a, a), 1.0)
    np.add.at(laplacian, (b, b), 1.0)
    np.add.at(laplacian, (a, b), -1.0)
    np.add.at(laplacian, (b, a), -1.0)
    # Different numbers keep apart nodes without edges between them.
    laplacian[np.diag_indices(n)] += 1e-6 * np.arange(n)
    vectors: FloatArray = np.linalg.eigh(laplacian)[1][:, 1:3]
    return vectors

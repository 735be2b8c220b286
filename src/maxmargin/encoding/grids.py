"""Images as graphs: pixels are nodes, numbered row by row, and edges join neighbours."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.encoding.kinds import checked_floats
from maxmargin.runtime.arrays import check_memory
from maxmargin.runtime.wording import errors_of, quoted, shown

# (down, right) steps to the neighbours with larger numbers, for each number of neighbours.
_STEPS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}


def grid_edges(shape: tuple[int, int], connectivity: int = 4) -> NDArray[np.int64]:
    """Return the edges between neighbouring pixels of an image.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    connectivity : {4, 8}
        Number of neighbours of a pixel: 4 at its sides, or 8 with those at its corners.

    Returns
    -------
    array of shape (n_edges, 2)
        First the edges to the right, then those down, then both diagonals down. The pixel in row r and
        column c has number ``r * shape[1] + c``.

    Examples
    --------
    >>> grid_edges((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    return np.concatenate(_edges_by_direction(shape, connectivity))


def grid_directions(shape: tuple[int, int], connectivity: int = 4) -> NDArray[np.float64]:
    """Return the direction of each edge of `grid_edges`, as indicators.

    Parameters
    ----------
    shape : (int, int)
    connectivity : {4, 8}

    Returns
    -------
    array of shape (n_edges, connectivity // 2)
    """
    counts = [len(edges) for edges in _edges_by_direction(shape, connectivity)]
    return np.repeat(np.eye(len(counts)), counts, axis=0)


@errors_of("edge_differences")
def edge_differences(values: ArrayLike, edges: ArrayLike) -> NDArray[np.float64]:
    """Return the absolute differences between the features of the two ends of each edge.

    Parameters
    ----------
    values : array of shape (n_nodes, n_features) or (rows, columns, n_features)
        For instance the colours of an image.
    edges : int array of shape (n_edges, 2)

    Returns
    -------
    array of shape (n_edges, n_features)
    """
    array, ends = checked_floats(values, "values"), np.asarray(edges)
    if array.ndim < 2 or array.shape[-1] == 0:
        raise ValueError(
            f"edge_differences: values must have a row of features per node, got shape {array.shape}."
        )
    nodes = array.reshape(-1, array.shape[-1])
    ends = ends.reshape(-1, 2) if ends.size == 0 else ends
    if ends.ndim != 2 or ends.shape[1] != 2 or (ends.size and ends.dtype.kind not in "iu"):
        raise ValueError(
            f"edge_differences: edges must be ints of shape (n_edges, 2), got shape {ends.shape} of dtype "
            f"{ends.dtype}."
        )
    ends = ends.astype(np.int64)
    if ends.size and not 0 <= ends.min() <= ends.max() < len(nodes):
        raise ValueError(
            f"edge_differences: edges must be between the nodes 0 to {len(nodes) - 1}, got nodes from "
            f"{ends.min()} to {ends.max()}."
        )
    return np.abs(nodes[ends[:, 0]] - nodes[ends[:, 1]])


def _edges_by_direction(shape: tuple[int, int], connectivity: int) -> list[NDArray[np.int64]]:
    if connectivity not in _STEPS:
        raise ValueError(f"grid_edges: connectivity must be 4 or 8, got {shown(connectivity)}.")
    valid = isinstance(shape, tuple | list) and len(shape) == 2
    if not valid or not all(isinstance(side, Integral) and int(side) >= 1 for side in shape):
        raise ValueError(f"grid_edges: shape must be (rows, columns), both at least 1, got {quoted(shape)}.")
    n_bytes = 8 * int(shape[0]) * int(shape[1]) * (1 + 2 * len(_STEPS[connectivity]))
    check_memory(n_bytes, f"grid_edges: the edges of a grid of shape {quoted(shape)}", "give a smaller one")
    number = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    found = []
    for down, right in _STEPS[connectivity]:
        here, there = number[: shape[0] - down], number[down:]
        here = here[:, max(0, -right) : shape[1] - max(0, right)]
        there = there[:, max(0, right) : shape[1] - max(0, -right)]
        found.append(np.column_stack([here.ravel(), there.ravel()]))
    return found

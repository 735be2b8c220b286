"""Graphs of pictures, made by the examples, for the benchmarks of graph models."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "examples"))

import plot_nuclei
import plot_snakes
from maxmargin import grid_edges

# Pictures that are drawn at random: their shape, labels, size of squares, and noise.
_SHAPE, _LABELS, _SQUARE, _NOISE = (10, 12), 3, 4, 0.7


def snake_graphs(images: list[Any]) -> list[Any]:
    """Return the graphs of pictures of snakes."""
    return [plot_snakes.as_graph(image) for image in images]


def nuclei_graphs(images: list[Any]) -> list[Any]:
    """Return the graphs of images of nuclei."""
    return [plot_nuclei.as_graph(image) for image in images]


def drawn_grids(rng: np.random.Generator, number: int) -> tuple[list[Any], list[Any]]:
    """Return pictures of squares under noise, as graphs, and their labels."""
    squares = [side // _SQUARE + 1 for side in _SHAPE]
    graphs, labels, edges = [], [], grid_edges(_SHAPE)
    for _ in range(number):
        large = np.kron(rng.integers(_LABELS, size=squares), np.ones((_SQUARE, _SQUARE), dtype=int))
        y = large[: _SHAPE[0], : _SHAPE[1]]
        x = np.eye(_LABELS)[y.ravel()] + _NOISE * rng.normal(size=(y.size, _LABELS))
        graphs.append((np.hstack([x, np.ones((y.size, 1))]), edges))
        labels.append(y)
    return graphs, labels

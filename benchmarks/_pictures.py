"""Graphs of pictures, made by the examples, for the benchmarks of graph models."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "examples"))

import plot_nuclei
import plot_snakes


def snake_graphs(images: list[Any]) -> list[Any]:
    """Return the graphs of pictures of snakes."""
    return [plot_snakes.as_graph(image) for image in images]


def nuclei_graphs(images: list[Any]) -> list[Any]:
    """Return the graphs of images of nuclei."""
    return [plot_nuclei.as_graph(image) for image in images]

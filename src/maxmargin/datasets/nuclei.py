"""Nuclei: which pixels of microscope images belong to cell nuclei."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets._files import damaged, require
from maxmargin.datasets._images import Images, cut_images

_CALLER = "load_nuclei"
_NAMES = ("nuclei/nuclei_grid64.npz", "nuclei_grid64.npz")
_URL = "https://bbbc.broadinstitute.org/BBBC038"
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
    path = require(_NAMES, data_home, _CALLER, f"make it from {_URL}")
    try:
        with np.load(path) as arrays:
            images, y = cut_images(*(arrays[name] for name in ("rgb", "y", "offset", "shape")))
    except (KeyError, ValueError) as error:
        raise damaged(path, error, _CALLER) from None
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

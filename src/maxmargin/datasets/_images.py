"""Images and the labels of their pixels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Images(NamedTuple):
    """Images and the labels of their pixels.

    Attributes
    ----------
    images : list of uint8 arrays of shape (rows, columns, 3)
    y : list of int arrays of shape (rows, columns)
    """

    images: list[NDArray[np.uint8]]
    y: list[NDArray[np.int64]]


def cut_images(
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

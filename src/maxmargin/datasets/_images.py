"""Divide pixels that are stored one after another into images."""

import numpy as np
from numpy.typing import NDArray


def cut_images(
    pixels: NDArray[np.uint8],
    labels: NDArray[np.integer],
    offsets: NDArray[np.integer],
    shapes: NDArray[np.integer],
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.int64]]]:
    """Return the images and the labels of their pixels; image i begins with pixel ``offsets[i]``."""
    cuts, sizes = offsets[1:-1], shapes.tolist()
    images = [x.reshape(*size, 3) for x, size in zip(np.split(pixels, cuts), sizes, strict=True)]
    y = [x.reshape(size) for x, size in zip(np.split(labels.astype(np.int64), cuts), sizes, strict=True)]
    return images, y

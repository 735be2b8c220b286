"""Images whose pixels are stored one after another."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def cut_images(
    pixels: Any, labels: Any, offsets: Any, shapes: Any
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.int64]]]:
    """Return the images and the labels of their pixels; image i has the pixels from ``offsets[i]`` on."""
    cuts, sizes = offsets[1:-1], shapes.tolist()
    images = [x.reshape(*size, 3) for x, size in zip(np.split(pixels, cuts), sizes, strict=True)]
    y = [x.reshape(size) for x, size in zip(np.split(labels.astype(np.int64), cuts), sizes, strict=True)]
    return images, y

"""Lists of texts as arrays of bytes."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# Ends a text. UTF-8 never contains this byte, so texts may contain any character.
_END = b"\xff"
_NUL = b"\0"


def as_bytes(texts: Iterable[str]) -> Bytes:
    """Return texts as an array: each in UTF-8, followed by one byte that ends it."""
    texts = [*texts, ""]
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    if joined.count(_NUL) < len(texts):  # no text has one
        return np.frombuffer(joined.replace(_NUL, _END), dtype=np.uint8)
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(_END.join(encoded), dtype=np.uint8)


def as_texts(array: Bytes) -> list[str]:
    """Return the texts of an array made by `as_bytes`; raise ValueError if it is not valid."""
    content = array.tobytes()
    if content and not content.endswith(_END):
        raise ValueError("texts that do not end")
    if _NUL in content:
        return [str(text, "utf-8", "surrogatepass") for text in content.split(_END)[:-1]]
    # One call for all texts is three times as fast as one for each.
    return str(content.replace(_END, _NUL), "utf-8", "surrogatepass").split("\0")[:-1]

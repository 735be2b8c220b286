"""Plain data as JSON: users' parameters and names of features, and nothing that can be executed.

JSON has no arrays of numbers, tuples, sets, dicts with keys other than texts, or infinite numbers. Each
becomes an object with a single name, its type.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.persistence.container import SCALARS, Json
from maxmargin.wording import described

_TYPES = {np.dtype(scalar).name: scalar for scalar in SCALARS} | {"object": np.object_}
_COLLECTIONS: dict[str, Callable[[Any], object]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


class NotPlain(ValueError):
    """A value is not plain data, and files do not hold it. The error says what it is."""


def as_json(value: object) -> Json:
    """Return a value as JSON; scalars of NumPy become those of Python."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray):
        # Texts of unequal lengths take less memory as objects.
        kind = value.dtype.name if value.dtype.name in _TYPES else "object"
        return {"array": [kind, as_json(value.tolist())]}
    if isinstance(value, Mapping):
        return {"dict": [[as_json(key), as_json(item)] for key, item in value.items()]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"tuple": [as_json(item) for item in value]}
    if isinstance(value, AbstractSet):
        kind = "set" if isinstance(value, set) else "frozenset"
        return {kind: [as_json(item) for item in sorted(value, key=repr)]}
    raise NotPlain(described(value))


def from_json(found: Json) -> object:
    """Return the value that `as_json` turned into this JSON; raise ValueError if there is none."""
    if isinstance(found, list):
        return [from_json(item) for item in found]
    if not isinstance(found, dict):
        return found
    if len(found) != 1:
        raise ValueError(f"an object with {len(found)} names")
    ((kind, content),) = found.items()
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(str(content))
    if not isinstance(content, list) or kind not in {"array", "dict", *_COLLECTIONS}:
        raise ValueError(f"an object of type {kind[:20]!r}")
    if kind == "array":
        return _array(content)
    if kind == "dict":
        return dict(map(_pair, content))
    items = [from_json(item) for item in content]
    return _COLLECTIONS[kind](items if kind == "tuple" else map(_hashable, items))


def _array(content: list[Json]) -> NDArray[np.generic]:
    if len(content) != 2 or not isinstance(content[0], str) or content[0] not in _TYPES:
        raise ValueError("an array that is not a type and a list")
    try:
        return np.array(from_json(content[1]), dtype=_TYPES[content[0]])
    except (TypeError, OverflowError) as error:
        raise ValueError(f"an array whose items are of other types: {error}") from None


def _pair(item: Json) -> tuple[Hashable, object]:
    if not isinstance(item, list) or len(item) != 2:
        raise ValueError("a dict that is not a list of pairs")
    return _hashable(from_json(item[0])), from_json(item[1])


def _hashable(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"a {type(value).__name__} as the item of a set, or as the key of a dict") from None
    return value

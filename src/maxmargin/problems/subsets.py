"""Subsets of the examples of a map or an oracle, without copies of features or labels.

The package's models find the data of an example through arrays with one entry per example, such as where its
tokens begin and end. A subset has some of these entries and shares everything else; it has the same class, so
no new kernels are compiled. Any other half is wrapped in `Taken`, which renumbers examples.
"""

from typing import NamedTuple, TypeVar

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import forwarder, is_wrapper, python_generic
from maxmargin.problems import feature_map, oracle

Half = TypeVar("Half", bound=tuple)  # type: ignore[type-arg]

_PER_EXAMPLE: dict[type, tuple[str, ...]] = {}


def indexed_by_example(*fields: str):  # type: ignore[no-untyped-def]
    """Return a class decorator that declares fields of the named tuple with one entry per example."""

    def note(cls: type[Half]) -> type[Half]:
        _PER_EXAMPLE[cls] = fields
        return cls

    return note


class Taken(NamedTuple):
    """Some examples of any map or oracle: example i is example ``indices[i]`` of the inner one."""

    inner: object
    indices: IntArray


@python_generic
def take_half(half, indices):
    """Return some examples of a map or an oracle."""
    return take_fields(half, indices)


def take_fields(half, indices):  # type: ignore[no-untyped-def]
    """Return some entries of the fields with one entry per example, and of what is wrapped."""
    fields = _PER_EXAMPLE.get(type(half))
    if fields is None and not is_wrapper(type(half)):
        return half.take(indices) if hasattr(half, "take") else Taken(half, indices)
    changed = {name: getattr(half, name)[indices] for name in fields or ()}
    if is_wrapper(type(half)):
        changed["inner"] = take_half(half.inner, indices)
    return half._replace(**changed)


@take_half.register(Taken)
def taken_take_half(half, indices):
    return Taken(half.inner, half.indices[indices])


@feature_map.map_sizes.register(Taken)
def taken_map_sizes(phi):
    size = feature_map.map_sizes(phi.inner)
    return feature_map.MapSizes(phi.indices.shape[0], size.weights, size.statistics)


_RENUMBERED = (
    *(feature_map.score, feature_map.gram, feature_map.norm2, feature_map.push, feature_map.foresee),
    *(feature_map.statistics_size, oracle.argmax, oracle.decode, oracle.loss, oracle.psi, oracle.output_size),
    *(oracle.expectation, oracle.shortfall, oracle.write_output, oracle.foresee_truth),
)
for _function in _RENUMBERED:
    _function.register(Taken)(forwarder(_function, i="{0}.indices[i]"))


def spans(offsets: IntArray) -> IntArray:
    """Return where each example begins and ends, an array of shape (n, 2), from n + 1 offsets."""
    return np.column_stack([offsets[:-1], offsets[1:]])

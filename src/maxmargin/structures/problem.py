"""A problem: a feature map and an oracle, which meet in output space.

The layout of the statistics is the contract between the two halves: the oracle writes psi in this layout,
and the map turns it into weights. They share nothing else. So example weights and slack rescaling wrap the
oracle, constraints on weights wrap the map, and the order of such wrappers does not matter.

Subsets of examples are made without copies of features or labels. The package's models find the data of an
example through arrays with one entry per example, such as where its tokens begin and end. A subset has some
of these entries and shares everything else; it has the same class, so no new kernels are compiled. Any other
half is wrapped in `Taken`, which renumbers examples.
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.compiling import forwarder, is_wrapper, python_generic
from maxmargin.compiling.generics import has_implementation, method_name
from maxmargin.runtime.arrays import FloatArray, IntArray, check_memory, kernel_array
from maxmargin.runtime.wording import caller, described, errors_of
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.feature_map import MAP_REQUIRED, is_metric, map_sizes, unpack
from maxmargin.structures.oracle import ORACLE_REQUIRED, is_bounded, output_sizes

MapT = TypeVar("MapT", covariant=True)
OracleT = TypeVar("OracleT", covariant=True)
Build = TypeVar("Build", bound=Callable[..., Any])

# Kernels index the entries of output space by uint32.
_MOST_STATISTICS = 2**32


class Problem(NamedTuple, Generic[MapT, OracleT]):
    """A problem to solve: a feature map and an oracle.

    Attributes
    ----------
    map : named tuple or PlainMap
        See `maxmargin.structures.feature_map`.
    oracle : named tuple or PlainOracle
        See `maxmargin.structures.oracle`.
    """

    map: MapT
    oracle: OracleT

    def unpack(self, w: FloatArray) -> tuple[FloatArray, ...]:
        """Return the weights in the shapes that users expect, as views of ``w``."""
        parts: tuple[FloatArray, ...] = unpack(self.map, w)
        return parts


AnyProblem = Problem[object, object]


class Sizes(NamedTuple):
    """The sizes of a problem.

    Attributes
    ----------
    examples : int
        n, the number of training examples.
    weights : int
        Length of the vector ``w`` that methods keep.
    statistics : int
        Length of the longest vector in output space.
    output : int
        Length of the longest output.
    parts : int
        Largest number of entries that `psi` writes.
    """

    examples: int
    weights: int
    statistics: int
    output: int
    parts: int


def as_problem(subject: object) -> AnyProblem:
    """Return ``subject`` if it is a problem, else the problem whose two halves are this object."""
    return subject if isinstance(subject, Problem) else Problem(subject, subject)


def sizes(problem: AnyProblem) -> Sizes:
    """Return the sizes of a problem."""
    of_map, of_outputs = map_sizes(problem.map), output_sizes(problem.oracle)
    return Sizes(of_map.examples, of_map.weights, of_map.statistics, of_outputs.output, of_outputs.parts)


@python_generic
def unproved(problem: AnyProblem) -> str | None:
    """Return why the gap of a problem is not a guaranteed bound, or None if it is one."""
    if not is_bounded(problem.oracle):
        return "the oracle is approximate, without a bound on its shortfall"
    return None if is_metric(problem.map) else "the kernel is not known to be positive semidefinite"


def missing_functions(problem: AnyProblem) -> list[str]:
    """Return the names of required functions that a problem does not define."""
    halves = ((problem.map, MAP_REQUIRED), (problem.oracle, ORACLE_REQUIRED))
    missing = [
        f.__name__ if isinstance(half, tuple) else method_name(f)
        for half, required in halves
        for f in required
        if not has_implementation(half, f)
    ]
    return list(dict.fromkeys(missing))


def checked_pair(problem: object) -> AnyProblem:
    """Return the problem as a pair; raise unless it defines all required functions."""
    pair = as_problem(problem)
    missing = missing_functions(pair)
    if missing:
        raise TypeError(
            f"problem must be a Problem, got {described(problem)}, which does not define "
            f"{', '.join(missing)}."
        )
    return pair


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


@errors_of("take")
def take(problem: Problem[MapT, OracleT], indices: Sequence[int] | IntArray) -> Problem[MapT, OracleT]:
    """Return the problem of some of the examples, sharing all features.

    Parameters
    ----------
    problem : Problem
    indices : sequence of int
        The examples, in their new order.

    Returns
    -------
    Problem
        Of the same classes, so no new kernels are compiled. A half written as a Python object must define
        ``take(indices)``.
    """
    pair, chosen = checked_pair(problem), np.asarray(indices)
    n = map_sizes(pair.map).examples
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
        raise ValueError(f"take: indices must be one or more ints, got {described(indices)}.")
    outside = chosen[(chosen < 0) | (chosen >= n)]
    if len(outside):
        raise ValueError(f"take: indices must be from 0 to {n - 1}, got {outside[0]}.")
    chosen = kernel_array(chosen, np.int64)
    of_map = take_half(pair.map, chosen)
    return Problem(of_map, of_map if pair.map is pair.oracle else take_half(pair.oracle, chosen))


def checked_weights(problem: AnyProblem, w: ArrayLike) -> FloatArray:
    """Return a weight vector for kernels; raise unless it has one entry per weight."""
    array, n = np.asarray(w), map_sizes(problem.map).weights
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{type(problem.map).__name__}: w must be {n} real numbers, one per weight, got {described(w)} "
            f"of dtype {array.dtype}; use the w of a result for a problem of the same features and labels."
        )
    found: FloatArray = kernel_array(w, np.float64)
    return found


def builder(name: str) -> Callable[[Build], Build]:
    """Make errors of a public function that builds a problem begin with a name.

    The parameter ``owner``, which gave another name, is deprecated.
    """

    def decorate(build: Build) -> Build:
        @wraps(build)
        def named(*args: object, owner: str | None = None, **kwargs: object) -> object:
            if owner is not None:
                warnings.warn(f"{name}: owner is deprecated; leave it out.", FutureWarning, stacklevel=2)
            with errors_of(owner or name):
                return build(*args, **kwargs)

        return cast("Build", named)

    return decorate


def fitting(problem: Problem[MapT, OracleT]) -> Problem[MapT, OracleT]:
    """Return the problem; raise unless kernels can index its statistics and its weights fit into memory."""
    size = map_sizes(problem.map)
    if size.statistics > _MOST_STATISTICS:
        raise ValueError(
            f"the largest example must have at most 2**32 statistics, got {size.statistics}; split "
            "it, or use fewer labels."
        )
    check_memory(8 * size.weights, f"{caller()}: {size.weights} weights", "use fewer features or labels")
    return problem


_DIGEST_BYTES = 16
_PLAIN = bool | int | float | str
_WRITTEN_AS: dict[type, str] = {}


def written_as(name: str):  # type: ignore[no-untyped-def]
    """Return a class decorator that declares the former name of a class, which digests in files contain."""

    def note(cls: type[Half]) -> type[Half]:
        _WRITTEN_AS[cls] = name
        return cls

    return note


@python_generic
def essence(part: object) -> object:
    """Return the data of a part of a problem that determine the answers: all, except for notes and caches."""
    return part


def is_same(a: object, b: object) -> bool:
    """Whether two problems, halves or parts of them hold equal data, so that they are interchangeable.

    A half written as a Python object may define ``is_same(other)``; if it does not, it is equal only to
    itself.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    a, b = essence(a), essence(b)
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and np.array_equal(a, b))  # type: ignore[attr-defined, arg-type]
    if isinstance(a, tuple):
        pairs = zip(a, b, strict=False)  # type: ignore[call-overload]
        return len(a) == len(b) and all(is_same(*pair) for pair in pairs)  # type: ignore[arg-type]
    if isinstance(a, _PLAIN):
        return a == b
    return bool(a.is_same(b)) if hasattr(a, "is_same") else False


def fingerprint(subject: object) -> str:
    """Return a digest of a problem or a method; equal digests mean equal data.

    The digest does not depend on the process. Named tuples, data classes, arrays and numbers have one. An
    object of another class must define ``fingerprint()``, a text or bytes, or TypeError is raised.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    _add(subject, digest)
    return digest.hexdigest()


def _add(subject: Any, digest: Any) -> None:
    """Feed a value to a digest: its class and length, then its parts."""
    kind, subject = type(subject), essence(subject)
    if isinstance(subject, np.ndarray | np.generic) and subject.dtype.kind in "biuf":
        digest.update(f"{subject.dtype.str}{subject.shape};".encode())
        digest.update(np.require(subject, requirements="C").data)
    elif isinstance(subject, tuple | list):
        digest.update(f"{_WRITTEN_AS.get(kind, kind.__qualname__)}({len(subject)};".encode())
        for part in subject:
            _add(part, digest)
    elif dataclasses.is_dataclass(subject):
        fields = [getattr(subject, field.name) for field in dataclasses.fields(subject)]
        _add((kind.__qualname__, *fields), digest)
    elif subject is None or isinstance(subject, _PLAIN):
        digest.update(f"{kind.__qualname__}:{subject!r};".encode())
    elif callable(getattr(subject, "fingerprint", None)) and not isinstance(subject, type):
        _add((kind.__qualname__, repr(subject.fingerprint())), digest)
    else:
        raise TypeError(f"made of arrays and numbers, or define fingerprint(), got {described(subject)}")


def n_bytes(subject: object) -> int:
    """Return the number of bytes of all arrays in nested tuples, lists and objects."""
    return sum(array.nbytes for array in {id(array): array for array in _arrays(subject)}.values())


def _arrays(subject: object) -> Iterator[NDArray[np.generic]]:
    if isinstance(subject, np.ndarray):
        yield subject
    elif isinstance(subject, tuple | list):
        for each in subject:
            yield from _arrays(each)
    elif hasattr(subject, "__dict__") and not callable(subject):
        for each in vars(subject).values():
            yield from _arrays(each)


def spans(offsets: IntArray) -> IntArray:
    """Return where each example begins and ends, an array of shape (n, 2), from n + 1 offsets."""
    return np.column_stack([offsets[:-1], offsets[1:]])


_LANES = 4


def padded(n_labels: int) -> int:
    """Return the width of a row of labels: a multiple of the lanes of vector registers."""
    return -(-n_labels // _LANES) * _LANES

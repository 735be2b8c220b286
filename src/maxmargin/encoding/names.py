"""Named features of the tokens of sequences, as users give them.

Tokens are dicts or lists of strings, and may have dicts and collections within dicts, which are named as
python-crfsuite names them. ``{"next": {"word": "dog", "tags": ["N", "V"]}}`` has the features
``next:word=dog``, ``next:tags:N`` and ``next:tags:V``. The feature of a text is ``name=text`` at any depth,
as it is in flat dicts; this is how python-crfsuite documents it, and it stores ``name:text``. The numbers of
an array are features, too: ``{"emb": v}`` has ``emb[0]``, ``emb[1]`` and so on.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Sized
from decimal import Decimal
from itertools import chain, compress, count
from numbers import Real
from types import GeneratorType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.kinds import (
    CHUNK,
    SEQUENCES,
    Kind,
    Offsets,
    Words,
    first_not_finite,
    is_empty,
    is_numeric,
    kind_of,
    kind_of_token,
    mixture,
    offsets_of,
    place,
)
from maxmargin.encoding.table import Bags, Codes
from maxmargin.runtime.wording import described, quoted

# Tokens of these types are read without a copy.
PLAIN = {dict, list, tuple, set, frozenset}
# Between the name of a dict or a collection and the names in it.
_WITHIN = ":"
# Tuples, in which isinstance finds a type faster than in unions.
_TEXTS, _NESTED = (str, bytes), (dict, list, tuple, set, frozenset, Mapping)
# What most numbers are: sure not to be of an abstract class, which isinstance finds out slowly.
_NUMBERS = (bool, int, float)


class Vector(NamedTuple):
    """A feature of a token that is an array: its number j is the value of the feature ``name[j]``."""

    token: int
    name: str
    numbers: NDArray[np.number]


class NamedFeatures(NamedTuple):
    """Named features of all tokens.

    Attributes
    ----------
    tokens : list
        One dict or collection of strings per token.
    offsets : ndarray of int64
        The tokens of sequence i are ``tokens[offsets[i]:offsets[i + 1]]``.
    counts : ndarray of int64
        Number of features of each token.
    bags, sizes : sequence of iterables of str, ndarray of int64
        The names of all features in order, divided into bags of these sizes.
    values : ndarray of float64 or None
        One value per feature; None if all are one.
    words : Words
        What error messages call sequences and tokens.
    vectors : sequence of Vector
        The features that are arrays, in the order of tokens; no other field counts them.
    """

    tokens: Sequence[Collection[str]]
    offsets: Offsets
    counts: NDArray[np.int64]
    bags: Bags
    sizes: NDArray[np.int64]
    values: NDArray[np.float64] | None
    words: Words = SEQUENCES
    vectors: Sequence[Vector] = ()

    def place(self, token: int) -> str:
        """Return a description of the position of a token."""
        return place(self.offsets, token, self.words)

    def check_vectors(self, known: Container[str]) -> None:
        """Raise unless vectors are as long as those whose features are known, if they are."""
        for vector in {vector.name: vector for vector in self.vectors}.values():
            name, width = vector.name, len(vector.numbers)
            ends = f"{name}[{width - 1}]" in known and f"{name}[{width}]" not in known
            if f"{name}[0]" in known and not ends:
                expected = next(k for k in count() if f"{name}[{k}]" not in known)
                message = _other_length(name, width, f"{expected} as in fit")
                raise ValueError(f"{self.place(vector.token)} has the feature {message}")

    def with_vectors(self, codes: Codes, number: Callable[[str], int]) -> "CodedFeatures":
        """Return all features of each token: those of vectors, whose names have numbers, after the others.

        Parameters
        ----------
        codes : ndarray of int32
            The number of each feature that is not of a vector.
        number : callable
            Returns the number of a name.
        """
        if not self.vectors:
            return CodedFeatures(codes, self.counts, self.values)
        numbers = {vector.name: len(vector.numbers) for vector in self.vectors}
        of_vector = {
            name: np.array([number(f"{name}[{j}]") for j in range(width)], dtype=np.int32)
            for name, width in numbers.items()
        }
        more = np.zeros(len(self.counts), dtype=np.int64)
        np.add.at(more, [vector.token for vector in self.vectors], [len(v.numbers) for v in self.vectors])
        counts = self.counts + more
        stops = np.cumsum(counts)
        found, values = np.empty(stops[-1], dtype=np.int32), np.ones(stops[-1])
        places = np.arange(len(codes)) + np.repeat(np.cumsum(more) - more, self.counts)
        found[places] = codes
        if self.values is not None:
            values[places] = self.values
        begins = (stops - more).tolist()
        for token, name, entries in self.vectors:
            begin, end = begins[token], begins[token] + len(entries)
            found[begin:end], values[begin:end], begins[token] = of_vector[name], entries, end
        bad = first_not_finite(values)
        if bad is not None:
            where = self.place(int(np.searchsorted(stops, bad, side="right")))
            raise ValueError(f"{where} has a vector with {values[bad]}, expected finite numbers; replace it.")
        return CodedFeatures(found, counts, values)


class CodedFeatures(NamedTuple):
    """The features of all tokens: their numbers, how many each token has, and their values.

    Values that are all one are None.
    """

    codes: Codes
    counts: NDArray[np.int64]
    values: NDArray[np.float64] | None


def read_named(sequences: list[object], kind: Kind, words: Words = SEQUENCES) -> NamedFeatures:
    """Return the named features of all tokens of all sequences."""
    features = plain_tokens(sequences, kind, words)
    types = set(map(type, features.tokens))
    if dict not in types:
        return features
    return _read_dicts(features) if types == {dict} else read_nested(features)


def plain_tokens(sequences: list[object], kind: Kind, words: Words = SEQUENCES) -> NamedFeatures:
    """Return all tokens as dicts and collections of strings, as if their features were what these hold."""
    lists = [_as_list(sequence, i, kind, words) for i, sequence in enumerate(sequences)]
    offsets = offsets_of(_lengths(lists))
    items = list(chain.from_iterable(lists))
    if not set(map(type, items)) <= PLAIN:
        items = [
            _plain(token, words.place(i, t), words)
            for i, sequence in enumerate(lists)
            for t, token in enumerate(sequence)
        ]
    counts = _lengths(items)
    return NamedFeatures(items, offsets, counts, items, counts, None, words)


def read_nested(features: NamedFeatures, sign: str = "=") -> NamedFeatures:
    """Return the features of tokens of any form: dicts within dicts, dicts among lists, names in bytes.

    This is the slowest reader, and the one that says which name is wrong; flat dicts and lists of strings do
    without it.
    """
    bags, values, vectors = flattened(features.tokens, features.place, sign)
    sizes = _lengths(bags)
    features = features._replace(tokens=bags, counts=sizes, bags=bags, sizes=sizes, vectors=vectors)
    return features._replace(values=_checked_numbers(features, values, set(map(type, values))))


def _lengths(items: Sequence[Sized]) -> NDArray[np.int64]:
    return np.fromiter(map(len, items), np.int64, len(items))


def _as_list(sequence: object, i: int, kind: Kind, words: Words) -> Sequence[Any]:
    if isinstance(sequence, list | tuple):
        return sequence
    if is_empty(sequence):
        return []
    if not isinstance(sequence, Iterable) or kind_of(sequence, i, words) in ("dense", "sparse"):
        raise mixture(i, sequence, kind, words)
    return list(np.asarray(sequence).tolist() if hasattr(sequence, "__array__") else sequence)


def _plain(token: Any, where: str, words: Words) -> Collection[str]:
    """Return the token as a dict or a list, or raise if it is neither."""
    if type(token) in PLAIN:
        return token
    kind_of_token(token, where, words)
    if isinstance(token, Mapping):
        return dict(token)
    if isinstance(token, GeneratorType) and token.gi_frame is None:
        raise ValueError(
            f"{where} is a generator that is already exhausted; "
            f"pass lists if the {words.part}s are read more than once."
        )
    return token.tolist() if isinstance(token, np.ndarray) else list(token)


def _read_dicts(features: NamedFeatures) -> NamedFeatures:
    """Return the features of tokens that are dicts, given their names and values."""
    tokens = cast("list[dict[str, Any]]", features.tokens)
    values = list(chain.from_iterable(map(dict.values, tokens)))
    types = set(map(type, values))
    if not all(issubclass(t, str | Real | np.bool_) for t in types):
        return read_nested(features)
    numbers = _checked_numbers(features, values, types)
    text = {t for t in types if issubclass(t, str)}
    if not text:
        return features._replace(values=numbers)
    try:
        names = _names(tokens, values, types, text)
    except TypeError:
        return read_nested(features)
    bags = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
    return features._replace(bags=bags, sizes=_lengths(bags), values=numbers)


def _checked_numbers(
    features: NamedFeatures, values: list[Any], types: set[type]
) -> NDArray[np.float64] | None:
    """Return the values of all features as `_numbers` does; raise unless they are finite numbers or texts."""
    text = {t for t in types if issubclass(t, str)}
    others = {t for t in types - text if not issubclass(t, Real | np.bool_ | Decimal)}
    if others:
        wrong = (k for k, value in enumerate(values) if type(value) in others and not _is_number(value))
        if (k := next(wrong, None)) is not None:
            raise TypeError(_wrong_value(features, k, values[k]))
    numbers = _numbers(values, text)
    bad = None if numbers is None else first_not_finite(numbers)
    if bad is not None:
        raise ValueError(_wrong_value(features, bad, values[bad]))
    return numbers


def _names(tokens: list[dict[str, Any]], values: list[Any], types: set[type], text: set[type]) -> list[str]:
    """Return the names of all features: "name=s" if the value is a text s, else the name itself."""
    items = zip(chain.from_iterable(tokens), values, strict=True)
    if types == text:
        return list(map("=".join, items))
    return [key + "=" + value if type(value) in text else key for key, value in items]


def _numbers(values: list[object], text: set[type]) -> NDArray[np.float64] | None:
    """Return the values as numbers, with 1 for texts; None if all are texts."""
    if not text:
        return _floats(values)
    is_text = np.fromiter(map(text.__contains__, map(type, values)), np.bool_, len(values))
    if is_text.all():
        return None
    numbers = np.ones(len(values))
    numbers[~is_text] = _floats(list(compress(values, (~is_text).tolist())))
    return numbers


def _is_number(value: object) -> bool:
    """Whether a value of an uncommon class is a number: an array without axes, or what float() takes."""
    if isinstance(value, np.ndarray | np.generic):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    try:
        return hasattr(value, "__float__") and float(value) is not None
    except (TypeError, ValueError):
        return False


def _floats(values: list[object]) -> NDArray[np.float64]:
    try:
        return np.fromiter(values, np.float64, len(values))
    except OverflowError:
        # An integer beyond the range of floats is as wrong as infinity, and is reported in the same way.
        return np.array([_float(value) for value in values])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _wrong_value(features: NamedFeatures, k: int, value: object) -> str:
    """Return the message for the value of feature k, counted over all tokens."""
    token = int(np.searchsorted(np.cumsum(features.counts), k, side="right"))
    names = chain.from_iterable(features.tokens)
    name = next(name for j, name in enumerate(names) if j == k)
    return (
        f"feature {quoted(name)} of {features.place(token)} is {described(value)}, expected a "
        "finite number, a bool, a str, a vector, or a dict or list of features; remove or replace it."
    )


class _NotAName(Exception):
    """Something else than a text as a name; the message says what it is and where."""


class _NotAVector(Exception):
    """An array that cannot be the value of a feature; the message says why."""


def flattened(
    tokens: Sequence[Collection[object]], place: Callable[[int], str], sign: str = "="
) -> tuple[list[list[str]], list[object], list[Vector]]:
    """Return the names of the features of each token, and the values of all features, in the same order.

    Parameters
    ----------
    tokens : sequence of dicts and of collections of names
        Names and texts may be bytes in UTF-8.
    place : callable
        Describes the place of a token, given its number, for error messages.
    sign : str, default="="
        What stands between a name and its text.

    Returns
    -------
    bags : list of lists of str
    values : list
        Numbers as they are given, not checked; a text where the value is one.
    vectors : list of Vector
        The features that are arrays, which are not among the others; those of one name are equally long.
    """
    bags: list[list[str]] = []
    values: list[object] = []
    vectors: list[Vector] = []
    widths: dict[str, int] = {}
    for t, token in enumerate(tokens):
        names: list[str] = []
        arrays: list[tuple[str, object]] = []
        try:
            _add(token, "", sign, names, values, arrays)
            vectors += [Vector(t, name, _vector(value, name, widths)) for name, value in arrays]
        except _NotAName as error:
            raise TypeError(f"{place(t)} has the feature {error}") from None
        except _NotAVector as error:
            raise ValueError(f"{place(t)} has the feature {error}") from None
        except RecursionError:
            raise ValueError(
                f"{place(t)} has hundreds of dicts within dicts, or one within itself; flatten them."
            ) from None
        bags.append(names)
    return bags, values, vectors


def _add(
    features: Collection[object],
    within: str,
    sign: str,
    names: list[str],
    values: list[object],
    arrays: list[tuple[str, object]],
) -> None:
    """Append the names and values of a dict, or of a collection of names."""
    if not isinstance(features, Mapping):
        found = [_text(name, within) for name in features]
        # The order of a set varies from process to process.
        found = sorted(found) if isinstance(features, set | frozenset) else found
        names.extend(within + name for name in found)
        values.extend(found)
        return
    for key, value in features.items():
        name = within + (key if type(key) is str else _text(key, within))
        if isinstance(value, _TEXTS):
            value = value if type(value) is str else _text(value, name + _WITHIN)
            name += sign + value
        elif type(value) not in _NUMBERS and isinstance(value, _NESTED):
            _add(value, name + _WITHIN, sign, names, values, arrays)
            continue
        elif type(value) not in _NUMBERS and hasattr(value, "__array__") and np.ndim(value):
            arrays.append((name, value))
            continue
        names.append(name)
        values.append(value)


def _text(name: object, within: str) -> str:
    """Return a name, or a text that is a value, as str."""
    if isinstance(name, str):
        return name
    inside = f" in {quoted(within[:-1])}" if within else ""
    if not isinstance(name, bytes):
        raise _NotAName(
            f"{described(name)}{inside}, expected a string; use a dict {{name: number}}, or an array, for "
            "numeric features."
        )
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise _NotAName(f"{quoted(name)}{inside}, expected text in UTF-8; decode it.") from None


def _vector(value: Any, name: str, widths: dict[str, int]) -> NDArray[np.number]:
    """Return a vector of numbers, as long as those of its name before it."""
    array = np.asarray(value)
    if array.ndim != 1 or not len(array) or not is_numeric(array.dtype):
        raise _NotAVector(f"{quoted(name)}, {described(value)}, expected numbers in an array with one axis.")
    if len(array) != widths.setdefault(name, len(array)):
        raise _NotAVector(_other_length(name, len(array), f"{widths[name]} as before it"))
    return array


def _other_length(name: str, got: int, expected: str) -> str:
    return (
        f"{quoted(name)} of {got} numbers, expected {expected}; give all vectors of one name the same length."
    )

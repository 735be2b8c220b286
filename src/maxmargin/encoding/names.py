"""Read sequences whose tokens are dicts or lists of strings as named features."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from decimal import Decimal
from itertools import chain, compress
from numbers import Real
from types import GeneratorType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.chunks import CHUNK
from maxmargin.encoding.kinds import Kind, is_empty, kind_of, kind_of_token, mixture
from maxmargin.encoding.lookup import Bags
from maxmargin.encoding.nested import flattened
from maxmargin.encoding.tokens import SEQUENCES, Offsets, Words, first_not_finite, offsets_of, place
from maxmargin.wording import described, quoted

# Tokens of these types are read without a copy.
PLAIN = {dict, list, tuple, set, frozenset}


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
    """

    tokens: Sequence[Collection[str]]
    offsets: Offsets
    counts: NDArray[np.int64]
    bags: Bags
    sizes: NDArray[np.int64]
    values: NDArray[np.float64] | None
    words: Words = SEQUENCES

    def place(self, token: int) -> str:
        """Return a description of the position of a token."""
        return place(self.offsets, token, self.words)


def read_named(sequences: list[object], kind: Kind, owner: str, words: Words = SEQUENCES) -> NamedFeatures:
    """Return the named features of all tokens of all sequences."""
    lists = [_as_list(sequence, i, kind, owner, words) for i, sequence in enumerate(sequences)]
    offsets = offsets_of(_lengths(lists))
    items = list(chain.from_iterable(lists))
    types = set(map(type, items))
    if not types <= PLAIN:
        items = [
            _plain(token, words.place(i, t), owner, words)
            for i, sequence in enumerate(lists)
            for t, token in enumerate(sequence)
        ]
        types = set(map(type, items))
    counts = _lengths(items)
    features = NamedFeatures(items, offsets, counts, items, counts, None, words)
    if dict not in types:
        return features
    return _read_dicts(features, owner) if types == {dict} else read_nested(features, owner)


def read_nested(features: NamedFeatures, owner: str) -> NamedFeatures:
    """Return the features of tokens of any form: dicts within dicts, dicts among lists, names in bytes.

    This is the slowest reader, and the one that says which name is wrong; flat dicts and lists of strings do
    without it.
    """
    bags, values = flattened(features.tokens, features.place, owner)
    sizes = _lengths(bags)
    features = features._replace(tokens=bags, counts=sizes, bags=bags, sizes=sizes)
    return features._replace(values=_checked_numbers(features, values, set(map(type, values)), owner))


def _lengths(items: Sequence[Sized]) -> NDArray[np.int64]:
    return np.fromiter(map(len, items), np.int64, len(items))


def _as_list(sequence: object, i: int, kind: Kind, owner: str, words: Words) -> Sequence[Any]:
    if isinstance(sequence, list | tuple):
        return sequence
    if is_empty(sequence):
        return []
    if not isinstance(sequence, Iterable) or kind_of(sequence, i, owner, words) in ("dense", "sparse"):
        raise mixture(i, sequence, kind, owner, words)
    return list(np.asarray(sequence).tolist() if hasattr(sequence, "__array__") else sequence)


def _plain(token: Any, where: str, owner: str, words: Words) -> Collection[str]:
    """Return the token as a dict or a list, or raise if it is neither."""
    if type(token) in PLAIN:
        return token
    kind_of_token(token, where, owner, words)
    if isinstance(token, Mapping):
        return dict(token)
    if isinstance(token, GeneratorType) and token.gi_frame is None:
        raise ValueError(
            f"{owner}: {where} is a generator that is already exhausted; "
            f"pass lists if the {words.part}s are read more than once."
        )
    return token.tolist() if isinstance(token, np.ndarray) else list(token)


def _read_dicts(features: NamedFeatures, owner: str) -> NamedFeatures:
    """Return the features of tokens that are dicts, given their names and values."""
    tokens = cast("list[dict[str, Any]]", features.tokens)
    values = list(chain.from_iterable(map(dict.values, tokens)))
    types = set(map(type, values))
    if not all(issubclass(t, str | Real | np.bool_) for t in types):
        return read_nested(features, owner)
    numbers = _checked_numbers(features, values, types, owner)
    text = {t for t in types if issubclass(t, str)}
    if not text:
        return features._replace(values=numbers)
    try:
        names = _names(tokens, values, types, text)
    except TypeError:
        return read_nested(features, owner)
    bags = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
    return features._replace(bags=bags, sizes=_lengths(bags), values=numbers)


def _checked_numbers(
    features: NamedFeatures, values: list[Any], types: set[type], owner: str
) -> NDArray[np.float64] | None:
    """Return the values of all features as `_numbers` does; raise unless they are finite numbers or texts."""
    text = {t for t in types if issubclass(t, str)}
    wrong = {t for t in types - text if not issubclass(t, Real | np.bool_ | Decimal)}
    if wrong:
        k = next(k for k, value in enumerate(values) if type(value) in wrong)
        raise TypeError(_wrong_value(features, k, values[k], owner))
    numbers = _numbers(values, text)
    bad = None if numbers is None else first_not_finite(numbers)
    if bad is not None:
        raise ValueError(_wrong_value(features, bad, values[bad], owner))
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


def _wrong_value(features: NamedFeatures, k: int, value: object, owner: str) -> str:
    """Return the message for the value of feature k, counted over all tokens."""
    token = int(np.searchsorted(np.cumsum(features.counts), k, side="right"))
    names = chain.from_iterable(features.tokens)
    name = next(name for j, name in enumerate(names) if j == k)
    return (
        f"{owner}: feature {quoted(name)} of {features.place(token)} is {described(value)}, expected a "
        "finite number, a bool, a str, or a dict or list of features; remove or replace it."
    )

"""Tokens whose features are dicts and collections within dicts, named as python-crfsuite names them.

``{"next": {"word": "dog", "tags": ["N", "V"]}}`` has the features ``next:word=dog``, ``next:tags:N`` and
``next:tags:V``. The feature of a text is ``name=text`` at any depth, as it is in flat dicts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from maxmargin.wording import described, quoted

# Between the name of a dict or a collection and the names in it.
_WITHIN = ":"
# Tuples, in which isinstance finds a type faster than in unions.
_TEXTS, _NESTED = (str, bytes), (dict, list, tuple, set, frozenset, Mapping)
# What most numbers are: sure not to be of an abstract class, which isinstance finds out slowly.
_PLAIN = (bool, int, float)


class _NotAName(Exception):
    """Something else than a text as a name; the message says what it is and where."""


def flattened(
    tokens: Sequence[Collection[object]], place: Callable[[int], str], owner: str
) -> tuple[list[list[str]], list[object]]:
    """Return the names of the features of each token, and the values of all features, in the same order.

    Parameters
    ----------
    tokens : sequence of dicts and of collections of names
        Names and texts may be bytes in UTF-8.
    place : callable
        Describes the place of a token, given its number, for error messages.
    owner : str
        The name that errors begin with.

    Returns
    -------
    bags : list of lists of str
    values : list
        Numbers as they are given, not checked; a text where the value is one.
    """
    bags: list[list[str]] = []
    values: list[object] = []
    for t, token in enumerate(tokens):
        names: list[str] = []
        try:
            _add(token, "", names, values)
        except _NotAName as error:
            raise TypeError(f"{owner}: {place(t)} has the feature {error}") from None
        except RecursionError:
            raise ValueError(
                f"{owner}: {place(t)} has hundreds of dicts within dicts, or one within itself; flatten them."
            ) from None
        bags.append(names)
    return bags, values


def _add(features: Collection[object], within: str, names: list[str], values: list[object]) -> None:
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
            name += "=" + value
        elif type(value) not in _PLAIN and isinstance(value, _NESTED):
            _add(value, name + _WITHIN, names, values)
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
            f"{described(name)}{inside}, expected a string; use a dict {{name: number}} for numeric features."
        )
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise _NotAName(f"{quoted(name)}{inside}, expected text in UTF-8; decode it.") from None

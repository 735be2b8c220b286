r"""The regular expressions of Wapiti's patterns, searched in time that is bounded.

``.`` is any character; ``\a``, ``\d``, ``\l``, ``\p``, ``\s``, ``\u`` and ``\w`` are letters, digits, small
letters, punctuation, spaces, capitals, and letters or digits, of ASCII, and their capitals all other
characters. ``*`` repeats what stands before it, as few times as will do, and ``?`` makes it optional; ``^``
and ``$`` are the ends. Wapiti reads bytes; here, a character is one of Unicode.
"""

import re
from collections.abc import Callable
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import NamedTuple

_MOST_OPTIONAL = 5  # each doubles the ways that Python may try
Search = Callable[[str], str | None]
_CLASSES = {
    "a": ascii_letters,
    "d": digits,
    "l": ascii_lowercase,
    "p": punctuation,
    "s": " \t\n\r\f\v",
    "u": ascii_uppercase,
    "w": ascii_letters + digits,
}


class Item(NamedTuple):
    """A set of characters, or all others, and how often one occurs: "", "*" or "?"."""

    characters: str
    among: bool
    times: str


class Regexp(NamedTuple):
    """Items one after another, at the start or the end of a text or anywhere."""

    items: list[Item]
    at_start: bool
    at_end: bool


def parsed(text: str) -> Regexp:
    """Return a regexp; raise ValueError with what was expected."""
    marks = re.findall(r"\\.|.", text, re.DOTALL)
    at_start, at_end = marks[:1] == ["^"], marks[-1:] == ["$"]
    items: list[Item] = []
    for k, mark in enumerate(marks):
        if mark in ("*", "?"):
            if k == at_start or marks[k - 1] in ("*", "?"):
                raise ValueError(f"a character before {mark} in a regexp (write \\{mark} for itself)")
            items[-1] = items[-1]._replace(times=mark)
        elif not (at_start and k == 0) and not (at_end and k == len(marks) - 1):
            items.append(_item(mark))
    return Regexp(items, at_start, at_end)


def _item(mark: str) -> Item:
    """Return the item for a character, or for one after a backslash."""
    known = _CLASSES.get(mark[1:].lower()) if len(mark) == 2 else None
    if known is not None:
        return Item(known, mark[1].islower(), "")
    return Item("", False, "") if mark == "." else Item(mark[-1], True, "")


def searching(regexp: Regexp) -> Search:
    """Return a function that returns the first match in a text, or None.

    Python tries every way to divide a text among the repetitions, so that eight of them take minutes for
    forty characters, and templates may come with models from strangers. Where there are few, Python is
    faster.
    """
    counts = [item.times for item in regexp.items]
    if counts.count("*") > 1 or counts.count("?") > _MOST_OPTIONAL:
        return lambda text: search(regexp, text)
    compiled = re.compile(translated(regexp), re.DOTALL)

    def found(text: str) -> str | None:
        match = compiled.search(text)
        return None if match is None else match[0]

    return found


def translated(regexp: Regexp) -> str:
    """Return a regexp in Python's syntax."""
    counts = {"": "", "*": "*?", "?": "?"}
    middle = "".join(_class(item) + counts[item.times] for item in regexp.items)
    return r"\A" * regexp.at_start + middle + r"\Z" * regexp.at_end


def _class(item: Item) -> str:
    return f"[{'' if item.among else '^'}{re.escape(item.characters)}]" if item.characters else "."


def search(regexp: Regexp, text: str) -> str | None:
    """Return the first match, trying every item at every character once at most.

    What could not be matched from an item and a character on can never be, whatever was matched before.
    """
    tried: set[tuple[int, int]] = set()
    for start in range(1 if regexp.at_start else len(text) + 1):
        left = [(0, start)]
        while left:
            at = left.pop()
            if at in tried:
                continue
            tried.add(at)
            k, p = at
            if k < len(regexp.items):
                left += _ways(regexp.items[k], text, k, p)
            elif p == len(text) or not regexp.at_end:
                return text[start:p]
    return None


def _ways(item: Item, text: str, k: int, p: int) -> list[tuple[int, int]]:
    """Return where to go on from item k and character p, the best way last."""
    fits = p < len(text) and (text[p] in item.characters) == item.among
    if item.times == "*":
        return [(k, p + 1), (k + 1, p)] if fits else [(k + 1, p)]
    taken = [(k + 1, p + 1)] if fits else []
    return [(k + 1, p), *taken] if item.times == "?" else taken

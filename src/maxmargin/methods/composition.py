"""Which method may wrap which: one table, from which errors and documentation are generated.

Each wrapper needs certain traits of its inner method, each for a reason. `wrapping_table` lists the result
for every method of the package.
"""

from typing import NamedTuple

from maxmargin.compiling import is_wrapper
from maxmargin.compiling.places import is_ours
from maxmargin.methods.protocol import is_method, traits
from maxmargin.wording import shown


class Need(NamedTuple):
    """A trait that a wrapper needs: its name, the value it must have, and the reason."""

    trait: str
    value: bool
    reason: str


_BLOCKS = Need("moves_blocks", True, "it must move one block at a time")
_CORNERS = Need("takes_corners", True, "its steps must lead to any given corner")
_SEARCH = Need("searches", True, "its steps must search for the best dual value at any lam")
_STEP = Need("has_step", True, "it must leave the loop over examples to its wrapper")
_NO_AVERAGE = Need("is_average", False, "its answer must not be an average already")
_BARE = Need("wraps", False, "it must not wrap another method")
_JOINS = Need("joins", True, "its states of two blocks must add up to that of one")
_NO_LOOP = Need("has_own_loop", False, "it must not run its own loop")

WRAPPERS: dict[str, tuple[Need, ...]] = {
    "Averaged": (_NO_AVERAGE, _NO_LOOP),
    "Cached": (_BLOCKS, _STEP, _CORNERS),
    "Divided": (_BLOCKS, _STEP, _SEARCH, _BARE),
    "Anchored": (_BLOCKS, _STEP, _JOINS, _BARE),
    "Accelerated": (_BLOCKS, _SEARCH, _NO_AVERAGE),
}


def needs(wrapper: str, method: object) -> list[Need]:
    """Return the needs of a wrapper that a method does not meet."""
    found = traits(method)
    return [need for need in WRAPPERS[wrapper] if getattr(found, need.trait) != need.value]


def check_inner(wrapper: str, method: object) -> None:
    """Raise unless the wrapper may wrap the method; the error names the wrapper."""
    if not is_method(method):
        raise ValueError(f"{wrapper}: inner must be {_allowed(wrapper)}, got {shown(method)}.")
    name, unmet = type(method).__name__, needs(wrapper, method)
    if unmet:
        advice = f"; write {name}({wrapper}(...))" if unmet == [_NO_LOOP] and is_wrapper(type(method)) else ""
        raise ValueError(
            f"{wrapper}: inner must be {_allowed(wrapper)}, got {name}; {unmet[0].reason}{advice}."
        )


def _plain_methods() -> list[type]:
    """Return the classes of all methods that are not wrappers, sorted by name."""
    known = [cls for cls in traits.registry if is_ours(cls) and not is_wrapper(cls)]
    return sorted(known, key=lambda cls: cls.__name__)


def allowed_methods(wrapper: str) -> list[str]:
    """Return the names of the methods that a wrapper may wrap, without other wrappers."""
    return [cls.__name__ for cls in _plain_methods() if not needs(wrapper, cls(lam=1.0))]


def _allowed(wrapper: str) -> str:
    *others, last = allowed_methods(wrapper)
    return f"{', '.join(others)} or {last}" if others else last


def wrapping_table() -> str:
    """Return a table in Markdown: methods in rows, wrappers in columns."""
    wrappers = list(WRAPPERS)
    lines = [f"| | {' | '.join(wrappers)} |", f"|---|{'---|' * len(wrappers)}"]
    for cls in _plain_methods():
        marks = ["yes" if not needs(wrapper, cls(lam=1.0)) else "" for wrapper in wrappers]
        lines.append(f"| {cls.__name__} | {' | '.join(marks)} |")
    return "\n".join(lines)

"""A problem as a plain Python object, which runs interpreted."""

from collections.abc import Callable
from typing import Any, NamedTuple

from maxmargin.structures import feature_map, oracle
from maxmargin.structures.problem import Problem, Sizes, sizes
from support.naive import Array

# The functions of each half that an object may define, and those of them that get its workspace last.
OF_MAP = ("score", "gram", "norm2", "push", "unpack")
OF_ORACLE = ("argmax", "decode", "loss", "psi", "output_size", "expectation", "is_exact", "shortfall")
_WITH_WORK = ("gram", "norm2", "push", "argmax", "decode", "expectation", "shortfall")
# What every method needs.
NEEDED = ("score", "gram", "push", "argmax", "decode", "loss", "psi", "output_size")


class BothWork(NamedTuple):
    """The workspace of an object that is both halves of a problem."""

    map: Any
    oracle: Any


def both_workspaces(problem: Problem[Any, Any]) -> BothWork:
    """Return the workspaces of both halves."""
    return BothWork(feature_map.map_workspace(problem.map), oracle.oracle_workspace(problem.oracle))


def asked(problem: Problem[Any, Any], name: str, *args: Any) -> Any:
    """Call a function of the half that it belongs to, whose workspace is among those of both."""
    half, protocol = ("map", feature_map) if name in OF_MAP else ("oracle", oracle)
    if name in _WITH_WORK:
        args = (*args[:-1], getattr(args[-1], half))
    return getattr(protocol, name)(getattr(problem, half), *args)


class Plain:
    """The same problem, with what every method needs of it as methods, and nothing more."""

    def __init__(self, problem: Problem[Any, Any]) -> None:
        self.problem = problem

    def sizes(self) -> Sizes:
        return sizes(self.problem)

    def workspace(self) -> BothWork:
        return both_workspaces(self.problem)

    def unpack(self, w: Array) -> Any:
        return self.problem.unpack(w)


def _method(name: str) -> Callable[..., Any]:
    def method(self: Plain, *args: Any) -> Any:
        return asked(self.problem, name, *args)

    return method


for _name in NEEDED:
    setattr(Plain, _name, _method(_name))

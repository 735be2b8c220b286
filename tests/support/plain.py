"""A problem as a plain Python object, which runs interpreted."""

from collections.abc import Callable
from typing import Any

from maxmargin.problems._protocol import REQUIRED
from support.naive import Array


class Plain:
    """The same problem, with what every method needs of it as methods, and nothing more."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def unpack(self, w: Array) -> Any:
        return self.problem.unpack(w)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Plain, *args: Any) -> Any:
        return function(self.problem, *args)

    return method


for _function in REQUIRED:
    setattr(Plain, _function.__name__, _method(_function))

"""A problem as a plain Python object, which runs interpreted and counts what is asked of it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from maxmargin.problems import _protocol as protocol


class Counting:
    """The same problem, with each call of its functions counted in ``calls``."""

    def __init__(self, problem: Any) -> None:
        self.problem, self.calls = problem, Counter[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not hasattr(protocol, name):
            raise AttributeError(name)
        return partial(self.call, name)

    def call(self, name: str, *args: Any) -> Any:
        """Answer as the problem does."""
        self.calls[name] += 1
        return getattr(protocol, name)(self.problem, *args)


@protocol.norm2.register(Counting)
def _(problem, i, move, image, work):
    """A plain object's would be made by `gram`: the same but for rounding, which may break ties otherwise."""
    return problem.call("norm2", i, move, image, work)

"""A problem as a plain Python object, which runs interpreted and counts what is asked of it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from maxmargin.compiling.generics import has_implementation
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.problem import Problem, sizes
from support.plain import OF_MAP, OF_ORACLE, asked, both_workspaces

_OPTIONAL = ("expectation", "shortfall")


class Counting:
    """The same problem, with each call of its functions counted in ``calls``."""

    def __init__(self, problem: Problem[Any, Any]) -> None:
        self.problem, self.calls = problem, Counter[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in ("sizes", "workspace"):
            return partial(sizes if name == "sizes" else both_workspaces, self.problem)
        if name not in OF_MAP + OF_ORACLE or (name in _OPTIONAL and not self._has(name)):
            raise AttributeError(name)
        return partial(self.call, name)

    def _has(self, name: str) -> bool:
        return has_implementation(self.problem.oracle, getattr(oracle, name))

    def call(self, name: str, *args: Any) -> Any:
        """Answer as the problem does."""
        self.calls[name] += 1
        return asked(self.problem, name, *args)


@feature_map.norm2.register(Counting)
def counting_norm2(counting, i, move, image, work):
    """A plain object's would be made by `gram`: the same but for rounding, which may break ties otherwise."""
    return counting.call("norm2", i, move, image, work)

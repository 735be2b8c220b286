"""The protocol of methods: generic functions that the driver and the loop over examples call.

A method is a named tuple of its parameters, and its state a named tuple of arrays that change in place.

**A method that moves one block at a time** registers `start`, `step` and `point`. The compiled loop over
examples, in `maxmargin.methods.sweep`, finds the corner of each visited example by its max oracle and calls
`step`.

**A method that moves all blocks at once** registers `traits`, `start`, `point` and `advance`, which is in
`maxmargin.methods.sweep`.

A method may also be a Python object with methods of these names (`PlainMethod`). `traits` describes a method;
the table at the end says which methods may wrap which. A wrapper is a method with a
field ``inner``. Functions that it does not define are forwarded to the inner method, with the inner state.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from maxmargin import methods
from maxmargin.compiling import generic, generic_with_default, is_wrapper, python_generic, subroutine
from maxmargin.compiling.loops import adding
from maxmargin.compiling.places import is_ours
from maxmargin.methods.rules import Visits
from maxmargin.methods.scratch import find_corner, score_terms
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import (
    Move,
    inner,
    is_homogeneous,
    is_projected,
    projected,
    unprojected,
)
from maxmargin.structures.problem import AnyProblem

State = TypeVar("State")
Method = TypeVar("Method", bound="NamedMethod")

# Reports of a step or a sweep. BROKEN: a wrong gap, perhaps because the oracle is wrong. UNDEFINED: a number
# that is not finite, whatever the oracle answers. WAITING: other parts have not reached an exchange.
DONE, FULL, BROKEN, UNDEFINED, WAITING = 0, 1, 2, 3, 4

# Tolerance for rounding in a gap or a hinge, which are nonnegative, relative to its terms.
ROUNDING = 1e-9
# The tolerance relative to the scores whose difference it is: about a thousand roundings of float64.
_SCORE_ROUNDING = 1e-12


class Point(NamedTuple):
    r"""A primal-dual pair that can be certified.

    Attributes
    ----------
    w : array
        Weights, in the layout of the problem's map.
    ell : float
        Dual loss :math:`\ell = b^\top \alpha`, the mean over examples of :math:`\sum_y \alpha_i(y) L_i(y)`.
    norm2 : float
        :math:`\|A \alpha\|^2`: the squared length of the weights of the dual variables.
    others : tuple of arrays
        Other weights that may have a lower objective; the driver measures them from time to time.
    """

    w: FloatArray
    ell: float
    norm2: float
    others: tuple[FloatArray, ...] = ()


class PlainMethod(Protocol[State]):
    """A method written as a Python class; the functions of this module describe its methods."""

    lam: float

    def start(self, problem: AnyProblem) -> State:
        """Return the initial state."""

    def advance(self, state: State, problem: AnyProblem, visits: Visits | IntArray) -> State:
        """Make the visits of a pass, and return the state."""

    def point(self, state: State, problem: AnyProblem) -> Point:
        """Return the current answer."""


class NamedMethod(Protocol):
    """A method that is a named tuple of its parameters."""

    @property
    def lam(self) -> float:
        """Regularisation."""

    def _replace(self, **changes: object) -> Self:
        """Return the method with some parameters replaced."""


class DualState(Protocol):
    """A state with weights and the dual loss of each block."""

    @property
    def w(self) -> FloatArray:
        """Weights."""

    @property
    def ell(self) -> FloatArray:
        """Dual losses."""


class Traits(NamedTuple):
    """The properties of a method that decide how it can be run and wrapped.

    Attributes
    ----------
    moves_blocks : bool
        It moves one block at a time, so a pass can be split.
    has_step : bool
        It has a `step` that other loops can call.
    takes_corners : bool
        Its steps lead to any given corner, not in a direction that they choose.
    searches : bool
        Its steps search for the best dual value at whatever lam and weights they find, so that a wrapper may
        change these between steps.
    has_dual : bool
        Its steps move dual variables, not only weights.
    notes_gaps : bool
        Its steps leave block gaps in ``work.move``, for gap sampling.
    is_average : bool
        Its answer is an average of iterates, or the best of them, so averaging it again makes no sense.
    projects : bool
        It is correct for weights that are a proximal map of the image, as with signs: only `push`, `settle`
        and positive factors change its weights.
    weighs : bool
        It calls the oracle through `find_corner` and its parts alone, which apply the weights of examples and
        rescale slacks. So it is compiled once, for problems with and without them.
    solves : bool
        It solves blocks by `block_optimum`.
    joins : bool
        Its state of two neighbouring blocks of a sequence can be joined to that of one.
    wraps : bool
        It wraps another method.
    threads : int
        How many threads its steps can use.
    """

    moves_blocks: bool = True
    has_step: bool = True
    takes_corners: bool = True
    searches: bool = True
    has_dual: bool = True
    notes_gaps: bool = True
    is_average: bool = False
    projects: bool = False
    weighs: bool = False
    solves: bool = False
    joins: bool = False
    wraps: bool = False
    threads: int = 1

    @property
    def has_own_loop(self) -> bool:
        """Whether it moves blocks in its own loop."""
        return self.moves_blocks and not self.has_step


# A batch method: one that moves all blocks at once.
BATCH = Traits(moves_blocks=False, has_step=False)


@generic
def traits(method: object) -> Traits:
    """Return the `Traits` of a method; a named tuple that registers none has the defaults.

    A Python object without ``traits`` counts as a batch method.
    """
    if isinstance(method, tuple):
        return Traits()
    found: Traits = method.traits() if hasattr(method, "traits") else BATCH
    return found


def dual_point(problem: AnyProblem, w: FloatArray, ell: float) -> Point:
    """Return the point whose weights are those of its dual variables, as for most methods."""
    return Point(w, ell, inner(problem.map, w, w))


def primal_point(w: FloatArray) -> Point:
    """Return the point of weights without dual variables; its dual point is the truth, where D = 0."""
    return Point(w, 0.0, 0.0)


@subroutine
def is_sound(gap, terms, work):
    """Whether a gap is finite and, if the oracle is exact, nonnegative up to rounding.

    Large scores need a larger tolerance: the sums that the oracle compares are rounded relative to the
    scores, however small their differences are.
    """
    if not work.exact:
        return -np.inf < gap < np.inf
    if -ROUNDING * (1.0 + terms) <= gap:
        return gap < np.inf
    return -_SCORE_ROUNDING * score_terms(work.corner, work.theta) <= gap


class BrokenOracle(ValueError):
    """The max oracle of some example returned an output that is not the best."""


class ScaleError(ValueError):
    """Numbers left the range of float64: features, losses, or C (lam) are too large or too small."""


def scale_error(what: str) -> ScaleError:
    """Return the error for a number, described by ``what``, that left the range of float64."""
    return ScaleError(
        f"solve: {what} must be within the range of float64, got an overflow or underflow: the scale of the "
        f"features, of the losses or of C (lam) is too extreme; scale the features or choose another C."
    )


@python_generic
def start(method: PlainMethod[State], problem: AnyProblem) -> State:
    r"""Return the state at :math:`\alpha_i(y_i) = 1`, where w = 0."""
    if not callable(getattr(method, "start", None)):
        raise TypeError(
            f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
            f"got {shown(method)}."
        )
    return method.start(problem)


@generic
def weights(method: object, state: DualState) -> FloatArray:
    """Return the vector that steps change in place: the weights up to their `factor`."""
    return state.w


@generic_with_default
def factor(method, state):
    """Return c, where the iterate is c times `weights`: one, unless the method scales its iterate lazily."""
    return 1.0


with_kappa = adding("lam")  # from a method and kappa to the method with lam + kappa


@generic_with_default
def seek(method, state, problem, i, w, scratch):
    """Find a corner for the next step of block i; ``w`` is `weights`. Return its loss and its hinge."""
    return find_corner(problem, i, w, scratch)


@generic
def step(method, state, phi, i, loss_y, hinge, work):
    """Move block i to or towards the corner that `seek` found, and report `DONE` or `BROKEN`.

    The step sees the feature map, but not the oracle. ``work`` has the scores theta and the corner;
    ``loss_y`` and ``hinge`` are its loss and its margin. The step leaves its move in ``work.move``.
    """
    raise NotImplementedError


@generic
def mean_margin(method, state, i, theta):
    r"""Return the mean of :math:`H_i(y)` under the dual variables of block i, at the scores theta."""
    raise NotImplementedError


@generic_with_default
def has_room(method, state, i, sizes):
    """Whether the state has space for another step of block i; if not, the sweep calls `make_room`."""
    return True


@generic
def make_room(method: object, state: object, i: int, move: Move) -> None:
    """Reduce block i to its memory budget before a step; by default there is no limit.

    If there is still no space, its pools are enlarged. The move is workspace, zero before and afterwards.
    """


@generic_with_default
def foresee_block(method, state, i):
    """Prefetch the state of block i; optional."""


@generic
def notice(method: object, state: object) -> None:
    """Warn the user, once per run, that steps have reached a limit; by default there is none."""


@generic
def dual_loss(method: object, state: DualState) -> float:
    """Return ell of the current dual variables."""
    # Bitwise equal to ``mean``, in half the time if there are few blocks.
    return float(np.add.reduce(state.ell) / len(state.ell))


@generic
def point(method: PlainMethod[State], state: State, problem: AnyProblem) -> Point:
    """Return the method's answer: the point whose objective is measured and whose weights are returned."""
    return method.point(state, problem)


def _as_they_are(w: FloatArray) -> FloatArray:
    return w


class Carry(NamedTuple):
    r"""How a state is carried over to another lam, or to a problem with examples appended.

    With :math:`s = \lambda' n' / (\lambda n)`, the weights :math:`w = A \alpha` belong to the dual variables
    :math:`s \alpha_i(y)`, :math:`y \ne y_i`, which are feasible for :math:`s \le 1`. The unchanged dual
    variables belong to the weights :math:`w / s`.

    Attributes
    ----------
    share : float
        Factor of all dual variables except the truth's, at most one.
    factor : float
        Factor of the weights, share / s.
    lam : float
        The old lam.
    n : int
        The old number of examples.
    adopt : callable
        Turns images of the old map into images of the new one.
    """

    share: float
    factor: float
    lam: float
    n: int
    adopt: Callable[[FloatArray], FloatArray] = _as_they_are


@python_generic
def carried(method: object, state: State, problem: AnyProblem, carry: Carry) -> State:
    """Return the state of the same kind of method for ``method``, at another lam or with more examples.

    It must not share arrays with the given state, which may be carried over again.
    """
    raise TypeError(
        f"solve: start must be None for {type(method).__name__}, which cannot continue from a result."
    )


def carried_w(problem: AnyProblem, w: FloatArray, carry: Carry) -> FloatArray:
    """Return the vector for the new state: that of the image, times the factor."""
    return projected(problem.map, carried_image(unprojected(problem.map, w), carry))


def carried_image(v: FloatArray, carry: Carry) -> FloatArray:
    """Return an image for the new state."""
    adopted = carry.adopt(v)
    out = aligned_zeros(len(adopted))
    np.multiply(adopted, carry.factor, out=out)
    return out


def carried_ell(ell: FloatArray, n: int, carry: Carry) -> FloatArray:
    """Return the blocks' dual losses for the new state, followed by zeros for new blocks."""
    return np.concatenate([carry.share * ell, np.zeros(n - len(ell))])


@generic
def dual_weights(method: object, state: object, problem: AnyProblem) -> FloatArray | None:
    r"""Return :math:`\lambda n A \alpha = \sum_i \Phi_i z_i` from the dual variables; None if not kept."""
    return None


@generic
def oracle_calls(method: object, state: object, visits: int) -> int:
    """Return the number of oracle calls in this many visits: one per visit, unless there is a cache."""
    return visits


def with_lam(method: Method, lam: float) -> Method:
    """Return the method, or the wrapper of a method, with another lam."""
    if is_wrapper(type(method)):
        return method._replace(inner=with_lam(method.inner, lam))  # type: ignore[attr-defined]
    return method._replace(lam=lam)


@generic
def regularisation(method: NamedMethod) -> float:
    """Return lam."""
    return float(method.lam)


@generic
def grain(method: object, problem: AnyProblem) -> int:
    """Return how many visits are made together: a pass is split only at multiples of this number."""
    return 1


def is_method(subject: object) -> bool:
    """Whether an object is a method: `start` is registered for its class, or is one of its methods."""
    cls = type(subject)
    return start.dispatch(cls) is not start.dispatch(object) or callable(getattr(subject, "start", None))


class Need(NamedTuple):
    """A trait that a wrapper needs: its name, the value it must have, and the reason.

    Errors and the documentation are made from these.
    """

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
_PROJECTS = Need("projects", True, "it must be correct for weights that are a proximal map of the image")
_DUAL = Need("has_dual", True, "it must not scale its weights between steps")

WRAPPERS: dict[str, tuple[Need, ...]] = {
    "Averaged": (_NO_AVERAGE, _NO_LOOP),
    "Cached": (_BLOCKS, _STEP, _CORNERS),
    "Divided": (_BLOCKS, _STEP, _SEARCH, _BARE),
    "Anchored": (_BLOCKS, _STEP, _JOINS, _BARE),
    "Accelerated": (_BLOCKS, _SEARCH, _NO_AVERAGE),
}
# What wrappers of maps need of a method.
PENALTIES: dict[str, tuple[Need, ...]] = {
    "SignConstrained": (_PROJECTS,),
    "L1Penalised": (_PROJECTS, _DUAL),
}


def needs(wrapper: str, method: object) -> list[Need]:
    """Return the needs of a wrapper, of methods or of maps, that a method does not meet."""
    found = traits(method)
    wanted = (WRAPPERS | PENALTIES)[wrapper]
    return [need for need in wanted if getattr(found, need.trait) != need.value]


def check_penalty(phi: object, method: object) -> None:
    """Raise unless the method is correct for the signs or the L1 penalty of a map, if it has any."""
    wrapper = "SignConstrained" if is_homogeneous(phi) else "L1Penalised"
    unmet = needs(wrapper, method) if is_projected(phi) else []
    if unmet:
        raise ValueError(
            f"solve: method must be {_allowed(wrapper)}, averaged, cached, accelerated or not, for a problem "
            f"that is {wrapper}, got {shown(method)}; {unmet[0].reason}."
        )


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
    for name in dir(methods):
        getattr(methods, name)  # imported when first used
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
    wrappers = [*WRAPPERS, *PENALTIES]
    lines = [f"| | {' | '.join(wrappers)} |", f"|---|{'---|' * len(wrappers)}"]
    for cls in _plain_methods():
        marks = ["yes" if not needs(wrapper, cls(lam=1.0)) else "" for wrapper in wrappers]
        lines.append(f"| {cls.__name__} | {' | '.join(marks)} |")
    return "\n".join(lines)

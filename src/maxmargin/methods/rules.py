r"""The rules of a run: which examples are visited, in which order, and how long steps are.

Kernels get random numbers as arrays.

Gap sampling (Osokin et al. 2016) visits example i with a probability proportional to its block gap at its
last visit. As old gaps are out of date, some of the visits are drawn uniformly. The gaps are the leaves of
a binary tree in which every node is the sum of its two children, so a draw or an update costs
:math:`O(\log n)`.
"""

from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown

_UNIFORM_SHARE = 0.2


class Listed(NamedTuple):
    """Examples in a given order."""

    order: IntArray


class ByGap(NamedTuple):
    """Examples drawn by their gaps at the time of the visit.

    Attributes
    ----------
    order : array
        Examples drawn uniformly, or -1 for visits to be drawn by gap.
    uniform : array
        Numbers in [0, 1), one for each visit.
    tree : array of length 2 m, m a power of two
        ``tree[m + i]`` is the gap of example i, ``tree[k] = tree[2 k] + tree[2 k + 1]``.
    """

    order: IntArray
    uniform: FloatArray
    tree: FloatArray


Visits = Listed | ByGap


def as_visits(visits: Visits | IntArray) -> Visits:
    """Return the visits; an array becomes visits in its order."""
    return Listed(visits) if isinstance(visits, np.ndarray) else visits


def n_visits(visits: Visits | IntArray) -> int:
    """Return the number of visits."""
    return len(as_visits(visits).order)


def some_visits(visits: Visits | IntArray, first: int, stop: int | None = None) -> Visits:
    """Return the visits first, ..., stop - 1, or all from ``first`` on."""
    visits = as_visits(visits)
    some = visits._replace(order=visits.order[first:stop])
    return some if isinstance(some, Listed) else some._replace(uniform=some.uniform[first:stop])


@generic
def visited(visits, t):
    """Return the example of visit t."""
    raise NotImplementedError


@generic
def expected(visits, t):
    """Return the example of visit t if it is known in advance, else -1."""
    raise NotImplementedError


@generic
def note_gap(visits, i, gap):
    """Record the gap that the visit of example i found."""
    raise NotImplementedError


@expected.register(Listed)
@expected.register(ByGap)
def listed_expected(visits, t):
    return visits.order[t] if t < visits.order.shape[0] else -1


@visited.register(Listed)
def listed_visited(visits, t):
    return visits.order[t]


@note_gap.register(Listed)
def listed_note_gap(visits, i, gap):
    pass


@visited.register(ByGap)
def by_gap_visited(visits, t):
    i = visits.order[t]
    return i if i >= 0 else draw_leaf(visits.tree, visits.uniform[t])


@note_gap.register(ByGap)
def by_gap_note_gap(visits, i, gap):
    set_leaf(visits.tree, i, max(gap, 0.0))


@helper
def draw_leaf(tree, uniform):
    """Return a leaf with a probability proportional to its value; the first if all are zero."""
    m, k, rest = tree.shape[0] // 2, 1, uniform * tree[1]
    while k < m:
        k *= 2
        # Rounding must not lead into a branch whose sum is zero.
        if rest >= tree[k] and tree[k + 1] > 0.0:
            rest -= tree[k]
            k += 1
    return k - m


@helper
def set_leaf(tree, i, value):
    """Set a leaf, and recompute the sums above it, so that rounding does not accumulate."""
    k = tree.shape[0] // 2 + i
    tree[k] = value
    while k > 1:
        k //= 2
        tree[k] = tree[2 * k] + tree[2 * k + 1]


class Permutation(NamedTuple):
    """Every example once per pass, in random order."""

    n: int

    def draw(self, rng: np.random.Generator) -> Visits:
        """Return the visits of the next pass."""
        return Listed(rng.permutation(self.n))

    def none(self) -> Visits:
        """Return no visits."""
        return Listed(np.zeros(0, dtype=np.int64))


class Uniform(NamedTuple):
    """n examples per pass, drawn with replacement, as the paper's analysis assumes."""

    n: int

    def draw(self, rng: np.random.Generator) -> Visits:
        """Return the visits of the next pass."""
        return Listed(rng.integers(self.n, size=self.n))

    def none(self) -> Visits:
        """Return no visits."""
        return Listed(np.zeros(0, dtype=np.int64))


class GapSampling(NamedTuple):
    """By gap, with one visit in five uniform; the first pass, before gaps are known, is a permutation.

    Attributes
    ----------
    n : int
        The number of examples.
    tree : array
        The gaps, see `ByGap`; visits share it.
    drawn : array of shape (1,)
        The number of passes drawn.
    """

    n: int
    tree: FloatArray
    drawn: IntArray

    def draw(self, rng: np.random.Generator) -> Visits:
        """Return the visits of the next pass."""
        n = self.n
        self.drawn[0] += 1
        if self.drawn[0] == 1:
            return ByGap(rng.permutation(n), rng.random(n), self.tree)
        by_gap = rng.random(n) >= _UNIFORM_SHARE
        return ByGap(np.where(by_gap, -1, rng.integers(n, size=n)), rng.random(n), self.tree)

    def none(self) -> Visits:
        """Return no visits."""
        return ByGap(np.zeros(0, dtype=np.int64), np.zeros(0), self.tree)


def new_gap_sampling(n: int) -> GapSampling:
    """Return the sampler before the first pass."""
    return GapSampling(n, np.zeros(2 << (n - 1).bit_length()), np.zeros(1, dtype=np.int64))


Sampler = Permutation | Uniform | GapSampling
SAMPLINGS: dict[str, Callable[[int], Sampler]] = {
    "permutation": Permutation,
    "uniform": Uniform,
    "gap": new_gap_sampling,
}


class LineSearch(NamedTuple):
    """Exact line search: the step that increases the dual most (the paper's Algorithms 2 and 4)."""


class _Predefined(NamedTuple):
    nu: float


class Predefined(_Predefined):
    """The step 2 m / (nu k + 2 m) for m blocks after k steps (Algorithms 1 and 3), independent of the data.

    Parameters
    ----------
    nu : float
        Multiplicative quality of the oracle: the fraction of a block's gap that it guarantees, 1 if exact.
        Steps towards answers of an approximate oracle must be longer (the paper's appendix).
    """

    __slots__ = ()

    def __new__(cls, nu: float = 1.0) -> "Predefined":
        if not (isinstance(nu, Real) and 0.0 < float(nu) <= 1.0):
            raise ValueError(f"Predefined: nu must be a number > 0 and at most 1, got {shown(nu)}.")
        return super().__new__(cls, float(nu))


@generic
def step_size(rule, gap, curvature, k, n_blocks):
    r"""Return :math:`\gamma \in [0, 1]` for a direction with this gap and curvature."""
    raise NotImplementedError


@step_size.register(LineSearch)
def line_search_step_size(rule, gap, curvature, k, n_blocks):
    if gap <= 0.0:
        return 0.0
    if gap >= curvature:
        return 1.0
    return gap / curvature


@step_size.register(Predefined)
def predefined_step_size(rule, gap, curvature, k, n_blocks):
    return 2.0 * n_blocks / (rule.nu * k + 2.0 * n_blocks)


@helper
def dual_gain(gamma, gap, curvature):
    r"""Return the increase of the dual by a step :math:`\gamma`: :math:`\gamma g - \gamma^2 c / 2`."""
    return gamma * (gap - 0.5 * gamma * curvature)

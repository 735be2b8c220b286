r"""Long sequences: the inner method moves blocks of tokens, which grow.

A long sequence is a hard block: the corners that matter are few among astronomically many. So the labels of
some tokens are held at the truth, and the inner method moves the m blocks between them
(``maxmargin.structures.sequences.anchoring``). Their dual variables are feasible for the whole problem,

.. math:: D(\alpha) = \frac1n \sum_b \ell_b - \frac{\lambda}{2} \|w\|^2, \qquad
          w = \frac{1}{\lambda n} \sum_b \Phi_b z_b ,

which is m / n times the dual of a problem of m examples with :math:`\lambda' = \lambda n / m`. The primal is
that of the whole problem, so certificates hold for it.

**Growth.** With short blocks the dual rises fast, but not to the optimum, as the held labels are never wrong.
So neighbouring blocks are joined in pairs after some passes. That changes neither :math:`z` and :math:`\ell`
of a sequence nor the weights. In the end there is one block for each sequence, and the method is the inner
one. Wrapping it in ``Accelerated`` makes it much faster.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import kernel, python_generic
from maxmargin.files import checkpoint
from maxmargin.methods import protocol
from maxmargin.methods.accelerated import Accelerated
from maxmargin.methods.block_frank_wolfe import BlockFrankWolfe, BlockState
from maxmargin.methods.blocks import SIZE, START, add_to_block, empty_blocks, shrink_blocks
from maxmargin.methods.protocol import Carry, Point, Traits, check_inner
from maxmargin.methods.rules import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance, sweep_all
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import add_entry, map_sizes, new_move, reset
from maxmargin.structures.problem import AnyProblem, sizes
from maxmargin.structures.sequences.anchoring import (
    Anchors,
    anchored,
    can_anchor,
    chain_of,
    check_anchored,
    first_anchors,
    joined,
)

_PASSES = 2  # passes before blocks are joined again
# Sequences of this mean length are long: each has two of the first blocks or more.
_LONG = 600


class _Anchored(NamedTuple):
    inner: Any
    length: int


class Anchored(_Anchored):
    """A block method for long sequences: it moves blocks of tokens, which grow.

    Parameters
    ----------
    inner : BlockFrankWolfe
        The method that moves the blocks.
    length : int
        Smallest number of tokens of the first blocks.
    """

    __slots__ = ()

    def __new__(cls, inner: object, length: int = 300) -> "Anchored":
        check_inner(cls.__name__, inner)
        if not (isinstance(length, int | np.integer) and length >= 1):
            raise ValueError(f"Anchored: length must be an int >= 1, got {shown(length)}.")
        return super().__new__(cls, inner, int(length))


class AnchoredState(NamedTuple):
    """The blocks, and the state of the inner method for them.

    Attributes
    ----------
    whole : Problem
        The problem whose examples are the sequences.
    anchors : Anchors
        Where the blocks are.
    problem : Problem
        The problem whose examples are the blocks.
    inner : state of the inner method
    visits : int
        Sequences visited in this pass.
    passes : int
        Passes made.
    """

    whole: AnyProblem
    anchors: Anchors
    problem: AnyProblem
    inner: Any
    visits: int
    passes: int


@protocol.start.register(Anchored)
def anchored_start(method: Anchored, problem: AnyProblem) -> AnchoredState:
    check_anchored(problem)
    anchors = first_anchors(problem, method.length)
    blocks = anchored(problem, anchors)
    return AnchoredState(problem, anchors, blocks, protocol.start(method.inner, blocks), 0, 0)


@checkpoint.parts.register(AnchoredState)
def anchored_parts(state: AnchoredState) -> list[Any]:
    """Return all but the problems: that of the blocks follows from where they are."""
    return [state.anchors, state.inner, state.visits, state.passes]


@checkpoint.with_parts.register(AnchoredState)
def anchored_with_parts(state: AnchoredState, new: Sequence[Any]) -> AnchoredState:
    anchors, inner, visits, passes = new
    blocks = anchored(state.whole, anchors) if len(anchors.examples) else state.problem  # a template has none
    return AnchoredState(state.whole, anchors, blocks, inner, visits, passes)


@advance.register(Anchored)
def anchored_advance(
    method: Anchored, state: AnchoredState, problem: AnyProblem, visits: Visits | IntArray
) -> AnchoredState:
    n, done, total = int(map_sizes(problem.map).examples), 0, n_visits(visits)
    while done < total:
        length = min(n - state.visits, total - done)
        state = _visited(method, state, n, some_visits(visits, done, done + length).order)
        done += length
        if state.visits == n:
            state = _after_pass(method, state, problem)
    return state


def _visited(method: Anchored, state: AnchoredState, n: int, order: IntArray) -> AnchoredState:
    """Visit all blocks of each sequence in this order."""
    blocks = np.concatenate([_blocks_of(state, i) for i in order.tolist()])
    inner = sweep_all(
        state.problem, _inner_method(method, state, n), state.inner, blocks, state.anchors.examples
    )
    return state._replace(inner=inner, visits=state.visits + len(order))


def _blocks_of(state: AnchoredState, i: int) -> IntArray:
    """Return the blocks of sequence i, in a different order in each pass: a fixed order is slow.

    The order depends only on the pass and on the sequence, not on how the driver splits a pass.
    """
    first, stop = np.searchsorted(state.anchors.examples, [i, i + 1])
    return first + np.random.default_rng([state.passes, i]).permutation(stop - first)


def _inner_method(method: Anchored, state: AnchoredState, n: int) -> Any:
    """Return the inner method at the lam of the problem of blocks."""
    m = len(state.anchors.examples)
    return protocol.with_lam(method.inner, protocol.regularisation(method.inner) * n / m)


def _after_pass(method: Anchored, state: AnchoredState, problem: AnyProblem) -> AnchoredState:
    """End a pass; join blocks if that is due."""
    state = state._replace(visits=0, passes=state.passes + 1)
    is_whole = len(state.anchors.examples) == map_sizes(problem.map).examples
    return state if is_whole or state.passes % _PASSES else _grown(method, state, problem)


def _grown(method: Anchored, state: AnchoredState, problem: AnyProblem) -> AnchoredState:
    """Join neighbouring blocks."""
    anchors, new = joined(state.anchors)
    blocks = anchored(problem, anchors)
    chain = chain_of(problem.oracle)
    places = _places(state.anchors, anchors, new, chain.n_labels * chain.width, chain.width)
    inner = joined_state(method.inner, state.inner, blocks, places)
    return state._replace(anchors=anchors, problem=blocks, inner=inner)


class Places(NamedTuple):
    """Where the statistics of old blocks are in new ones.

    Attributes
    ----------
    new : array
        The new block of each old one.
    rows : array of shape (m, 2)
        Which statistics of each old block belong to its tokens.
    shift : array of shape (m, 2)
        By how much these move up, and those that follow them.
    """

    new: IntArray
    rows: IntArray
    shift: IntArray


def _places(old: Anchors, new: Anchors, block: IntArray, head: int, width: int) -> Places:
    lengths = old.tokens[:, 1] - old.tokens[:, 0]
    rows = np.column_stack([np.full(len(lengths), head), head + lengths * width])
    longer = new.tokens[block, 1] - new.tokens[block, 0] - lengths
    shift = np.column_stack([old.tokens[:, 0] - new.tokens[block, 0], longer]) * width
    return Places(block, rows, shift)


@python_generic
def joined_state(method: object, state: object, problem: AnyProblem, places: Places) -> Any:
    """Return the state of a block method after blocks have been joined: what they hold adds up."""
    raise NotImplementedError


@joined_state.register(BlockFrankWolfe)
def block_frank_wolfe_joined_state(
    method: BlockFrankWolfe, state: BlockState, problem: AnyProblem, places: Places
) -> BlockState:
    shrink_blocks(state.z)  # both pools are in memory for a while
    size, entries = map_sizes(problem.map), int(state.z.extent[:, SIZE].sum())
    z = empty_blocks(size.examples, entries // 3 + size.statistics)  # a third of the space that entries need
    _join_blocks(state.z, places, z, new_move(size.statistics))
    ell = np.zeros(size.examples)
    np.add.at(ell, places.new, state.ell)
    return state._replace(ell=ell, z=z)


@kernel
def _join_blocks(old, places, new, move):
    """Write the sums of the vectors of old blocks to the new blocks, in which they are next to each other."""
    for j in range(places.new.shape[0]):
        first = old.extent[j, START]
        for e in range(first, first + old.extent[j, SIZE]):
            p = np.int64(old.where[e])
            if p >= places.rows[j, 1]:
                p += places.shift[j, 1]
            elif p >= places.rows[j, 0]:
                p += places.shift[j, 0]
            add_entry(move, p, old.value[e])
        if j + 1 == places.new.shape[0] or places.new[j + 1] != places.new[j]:
            add_to_block(new, places.new[j], 1.0, move)
            reset(move)


def suited_to(problem: AnyProblem, method: object) -> Any:
    """Return the method for problems of long sequences if this is one, else the given method."""
    is_long = sizes(problem).output >= _LONG and can_anchor(problem)
    if not is_long or np.diff(chain_of(problem.oracle).tokens).mean() < _LONG:
        return method
    return Accelerated(Anchored(BlockFrankWolfe(protocol.regularisation(method))))


@protocol.weights.register(Anchored)
def anchored_weights(method: Anchored, state: AnchoredState) -> FloatArray:
    found: FloatArray = protocol.weights(method.inner, state.inner)
    return found


@protocol.oracle_calls.register(Anchored)
def anchored_oracle_calls(method: Anchored, state: AnchoredState, visits: int) -> int:
    return visits


@protocol.dual_loss.register(Anchored)
def anchored_dual_loss(method: Anchored, state: AnchoredState) -> float:
    m, n = len(state.anchors.examples), int(state.anchors.examples[-1]) + 1
    return float(protocol.dual_loss(method.inner, state.inner)) * m / n


@protocol.point.register(Anchored)
def anchored_point(method: Anchored, state: AnchoredState, problem: AnyProblem) -> Point:
    return protocol.point(method.inner, state.inner, problem)._replace(ell=anchored_dual_loss(method, state))


@protocol.dual_weights.register(Anchored)
def anchored_dual_weights(method: Anchored, state: AnchoredState, problem: AnyProblem) -> FloatArray | None:
    blocks = anchored(problem, state.anchors)
    found: FloatArray | None = protocol.dual_weights(method.inner, state.inner, blocks)
    return found


@protocol.carried.register(Anchored)
def anchored_carried(
    method: Anchored, state: AnchoredState, problem: AnyProblem, carry: Carry
) -> AnchoredState:
    """Carry over the blocks as they are; new sequences begin with short ones."""
    first = first_anchors(problem, method.length)
    is_new = first.examples >= carry.n
    anchors = Anchors(
        *(np.concatenate([old, new[is_new]]) for old, new in zip(state.anchors, first, strict=True))
    )
    blocks = anchored(problem, anchors)
    inner = protocol.carried(method.inner, state.inner, blocks, carry)
    return AnchoredState(problem, anchors, blocks, inner, 0, 0)


@protocol.traits.register(Anchored)
def anchored_traits(method: Anchored) -> Traits:
    own = {"has_step": False, "notes_gaps": False, "wraps": True}
    return protocol.traits(method.inner)._replace(**own)

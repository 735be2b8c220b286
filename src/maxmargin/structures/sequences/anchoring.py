"""Long sequences as blocks of tokens: some tokens are held at the truth, and blocks lie between them.

Given the labels of the held tokens, the blocks of a sequence do not interact: each is a separate sequence
with known neighbours. The product of distributions over the blocks' outputs is a distribution over outputs of
the whole sequence. Its mean of psi is the sum of the blocks' means, and likewise its mean loss. So dual
variables of blocks are dual variables of the whole problem, and give a lower bound for it. If two neighbours
become one block, nothing is lost: the mean of psi and the loss of the new block are the sums of the old ones.

A block includes the held tokens at its ends, where psi is zero. Features and labels are shared with the whole
problem.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import is_wrapper, subroutine
from maxmargin.compiling.generics import absent
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import oracle
from maxmargin.structures.kernelised import KernelisedMap
from maxmargin.structures.problem import AnyProblem, Problem, indexed_by_example, take
from maxmargin.structures.products import with_tables
from maxmargin.structures.sequences.model import ChainMap
from maxmargin.structures.sequences.oracle import ChainOracle, SecondOrderOracle
from maxmargin.structures.slack import SlackRescaledOracle

# Far below the score of any output that has a certificate; yet sums of a few such numbers are finite.
_NEVER = -1e300
# At most two tokens are held at each end.
_MOST_HELD = 4


@indexed_by_example("tokens", "held")
class AnchoredOracle(NamedTuple):
    """The oracle of blocks, whose tokens at both ends have known labels.

    Attributes
    ----------
    inner : ChainOracle or SecondOrderOracle
        The oracle of the blocks as separate sequences.
    tokens : array of shape (m, 2)
        Block b has the tokens tokens[b, 0], ..., tokens[b, 1] - 1, held ones included.
    labels : array of shape (n_tokens,)
        The true labels.
    held : array of shape (m, 2)
        How many tokens are held at the beginning and at the end of each block.
    head : int
        Number of statistics before those of tokens.
    """

    inner: ChainOracle | SecondOrderOracle
    tokens: IntArray
    labels: IntArray
    held: IntArray
    head: int
    n_labels: int
    width: int


class AnchoredWork(NamedTuple):
    """Workspace: that of the inner oracle, and the scores of held tokens."""

    inner: object
    kept: FloatArray


@oracle.oracle_workspace.register(AnchoredOracle)
def anchored_oracle_workspace(anchored: AnchoredOracle) -> AnchoredWork:
    return AnchoredWork(oracle.oracle_workspace(anchored.inner), aligned_zeros(_MOST_HELD, anchored.width))


@oracle.argmax.register(AnchoredOracle)
def anchored_argmax(anchored, i, theta, y, work):
    _exclude(anchored, i, theta, work.kept)
    oracle.argmax(anchored.inner, i, theta, y, work.inner)
    _restore(anchored, i, theta, work.kept)


@oracle.decode.register(AnchoredOracle)
def anchored_decode(anchored, i, theta, y, work):
    _exclude(anchored, i, theta, work.kept)
    oracle.decode(anchored.inner, i, theta, y, work.inner)
    _restore(anchored, i, theta, work.kept)


@subroutine
def _held_token(anchored, i, h):
    """Return the position of held token h within block i."""
    before = anchored.held[i, 0]
    if h < before:
        return h
    return anchored.tokens[i, 1] - anchored.tokens[i, 0] - anchored.held[i, 1] + h - before


@subroutine
def _exclude(anchored, i, theta, kept):
    """Exclude all labels but the truth at held tokens, and save their scores."""
    for h in range(anchored.held[i, 0] + anchored.held[i, 1]):
        t = _held_token(anchored, i, h)
        first, truth = anchored.head + t * anchored.width, anchored.labels[anchored.tokens[i, 0] + t]
        for k in range(anchored.n_labels):
            kept[h, k] = theta[first + k]
            if k != truth:
                theta[first + k] = _NEVER


@subroutine
def _restore(anchored, i, theta, kept):
    """Write the scores of held tokens back."""
    for h in range(anchored.held[i, 0] + anchored.held[i, 1]):
        first = anchored.head + _held_token(anchored, i, h) * anchored.width
        for k in range(anchored.n_labels):
            theta[first + k] = kept[h, k]


# The means of the inner oracle do not hold any label.
oracle.expectation.register(AnchoredOracle)(absent)


class Anchors(NamedTuple):
    """Where the blocks of all sequences are, one sequence after another.

    Attributes
    ----------
    examples : array of shape (m,)
        The sequence of each block.
    tokens : array of shape (m, 2)
        Block b has the tokens tokens[b, 0], ..., tokens[b, 1] - 1, held ones included.
    held : array of shape (m, 2)
        How many tokens are held at the beginning and at the end of each block.
    """

    examples: IntArray
    tokens: IntArray
    held: IntArray


def first_anchors(problem: AnyProblem, length: int) -> Anchors:
    """Return blocks of at least this many free tokens; a shorter sequence is one block."""
    h, blocks = n_held(problem.oracle), []
    for i, (begin, end) in enumerate(chain_of(problem.oracle).tokens.tolist()):
        number = max(1, (end - begin + h) // (length + h))
        # Block b is between cuts b and b + 1, of h tokens each. The first and the last are outside.
        cuts = np.linspace(begin - h, end, number + 1).astype(np.int64).tolist()
        for b in range(number):
            before, after = h * (b > 0), h * (b < number - 1)
            blocks.append((i, cuts[b] + h - before, cuts[b + 1] + after, before, after))
    table = np.array(blocks, dtype=np.int64)
    return Anchors(table[:, 0].copy(), table[:, 1:3].copy(), table[:, 3:].copy())


def joined(anchors: Anchors) -> tuple[Anchors, IntArray]:
    """Join neighbouring blocks in pairs; return the new blocks, and the new block of each old one."""
    examples = anchors.examples
    starts = np.flatnonzero(np.diff(examples, prepend=-1))
    within = np.arange(len(examples)) - np.repeat(starts, np.diff(np.append(starts, len(examples))))
    is_first = within % 2 == 0
    new = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(examples)) - 1
    tokens = np.column_stack([anchors.tokens[first, 0], anchors.tokens[last, 1]])
    held = np.column_stack([anchors.held[first, 0], anchors.held[last, 1]])
    return Anchors(examples[first], tokens, held), new


def anchored(problem: AnyProblem, anchors: Anchors) -> AnyProblem:
    """Return the problem whose examples are the blocks."""
    repeated = take(problem, anchors.examples)
    return Problem(_narrowed(repeated.map, anchors), _narrowed(repeated.oracle, anchors))


def check_anchored(problem: AnyProblem) -> None:
    """Raise unless the sequences of the problem can be divided into blocks."""
    for half in problem:
        if not _is_divisible(half):
            raise TypeError(
                "Anchored: problem must be a Chain or SecondOrderChain without kernel and rescaled slacks, "
                f"got one with a {type(half).__name__}."
            )


def can_anchor(problem: AnyProblem) -> bool:
    """Whether the sequences of the problem can be divided into blocks."""
    return all(map(_is_divisible, problem))


def _is_divisible(half: Any) -> bool:
    """Whether a map or an oracle has an equivalent for blocks.

    The rows of a kernel have a different layout, and rescaled slacks do not add up over blocks.
    """
    while is_wrapper(type(half)) and not isinstance(half, KernelisedMap | SlackRescaledOracle):
        half = half.inner
    return isinstance(half, ChainMap | ChainOracle)


def _within(oracle: Any, *kinds: type) -> Any:
    """Return the oracle of one of these classes within wrappers."""
    while not isinstance(oracle, kinds):
        oracle = oracle.inner
    return oracle


def chain_of(oracle: object) -> ChainOracle:
    """Return the oracle of the chain within wrappers."""
    chain: ChainOracle = _within(oracle, ChainOracle)
    return chain


def n_held(oracle: object) -> int:
    """Return how many neighbouring tokens must be held so that the two sides do not interact."""
    return 2 if isinstance(_within(oracle, ChainOracle, SecondOrderOracle), SecondOrderOracle) else 1


def _narrowed(half: Any, anchors: Anchors) -> Any:
    """Return a map or an oracle with one example per block, restricted to the tokens of the blocks."""
    longest = int((anchors.tokens[:, 1] - anchors.tokens[:, 0]).max())
    if isinstance(half, ChainMap):
        return with_tables(half._replace(tokens=anchors.tokens, longest=longest))
    if isinstance(half, ChainOracle):
        return _held(half._replace(tokens=anchors.tokens, longest=longest), half, anchors)
    if isinstance(half, SecondOrderOracle):
        inner = half.inner._replace(tokens=anchors.tokens, longest=longest)
        return _held(SecondOrderOracle(inner), half.inner, anchors)
    return half._replace(inner=_narrowed(half.inner, anchors))


def _held(inner: ChainOracle | SecondOrderOracle, chain: ChainOracle, anchors: Anchors) -> AnchoredOracle:
    head = chain.n_labels * chain.width
    return AnchoredOracle(
        inner, anchors.tokens, chain.labels, anchors.held, head, chain.n_labels, chain.width
    )

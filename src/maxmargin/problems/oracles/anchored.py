"""Oracles of blocks of long sequences: the labels of some tokens at the ends are held at the truth."""

from typing import NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.problems import oracle
from maxmargin.problems.halves import absent
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.subsets import indexed_by_example

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

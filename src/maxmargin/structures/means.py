r"""Mean statistics of outputs under a Gibbs distribution, and which of them are marginals of parts.

A *part* of an output is what takes one of several *states*: a token or a node its label, a word its head. The
statistics of every model here have an entry for each state of each part, which is one if the part has this
state. So its mean is a probability.

The expectation oracle of `maxmargin.structures.oracle` is for training: it needs the truth, and adds losses
to scores. The means here need neither.

What an oracle may be asked beyond the functions of `maxmargin.structures.oracle` (means, margins, the k best
outputs) takes workspaces of its own. The functions that make them are in one table, `ANSWERS`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from maxmargin.compiling import generic, is_wrapper
from maxmargin.runtime.arrays import IntArray


class PartRows(NamedTuple):
    """Where the statistics of the parts of an example are: row r begins at ``first + r * step``."""

    first: int
    step: int
    n_rows: int
    n_columns: int


@generic
def part_rows(oracle, i):
    """Return the `PartRows` of example i."""
    raise NotImplementedError


@generic
def find_means(oracle, i, theta, work, own, mean):
    r"""Write the mean of the statistics of example i to ``mean``, and return the log-partition.

    .. math:: p(y) \propto e^{\langle \theta, s_i(y) \rangle}, \qquad \sum_y p(y) \, s_i(y)

    ``work`` is the workspace of the oracle, ``own`` that of `means_space`. ``mean`` has one entry for each
    statistic of the example, and all are written.
    """
    raise NotImplementedError


class Answers(NamedTuple):
    """Functions of an oracle that are called from Python; workspaces are made for each thread.

    Attributes
    ----------
    margins : callable, optional
        ``margins(oracle)``, for `decode_with_margins`; None for that of its default.
    means : callable, optional
        ``means(oracle)``, for `find_means`, beside the workspace of the oracle. None, or returns None, if
        there are no means: for matchings, users' oracles and graphs with cycles.
    k_best : callable, optional
        ``k_best(oracle, k)``, for `find_k_best`, beside the workspace of the oracle.
    differing : callable, optional
        `decode_differing`, if it is not done by lowering a single score.
    """

    margins: Callable[[Any], object] | None = None
    means: Callable[[Any], object] | None = None
    k_best: Callable[[Any, int], object] | None = None
    differing: Callable[..., IntArray] | None = None


ANSWERS: dict[type, Answers] = {}


def answers_of(oracle: Any) -> tuple[Any, Answers]:
    """Return the oracle, or that within wrappers which the table knows, and its functions."""
    while type(oracle) not in ANSWERS and is_wrapper(type(oracle)):
        oracle = oracle.inner
    return oracle, ANSWERS.get(type(oracle), Answers())


def means_space(oracle: object) -> object:
    """Return a workspace for the means; None if there are none."""
    known, make = answers_of(oracle)
    return make.means(known) if make.means else None


def has_means(oracle: object) -> bool:
    """Whether `find_means` is defined: not for matchings, users' oracles and graphs with cycles."""
    return means_space(oracle) is not None

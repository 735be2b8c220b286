r"""Mean statistics of outputs under a Gibbs distribution, and which of them are marginals of parts.

A *part* of an output is what takes one of several *states*: a token or a node its label, a word its head. The
statistics of every model here have an entry for each state of each part, which is one if the part has this
state. So its mean is a probability.

The expectation oracle of `maxmargin.structures.oracle` is for training: it needs the truth, and adds losses
to scores. The means here need neither.
"""

from typing import NamedTuple

from maxmargin.compiling import generic, is_wrapper, python_generic


class PartRows(NamedTuple):
    """Where the statistics of the parts of an example are: row r begins at ``first + r * step``."""

    first: int
    step: int
    n_rows: int
    n_columns: int


@generic
def means_space(oracle):
    """Return a workspace for the means, in addition to that of the oracle."""
    raise NotImplementedError


@generic
def find_means(oracle, i, theta, work, own, mean):
    r"""Write the mean of the statistics of example i to ``mean``, and return the log-partition.

    .. math:: p(y) \propto e^{\langle \theta, s_i(y) \rangle}, \qquad \sum_y p(y) \, s_i(y)

    ``work`` is the workspace of the oracle, ``own`` that of `means_space`. ``mean`` has one entry for each
    statistic of the example, and all are written.
    """
    raise NotImplementedError


@python_generic
def has_means(oracle: object) -> bool:
    """Whether `find_means` is defined: not for matchings, users' oracles and graphs with cycles."""
    if is_wrapper(type(oracle)):
        return has_means(oracle.inner)  # type: ignore[attr-defined, no-any-return]
    return find_means.dispatch(type(oracle)) is not find_means.dispatch(object)


@generic
def part_rows(oracle, i):
    """Return the `PartRows` of example i."""
    raise NotImplementedError

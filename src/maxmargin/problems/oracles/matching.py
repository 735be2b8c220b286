"""The oracles of matchings: the best assignment of targets to the places of sources.

An output is the target of each place of each source, or -1. See `maxmargin.problems.maps.matching` for the
layout of its statistics.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import subroutine
from maxmargin.inference.assignment import AssignmentWork, assignment, assignment_work
from maxmargin.loops import weighted_sum
from maxmargin.problems import oracle
from maxmargin.problems.subsets import indexed_by_example


@indexed_by_example("links", "sources", "targets", "places", "n_true")
class MatchingOracle(NamedTuple):
    """True links and costs.

    Attributes
    ----------
    links : array of shape (n, 2)
        Pair i has the links links[i, 0], ..., links[i, 1] - 1, source by source.
    sources, targets : arrays of shape (n,)
        Number of words on each side.
    places : array of shape (n, 2)
        Where the places of each pair begin and end.
    partners : array of shape (n_places,)
        The true target of each place of each source, or -1, pair after pair.
    cost : array of shape (n_links,)
        The cost of a link; for a true link, minus the cost of missing it.
    n_true : array of shape (n,)
        Number of true links.
    missed : float
        The cost of missing a true link.
    fertility : int
        Number of places of a source.
    """

    links: IntArray
    sources: IntArray
    targets: IntArray
    places: IntArray
    partners: IntArray
    cost: FloatArray
    n_true: IntArray
    missed: float
    fertility: int
    most_links: int
    most_sources: int
    most_targets: int


class MatchingOracleWork(NamedTuple):
    """Workspace: scores of links with their costs, scores of places, and the arrays of the search."""

    scores: FloatArray
    bonus: FloatArray
    search: AssignmentWork


@oracle.output_sizes.register(MatchingOracle)
def matching_output_sizes(pairs):
    longest = pairs.most_sources * pairs.fertility
    return oracle.OutputSizes(longest, (4 if pairs.fertility > 1 else 2) * longest)


@oracle.oracle_workspace.register(MatchingOracle)
def matching_oracle_workspace(pairs: MatchingOracle) -> MatchingOracleWork:
    return MatchingOracleWork(
        np.zeros(pairs.most_links),
        np.zeros(pairs.fertility),
        assignment_work(pairs.most_sources * pairs.fertility, pairs.most_targets),
    )


@oracle.output_size.register(MatchingOracle)
def matching_output_size(pairs, i):
    return pairs.places[i, 1] - pairs.places[i, 0]


@oracle.argmax.register(MatchingOracle)
def matching_argmax(pairs, i, theta, y, work):
    first, stop, further = pairs.links[i, 0], pairs.links[i, 1], pairs.fertility - 1
    scores = work.scores[: stop - first]
    weighted_sum(1.0, theta[further : further + stop - first], 1.0, pairs.cost[first:stop], scores)
    _match(pairs, i, theta, scores, y, work)


@oracle.decode.register(MatchingOracle)
def matching_decode(pairs, i, theta, y, work):
    further, n_links = pairs.fertility - 1, pairs.links[i, 1] - pairs.links[i, 0]
    _match(pairs, i, theta, theta[further : further + n_links], y, work)


@subroutine
def _match(pairs, i, theta, scores, y, work):
    """Write the best matching for these scores of links, and the scores of places in ``theta``, to ``y``."""
    for s in range(pairs.fertility - 1):
        work.bonus[s + 1] = theta[s]
    matrix = scores.reshape((pairs.sources[i], pairs.targets[i]))
    assignment(matrix, work.bonus, work.search, y)


@oracle.loss.register(MatchingOracle)
def matching_loss(pairs, i, y):
    first, n_targets = pairs.links[i, 0], pairs.targets[i]
    total, hits = 0.0, 0
    for place in range(pairs.places[i, 1] - pairs.places[i, 0]):
        if y[place] >= 0:
            cost = pairs.cost[first + (place // pairs.fertility) * n_targets + y[place]]
            if cost < 0.0:
                hits += 1
            else:
                total += cost
    return total + pairs.missed * (pairs.n_true[i] - hits)


@oracle.psi.register(MatchingOracle)
def matching_psi(pairs, i, y, index, value):
    first, count = pairs.places[i, 0], 0
    for place in range(pairs.places[i, 1] - first):
        truth = pairs.partners[first + place]
        if truth != y[place]:
            count = _add_link(pairs, i, place, truth, 1.0, count, index, value)
            count = _add_link(pairs, i, place, y[place], -1.0, count, index, value)
    return count


@subroutine
def _add_link(pairs, i, place, target, sign, count, index, value):
    """Write the statistics of the link of a place, if it has one, after the first ``count``."""
    if target < 0:
        return count
    source, further = place // pairs.fertility, pairs.fertility - 1
    slot = place - source * pairs.fertility
    if slot > 0:
        index[count], value[count] = slot - 1, sign
        count += 1
    index[count], value[count] = further + source * pairs.targets[i] + target, sign
    return count + 1

r"""Partial bipartite matchings: a word is linked to a word on the other side, or left unlinked.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(j, k) \in y} \langle w, x_{jk} \rangle
          + \sum_{s > 1} c_s \, |\{ j : j \text{ uses its place } s \}|

with features :math:`x_{jk}` of the link from source j to target k. A target has at most one link. A source
has ``fertility`` places for links, one by default, and each place after the first has a learnt score
:math:`c_s`. As each link takes one place, the best output is a best matching of places to targets, which is
found exactly.

The statistics of an output are the numbers of sources that use their second, third, ... place, then the
indicators of all links, source by source. The weights are those of the features of links, then those of the
further places. An output is the target of each place of each source, or -1.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.compiling import subroutine
from maxmargin.compiling.loops import add_scaled, clear, copy, weighted_sum
from maxmargin.encoding.labels import checked_count, checked_flags
from maxmargin.runtime.arrays import BoolArray, FloatArray, IntArray, kernel_array
from maxmargin.runtime.wording import shown
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.matchings.encode import (
    Links,
    checked_links,
    encode_links,
    encode_masks,
    encode_matchings,
)
from maxmargin.structures.matchings.inference import (
    AssignmentWork,
    ExchangeWork,
    assignment,
    assignment_margins,
    assignment_work,
    exchange_work,
    push_links,
    sum_features,
)
from maxmargin.structures.oracle import decode, oracle_workspace
from maxmargin.structures.problem import Problem, builder, fitting, indexed_by_example, spans
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    decode_rescored,
    decode_with_margins,
    enough,
    n_parts,
)


class MatchingWeights(NamedTuple):
    """Weights of a matching: of the features of links, and of a source's second, third, ... link."""

    links: FloatArray
    places: FloatArray


@indexed_by_example("links")
class MatchingMap(NamedTuple):
    """Features of links.

    Attributes
    ----------
    features : array of shape (n_links * n_features,)
        For each pair, the values of the first feature for all its links, then those of the second, ... The
        values of pair i begin at links[i, 0] * n_features.
    links : array of shape (n, 2)
        Pair i has the links links[i, 0], ..., links[i, 1] - 1, source by source.
    fertility : int
        Number of places of a source.
    """

    features: FloatArray
    links: IntArray
    fertility: int
    n_features: int
    most_links: int


class MatchingMapWork(NamedTuple):
    """Work array: the feature vector of a move."""

    image: FloatArray


@feature_map.map_sizes.register(MatchingMap)
def matching_map_sizes(phi):
    further = phi.fertility - 1
    return feature_map.MapSizes(phi.links.shape[0], phi.n_features + further, further + phi.most_links)


@feature_map.map_workspace.register(MatchingMap)
def matching_map_workspace(phi: MatchingMap) -> MatchingMapWork:
    return MatchingMapWork(np.zeros(phi.n_features))


@feature_map.statistics_size.register(MatchingMap)
def matching_statistics_size(phi, i):
    return phi.fertility - 1 + phi.links[i, 1] - phi.links[i, 0]


@subroutine
def _links_of(phi, i):
    """Return the features of pair i, one column per link, and the number of statistics before its links."""
    first, stop, F = phi.links[i, 0], phi.links[i, 1], phi.n_features
    return phi.features[first * F : stop * F].reshape((F, stop - first)), phi.fertility - 1


@feature_map.score.register(MatchingMap)
def matching_score(phi, i, w, theta):
    x, further = _links_of(phi, i)
    copy(w[phi.n_features :], theta[:further])
    sum_features(x, w, theta[further : further + x.shape[1]])


@feature_map.gram.register(MatchingMap)
def matching_gram(phi, i, move, image, work):
    x, further = _links_of(phi, i)
    clear(work.image)
    push_links(x, move.support[: move.size[0]], move.delta, further, 1.0, work.image)
    copy(move.delta[:further], image[:further])
    sum_features(x, work.image, image[further : further + x.shape[1]])


@feature_map.push.register(MatchingMap)
def matching_push(phi, i, move, scale, w, work):
    x, further = _links_of(phi, i)
    push_links(x, move.support[: move.size[0]], move.delta, further, scale, w)
    add_scaled(scale, move.delta[:further], w[phi.n_features :])


@feature_map.unpack.register(MatchingMap)
def matching_unpack(phi: MatchingMap, w: FloatArray) -> MatchingWeights:
    return MatchingWeights(w[: phi.n_features], w[phi.n_features :])


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


class MatchingMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `assignment_margins`."""

    oracle: MatchingOracleWork
    exchanges: ExchangeWork


def _margin_work(pairs: MatchingOracle) -> MatchingMarginWork:
    exchanges = exchange_work(pairs.most_sources * pairs.fertility, pairs.most_targets)
    return MatchingMarginWork(oracle_workspace(pairs), exchanges)


@n_parts.register(MatchingOracle)
def matching_n_parts(pairs, i):
    """Return the number of links that could be made."""
    return pairs.links[i, 1] - pairs.links[i, 0]


@decode_with_margins.register(MatchingOracle)
def matching_decode_with_margins(pairs, i, theta, y, margins, work):
    """Write, for each link, by how much the score falls if the link is forced to change: added or removed."""
    decode(pairs, i, theta, y, work.oracle)
    shape, further = (pairs.sources[i], pairs.targets[i]), pairs.fertility - 1
    scores = theta[further : further + margins.shape[0]].reshape(shape)
    prices, bonus = work.oracle.search, work.oracle.bonus
    assignment_margins(scores, bonus, prices, work.exchanges, y, margins.reshape(shape))


def _differing(
    pairs: MatchingOracle,
    i: int,
    theta: FloatArray,
    y: IntArray,
    p: int,
    margin: float,
    work: MatchingOracleWork,
) -> IntArray:
    """Penalise the link if the prediction has it, else reward it."""
    source, target = divmod(p, int(pairs.targets[i]))
    is_linked = target in y[source * pairs.fertility : (source + 1) * pairs.fertility]
    change = -enough(theta, margin) if is_linked else enough(theta, margin)
    return decode_rescored(pairs, i, theta, y, pairs.fertility - 1 + p, change, work)


ANSWERS[MatchingOracle] = Answers(margins=_margin_work, differing=_differing)


MatchingProblem = Problem[MatchingMap, MatchingOracle]


class Matching:
    """Builders of matching problems."""

    @staticmethod
    @builder("Matching")
    def from_links(
        X: object,
        y: object,
        *,
        possible: object = None,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
    ) -> MatchingProblem:
        """Build a problem from features of links and true matchings.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)
            The features of every possible link, one array for each pair of word lists.
        y : list of matchings
            Each the target of each source or -1, a list of (source, target) pairs, or an array of shape
            (n_sources, n_targets) of zeros and ones.
        possible : list of matchings, optional
            Further links, in the same forms, that cost nothing whether predicted or not; a word may have any
            number of them.
        wrong, missed : float
            The cost of a wrong link, and of a true link that is missed.
        fertility : int
            Largest number of links of a source. A target has at most one.
        """
        checked_count(fertility, "fertility")
        links = encode_links(X)
        truth = encode_matchings(y, links, fertility=fertility)
        ignored = None if possible is None else encode_masks(possible, links, name="possible")
        return Matching.from_encoded(links, truth, ignored, wrong=wrong, missed=missed, fertility=fertility)

    @staticmethod
    @builder("Matching")
    def from_encoded(
        links: Links,
        truth: ArrayLike,
        possible: ArrayLike | None = None,
        *,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
    ) -> MatchingProblem:
        """Build a problem from links; ``truth``, an array of bools, marks a matching."""
        _check_costs(wrong, missed)
        phi, links = _links_map(links, fertility)
        n_links = len(links.features) // links.n_features
        true = checked_flags(truth, n_links, "truth")
        costs = np.full(n_links, float(wrong))
        if possible is not None:
            costs[checked_flags(possible, n_links, "possible")] = 0.0
        n_true = kernel_array(np.add.reduceat(true, phi.links[:, 0], dtype=np.int64), np.int64)
        costs = kernel_array(np.where(true, -missed, costs), np.float64)
        partners = _partners(phi, links, true)
        return Problem(phi, _oracle(phi, links, partners, costs, n_true, float(missed)))

    @staticmethod
    @builder("Matching")
    def for_prediction(links: Links, fertility: int = 1) -> MatchingProblem:
        """Build a problem that can be decoded but not trained on: it has no true links."""
        phi, links = _links_map(links, fertility)
        none, n_true = np.zeros(0, dtype=np.int64), np.zeros(len(phi.links), dtype=np.int64)
        return Problem(phi, _oracle(phi, links, none, np.zeros(0), n_true, 0.0))


def _links_map(links: Links, fertility: int) -> tuple[MatchingMap, Links]:
    """Return the map of checked links, and the links; raise if its weights do not fit into memory."""
    fertility = checked_count(fertility, "fertility")
    links = checked_links(links)
    of_pairs = spans(links.offsets)
    most_links = int((of_pairs[:, 1] - of_pairs[:, 0]).max())
    phi = MatchingMap(links.features, of_pairs, fertility, int(links.n_features), most_links)
    return fitting(Problem(phi, phi)).map, links


def _oracle(
    phi: MatchingMap, links: Links, partners: IntArray, cost: FloatArray, n_true: IntArray, missed: float
) -> MatchingOracle:
    """Return the oracle of the pairs of a map."""
    return MatchingOracle(
        links=phi.links,
        sources=links.sources,
        targets=links.targets,
        places=_places(phi, links),
        partners=partners,
        cost=cost,
        n_true=n_true,
        missed=missed,
        fertility=phi.fertility,
        most_links=phi.most_links,
        most_sources=int(links.sources.max()),
        most_targets=int(links.targets.max()),
    )


def _places(phi: MatchingMap, links: Links) -> IntArray:
    """Return where the places of each pair begin and end."""
    return spans(np.append(0, np.cumsum(phi.fertility * links.sources)))


def _check_costs(wrong: object, missed: object) -> None:
    """Raise unless both costs are finite and not negative."""
    for name, value in (("wrong", wrong), ("missed", missed)):
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name} must be a finite number >= 0, got {shown(value)}.")


def _partners(phi: MatchingMap, links: Links, truth: BoolArray) -> IntArray:
    """Return the target of each place; the links of a source take its first places."""
    places = _places(phi, links)
    partners = np.full(places[-1, 1], -1, dtype=np.int64)
    for i, (m, n) in enumerate(zip(links.sources, links.targets, strict=True)):
        matrix = truth[phi.links[i, 0] : phi.links[i, 1]].reshape(m, n)
        source, target = np.nonzero(matrix)
        place = np.cumsum(matrix, axis=1)[source, target] - 1
        if len(place) and (place.max() >= phi.fertility or len(set(target.tolist())) < len(target)):
            raise ValueError(
                f"truth must link a source at most {phi.fertility} times and a target once, "
                f"got more for pair {i}."
            )
        partners[places[i, 0] + source * phi.fertility + place] = target
    return partners

r"""Partial bipartite matchings: a word is linked to one of the other side, or stays unlinked.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(j, k) \in y} \langle w, x_{jk} \rangle
          + \sum_{s > 1} c_s \, |\{ j : j \text{ uses its place } s \}|

with features :math:`x_{jk}` of the link from source j to target k. Targets have one link at most. Sources
have ``fertility`` places for links, one unless said otherwise, and each place but the first has a learnt
score :math:`c_s`; as each link takes a place, the best matching is still one of places to targets, and
exact. The statistics of an output are the counts of these further places, then the indicators of all links,
source by source; an output is the target of each place of each source, or -1.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, plain
from maxmargin.compiling import subroutine
from maxmargin.encoding.checked import checked_count, checked_flags, checked_links
from maxmargin.encoding.links import Links, encode_links, encode_masks, encode_matchings
from maxmargin.inference.assignment import AssignmentWork, assignment, assignment_work
from maxmargin.loops import add_scaled, clear, copy, weighted_sum
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._link_features import push_links, sum_features


class MatchingWeights(NamedTuple):
    """Weights of a matching: of the links' features, and of a source's second, third, ... link."""

    links: FloatArray
    places: FloatArray


class MatchingWork(NamedTuple):
    """Work arrays: the oracle's scores and places, its search, and the feature vector of a move."""

    scores: FloatArray
    bonus: FloatArray
    search: AssignmentWork
    image: FloatArray


class Matching(NamedTuple):
    """A matching problem; made by `from_links`.

    Attributes
    ----------
    features : array of shape (n_links * n_features,)
        Of each pair the values of the first feature at all its links, then those of the second, ...
    offsets : array of shape (n + 1,)
        Pair i has the links offsets[i], ..., offsets[i + 1] - 1, source by source.
    sources, targets : arrays of shape (n,)
        Number of words on each side.
    partners : array
        The true target of each place of each source, or -1, pair after pair.
    starts : array of shape (n + 1,)
        Where the places of each pair begin.
    cost : array of shape (n_links,)
        What it costs to have a link; for a true one, minus what it costs to miss it.
    n_true : array of shape (n,)
        Number of true links.
    missed : float
        What it costs to miss a true link.
    """

    features: FloatArray
    offsets: IntArray
    sources: IntArray
    targets: IntArray
    partners: IntArray
    starts: IntArray
    cost: FloatArray
    n_true: IntArray
    missed: float
    fertility: int
    n_features: int
    most_links: int
    most_sources: int
    most_targets: int

    @classmethod
    def from_links(
        cls,
        X: Any,
        y: Any,
        *,
        possible: Any = None,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
    ) -> "Matching":
        """Build the problem from features of links and true matchings.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)
            The features of every link that could be; those of each pair in an array of its own.
        y : list of matchings
            Each the target of each source or -1, a list of (source, target) pairs, or an array of shape
            (n_sources, n_targets) of zeros and ones.
        possible : list of matchings, optional
            In the same forms, any number at a word: further links that cost nothing, whether made or not.
        wrong, missed : float
            What a link that is not true costs, and a true one that is not there.
        fertility : int
            How many links a source may have. A target has at most one.
        """
        checked_count(fertility, "Matching", "fertility")
        links = encode_links(X, owner="Matching")
        truth = encode_matchings(y, links, owner="Matching", fertility=fertility)
        ignored = (
            None if possible is None else encode_masks(possible, links, owner="Matching", name="possible")
        )
        return cls.from_encoded(links, truth, ignored, wrong=wrong, missed=missed, fertility=fertility)

    @classmethod
    def from_encoded(
        cls,
        links: Links,
        truth: Any,
        possible: Any = None,
        *,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
    ) -> "Matching":
        """Build the problem from links, of which those marked in ``truth`` are a matching."""
        _check_costs(wrong, missed)
        problem = cls.for_prediction(links, fertility)
        n_links = int(problem.offsets[-1])
        truth = checked_flags(truth, n_links, "Matching", "truth")
        costs = np.full(n_links, float(wrong))
        if possible is not None:
            costs[checked_flags(possible, n_links, "Matching", "possible")] = 0.0
        return problem._replace(
            partners=_partners(problem, truth),
            cost=plain(np.where(truth, -missed, costs), np.float64),
            n_true=plain(np.add.reduceat(truth, problem.offsets[:-1], dtype=np.int64), np.int64),
            missed=float(missed),
        )

    @classmethod
    def for_prediction(cls, links: Links, fertility: int = 1) -> "Matching":
        """Build a problem that can be decoded but not trained on: it has no true links."""
        checked_count(fertility, "Matching", "fertility")
        links = checked_links(links)
        problem = cls(
            features=links.features,
            offsets=links.offsets,
            sources=links.sources,
            targets=links.targets,
            partners=np.zeros(0, dtype=np.int64),
            starts=np.append(0, np.cumsum(fertility * links.sources)),
            cost=np.zeros(0),
            n_true=np.zeros(0, dtype=np.int64),
            missed=0.0,
            fertility=int(fertility),
            n_features=int(links.n_features),
            most_links=int(np.diff(links.offsets).max()),
            most_sources=int(links.sources.max()),
            most_targets=int(links.targets.max()),
        )
        return fitting(problem, "Matching")

    def unpack(self, w: FloatArray) -> MatchingWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return MatchingWeights(w[: self.n_features], w[self.n_features :])


def _check_costs(wrong: Any, missed: Any) -> None:
    for name, value in (("wrong", wrong), ("missed", missed)):
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"Matching: {name} must be a finite number >= 0, got {value!r}.")


def _partners(problem: Matching, truth: Any) -> IntArray:
    """Return the target of each place, where the links of a source take its first ones."""
    partners = np.full(problem.starts[-1], -1, dtype=np.int64)
    for i, (m, n) in enumerate(zip(problem.sources, problem.targets, strict=True)):
        matrix = truth[problem.offsets[i] : problem.offsets[i + 1]].reshape(m, n)
        source, target = np.nonzero(matrix)
        place = np.cumsum(matrix, axis=1)[source, target] - 1
        if len(place) and (place.max() >= problem.fertility or len(set(target.tolist())) < len(target)):
            raise ValueError(
                f"Matching: truth must link a source at most {problem.fertility} times and a target once, "
                f"got more for pair {i}."
            )
        partners[problem.starts[i] + source * problem.fertility + place] = target
    return partners


@protocol.sizes.register(Matching)
def matching_sizes(problem):
    further, longest = problem.fertility - 1, problem.most_sources * problem.fertility
    return protocol.Sizes(
        problem.offsets.shape[0] - 1,
        problem.n_features + further,
        further + problem.most_links,
        longest,
        (4 if further > 0 else 2) * longest,
    )


@protocol.workspace.register(Matching)
def matching_workspace(problem):
    return MatchingWork(
        np.zeros(problem.most_links),
        np.zeros(problem.fertility),
        assignment_work(problem.most_sources * problem.fertility, problem.most_targets),
        np.zeros(problem.n_features),
    )


@protocol.output_size.register(Matching)
def matching_output_size(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@protocol.statistics_size.register(Matching)
def matching_statistics_size(problem, i):
    return problem.fertility - 1 + problem.offsets[i + 1] - problem.offsets[i]


@protocol.score.register(Matching)
def matching_score(problem, i, w, theta):
    first, stop, F = problem.offsets[i], problem.offsets[i + 1], problem.n_features
    further, x = problem.fertility - 1, problem.features[first * F : stop * F].reshape((F, stop - first))
    copy(w[F:], theta[:further])
    sum_features(x, w, theta[further : further + stop - first])


@protocol.argmax.register(Matching)
def matching_argmax(problem, i, theta, y, work):
    first, stop, further = problem.offsets[i], problem.offsets[i + 1], problem.fertility - 1
    scores = work.scores[: stop - first]
    weighted_sum(1.0, theta[further : further + stop - first], 1.0, problem.cost[first:stop], scores)
    _match(problem, i, theta, scores, y, work)


@protocol.decode.register(Matching)
def matching_decode(problem, i, theta, y, work):
    further, n_links = problem.fertility - 1, problem.offsets[i + 1] - problem.offsets[i]
    _match(problem, i, theta, theta[further : further + n_links], y, work)


@subroutine
def _match(problem, i, theta, scores, y, work):
    """The best matching for these scores of links."""
    for s in range(problem.fertility - 1):
        work.bonus[s + 1] = theta[s]
    matrix = scores.reshape((problem.sources[i], problem.targets[i]))
    assignment(matrix, work.bonus, work.search, y)


@protocol.loss.register(Matching)
def matching_loss(problem, i, y):
    first, n_targets = problem.offsets[i], problem.targets[i]
    total, hits = 0.0, 0
    for place in range(problem.starts[i + 1] - problem.starts[i]):
        if y[place] >= 0:
            cost = problem.cost[first + (place // problem.fertility) * n_targets + y[place]]
            if cost < 0.0:
                hits += 1
            else:
                total += cost
    return total + problem.missed * (problem.n_true[i] - hits)


@protocol.psi.register(Matching)
def matching_psi(problem, i, y, index, value):
    first, count = problem.starts[i], 0
    for place in range(problem.starts[i + 1] - first):
        truth = problem.partners[first + place]
        if truth != y[place]:
            count = _add_link(problem, i, place, truth, 1.0, count, index, value)
            count = _add_link(problem, i, place, y[place], -1.0, count, index, value)
    return count


@subroutine
def _add_link(problem, i, place, target, sign, count, index, value):
    """Write the statistics of a link from a place, if there is one, after the first ``count``."""
    if target < 0:
        return count
    source, further = place // problem.fertility, problem.fertility - 1
    slot = place - source * problem.fertility
    if slot > 0:
        index[count], value[count] = slot - 1, sign
        count += 1
    index[count], value[count] = further + source * problem.targets[i] + target, sign
    return count + 1


@protocol.gram.register(Matching)
def matching_gram(problem, i, move, image, work):
    first, stop, F = problem.offsets[i], problem.offsets[i + 1], problem.n_features
    further, x = problem.fertility - 1, problem.features[first * F : stop * F].reshape((F, stop - first))
    clear(work.image)
    push_links(x, move.support[: move.size[0]], move.delta, further, 1.0, work.image)
    copy(move.delta[:further], image[:further])
    sum_features(x, work.image, image[further : further + stop - first])


@protocol.push.register(Matching)
def matching_push(problem, i, move, scale, w, work):
    first, stop, F = problem.offsets[i], problem.offsets[i + 1], problem.n_features
    further, x = problem.fertility - 1, problem.features[first * F : stop * F].reshape((F, stop - first))
    push_links(x, move.support[: move.size[0]], move.delta, further, scale, w)
    add_scaled(scale, move.delta[:further], w[F:])

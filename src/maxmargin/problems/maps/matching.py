"""The feature map of matchings: from links and counts of places to weights, and back to scores.

The statistics of an output are the numbers of sources that use their second, third, ... place, then the
indicators of all links, source by source. The weights are those of the features of links, then those of the
further places.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.loops import add_scaled, clear, copy
from maxmargin.problems import feature_map
from maxmargin.problems.maps._link_features import push_links, sum_features
from maxmargin.problems.subsets import indexed_by_example


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


@feature_map.score.register(MatchingMap)
def matching_score(phi, i, w, theta):
    first, stop, F = phi.links[i, 0], phi.links[i, 1], phi.n_features
    further, x = phi.fertility - 1, phi.features[first * F : stop * F].reshape((F, stop - first))
    copy(w[F:], theta[:further])
    sum_features(x, w, theta[further : further + stop - first])


@feature_map.gram.register(MatchingMap)
def matching_gram(phi, i, move, image, work):
    first, stop, F = phi.links[i, 0], phi.links[i, 1], phi.n_features
    further, x = phi.fertility - 1, phi.features[first * F : stop * F].reshape((F, stop - first))
    clear(work.image)
    push_links(x, move.support[: move.size[0]], move.delta, further, 1.0, work.image)
    copy(move.delta[:further], image[:further])
    sum_features(x, work.image, image[further : further + stop - first])


@feature_map.push.register(MatchingMap)
def matching_push(phi, i, move, scale, w, work):
    first, stop, F = phi.links[i, 0], phi.links[i, 1], phi.n_features
    further, x = phi.fertility - 1, phi.features[first * F : stop * F].reshape((F, stop - first))
    push_links(x, move.support[: move.size[0]], move.delta, further, scale, w)
    add_scaled(scale, move.delta[:further], w[F:])


@feature_map.unpack.register(MatchingMap)
def matching_unpack(phi: MatchingMap, w: FloatArray) -> MatchingWeights:
    return MatchingWeights(w[: phi.n_features], w[phi.n_features :])

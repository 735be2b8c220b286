r"""The feature map of second-order chains: that of a chain, followed by the identity on counts of trigrams.

.. math:: \langle w, \phi(x, y) \rangle = \langle w', \phi_{\text{chain}}(x, y) \rangle
          + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

The weights of the chain are followed by those of B, in the order of the statistics.
"""

from typing import NamedTuple

from maxmargin.arrays import FloatArray
from maxmargin.compiling import subroutine
from maxmargin.loops import clear, copy
from maxmargin.problems import feature_map
from maxmargin.problems.layouts import padded, trigram_statistics
from maxmargin.problems.maps.chain import ChainMap, unpack_chain


class SecondOrderWeights(NamedTuple):
    """Weights by meaning; ``trigrams[i, j, k]`` scores label k after label j after label i."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray
    trigrams: FloatArray


class SecondOrderMap(NamedTuple):
    """Features of sequences, which are those of a chain: trigrams have none."""

    inner: ChainMap


@feature_map.map_sizes.register(SecondOrderMap)
def second_order_map_sizes(phi):
    chain = feature_map.map_sizes(phi.inner)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.MapSizes(chain.examples, chain.weights + trigrams, chain.statistics + trigrams)


@feature_map.statistics_size.register(SecondOrderMap)
def second_order_statistics_size(phi, i):
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.statistics_size(phi.inner, i) + trigrams


@subroutine
def _first_weight(phi):
    """Index of the first weight of a trigram."""
    return (phi.inner.rows.n_columns + 2 + phi.inner.n_labels) * phi.inner.width


@feature_map.score.register(SecondOrderMap)
def second_order_score(phi, i, w, theta):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.score(phi.inner, i, w, theta)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    copy(w[_first_weight(phi) :], theta[first : first + trigrams])


@feature_map.gram.register(SecondOrderMap)
def second_order_gram(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.gram(phi.inner, i, move, image, work.inner)
    clear(image[first : first + trigram_statistics(phi.inner.n_labels, phi.inner.width)])
    for c in range(move.size[0]):
        if move.support[c] >= first:
            image[move.support[c]] = move.delta[move.support[c]]


@feature_map.norm2.register(SecondOrderMap)
def second_order_norm2(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    total = feature_map.norm2(phi.inner, i, move, image, work.inner)
    for c in range(move.size[0]):
        if move.support[c] >= first:
            entry = move.delta[move.support[c]]
            total += entry * entry  # the interpreter would round a power differently
    return total


@feature_map.push.register(SecondOrderMap)
def second_order_push(phi, i, move, scale, w, work):
    first, weights = feature_map.statistics_size(phi.inner, i), _first_weight(phi)
    feature_map.push(phi.inner, i, move, scale, w[:weights], work.inner)
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= first:
            w[weights + (p - first)] += scale * move.delta[p]


@feature_map.row_layout.register(SecondOrderMap)
def second_order_row_layout(phi: SecondOrderMap) -> feature_map.RowLayout:
    return feature_map.row_layout(phi.inner)


@feature_map.unpack.register(SecondOrderMap)
def second_order_unpack(phi: SecondOrderMap, w: FloatArray) -> SecondOrderWeights:
    return unpack_second_order(w, phi.inner.rows.n_columns, phi.inner.n_labels)


def unpack_second_order(w: FloatArray, n_features: int, n_labels: int) -> SecondOrderWeights:
    """Return the weights of a second-order chain by meaning, as views of ``w``."""
    K, width = n_labels, padded(n_labels)
    end = (n_features + 2 + K) * width
    by_middle = w[end:].reshape(K, K, width)[:, :, :K]
    return SecondOrderWeights(*unpack_chain(w[:end], n_features, K), by_middle.transpose(1, 0, 2))

r"""Hidden Markov models of word alignment, one per direction, trained to agree (Liang et al. 2006).

Positions of one sentence emit the words of the other. The distribution of the next position depends on the
jump from the last one. A word may also be emitted by no position, and the position then stays where it is.
The expectation step counts each link by the product of its probabilities under both models.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from word_alignment.lexicon import FloatArray, Lexicon, normalised
from word_alignment.parallel_text import Text

# All jumps of at least this length are equally likely.
_REACH = 8
# Probability that a word translates no word.
_UNLINKED = 0.1
_TINY = 1e-300


class Jumps(NamedTuple):
    """Probabilities, or expected counts, of jumps -reach, ..., reach in each direction."""

    forward: FloatArray
    backward: FloatArray


class Aligner(NamedTuple):
    """The parameters of both models, or the expected counts from which they are estimated."""

    lexicon: Lexicon
    jumps: Jumps


class Posteriors(NamedTuple):
    """The probability of every link in each direction; empty arrays if it is not wanted."""

    forward: FloatArray
    backward: FloatArray


class _Trellis(NamedTuple):
    """Workspace of one direction: words by positions, and positions by positions."""

    emission: FloatArray
    unlinked: FloatArray
    jump: FloatArray
    jump_count: FloatArray
    ahead: FloatArray
    ahead_unlinked: FloatArray
    scale: FloatArray
    posterior: FloatArray
    following: FloatArray
    rest: FloatArray


def train_aligner(text: Text, lexicon: Lexicon, iterations: int = 5) -> Aligner:
    """Train both models from the lexicon of model 1."""
    near = 1.0 / (1.0 + np.abs(np.arange(-_REACH, _REACH + 1) - 1.0))
    aligner = Aligner(lexicon, Jumps(near, near))
    not_wanted = Posteriors(np.zeros(0), np.zeros(0))
    for _ in range(iterations):
        counts = _zero_counts(aligner)
        _expect(text, len(text.offsets) - 1, aligner, counts, *_trellises(text), not_wanted)
        aligner = Aligner(normalised(text, counts.lexicon), counts.jumps)
    return aligner


def link_posteriors(text: Text, aligner: Aligner, n_pairs: int) -> Posteriors:
    """Return the probabilities of the links of the first sentence pairs."""
    n_links = text.offsets[n_pairs]
    found = Posteriors(np.zeros(n_links), np.zeros(n_links))
    _expect(text, n_pairs, aligner, _zero_counts(aligner), *_trellises(text), found)
    return found


def _zero_counts(aligner: Aligner) -> Aligner:
    """Return counts of zero. Both directions share one array of links: they count the same ones."""
    lexicon, jumps = aligner
    links, unlinked = np.zeros_like(lexicon.forward), map(np.zeros_like, lexicon[2:])
    return Aligner(Lexicon(links, links, *unlinked), Jumps(*map(np.zeros_like, jumps)))


def _trellises(text: Text) -> tuple[_Trellis, _Trellis]:
    m, n = (int(np.diff(side.offsets).max()) for side in (text.source, text.target))
    return _trellis(n, m), _trellis(m, n)


def _trellis(length: int, width: int) -> _Trellis:
    shapes = {
        "emission": (length, width),
        "unlinked": (length,),
        "jump": (width, width),
        "jump_count": (width, width),
        "ahead": (length, width),
        "ahead_unlinked": (length, width),
        "scale": (length,),
        "posterior": (length, width),
        "following": (width,),
        "rest": (width,),
    }
    return _Trellis(**{name: np.zeros(shape) for name, shape in shapes.items()})


@njit(cache=True)
def _expect(text, n_pairs, aligner, counts, one, two, found):
    """Add the expected counts of the first pairs to ``counts``; fill ``found`` unless it is empty."""
    source, target = text.source, text.target
    for s in range(n_pairs):
        sources = source.words[source.offsets[s] : source.offsets[s + 1]]
        targets = target.words[target.offsets[s] : target.offsets[s + 1]]
        m, n, links = len(sources), len(targets), slice(text.offsets[s], text.offsets[s + 1])
        number = text.number[links].reshape((m, n))
        _look_up(aligner.lexicon, number, sources, targets, one, two)
        _infer(one, n, m, aligner.jumps.forward, counts.jumps.forward)
        _infer(two, m, n, aligner.jumps.backward, counts.jumps.backward)
        _add_links(counts.lexicon, number, sources, targets, one.posterior, two.posterior)
        if found.forward.shape[0] > 0:
            found.forward[links].reshape((m, n))[:] = one.posterior[:n, :m].T
            found.backward[links].reshape((m, n))[:] = two.posterior[:m, :n]


@njit(cache=True)
def _look_up(lexicon, number, sources, targets, one, two):
    """Fill both trellises with the emission probabilities."""
    for j in range(len(sources)):
        two.unlinked[j] = lexicon.unlinked_sources[sources[j]]
        for k in range(len(targets)):
            one.emission[k, j] = lexicon.forward[number[j, k]]
            two.emission[j, k] = lexicon.backward[number[j, k]]
    for k in range(len(targets)):
        one.unlinked[k] = lexicon.unlinked_targets[targets[k]]


@njit(cache=True)
def _add_links(counts, number, sources, targets, forward, backward):
    """Add the links that both models expect, and the words that each model leaves unlinked."""
    m, n = number.shape
    for j in range(m):
        counts.unlinked_sources[sources[j]] += max(1.0 - backward[j, :n].sum(), 0.0)
        for k in range(n):
            counts.forward[number[j, k]] += forward[k, j] * backward[j, k]
    for k in range(n):
        counts.unlinked_targets[targets[k]] += max(1.0 - forward[k, :m].sum(), 0.0)


@njit(cache=True)
def _infer(trellis, length, width, jumps, counts):
    """Run forward-backward: the posterior of each position for each word, and the expected jumps."""
    _fill_jumps(trellis, width, jumps)
    for t in range(length):
        _advance(trellis, t, width)
    trellis.following[:width] = 1.0
    for t in range(length - 1, -1, -1):
        for i in range(width):
            trellis.posterior[t, i] = trellis.ahead[t, i] * trellis.following[i]
        if t > 0:
            _retreat(trellis, t, width)
    for a in range(width):
        for b in range(width):
            counts[_clipped(b - a)] += trellis.jump_count[a, b]


@njit(cache=True)
def _clipped(jump):
    return min(max(jump, -_REACH), _REACH) + _REACH


@njit(cache=True)
def _fill_jumps(trellis, width, jumps):
    """Fill ``jump[a, b]``, the probability of position b after position a."""
    for a in range(width):
        total = _TINY
        for b in range(width):
            trellis.jump[a, b] = jumps[_clipped(b - a)]
            trellis.jump_count[a, b] = 0.0
            total += trellis.jump[a, b]
        for b in range(width):
            trellis.jump[a, b] *= (1.0 - _UNLINKED) / total


@njit(cache=True)
def _advance(trellis, t, width):
    """Take the forward step to word t, scaled to sum to one."""
    here, unlinked = trellis.ahead[t, :width], trellis.ahead_unlinked[t, :width]
    here[:] = (1.0 - _UNLINKED) / width if t == 0 else 0.0
    unlinked[:] = _UNLINKED / width
    if t > 0:
        for a in range(width):
            last = trellis.ahead[t - 1, a] + trellis.ahead_unlinked[t - 1, a]
            unlinked[a] = _UNLINKED * last
            for b in range(width):
                here[b] += last * trellis.jump[a, b]
    total = _TINY
    for i in range(width):
        here[i] *= trellis.emission[t, i]
        unlinked[i] *= trellis.unlinked[t]
        total += here[i] + unlinked[i]
    trellis.scale[t] = 1.0 / total
    for i in range(width):
        here[i] *= trellis.scale[t]
        unlinked[i] *= trellis.scale[t]


@njit(cache=True, fastmath={"reassoc"})
def _retreat(trellis, t, width):
    """Take the backward step from word t, with the scale of the forward step, and count the jumps to it."""
    following, rest, jump = trellis.following, trellis.rest, trellis.jump
    for b in range(width):
        rest[b] = trellis.scale[t] * trellis.emission[t, b] * following[b]
    for a in range(width):
        last = trellis.ahead[t - 1, a] + trellis.ahead_unlinked[t - 1, a]
        total = trellis.scale[t] * _UNLINKED * trellis.unlinked[t] * following[a]
        for b in range(width):
            expected = jump[a, b] * rest[b]
            total += expected
            trellis.jump_count[a, b] += last * expected
        following[a] = total

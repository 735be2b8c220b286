r"""Hidden Markov models of word alignment, one per direction, trained to agree (Liang et al. 2006).

The words of one side are emitted by positions of the other; the next position depends on the jump from the
last one, and a word may be emitted by none, which keeps the position. Each expectation step takes as the
expected number of a link the product of its probabilities under both models.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from maxmargin.datasets._lexicon import FloatArray, Lexicon, normalised
from maxmargin.datasets._parallel import Text

# Jumps at least this far are equally likely.
_REACH = 8
# Probability of a word that translates none.
_UNLINKED = 0.1
_TINY = 1e-300


class Jumps(NamedTuple):
    """Probabilities of jumps -reach, ..., reach in each direction, or their counts."""

    forward: FloatArray
    backward: FloatArray


class Aligner(NamedTuple):
    """Both models, or what they are estimated from."""

    lexicon: Lexicon
    jumps: Jumps


class Posteriors(NamedTuple):
    """The probability of every link in each direction, or nothing."""

    forward: FloatArray
    backward: FloatArray


class _Trellis(NamedTuple):
    """Work space of one direction: words by positions, and positions by positions."""

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
    nowhere = Posteriors(np.zeros(0), np.zeros(0))
    for _ in range(iterations):
        counts = _no_counts(aligner)
        _walk(text, len(text.offsets) - 1, aligner, counts, *_trellises(text), nowhere)
        aligner = Aligner(normalised(text, counts.lexicon), counts.jumps)
    return aligner


def link_posteriors(text: Text, aligner: Aligner, n_pairs: int) -> Posteriors:
    """Return the probabilities of the links of the first sentence pairs."""
    n_links = text.offsets[n_pairs]
    found = Posteriors(np.zeros(n_links), np.zeros(n_links))
    _walk(text, n_pairs, aligner, _no_counts(aligner), *_trellises(text), found)
    return found


def _no_counts(aligner: Aligner) -> Aligner:
    """Return zeros; as both models count the same links, these are counted once."""
    lexicon, jumps = aligner
    links, none = np.zeros_like(lexicon.forward), map(np.zeros_like, lexicon[2:])
    return Aligner(Lexicon(links, links, *none), Jumps(*map(np.zeros_like, jumps)))


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


@njit
def _walk(text, n_pairs, aligner, counts, one, two, found):
    """Add what both models expect of the first pairs to ``counts``; fill ``found`` if it has room."""
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


@njit
def _look_up(lexicon, number, sources, targets, one, two):
    """Fill both trellises with the probabilities of words."""
    for j in range(len(sources)):
        two.unlinked[j] = lexicon.unlinked_sources[sources[j]]
        for k in range(len(targets)):
            one.emission[k, j] = lexicon.forward[number[j, k]]
            two.emission[j, k] = lexicon.backward[number[j, k]]
    for k in range(len(targets)):
        one.unlinked[k] = lexicon.unlinked_targets[targets[k]]


@njit
def _add_links(counts, number, sources, targets, forward, backward):
    """Count the links that both models expect, and the words that each leaves unlinked."""
    m, n = number.shape
    for j in range(m):
        counts.unlinked_sources[sources[j]] += max(1.0 - backward[j, :n].sum(), 0.0)
        for k in range(n):
            counts.forward[number[j, k]] += forward[k, j] * backward[j, k]
    for k in range(n):
        counts.unlinked_targets[targets[k]] += max(1.0 - forward[k, :m].sum(), 0.0)


@njit
def _infer(trellis, length, width, jumps, counts):
    """Find the posterior of each position for each word, and count the jumps: forward and backward."""
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


@njit
def _clipped(jump):
    return min(max(jump, -_REACH), _REACH) + _REACH


@njit
def _fill_jumps(trellis, width, jumps):
    """``jump[a, b]``: the probability of position b after a."""
    for a in range(width):
        total = _TINY
        for b in range(width):
            trellis.jump[a, b] = jumps[_clipped(b - a)]
            trellis.jump_count[a, b] = 0.0
            total += trellis.jump[a, b]
        for b in range(width):
            trellis.jump[a, b] *= (1.0 - _UNLINKED) / total


@njit
def _advance(trellis, t, width):
    """The forward step to word t, scaled to sum to one."""
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


@njit(fastmath={"reassoc"})
def _retreat(trellis, t, width):
    """The backward step from word t, by the forward one's scale, and the expected jumps to it."""
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

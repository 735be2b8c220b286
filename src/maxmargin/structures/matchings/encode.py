"""Encode pairs of word lists: the features of all possible links, and the true links."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.kinds import Words, check_widths, first_not_finite, is_numeric, without_empty
from maxmargin.encoding.labels import checked_count, checked_numbers, checked_offsets
from maxmargin.runtime.arrays import BoolArray, FloatArray, IntArray, freeze, kernel_copy
from maxmargin.runtime.wording import described

_MATCHINGS = (
    "the target of each source word or -1, a list of (source, target) pairs, or a 2-D array of zeros and ones"
)


class Links(NamedTuple):
    """The possible links of all pairs, one pair after another.

    Attributes
    ----------
    features : ndarray of float64 (n_links * n_features,)
        For each pair the values of the first feature at all links, source by source, then the values of
        the second feature, and so on. Inner loops of sums over features then run along links and vectorise.
    offsets : ndarray of int64 (n_pairs + 1,)
        Pair i consists of the links offsets[i], ..., offsets[i + 1] - 1. There are none if it has no source
        or no target.
    sources, targets : ndarrays of int64 (n_pairs,)
        Number of words on each side.
    n_features : int
    """

    features: FloatArray
    offsets: IntArray
    sources: IntArray
    targets: IntArray
    n_features: int

    @property
    def by_link(self) -> FloatArray:
        """The features as a matrix of a row per link."""
        spans = zip(*(self.n_features * self.offsets[part] for part in np.s_[:-1, 1:]), strict=True)
        return np.vstack([self.features[a:b].reshape(self.n_features, -1).T for a, b in spans])

    def without_empty(self) -> "Links":
        """Return the pairs that have links."""
        some = np.diff(self.offsets) > 0
        return self._replace(
            offsets=without_empty(self.offsets), sources=self.sources[some], targets=self.targets[some]
        )


def encode_links(X: object, *, constant: bool = False) -> Links:
    """Return the features of all links; with ``constant``, the last feature is one for every link."""
    blocks = [_block(item, i) for i, item in enumerate(_as_list(X))]
    check_widths({i: block.shape[2] for i, block in enumerate(blocks)}, Words("pair", "link"))
    n_features = blocks[0].shape[2]
    sizes = np.array([block.shape[:2] for block in blocks], dtype=np.int64)
    offsets = np.append(0, np.cumsum(sizes.prod(axis=1)))
    features = np.ones((n_features + constant) * offsets[-1])
    for block, first, stop in zip(blocks, offsets[:-1], offsets[1:], strict=True):
        rows = features[first * (n_features + constant) :][: n_features * (stop - first)]
        rows.reshape(n_features, -1)[:] = block.reshape(-1, n_features).T
    return Links(freeze(features), offsets, sizes[:, 0].copy(), sizes[:, 1].copy(), n_features + constant)


def encode_matchings(y: object, links: Links, *, fertility: int = 1, name: str = "y") -> BoolArray:
    """Return which links are true; raise if a source has more than ``fertility`` links."""
    truth = encode_masks(y, links, name=name)
    for i, (m, n) in enumerate(zip(links.sources, links.targets, strict=True)):
        matrix = truth[links.offsets[i] : links.offsets[i + 1]].reshape(m, n)
        for side, most, counts in (("source", fertility, matrix.sum(1)), ("target", 1, matrix.sum(0))):
            if counts.max(initial=0) > most:
                raise ValueError(
                    f"{side} {counts.argmax()} of pair {i} of {name} has {counts.max()} links, "
                    f"expected at most {most}; drop the others{_advice(side, counts.max())}."
                )
    return truth


def _advice(side: str, links: int) -> str:
    return f" or set fertility={links}" if side == "source" else ""


def encode_masks(y: object, links: Links, *, name: str) -> BoolArray:
    """Return which links are named in ``y``; a word may have any number of links."""
    matchings = list(y) if isinstance(y, Iterable) and not isinstance(y, str | dict) else None
    if matchings is None or len(matchings) != len(links.sources):
        got = described(y) if matchings is None else f"{len(matchings)} items"
        raise ValueError(f"{name} must be a list of {len(links.sources)} matchings, got {got}.")
    sizes = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
    masks = [
        _mask(matching, size, f"matching {i} of {name}")
        for i, (matching, size) in enumerate(zip(matchings, sizes, strict=True))
    ]
    return np.concatenate([mask.ravel() for mask in masks])


def _mask(matching: object, size: tuple[int, int], where: str) -> BoolArray:
    """Return the matrix of one matching, given in any of the three forms."""
    if isinstance(matching, np.ndarray) and matching.ndim == 2:
        return _matrix(matching, size, where)
    if not isinstance(matching, Iterable) or isinstance(matching, str):
        raise TypeError(f"{where} is {described(matching)}, expected {_MATCHINGS}.")
    entries = list(matching)
    if entries and isinstance(entries[0], Iterable):
        return _linked(entries, size, where)
    if not entries:
        return np.zeros(size, dtype=np.bool_)
    return _partners(entries, size, where)


def _matrix(matching: NDArray[np.generic], size: tuple[int, int], where: str) -> BoolArray:
    if matching.shape != size or not np.isin(matching, (0, 1)).all():
        raise ValueError(f"{where} is {described(matching)}, expected zeros and ones of shape {size}.")
    return matching.astype(np.bool_)


def _linked(pairs: list[Iterable[int]], size: tuple[int, int], where: str) -> BoolArray:
    try:
        links = np.array([tuple(pair) for pair in pairs])
        valid = links.ndim == 2 and links.shape[1] == 2 and links.dtype.kind in "iu"
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"{where} has items that are not pairs (source, target) of ints; expected {_MATCHINGS}."
        )
    outside = ((links < 0) | (links >= size)).any(axis=1)
    if outside.any():
        bad = tuple(links[outside.argmax()].tolist())
        raise ValueError(
            f"{where} has the link {bad}, but the pair has {size[0]} sources and {size[1]} targets; "
            "count both from zero."
        )
    mask = np.zeros(size, dtype=np.bool_)
    mask[links[:, 0], links[:, 1]] = True
    return mask


def _partners(entries: list[int], size: tuple[int, int], where: str) -> BoolArray:
    partners = np.array(entries)
    if partners.shape != size[:1] or partners.dtype.kind not in "iu":
        raise ValueError(
            f"{where} has {len(entries)} entries of dtype {partners.dtype}, expected {size[0]} ints, one per "
            "source: its target, or -1."
        )
    if partners.min() < -1 or partners.max() >= size[1]:
        bad = next(k for k in entries if not -1 <= k < size[1])
        raise ValueError(f"{where} has target {bad}, but the pair has {size[1]} targets; use -1 for none.")
    mask = np.zeros(size, dtype=np.bool_)
    linked = np.flatnonzero(partners >= 0)
    mask[linked, partners[linked]] = True
    return mask


def _as_list(X: object) -> list[object]:
    if not isinstance(X, Iterable) or isinstance(X, str | dict) or getattr(X, "ndim", 4) not in (1, 4):
        advice = "; if it is one pair pass [X]" if getattr(X, "ndim", 0) == 3 else ""
        raise TypeError(
            "X must be a list of arrays of shape (n_sources, n_targets, n_features), "
            f"got {described(X)}{advice}."
        )
    pairs = list(X)
    if not pairs:
        raise ValueError(f"X has no pair, expected at least one; got {described(X)}.")
    return pairs


def _block(item: object, i: int) -> FloatArray:
    try:
        block = np.asarray(item)
    except ValueError:  # lists of unequal lengths
        block = np.empty(0, dtype=object)
    if block.ndim != 3 or not is_numeric(block.dtype):
        raise ValueError(
            f"pair {i} of X is {described(item)}, expected numbers of shape (n_sources, n_targets, "
            "n_features); give every link the same number of features."
        )
    if block.shape[2] == 0:
        raise ValueError(f"links of pair {i} of X have 0 features, expected at least 1.")
    block = block.astype(np.float64, copy=False)
    bad = first_not_finite(block)
    if bad is not None:
        j, k, f = (int(index) for index in np.unravel_index(bad, block.shape))
        raise ValueError(
            f"feature {f} of link ({j}, {k}) of pair {i} of X is {block[j, k, f]}, expected a "
            "finite number; remove or impute it."
        )
    return block


def checked_links(links: Links) -> Links:
    """Return the links in copied arrays; raise unless each pair has one link per pair of words."""
    n_features = checked_count(links.n_features, "n_features")
    features = np.asarray(links.features)
    if features.ndim != 1 or len(features) % n_features:
        raise ValueError(
            f"features must be a vector of {n_features} numbers per link, got {described(features)}."
        )
    offsets = checked_offsets(links.offsets, len(features) // n_features)
    n, stop = len(offsets) - 1, int(offsets[-1]) + 1
    sources, targets = (
        checked_numbers(side, n, stop, name=name, begin=1)
        for side, name in ((links.sources, "sources"), (links.targets, "targets"))
    )
    wrong = np.diff(offsets) % sources + abs(np.diff(offsets) // sources - targets) > 0
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"pair {i} must have a link for each of {sources[i]} sources and {targets[i]} targets, "
            f"got {offsets[i + 1] - offsets[i]}."
        )
    return Links(kernel_copy(features, np.float64), offsets, sources, targets, n_features)

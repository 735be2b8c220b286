r"""Partial bipartite matchings: a word is linked to a word on the other side, or left unlinked.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(j, k) \in y} \langle w, x_{jk} \rangle
          + \sum_{s > 1} c_s \, |\{ j : j \text{ uses its place } s \}|

with features :math:`x_{jk}` of the link from source j to target k. A target has at most one link. A source
has ``fertility`` places for links, one by default, and each place after the first has a learnt score
:math:`c_s`. As each link takes one place, the best output is a best matching of places to targets, which is
found exactly.
"""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import BoolArray, IntArray, plain
from maxmargin.encoding.checked import checked_count, checked_flags, checked_links
from maxmargin.encoding.links import Links, encode_links, encode_masks, encode_matchings
from maxmargin.problems.maps.matching import MatchingMap
from maxmargin.problems.oracles.matching import MatchingOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.problems.subsets import spans
from maxmargin.wording import shown

MatchingProblem = Problem[MatchingMap, MatchingOracle]


class Matching:
    """Builders of matching problems."""

    @staticmethod
    def from_links(
        X: object,
        y: object,
        *,
        possible: object = None,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
        owner: str = "Matching",
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
        owner : str
            The name that errors begin with.
        """
        checked_count(fertility, owner, "fertility")
        links = encode_links(X, owner=owner)
        truth = encode_matchings(y, links, owner=owner, fertility=fertility)
        ignored = None if possible is None else encode_masks(possible, links, owner=owner, name="possible")
        return Matching.from_encoded(
            links, truth, ignored, wrong=wrong, missed=missed, fertility=fertility, owner=owner
        )

    @staticmethod
    def from_encoded(
        links: Links,
        truth: ArrayLike,
        possible: ArrayLike | None = None,
        *,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
        owner: str = "Matching",
    ) -> MatchingProblem:
        """Build a problem from links; ``truth``, an array of bools, marks a matching."""
        _check_costs(wrong, missed, owner)
        phi, pairs = Matching.for_prediction(links, fertility, owner=owner)
        n_links = int(pairs.links[-1, 1])
        true = checked_flags(truth, n_links, owner, "truth")
        costs = np.full(n_links, float(wrong))
        if possible is not None:
            costs[checked_flags(possible, n_links, owner, "possible")] = 0.0
        pairs = pairs._replace(
            partners=_partners(pairs, true, owner),
            cost=plain(np.where(true, -missed, costs), np.float64),
            n_true=plain(np.add.reduceat(true, pairs.links[:, 0], dtype=np.int64), np.int64),
            missed=float(missed),
        )
        return Problem(phi, pairs)

    @staticmethod
    def for_prediction(links: Links, fertility: int = 1, *, owner: str = "Matching") -> MatchingProblem:
        """Build a problem that can be decoded but not trained on: it has no true links."""
        fertility = checked_count(fertility, owner, "fertility")
        links = checked_links(links, owner)
        of_pairs = spans(links.offsets)
        most_links = int((of_pairs[:, 1] - of_pairs[:, 0]).max())
        oracle = MatchingOracle(
            links=of_pairs,
            sources=links.sources,
            targets=links.targets,
            places=spans(np.append(0, np.cumsum(fertility * links.sources))),
            partners=np.zeros(0, dtype=np.int64),
            cost=np.zeros(0),
            n_true=np.zeros(len(of_pairs), dtype=np.int64),
            missed=0.0,
            fertility=fertility,
            most_links=most_links,
            most_sources=int(links.sources.max()),
            most_targets=int(links.targets.max()),
        )
        phi = MatchingMap(links.features, of_pairs, fertility, int(links.n_features), most_links)
        return fitting(Problem(phi, oracle), owner)


def _check_costs(wrong: object, missed: object, owner: str) -> None:
    """Raise unless both costs are finite and not negative."""
    for name, value in (("wrong", wrong), ("missed", missed)):
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{owner}: {name} must be a finite number >= 0, got {shown(value)}.")


def _partners(pairs: MatchingOracle, truth: BoolArray, owner: str) -> IntArray:
    """Return the target of each place; the links of a source take its first places."""
    partners = np.full(pairs.places[-1, 1], -1, dtype=np.int64)
    for i, (m, n) in enumerate(zip(pairs.sources, pairs.targets, strict=True)):
        matrix = truth[pairs.links[i, 0] : pairs.links[i, 1]].reshape(m, n)
        source, target = np.nonzero(matrix)
        place = np.cumsum(matrix, axis=1)[source, target] - 1
        if len(place) and (place.max() >= pairs.fertility or len(set(target.tolist())) < len(target)):
            raise ValueError(
                f"{owner}: truth must link a source at most {pairs.fertility} times and a target once, "
                f"got more for pair {i}."
            )
        partners[pairs.places[i, 0] + source * pairs.fertility + place] = target
    return partners

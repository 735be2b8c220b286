"""Bipartite matching as a scikit-learn estimator."""

import itertools
from collections.abc import Iterable
from numbers import Integral, Real
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators.confidence import ListMarginEstimator, split_at
from maxmargin.estimators.estimator import Call, MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Parts, f1
from maxmargin.estimators.explanation import (
    Contribution,
    Explainer,
    Part,
    Reader,
    RowReader,
    named_by,
    single,
)
from maxmargin.estimators.fields import COUNT, FLAG, Fields, scalar
from maxmargin.estimators.inspection import NO_FEATURE, NO_LABEL, FeatureInspector, WeightTable
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.problems import Problem
from maxmargin.estimators.state import Interval, SinglePrediction, is_none, present_weights, transaction
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.result import Callback
from maxmargin.structures.matchings.encode import Links, encode_links, encode_masks, encode_matchings
from maxmargin.structures.matchings.model import Matching


class LinkReader(NamedTuple):
    """Reads links between sources and targets.

    Attributes
    ----------
    links : RowReader
        A row for each possible link, source by source.
    targets : int
        Number of targets.
    coef, intercept, places : array, float, array
        The weights.
    """

    links: RowReader
    targets: int
    coef: FloatArray
    intercept: float
    places: FloatArray

    @property
    def fertility(self) -> int:
        return len(self.places) + 1

    def parts(self, codes: IntArray) -> list[Part]:
        sources = len(codes) // self.fertility
        pairs = itertools.product(range(sources), range(self.targets))
        return [Part(p, pair) for p, pair in enumerate(pairs)]

    def state(self, codes: IntArray, part: Part) -> object:
        return part.name in {(source, target) for source, target, _ in self._made(codes)}

    def _made(self, codes: IntArray) -> list[tuple[int, int, int]]:
        """Return source, target and place of all links."""
        places = np.flatnonzero(codes >= 0).tolist()
        return [(p // self.fertility, int(codes[p]), p % self.fertility) for p in places]

    def output(self, codes: IntArray) -> object:
        return codes if self.fertility == 1 else sorted(link[:2] for link in self._made(codes))

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for source, target, place in self._made(codes):
            part = source, target
            found += self.links.contributions(source * self.targets + target, part, None, self.coef)
            found += single(part, "intercept", None, None, self.intercept)
            if place:
                found += single(part, "place", place + 1, None, self.places[place - 1])
        return found


_Masks = NDArray[np.bool_]
_Data = tuple[Links, _Masks, _Masks]
_Found = IntArray | list[tuple[int, int]]


class MatchingSVC(
    Explainer,
    FeatureInspector,
    SinglePrediction,
    ListMarginEstimator,
    MaxMarginEstimator[_Data, list[_Found]],
):
    r"""Structural SVM for partial bipartite matchings, such as alignments of words.

    A matching y of the words of two sentences, or of any other two sides, scores
    :math:`\sum_{(j, k) \in y} \left( \langle w, x_{jk} \rangle + b \right) + \sum_{s > 1} c_s
    |\{ j : j \text{ uses its place } s \}|`. Training minimises

    .. math:: \frac{1}{2 C n} \|(w, b, c)\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right)

    where the loss L counts wrong and missed links.

    Parameters
    ----------
    %(C)s
    wrong : float, default=1.0
        Cost of a link that is not true.
    missed : float, default=3.0
        Cost of missing a true link.
    fertility : int, default=1
        Largest number of links of a source; all but the first have a learnt score. A target has at most one.
        If it exceeds the largest number of targets of a pair in `fit`, that number is used, but at least two.
    %(fit_intercept)s
        Without an intercept, the features must indicate when to make no link.
    %(training)s

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w, the weights of the links' features.
    intercept_ : float
        b, the score of any link.
    places_ : array of shape (fertility - 1,)
        c, the scores of a source's second, third, ... link; fewer if a smaller ``fertility`` is used.
    %(certificate)s
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import MatchingSVC
    >>> english, french = ["the", "nation"], ["la", "grande", "nation"]
    >>> same = np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in french] for a in english])
    >>> model = MatchingSVC(C=100, random_state=0).fit([same[:, :, None]], [[-1, 2]])
    >>> model.predict([same[:, :, None]])[0].tolist()
    [-1, 2]
    """

    _texts: ClassVar[dict[str, str]] = {
        "example": "pair of sides",
        "examples": "pairs of sides",
        "X": """
            X : list of arrays of shape (n_sources, n_targets, n_features)
                The features of every possible link. A pair without sources or without targets has no links,
                and changes nothing in training.
            """,
        "y": """
            y : list of matchings
                Each is the target of each source or -1, a list of (source, target) pairs, or an array of
                shape (n_sources, n_targets) of zeros and ones.
            """,
        "extra": """
            possible : list of matchings, default=None
                In the same forms, with any number of links at a word: further links that cost nothing,
                whether they are made or not.
            """,
        "predict": """
            list of int arrays of shape (n_sources,), or of lists of (source, target)
                The target of each source, or -1; with a fertility above one, all links in order.
            """,
        "margins": """
            list of arrays of shape (n_sources, n_targets)
                One margin per possible link: an output differs there if it makes a link that `predict` does
                not make, or does not make one that it makes.
            """,
        "kinds": """
            The kind is "link"; "intercept" without a feature; or "place", whose feature is 2 for the
            second link of a source, 3 for the third, and so on.
            """,
        "score": "Return the F1 score of the links of all pairs together; 1 if there are none.",
    }
    wrong: float
    missed: float
    fertility: int
    fit_intercept: bool
    coef_: FloatArray
    intercept_: float
    places_: FloatArray
    _fertility: int
    _has_constant: bool

    _fitted: ClassVar[Fields] = {"n_features_in_": COUNT, "_fertility": scalar(int, 1), "_has_constant": FLAG}
    _parameter_constraints: ClassVar[Constraints] = {
        "wrong": [Interval(Real, 0, None, closed="left")],
        "missed": [Interval(Real, 0, None, closed="left")],
        "fertility": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
        fit_intercept: bool = True,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        checkpoint: CheckpointLike | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    @transaction
    def fit(  # type: ignore[override]
        self, X: object, y: object, possible: object = None, sample_weight: object = None
    ) -> Self:
        """%(fit)s"""
        return self._learn((X, y, possible), sample_weight)

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, possible: object = None, sample_weight: object = None
    ) -> Self:
        """%(partial_fit)s"""
        return self._learn((X, y, possible), sample_weight, more=True)

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y, possible = parts
        if call.first:
            self._has_constant = bool(self.fit_intercept)
            links = encode_links(X, owner=self._owner, constant=self._has_constant)
            # No true link takes a place beyond the number of targets. Two places tell lists of links apart.
            self._fertility = min(int(self.fertility), max(2, int(links.targets.max())))
            self.n_features_in_ = links.n_features - self._has_constant
        else:
            links = self._known_links(X)
        truth = encode_matchings(y, links, owner=self._owner, fertility=int(self.fertility))
        if not call.first:
            self._check_places(truth, links)
        free: _Masks = np.zeros(links.offsets[-1], dtype=np.bool_)
        if possible is not None:
            free = encode_masks(possible, links, owner=self._owner, name="possible")
        # The hinge of a pair without links is zero at any weights.
        some = links.without_empty()
        if not len(some.sources):
            raise ValueError(f"{self._owner}: no pair of X has a source and a target, expected at least one.")
        return Examples((some, truth, free), present_weights(weights, np.diff(links.offsets)))

    def _check_places(self, truth: _Masks, links: Links) -> None:
        """Raise if a source has more links than the pairs of the first `partial_fit` had targets."""
        shapes = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
        for i, (part, shape) in enumerate(zip(np.split(truth, links.offsets[1:-1]), shapes, strict=True)):
            most = int(part.reshape(shape).sum(axis=1).max(initial=0))
            if most > self._fertility:
                raise ValueError(
                    f"{self._owner}: a source of pair {i} of y has {most} links, but the pairs of the first "
                    f"partial_fit allow {self._fertility}; give the largest pairs to it."
                )

    def _problem(self, examples: Examples[_Data]) -> Problem:
        return Matching.from_encoded(
            *examples.data, wrong=self.wrong, missed=self.missed, fertility=self._fertility
        )

    def _blank(self) -> Problem:
        one, n_features = np.ones(1, dtype=np.int64), self.n_features_in_ + self._has_constant
        return Matching.for_prediction(
            Links(np.zeros(n_features), np.array([0, 1]), one, one, n_features), self._fertility
        )

    def _n_cells(self) -> int:
        return self.n_features_in_ + self._fertility

    def _expose(self) -> None:
        links, self.places_ = self._layout().unpack(self._w)
        self.coef_ = links[: self.n_features_in_]
        self.intercept_ = float(links[-1]) if self._has_constant else 0.0

    def _feature_tables(self) -> list[WeightTable]:
        features, places = range(self.n_features_in_), range(2, self._fertility + 1)
        return [
            WeightTable("link", features, NO_LABEL, self.coef_[:, None]),
            WeightTable("intercept", NO_FEATURE, NO_LABEL, np.array([[self.intercept_]])),
            WeightTable("place", places, NO_LABEL, self.places_[:, None]),
        ]

    def _predict(self, X: object) -> list[_Found]:
        if is_none(X):
            return []
        links, fertility = self._known_links(X), self._fertility
        targets = self._targets(links)
        bounds = np.cumsum([0, *(fertility * links.sources)]).tolist()
        found = [targets[a:b] for a, b in itertools.pairwise(bounds)]
        return [places if fertility == 1 else _as_links(places, fertility) for places in found]

    def _targets(self, links: Links) -> IntArray:
        """Return the targets of the places of all sources, one pair after another."""
        some = np.diff(links.offsets) > 0
        targets = np.full(self._fertility * int(links.sources.sum()), -1)
        if some.any():
            problem = Matching.for_prediction(links.without_empty(), self._fertility)
            targets[np.repeat(some, self._fertility * links.sources)] = self._decoded(problem)
        return targets

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        links, margins = self._known_links(X), np.zeros(0)
        if np.diff(links.offsets).any():
            problem = Matching.for_prediction(links.without_empty(), self._fertility)
            margins = self._decoded_with_margins(problem).margins
        shapes = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
        found = zip(split_at(margins, links.offsets), shapes, strict=True)
        return [each.reshape(shape) for each, shape in found]

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        links = self._known_links([x])
        if not links.offsets[-1]:
            return None
        features = links.features.reshape(links.n_features, -1)[: self.n_features_in_].T
        rows = RowReader(features, "link", named_by(range(self.n_features_in_)))
        weights = self.coef_, self.intercept_, self.places_
        reader = LinkReader(rows, int(links.targets[0]), *weights)
        return Matching.for_prediction(links, self._fertility), reader

    def _known_links(self, X: object) -> Links:
        """Return the links encoded, if they have as many features as those of `fit`."""
        links = encode_links(X, owner=self._owner, constant=self._has_constant)
        self._check_width("links", links.n_features - self._has_constant, self.n_features_in_)
        return links

    def _score(self, X: object, y: object) -> float:
        predicted, links = self._predict(X), self._known_links(X)
        truth = encode_masks(y, links, owner=self._owner, name="y")
        found = encode_masks(predicted, links, owner=self._owner, name="y")
        return f1(int((truth & found).sum()), int(truth.sum() + found.sum()))


def _as_links(places: IntArray, fertility: int) -> list[tuple[int, int]]:
    """Return the links from the places of all sources."""
    linked = np.flatnonzero(places >= 0)
    return sorted(zip((linked // fertility).tolist(), places[linked].tolist(), strict=True))

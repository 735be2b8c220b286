"""Bipartite matching as a scikit-learn estimator."""

import itertools
from collections.abc import Iterable
from numbers import Integral, Real
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators import confidence, explanation, inspection
from maxmargin.estimators.confidence import split_at
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import (
    Examples,
    Lesson,
    Parts,
    Tally,
    check_width,
    is_none,
    lesson_of,
    present_weights,
    tally,
)
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, named_by, single
from maxmargin.estimators.inspection import NO_FEATURE, NO_LABEL, WeightTable
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.state import Interval, transaction
from maxmargin.estimators.structure import (
    COUNT,
    FLAG,
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    scalar,
    tables_of_trials,
)
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


def _lesson(model: "MatchingSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    call = Call(first=True, more=False, warm=False)
    return lesson_of(model._structure.encode(model, parts, weights, call))


class LinkedPairs(Structure["MatchingSVC", _Data, list[_Found], list[FloatArray]]):
    """Links between the two sides of pairs."""

    cluster = Cluster(_lesson)
    trials: ClassVar = {
        "links": lambda: ([tables_of_trials()["dense"][:6].reshape(2, 3, 4)], [[(0, 0), (1, 2)]])
    }
    n_parts = 3
    fields: ClassVar = {"n_features_in_": COUNT, "_fertility": scalar(int, 1), "_has_constant": FLAG}

    def encode(
        self, model: "MatchingSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        X, y, possible = parts
        if call.first:
            model._has_constant = bool(model.fit_intercept)
            links = encode_links(X, constant=model._has_constant)
            # No true link takes a place beyond the number of targets. Two places tell lists of links apart.
            model._fertility = min(int(model.fertility), max(2, int(links.targets.max())))
            model.n_features_in_ = links.n_features - model._has_constant
        else:
            links = _known_links(model, X)
        truth = encode_matchings(y, links, fertility=int(model.fertility))
        if not call.first:
            _check_places(model, truth, links)
        free: _Masks = np.zeros(links.offsets[-1], dtype=np.bool_)
        if possible is not None:
            free = encode_masks(possible, links, name="possible")
        # The hinge of a pair without links is zero at any weights.
        some = links.without_empty()
        if not len(some.sources):
            raise ValueError("no pair of X has a source and a target, expected at least one.")
        return Examples((some, truth, free), present_weights(weights, np.diff(links.offsets)))

    def problem(self, model: "MatchingSVC", examples: Examples[_Data]) -> Problem:
        return Matching.from_encoded(
            *examples.data, wrong=model.wrong, missed=model.missed, fertility=model._fertility
        )

    def ask(self, model: "MatchingSVC", X: object) -> Question[list[_Found], list[FloatArray]]:
        if is_none(X):
            return Question(None, lambda codes: [], score=lambda codes, y: _score(model, X, [], y))
        links, fertility = _known_links(model, X), model._fertility
        some = np.diff(links.offsets) > 0
        shapes = list(zip(links.sources.tolist(), links.targets.tolist(), strict=True))

        def outputs(codes: IntArray) -> list[_Found]:
            targets = np.full(fertility * int(links.sources.sum()), -1)
            targets[np.repeat(some, fertility * links.sources)] = codes
            bounds = np.cumsum([0, *(fertility * links.sources)]).tolist()
            found = [targets[a:b] for a, b in itertools.pairwise(bounds)]
            return [places if fertility == 1 else _as_links(places, fertility) for places in found]

        def margins(codes: IntArray, found: FloatArray) -> list[FloatArray]:
            pairs = zip(split_at(found, links.offsets), shapes, strict=True)
            return [each.reshape(shape) for each, shape in pairs]

        return Question(
            Matching.for_prediction(links.without_empty(), fertility) if some.any() else None,
            outputs,
            lambda codes, y: _score(model, X, outputs(codes), y),
            margins,
        )

    def reader(self, model: "MatchingSVC", x: object) -> tuple[Problem, Reader] | None:
        links, n_features = _known_links(model, [x]), model.n_features_in_
        if not links.offsets[-1]:
            return None
        features = links.features.reshape(links.n_features, -1)[:n_features].T
        rows = RowReader(features, "link", named_by(range(n_features)))
        reader = LinkReader(rows, int(links.targets[0]), model.coef_, model.intercept_, model.places_)
        return Matching.for_prediction(links, model._fertility), reader

    def layout(self, model: "MatchingSVC") -> Layout:
        def blank() -> object:
            one, n_features = np.ones(1, dtype=np.int64), model.n_features_in_ + model._has_constant
            links = Links(np.zeros(n_features), np.array([0, 1]), one, one, n_features)
            return Matching.for_prediction(links, model._fertility).map

        return Layout(model.n_features_in_ + model._fertility, blank)

    def expose(self, model: "MatchingSVC") -> None:
        links, model.places_ = self.layout(model).unpack(model._w)
        model.coef_ = links[: model.n_features_in_]
        model.intercept_ = float(links[-1]) if model._has_constant else 0.0

    def features(self, model: "MatchingSVC") -> list[WeightTable]:
        features, places = range(model.n_features_in_), range(2, model._fertility + 1)
        return [
            WeightTable("link", features, NO_LABEL, model.coef_[:, None]),
            WeightTable("intercept", NO_FEATURE, NO_LABEL, np.array([[model.intercept_]])),
            WeightTable("place", places, NO_LABEL, model.places_[:, None]),
        ]


def _known_links(model: "MatchingSVC", X: object) -> Links:
    """Return the links encoded, if they have as many features as those of `fit`."""
    links = encode_links(X, constant=model._has_constant)
    check_width("links", links.n_features - model._has_constant, model.n_features_in_)
    return links


def _check_places(model: "MatchingSVC", truth: _Masks, links: Links) -> None:
    """Raise if a source has more links than the pairs of the first `partial_fit` had targets."""
    shapes = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
    for i, (part, shape) in enumerate(zip(np.split(truth, links.offsets[1:-1]), shapes, strict=True)):
        most = int(part.reshape(shape).sum(axis=1).max(initial=0))
        if most > model._fertility:
            raise ValueError(
                f"a source of pair {i} of y has {most} links, but the pairs of the first "
                f"partial_fit allow {model._fertility}; give the largest pairs to it."
            )


def _score(model: "MatchingSVC", X: object, predicted: list[_Found], y: object) -> Tally:
    """Return what the F1 score of predicted links is made of."""
    links = _known_links(model, X)
    truth = encode_masks(y, links, name="y")
    found = encode_masks(predicted, links, name="y")
    both, true, said = (tally(links_are, links.offsets).right for links_are in (truth & found, truth, found))
    return Tally(2.0 * both, true + said)


def _as_links(places: IntArray, fertility: int) -> list[tuple[int, int]]:
    """Return the links from the places of all sources."""
    linked = np.flatnonzero(places >= 0)
    return sorted(zip((linked // fertility).tolist(), places[linked].tolist(), strict=True))


class MatchingSVC(MaxMarginEstimator[_Data, list[_Found], list[FloatArray]]):
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
    %(l1_ratio)s
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
    _structure: ClassVar = LinkedPairs()
    wrong: float
    missed: float
    fertility: int
    fit_intercept: bool
    coef_: FloatArray
    intercept_: float
    places_: FloatArray
    _fertility: int
    _has_constant: bool

    _parameter_constraints: ClassVar[Constraints] = {
        "wrong": [Interval(Real, 0, None, closed="left")],
        "missed": [Interval(Real, 0, None, closed="left")],
        "fertility": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        l1_ratio: float | None = None,
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

    predict_single = explanation.predict_single
    predict_margins = confidence.predict_margins
    explain = explanation.explain
    top_features = inspection.top_features_without_labels

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

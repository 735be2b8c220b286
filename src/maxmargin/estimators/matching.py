"""Bipartite matching as a scikit-learn estimator."""

import itertools
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.links import Links, encode_links, encode_masks, encode_matchings
from maxmargin.estimators._base import StructuralSVC
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Matching


class MatchingSVC(StructuralSVC):
    r"""Structural SVM for partial bipartite matchings, such as alignments of words.

    A matching y of the words of two sentences, or of any other two sides, scores
    :math:`\sum_{(j, k) \in y} \left( \langle w, x_{jk} \rangle + b \right) + \sum_{s > 1} c_s
    |\{ j : j \text{ uses its place } s \}|`; training minimises

    .. math:: \frac{1}{2 C n} \|(w, b, c)\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
    \text{score}_i(y_i) \right)

    where the loss L counts wrong and missed links.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    wrong : float, default=1.0
        What a link costs that is not true.
    missed : float, default=3.0
        What it costs to miss a true one.
    fertility : int, default=1
        How many links a source may have, each but the first at a learnt score; a target has one at most.
    fit_intercept : bool, default=True
        Add a constant feature, regularised like the others: without one, links need features that tell
        when to make none.
    method : {"auto", "pairwise", "away", "bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg"}, \
default="auto"
        Accelerated pairwise steps; pairwise or away block steps; block-coordinate or batch Frank-Wolfe, and
        which average of their iterates is returned: none, weighted, suffix or uniform.
    tol : float, default=0.01
        Stop when the duality gap is at most this.
    max_iter : int, default=1000
        Largest number of passes over the data.
    time_limit : float, optional
        Largest number of seconds.
    check_every : int, default=5
        Passes between certificates of the gap.
    sampling : {"permutation", "uniform", "gap"}, default="permutation"
        Order in which examples are visited.
    warm_start : bool, default=False
        Go on from the last `fit`, also at another C; from nothing if the data are others.
    n_jobs : int, optional
        Threads for certificates, for `predict` and, with method "auto", for training. For training any number
        but 1 divides the examples into two parts, whatever the number: the answer is that of two parts.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w, the weights of the links' features.
    intercept_ : float
        b, the score of any link.
    places_ : array of shape (fertility - 1,)
        c, the scores of a source's second, third, ... link.
    gap_ : float
        Certified bound on how far the objective is from its minimum.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
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

    coef_: FloatArray
    intercept_: float
    places_: FloatArray
    n_features_in_: int
    _fertility: int
    _has_constant: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "wrong": [Interval(Real, 0, None, closed="left")],
        "missed": [Interval(Real, 0, None, closed="left")],
        "fertility": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        wrong: float = 1.0,
        missed: float = 3.0,
        fertility: int = 1,
        fit_intercept: bool = True,
        method: str = "auto",
        tol: float = 1e-2,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.wrong = wrong
        self.missed = missed
        self.fertility = fertility
        self.fit_intercept = fit_intercept
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.check_every = check_every
        self.sampling = sampling
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @transaction
    def fit(self, X: Any, y: Any, possible: Any = None, sample_weight: Any = None) -> Self:
        """Train on pairs of sides.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)
            The features of every link that could be.
        y : list of matchings
            Each the target of each source or -1, a list of (source, target) pairs, or an array of shape
            (n_sources, n_targets) of zeros and ones.
        possible : list of matchings, optional
            In the same forms, any number at a word: further links that cost nothing, whether made or not.
        sample_weight : array of shape (n_pairs,), optional
            How often each pair counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        MatchingSVC
            The fitted estimator.
        """
        return self._learn(X, y, possible, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, possible: Any = None, sample_weight: Any = None) -> Self:
        """Train on these pairs and all those of earlier calls, from where the last call stopped.

        The pairs are kept: the answer is certified for all of them, as that of `fit` is. Only the work is
        saved that the last call has done.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)
        y : list of matchings
        possible : list of matchings, optional
        sample_weight : array of shape (n_pairs,), optional

        Returns
        -------
        MatchingSVC
            The fitted estimator.
        """
        return self._learn(X, y, possible, sample_weight, more=True)

    def _learn(self, X: Any, y: Any, possible: Any, sample_weight: Any, more: bool = False) -> Self:
        (X, y, possible), weights = weighed((X, y, possible), sample_weight, "MatchingSVC")
        seen = self._before(more)
        if seen is None:
            links = encode_links(X, owner="MatchingSVC", constant=self.fit_intercept)
            fertility, has_constant = self.fertility, self.fit_intercept
        else:
            links, fertility, has_constant = self._known_links(X), self._fertility, self._has_constant
        truth = encode_matchings(y, links, owner="MatchingSVC", fertility=fertility)
        free = _free_links(possible, links)
        examples = appended(seen, Examples((links, truth, free), weights))
        problem = Matching.from_encoded(
            *examples.data, wrong=self.wrong, missed=self.missed, fertility=fertility
        )
        self._w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        found = problem.unpack(self._w)
        self._fertility, self._has_constant = fertility, has_constant
        self.n_features_in_ = links.n_features - has_constant
        self.coef_, self.places_ = found.links[: self.n_features_in_], found.places
        self.intercept_ = float(found.links[-1]) if has_constant else 0.0
        return self

    @snapshot
    def predict(self, X: Any) -> list[Any]:
        """Return the matching of best score for each pair.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)

        Returns
        -------
        list of int arrays of shape (n_sources,), or of lists of (source, target)
            The target of each source, or -1; with a fertility above one, all links in order.
        """
        links = self._known_links(X)
        problem = Matching.for_prediction(links, self._fertility)
        targets = self._decoded(problem, self._w)
        found = [targets[a:b] for a, b in itertools.pairwise(problem.starts.tolist())]
        return found if self._fertility == 1 else [_as_links(places, self._fertility) for places in found]

    def _known_links(self, X: Any) -> Links:
        """The features of pairs, if they are as many as those of `fit`."""
        links = encode_links(X, owner="MatchingSVC", constant=self._has_constant)
        n_features = links.n_features - self._has_constant
        if n_features != self.n_features_in_:
            raise ValueError(
                f"MatchingSVC: links of X have {n_features} features, but MatchingSVC was "
                f"fitted with {self.n_features_in_}; give the features that were given to fit."
            )
        return links

    @snapshot
    def score(self, X: Any, y: Any) -> float:
        """Return the F1 score of links: twice those that are right, over all predicted and all true ones.

        Parameters
        ----------
        X : list of arrays of shape (n_sources, n_targets, n_features)
        y : list of matchings

        Returns
        -------
        float
            Between 0 and 1; 1 if there are no links and none are predicted.
        """
        predicted, links = self.predict(X), self._known_links(X)
        truth = encode_masks(y, links, owner="MatchingSVC", name="y")
        found = encode_masks(predicted, links, owner="MatchingSVC", name="y")
        total = int(truth.sum() + found.sum())
        return 2.0 * int((truth & found).sum()) / total if total else 1.0


def _free_links(possible: Any, links: Links) -> Any:
    """Return which of the links cost nothing, whether made or not."""
    if possible is None:
        return np.zeros(links.offsets[-1], dtype=np.bool_)
    return encode_masks(possible, links, owner="MatchingSVC", name="possible")


def _as_links(places: IntArray, fertility: int) -> list[tuple[int, int]]:
    """Return the links from the places of all sources."""
    linked = np.flatnonzero(places >= 0)
    return sorted(zip((linked // fertility).tolist(), places[linked].tolist(), strict=True))

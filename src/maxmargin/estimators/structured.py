"""Any structure, given by three Python functions, as a scikit-learn estimator."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from maxmargin.arrays import FloatArray
from maxmargin.encoding.joint import Joint, NamedJoint
from maxmargin.estimators._base import StructuralSVC
from maxmargin.estimators._errors import noted
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Custom
from maxmargin.problems.signs import SignedCustom
from maxmargin.wording import described


class StructuredSVC(StructuralSVC):
    r"""Structural SVM for outputs of your own: three Python functions on any objects.

    .. math:: \min_w \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L(y_i, y) + \langle w,
              \phi(x_i, y) - \phi(x_i, y_i) \rangle \right)

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}``, or
        a pair ``(indices, values)``. Sparse ones cost as much as their nonzeros.
    loss : callable
        ``loss(y_true, y)``, what it costs to answer y: a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, for
        training, and ``argmax(x, w)`` that of largest ``<w, features(x, y)>``, for predictions: write
        ``def argmax(x, w, y_true=None)``. The weights w are a read-only array; where features are dicts, an
        object with ``w[name]``, zero for a name without weight, and ``w.dot(features)``.
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    n_features : int, optional
        Number of weights; needed where features are pairs.
    feature_names : list or set, optional
        Names that get a weight, where features are dicts. By default those that occur in the features of the
        true outputs; others are left out, in `features` and in ``w[name]`` alike.
    nonnegative : list, optional
        Weights that must not be negative: their indices, or their names where features are dicts.
    exact : bool, default=True
        Whether argmax always finds the largest value. If it does not, say so: an answer that another output
        beats is then no error, and ``gap_``, for which the largest values are needed, no certificate but too
        small, by as much as answers fall short on average.
    method : {"auto", "pairwise", "away", "bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg", \
"ssg", "ssg-wavg", "ssg-avg", "perceptron", "perceptron-avg"}, default="auto"
        Accelerated pairwise steps; pairwise or away block steps; block-coordinate or batch Frank-Wolfe,
        stochastic subgradient steps or the perceptron, and which average of their iterates is returned:
        none, weighted, suffix or uniform. The perceptron has no certificate, and steps that know no C.
    tol : float, default=0.01
        Stop when the duality gap is at most this.
    max_iter : int, default=100
        Largest number of passes over the data.
    time_limit : float, optional
        Largest number of seconds.
    check_every : int, default=5
        Passes between certificates of the gap.
    sampling : {"permutation", "uniform", "gap"}, default="permutation"
        Order in which examples are visited.
    warm_start : bool, default=False
        Go on from the last `fit`, also at another C; from nothing if the data are others.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights.
    feature_names_ : list or None
        Names of the weights where features are dicts.
    gap_ : float
        Certified bound on how far the objective is from its minimum, if ``exact``.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.

    See Also
    --------
    maxmargin.check_problem : Find out what is wrong with the three functions.

    Examples
    --------
    Which of the words of a sentence is its subject? Any of its places may be.

    >>> from maxmargin import StructuredSVC
    >>> def features(x, y):
    ...     return {("word", x[y]): 1.0, ("before", x[y - 1] if y else ""): 1.0}
    >>> def loss(y_true, y):
    ...     return float(y != y_true)
    >>> def argmax(x, w, y_true=None):
    ...     def value(y):
    ...         return w.dot(features(x, y)) + (0.0 if y_true is None else loss(y_true, y))
    ...     return max(range(len(x)), key=value)
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["now", "the", "cow", "eats"]]
    >>> model = StructuredSVC(features, loss, argmax, C=10, random_state=0).fit(X, [1, 1, 2])
    >>> model.predict([["here", "the", "pig", "sleeps"]])
    [2]
    >>> model.gap_ <= model.tol
    True
    """

    coef_: FloatArray
    feature_names_: list[Hashable] | None
    # The user's functions may not stand threads.
    n_jobs: ClassVar[int | None] = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: valid for name, valid in StructuralSVC._parameter_constraints.items() if name != "n_jobs"},
        "features": [callable],
        "loss": [callable],
        "argmax": [callable],
        "n_features": [Interval(Integral, 1, None, closed="left"), None],
        "feature_names": ["array-like", set, frozenset, None],
        "nonnegative": ["array-like", set, frozenset, None],
        "exact": ["boolean"],
    }

    def __init__(
        self,
        features: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], float],
        argmax: Callable[..., Any],
        C: float = 1.0,
        *,
        n_features: int | None = None,
        feature_names: Any = None,
        nonnegative: Any = None,
        exact: bool = True,
        method: str = "auto",
        tol: float = 1e-2,
        max_iter: int = 100,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        verbose: int = 1,
        random_state: Any = None,
    ) -> None:
        self.features = features
        self.loss = loss
        self.argmax = argmax
        self.C = C
        self.n_features = n_features
        self.feature_names = feature_names
        self.nonnegative = nonnegative
        self.exact = exact
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.check_every = check_every
        self.sampling = sampling
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    @transaction
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : list
            Any objects.
        y : list
            Their true outputs: any objects.
        sample_weight : array of shape (n,), optional
            How often each example counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        StructuredSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on these examples and all those of earlier calls, from where the last call stopped.

        The examples are kept: the answer is certified for all of them, as that of `fit` is. Only the work is
        saved that the last call has done.

        Parameters
        ----------
        X, y : lists
            As for `fit`. Names that the first call gave no weight are left out.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        StructuredSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> Self:
        (X, y), weights = weighed((X, y), sample_weight, type(self).__name__)
        seen = self._before(more)
        examples = Examples((X, y), weights)
        if more:
            examples = appended(seen, Examples(_paired(X, y), weights))
        X, y = examples.data
        problem = self._made(X, y, None if seen is None else self._joint)
        w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        self._joint: Joint = (problem if isinstance(problem, Custom) else problem.inner).joint
        self.coef_ = w[: self._joint.size].copy()
        names = self._joint.names if isinstance(self._joint, NamedJoint) else None
        self.feature_names_ = None if names is None else list(names)
        return self

    def problem(self, X: Any, y: Any) -> Custom | SignedCustom:
        """Return the problem that `fit` solves.

        Parameters
        ----------
        X, y : lists

        Returns
        -------
        Custom, or one with signs
        """
        return self._made(X, y, None)

    def _made(self, X: Any, y: Any, known: Joint | None) -> Custom | SignedCustom:
        """The problem, with the weights that are known if there are any."""
        names = known.names if isinstance(known, NamedJoint) else self.feature_names
        problem = Custom(
            self.features,
            self.loss,
            self.argmax,
            X,
            y,
            n_features=self.n_features if known is None else known.size,
            feature_names=names,
            exact=self.exact,
            owner=type(self).__name__,
        )
        return problem if self.nonnegative is None else SignedCustom(problem, self._signed(problem.joint))

    def _signed(self, joint: Joint) -> Any:
        """Return the indices of the weights that must not be negative; a name without weight needs none."""
        if isinstance(joint, NamedJoint):
            return [joint.names[name] for name in self.nonnegative if name in joint.names]
        return self.nonnegative

    @snapshot
    def predict(self, X: Any) -> list[Any]:
        """Return the output of best score for each example.

        Parameters
        ----------
        X : list

        Returns
        -------
        list
        """
        w = self._joint.given(self.coef_)
        return [self._called("argmax", i, x, w) for i, x in enumerate(_listed(X, "X"))]

    def _called(self, name: str, i: int, *args: Any) -> Any:
        """Call the user's function of this name for example i."""
        with noted("StructuredSVC", name, i):
            return getattr(self, name)(*args)

    @snapshot
    def score(self, X: Any, y: Any) -> float:
        """Return one less the mean loss of the predictions.

        Parameters
        ----------
        X, y : lists

        Returns
        -------
        float
        """
        predicted, truths = _paired(self.predict(X), y)
        pairs = enumerate(zip(truths, predicted, strict=True))
        mean = float(np.mean([float(self._called("loss", i, *pair)) for i, pair in pairs]))
        if not np.isfinite(mean):
            raise ValueError(f"StructuredSVC: loss must return finite numbers, got a mean of {mean}.")
        return 1.0 - mean


def _paired(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Return examples and outputs as lists, if there are as many of both."""
    X, y = _listed(X, "X"), _listed(y, "y")
    if len(X) != len(y) or not y:
        raise ValueError(
            f"StructuredSVC: X has {len(X)} examples, but y has {len(y)}; give one output per example, and "
            "at least one example."
        )
    return X, y


def _listed(examples: Any, name: str) -> list[Any]:
    """Return examples as a list."""
    if not isinstance(examples, Iterable) or isinstance(examples, str | bytes | Mapping):
        raise TypeError(f"StructuredSVC: {name} must be a list of examples, got {described(examples)}.")
    return list(examples)

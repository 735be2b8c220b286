"""Multiclass classification as a scikit-learn estimator."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.encoding.tokens import first_not_finite
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, check_loss, one_line
from maxmargin.problems import Multiclass, SlackRescaled
from maxmargin.problems._labels import check_several
from maxmargin.rows import FloatArray, IntArray
from maxmargin.solve import Result

# What scikit-learn checks; that features are finite is checked here, to say which one is not.
_FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}


class _Seen(NamedTuple):
    """What `partial_fit` has trained on, and where it stopped."""

    X: Any
    labels: IntArray
    result: Result


class MulticlassSVC(ClassifierMixin, StructuralSVC):  # type: ignore[misc]
    r"""Multiclass SVM of Crammer and Singer, with a certificate.

    .. math:: \min_W \frac{1}{2 C n} \|W\|^2 + \frac1n \sum_i \max_y
              \left( L(y_i, y) + \langle W_y - W_{y_i}, x_i \rangle \right)

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    loss : "zero_one" or array of shape (n_classes, n_classes), default="zero_one"
        Cost 1 for every mistake, or ``loss[truth, label]``, classes in the order of ``classes_``.
    rescaling : {"margin", "slack"}, default="margin"
        What a loss stands for: the margin by which the truth must be ahead, as above, or the price of a
        margin below one, ``loss * (1 + score - score of the truth)``.
    fit_intercept : bool, default=True
        Add a constant feature, regularised like the others.
    method : {"auto", "pairwise", "away", "bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg", \
"ssg", "ssg-wavg", "ssg-avg", "perceptron", "perceptron-avg"}, default="auto"
        Accelerated pairwise steps; pairwise or away block steps; block-coordinate or batch Frank-Wolfe,
        stochastic subgradient steps or the perceptron, and which average of their iterates is returned:
        none, weighted, suffix or uniform. The perceptron has no certificate, and steps that know no C.
    tol : float, default=0.001
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
        Threads for the certificates; the result does not depend on it.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes, sorted.
    coef_ : array of shape (n_classes, n_features)
        Feature weights of each class; for two classes too.
    intercept_ : array of shape (n_classes,)
    gap_ : float
        Certified bound on how far the objective is from its minimum.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVC(C=1.0, tol=0.01, random_state=0).fit(X, y)
    >>> model.gap_ <= 0.01
    True
    >>> model.score(X, y) > 0.9
    True
    """

    classes_: np.ndarray[Any, Any]
    coef_: FloatArray
    intercept_: FloatArray
    _seen: _Seen | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "loss": [StrOptions({"zero_one"}), "array-like"],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "zero_one",
        rescaling: str = "margin",
        fit_intercept: bool = True,
        method: str = "auto",
        tol: float = 1e-3,
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
        self.loss = loss
        self.rescaling = rescaling
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Strings or ints.

        Returns
        -------
        MulticlassSVC
            The fitted estimator.
        """
        X, y = self._validated(X, y, reset=True)
        classes, labels = np.unique(y, return_inverse=True)
        problem = self._problem(X, labels, classes)
        self._keep(problem, self._fit(problem), classes, None)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Train on these examples and all those of earlier calls, from where the last call stopped.

        The examples are kept: the answer is certified for all of them, as that of `fit` is. Only the
        work is saved that the last call has done.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array-like, optional
            All classes, in the first call; by default those of its ``y``.

        Returns
        -------
        MulticlassSVC
            The fitted estimator.
        """
        seen: _Seen | None = getattr(self, "_seen", None)
        X, y = self._validated(X, y, reset=seen is None)
        known = np.unique(y if classes is None else classes) if seen is None else self.classes_
        labels = _codes(y, known)
        if seen is not None:
            X, labels = _stacked(seen.X, X), np.concatenate([seen.labels, labels])
        problem = self._problem(X, labels, known)
        result = self._fit_more(problem, seen)
        self._keep(problem, result.w, known, _Seen(X, labels, result))
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        with one_line("MulticlassSVC"):
            X, y = validate_data(self, X, y, **_FEATURES, reset=reset)
            check_classification_targets(y)
        _check_finite(X)
        return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X, y

    def _problem(self, X: Any, labels: IntArray, classes: Any) -> Multiclass | SlackRescaled:
        check_several(len(classes), "MulticlassSVC")
        check_loss(self.loss, len(classes), "MulticlassSVC")
        features = _with_constant(X) if self.fit_intercept else X
        problem = Multiclass.from_encoded(features, labels, len(classes), loss=self.loss)
        return RESCALINGS[self.rescaling](problem)

    def _keep(
        self, problem: Multiclass | SlackRescaled, w: FloatArray, classes: Any, seen: "_Seen | None"
    ) -> None:
        """Set what a fit leaves behind, once nothing can fail any more."""
        self.classes_, self._seen = classes, seen
        weights = problem.unpack(w).unary
        self.coef_ = np.ascontiguousarray(weights[:, : self.n_features_in_])
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second less that of the first.
        """
        check_is_fitted(self)
        with one_line("MulticlassSVC"):
            X = validate_data(self, X, **_FEATURES, reset=False)
        _check_finite(X)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the class of each example.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


def _codes(y: Any, classes: Any) -> IntArray:
    """Return the numbers of the classes of ``y``, all of which must be known."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"MulticlassSVC: y has the class {unknown[0]!r}, expected one of the {len(classes)} "
            f"classes of the first call; give all classes to the first call of partial_fit."
        )
    return np.searchsorted(classes, y)


def _check_finite(X: Any) -> None:
    """Raise if a feature is NaN or infinite, and say which."""
    is_sparse = scipy.sparse.issparse(X)
    values = X.data if is_sparse else X
    bad = first_not_finite(values)
    if bad is None:
        return
    if is_sparse:
        example, feature = int(np.searchsorted(X.indptr, bad, side="right")) - 1, int(X.indices[bad])
    else:
        example, feature = divmod(bad, X.shape[1])
    value = values.ravel()[bad]
    raise ValueError(
        f"MulticlassSVC: feature {feature} of example {example} of X is "
        f"{'NaN' if np.isnan(value) else value}, expected a finite number; remove or impute it."
    )


def _stacked(X: Any, more: Any) -> Any:
    """Return the rows of both; sparse if either is."""
    if scipy.sparse.issparse(X) or scipy.sparse.issparse(more):
        return scipy.sparse.csr_array(scipy.sparse.vstack([X, more]))
    return np.concatenate([X, more])


def _with_constant(X: Any) -> Any:
    """Append a column of ones."""
    ones = np.ones((X.shape[0], 1))
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(scipy.sparse.hstack([X, ones]))
    return np.hstack([X, ones])

"""Multiclass classification as a scikit-learn estimator."""

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from maxmargin.arrays import FloatArray, IntArray, frozen
from maxmargin.encoding.matrices import sound
from maxmargin.encoding.tokens import first_not_finite
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, check_loss, rescaled
from maxmargin.estimators._examples import Examples, appended, check_fixed, label_weights, weighed
from maxmargin.estimators._scores import check_kind, mean_right
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Multiclass, SlackRescaled
from maxmargin.problems._labels import check_several

# What scikit-learn checks; that features are finite is checked here, to say which one is not.
_FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}


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
    class_weight : dict or "balanced", optional
        How much examples count by their class, beside ``sample_weight``: ``{class: weight}``, 1 for classes
        that are not in it; or weights inverse to how many examples have the class, with a mean of 1.
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
        Threads for certificates and, with method "auto", for training. For training any number
        but 1 divides the examples into two parts, whatever the number: the answer is that of two parts.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "loss": [StrOptions({"zero_one"}), "array-like"],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "zero_one",
        rescaling: str = "margin",
        fit_intercept: bool = True,
        class_weight: Any = None,
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
        self.class_weight = class_weight
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

    @transaction
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Strings or ints.
        sample_weight : array of shape (n_samples,), optional
            How often each example counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        MulticlassSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on these examples and all those of earlier calls, from where the last call stopped.

        The examples are kept: the answer is certified for all of them, as that of `fit` is. Only the
        work is saved that the last call has done.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array-like, optional
            All classes, in the first call; by default those of its ``y``.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        MulticlassSVC
            The fitted estimator.
        """
        check_fixed(self.class_weight, "MulticlassSVC")
        return self._learn(X, y, sample_weight, classes, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, more: bool = False) -> Self:
        seen = self._before(more)
        X, y = self._validated(X, y, reset=seen is None, copy=more)  # what is kept may not change
        (X, y), weights = weighed((X, y), sample_weight, "MulticlassSVC")
        known = np.unique(y if classes is None else classes) if seen is None else self.classes_
        labels = _codes(y, known)
        if self.class_weight is not None:
            by_class = label_weights(self.class_weight, known, labels, weights, "MulticlassSVC")
            weights = by_class[labels] if weights is None else by_class[labels] * weights
        examples = appended(seen, Examples((X, labels), weights))
        X, labels = examples.data
        problem = self._problem(X, labels, known)
        w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        self._keep(problem, w, known)
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool, copy: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, sound(X, "X"), y, **_FEATURES, reset=reset, copy=copy)
        check_classification_targets(y)
        _check_finite(X)
        return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X, y

    def _problem(self, X: Any, labels: IntArray, classes: Any) -> Multiclass | SlackRescaled:
        check_several(len(classes), "MulticlassSVC")
        check_loss(self.loss, len(classes), "MulticlassSVC")
        features = _with_constant(X) if self.fit_intercept else X
        problem = Multiclass.from_encoded(features, labels, len(classes), loss=self.loss)
        return rescaled(problem, self.rescaling, "MulticlassSVC")

    def _keep(self, problem: Multiclass | SlackRescaled, w: FloatArray, classes: Any) -> None:
        """Set what a fit leaves behind, once nothing can fail any more."""
        self.classes_ = classes
        weights = problem.unpack(w).unary
        self.coef_ = np.ascontiguousarray(weights[:, : self.n_features_in_])
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))

    @snapshot
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
        X = validate_data(self, sound(X, "X"), **_FEATURES, reset=False)
        _check_finite(X)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @snapshot
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

    @snapshot
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of examples whose class is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How much each example counts.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        truth = check_array(column_or_1d(y), ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(predicted, truth)
        check_classification_targets(truth)
        check_kind(truth[0], self.classes_, "MulticlassSVC")
        return mean_right(predicted == truth, sample_weight, "MulticlassSVC")


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


def _with_constant(X: Any) -> Any:
    """Append a column of ones."""
    ones = np.ones((X.shape[0], 1))
    if scipy.sparse.issparse(X):
        return frozen(scipy.sparse.csr_array(scipy.sparse.hstack([X, ones])))
    return frozen(np.hstack([X, ones]))

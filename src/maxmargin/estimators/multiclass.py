"""Multiclass classification as a scikit-learn estimator."""

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.encoding.tokens import first_not_finite
from maxmargin.estimators._base import StructuralSVC, check_loss, one_line
from maxmargin.problems import Multiclass
from maxmargin.problems._labels import check_several
from maxmargin.rows import FloatArray

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
    fit_intercept : bool, default=True
        Add a constant feature, regularised like the others.
    method : {"bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg"}, default="bcfw"
        Block-coordinate or batch Frank-Wolfe, and which average of the iterates is returned: none,
        weighted, suffix or uniform.
    tol : float, default=0.001
        Stop when the duality gap is at most this.
    max_iter : int, default=1000
        Largest number of passes over the data.
    time_limit : float, optional
        Largest number of seconds.
    check_every : int, default=5
        Passes between certificates of the gap.
    sampling : {"permutation", "uniform"}, default="permutation"
        Order in which examples are visited.
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
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "zero_one",
        fit_intercept: bool = True,
        method: str = "bcfw",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        verbose: int = 1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.check_every = check_every
        self.sampling = sampling
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
        with one_line("MulticlassSVC"):
            X, y = validate_data(self, X, y, **_FEATURES)
            check_classification_targets(y)
        _check_finite(X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        check_several(len(self.classes_), "MulticlassSVC")
        check_loss(self.loss, len(self.classes_), "MulticlassSVC")
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X)
        features = _with_constant(X) if self.fit_intercept else X
        problem = Multiclass.from_encoded(features, labels, len(self.classes_), loss=self.loss)
        weights = problem.unpack(self._solve(problem)).unary
        self.coef_ = np.ascontiguousarray(weights[:, : X.shape[1]])
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))
        return self

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
        return scipy.sparse.csr_array(scipy.sparse.hstack([X, ones]))
    return np.hstack([X, ones])

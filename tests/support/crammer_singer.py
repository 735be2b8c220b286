"""The multiclass objective by its formula, and its least value by liblinear."""

import numpy as np
from sklearn.svm import LinearSVC


def objective(weights, X, y, lam):
    """``lam / 2 |W|^2 + mean_i max_k [1(k != y_i) + (w_k - w_{y_i}) x_i]``"""
    n_classes = int(y.max()) + 1
    W = weights.reshape(n_classes, -1)
    scores = X @ W.T
    hinge = (scores + (1.0 - np.eye(n_classes))[y]).max(axis=1) - scores[np.arange(len(y)), y]
    return lam / 2 * (W**2).sum() + hinge.mean()


def least_objective(X, y, lam):
    """The objective at liblinear's solution."""
    C = 1 / (lam * len(y))
    model = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-10, max_iter=10**6)
    return objective(model.fit(X, y).coef_, X, y, lam)

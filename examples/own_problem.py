"""A problem of your own, in plain Python
======================================

Digits with a tree-shaped loss, in which mistakes within a branch cost half.
"""

import numpy as np
from sklearn.datasets import load_digits

from maxmargin import BlockFrankWolfe, solve
from maxmargin.problems import Sizes

SHAPE = np.array([0, 1, 2, 2, 1, 2, 0, 1, 0, 0])  # round, straight or bent: the tree's inner nodes


class TreeDigits:
    # The statistics of an output y are the indicator of its class, and Phi_i multiplies by x_i.
    def __init__(self, X, labels):
        self.X, self.labels = X, labels
        self.cost = np.where(SHAPE[:, None] == SHAPE, 0.5, 1.0) * (1 - np.eye(10))

    def sizes(self):  # the arrays that the methods below fill are made this long
        return Sizes(examples=len(self.X), weights=10 * self.X.shape[1], statistics=10, output=1, parts=2)

    def score(self, i, w, theta):  # the score of each class
        theta[:] = w.reshape(10, -1) @ self.X[i]

    def argmax(self, i, theta, y, work):  # the max oracle: the prediction with the loss added
        y[0] = np.argmax(theta + self.cost[self.labels[i]])

    def decode(self, i, theta, y, work):  # the prediction
        y[0] = np.argmax(theta)

    def loss(self, i, y):  # what answering y costs
        return self.cost[self.labels[i], y[0]]

    def psi(self, i, y, index, value):  # statistics of the truth less those of y, entry by entry
        index[:], value[:] = (self.labels[i], y[0]), (1.0, -1.0)
        return 2

    def gram(self, i, move, image, work):  # Phi_i' Phi_i delta, for the exact line search
        image[:] = (self.X[i] @ self.X[i]) * move.delta

    def push(self, i, move, scale, w, work):  # w += scale * Phi_i delta
        w += scale * np.outer(move.delta, self.X[i]).ravel()

    def unpack(self, w):  # the weights in the shapes you like
        return (w.reshape(10, -1),)


X, labels = load_digits(return_X_y=True)
X /= 16  # pixels between 0 and 1
problem = TreeDigits(X[:400], labels[:400])
result = solve(problem, BlockFrankWolfe(lam=0.01), tol=0.01, random_state=0)
print(f"The objective, {result.primal:.3f}, is certified to be within {result.gap:.2g} of its minimum.")
predicted = np.argmax(X[400:] @ result.weights.reshape(10, -1).T, axis=1)
print(f"Mean cost on {len(predicted)} other digits: {problem.cost[labels[400:], predicted].mean():.3f}")

"""An output space of your own: sorting
====================================

Three Python functions are enough to learn to sort scanned digits.
An example x is a row of scans, one scan per line of the array; an output y is the rank of each scan.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import StructuredSVC

LENGTH = 6


def features(x, y):
    """Features are the scans times their ranks, so the best order sorts the scans by their scores."""
    return y @ x


def loss(y_true, y):
    """Return how far the sum of products of ranks is below its maximum, which the true order attains."""
    return y_true @ (y_true - y) / LENGTH


def argmax(x, w, y_true=None):
    """Return the order of largest score plus loss; the loss is a sum over scans too, so this is a sort."""
    return ranks(x @ w if y_true is None else x @ w - y_true / LENGTH)


def ranks(values):
    return np.argsort(np.argsort(values))


def rows(scans, digits, n_rows):
    """Draw rows of different digits."""
    rng, X, y = np.random.default_rng(0), [], []
    for _ in range(n_rows):
        row = [rng.choice(np.flatnonzero(digits == digit)) for digit in rng.permutation(10)[:LENGTH]]
        X.append(scans[row] / 16)
        y.append(ranks(digits[row]))
    return X, y


if __name__ == "__main__":
    scans, digits = load_digits(return_X_y=True)
    X, y = rows(scans[:1000], digits[:1000], 300)
    X_test, y_test = rows(scans[1000:], digits[1000:], 100)
    model = StructuredSVC(features, loss, argmax, C=1.0, tol=0.05, random_state=0).fit(X, y)
    print(f"The objective is certified to be within {model.gap_:.2g} of its minimum.")
    predicted = model.predict(X_test)
    rank = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(y_test, predicted, strict=True)])
    print(f"Mean rank correlation on {len(X_test)} other rows: {rank:.3f}")

    _, axes = plt.subplots(8, LENGTH, figsize=(LENGTH, 8))
    for line, x, y in zip(axes, X_test, predicted, strict=False):
        for axis, scan in zip(line, x[np.argsort(y)], strict=True):
            axis.imshow(scan.reshape(8, 8), cmap="Greys")
            axis.axis("off")
    plt.show()

"""Matrix completion on a nuclear-norm ball
========================================

Fill in the missing pixels of scanned digits.

A row of the matrix is a scan. Some pixels of every scan are seen, and scans of the same digit are alike, so
the matrix is close to one of low rank: minimise the squared error on the pixels that are seen, among matrices
whose singular values sum to at most a radius. The oracle of Frank-Wolfe is one pair of singular vectors, and
the gap says how far the error is from its minimum, whatever the radius.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from maxmargin import solve
from maxmargin.product import ConditionalGradient, LeastSquares, NuclearNormBall, ProductProblem

SEEN = 0.5
RADIUS = 30.0


if __name__ == "__main__":
    scans, digits = load_digits(return_X_y=True)
    truth = scans[digits < 3][:100] / 16
    rng = np.random.default_rng(0)
    mask = rng.random(truth.shape) < SEEN
    mean = truth.sum(axis=0, where=mask) / mask.sum(axis=0)
    seen = np.flatnonzero(mask)
    pick = csr_array((np.ones(len(seen)), (np.arange(len(seen)), seen)), shape=(len(seen), truth.size))
    error = LeastSquares(pick, (truth - mean).flat[seen])
    problem = ProductProblem(error, NuclearNormBall(truth.shape, RADIUS))

    start = error.value(np.zeros(truth.size))
    result = solve(problem, ConditionalGradient(), tol=0.02 * start, max_passes=500)
    (completed,) = problem.blocks(result.w)
    completed = completed + mean
    print(f"Squared error on the seen pixels: {result.primal:.1f}, and {start:.1f} without the matrix.")
    print(f"It is certified to be within {result.gap:.2g} of its minimum.")
    for name, guess in (("mean of the pixel", np.broadcast_to(mean, truth.shape)), ("completed", completed)):
        rest = np.sqrt(np.mean((guess - truth)[~mask] ** 2))
        print(f"Root mean square error on the missing pixels, {name}: {rest:.3f}")

    figure, axes = plt.subplots(3, 8, figsize=(8, 3.4))
    rows = {"seen": np.where(mask, truth, np.nan), "completed": completed, "truth": truth}
    for line, (name, matrix) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name)
        for axis, scan in zip(line, matrix, strict=False):
            axis.imshow(scan.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
            axis.set_facecolor("lightblue")
            axis.set_xticks([])
            axis.set_yticks([])
    plt.show()

"""A product of many sets: mixed pixels
====================================

Find what every pixel of a picture is made of, and the haze above all of them.

A pixel of a hyperspectral picture is a mixture of the spectra of some materials, plus the haze. The shares of
the materials in a pixel are in a simplex, one for each pixel, and the spectrum of the haze is in a box. Each
step calls the oracle of one of these sets, and changes only what belongs to it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.sparse import block_diag, hstack, kron

from maxmargin import solve
from maxmargin.product import BlockConditionalGradient, Box, LeastSquares, Product, ProductProblem, Simplex

SIDE, BANDS, MATERIALS = 12, 20, 4


def scene(rng):
    """Return spectra (bands, materials), shares (pixels, materials) and haze (bands)."""
    spectra = gaussian_filter(rng.random((BANDS, MATERIALS)), (2, 0)) * 2
    fields = gaussian_filter(rng.normal(size=(SIDE, SIDE, MATERIALS)), (2, 2, 0)).reshape(-1, MATERIALS)
    shares = np.exp(25 * fields)
    return spectra, shares / shares.sum(axis=1, keepdims=True), 0.3 * np.exp(-np.arange(BANDS) / 8)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    spectra, shares, haze = scene(rng)
    seen = shares @ spectra.T + haze + 0.01 * rng.normal(size=(SIDE * SIDE, BANDS))

    mixing = block_diag([spectra] * SIDE**2)
    everywhere = kron(np.ones((SIDE**2, 1)), np.eye(BANDS))
    sets = [Simplex(MATERIALS)] * SIDE**2 + [Box(np.zeros(BANDS), 0.5)]
    problem = ProductProblem(LeastSquares(hstack([mixing, everywhere]), seen.ravel()), Product(sets))
    result = solve(
        problem, BlockConditionalGradient(), tol=0.1, max_passes=300, sampling="gap", random_state=0
    )
    *found, found_haze = problem.blocks(result.w)
    print(f"Squared error: {result.primal:.3f}, certified to be within {result.gap:.2g} of its minimum.")
    print(f"{result.history.passes[-1]:.0f} passes over {len(sets)} sets")
    print(f"Mean error of a share: {np.abs(np.array(found) - shares).mean():.3f}")
    print(f"Mean error of the haze: {np.abs(found_haze - haze).mean():.3f}")

    _, axes = plt.subplots(2, MATERIALS, figsize=(8, 4.2))
    for line, name, values in zip(axes, ("truth", "found"), (shares, np.array(found)), strict=True):
        line[0].set_ylabel(name)
        for axis, material in zip(line, values.T, strict=True):
            axis.imshow(material.reshape(SIDE, SIDE), vmin=0, vmax=1)
            axis.set_xticks([])
            axis.set_yticks([])
    plt.show()

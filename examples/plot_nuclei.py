"""Cell nuclei, found by minimum cuts
==================================

Cuts of images, compared with logistic regression on the same features.
Trains on the 2018 Data Science Bowl, read from $MAXMARGIN_DATA; without it, on discs drawn at random.

.. image:: /figures/nuclei.svg
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage, sparse
from sklearn.linear_model import LogisticRegression

from maxmargin import GraphSVC, edge_differences, grid_edges
from maxmargin.datasets import intersection_over_union, load_nuclei


def load():
    """Return training and test images with their labels."""
    try:
        return load_nuclei()
    except FileNotFoundError as error:
        print(f"{error}\nInstead: discs drawn at random.")
    drawn = [draw_discs(np.random.default_rng(seed)) for seed in range(40)]
    return zip(*drawn[:20], strict=True), zip(*drawn[20:], strict=True)


def draw_discs(rng):
    """Return a noisy image of bright discs, and which pixels belong to them."""
    places = np.indices((24, 24))
    y = np.any([np.hypot(*(places - rng.integers(24, size=(2, 1, 1)))) < 4 for _ in range(4)], axis=0)
    return np.uint8(np.clip(90 + 60 * y[:, :, None] + 40 * rng.normal(size=(24, 24, 3)), 0, 255)), y * 1


def as_graph(image):
    """Return pixels with colours, theirs and the image's, and edges with differences of colours."""
    colours, edges = image.reshape(-1, 3) / 255, grid_edges(image.shape[:2], connectivity=8)
    apart, spread = colours - np.median(colours, axis=0), colours.std(axis=0) + 0.02
    scaled = np.clip(apart / spread, -4, 4) / 4
    nodes = np.hstack([colours, apart, abs(apart), scaled, abs(scaled), np.ones((len(colours), 1))])
    blurred = [ndimage.gaussian_filter(image / 255, (blur, blur, 0)).reshape(-1, 3) for blur in (0, 1, 2)]
    far = np.column_stack([edge_differences(each, edges).max(axis=1) for each in blurred])
    bins = np.eye(9)[np.digitize(far / spread.max(), [0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0])]
    wide = np.eye(7)[np.digitize(far, [0.01, 0.02, 0.04, 0.08, 0.15, 0.3])]
    return nodes, edges, sparse.csr_array(np.dstack([bins, wide]).reshape(len(edges), -1))


def main():
    (images, y), (test_images, test_y) = load()
    X, tested = ([as_graph(image) for image in some] for some in (images, test_images))
    alone = LogisticRegression(max_iter=300).fit(np.vstack([x[0] for x in X]), np.hstack([z.flat for z in y]))
    model = GraphSVC(C=1e-3, random_state=0).fit(X, list(y))
    print(f"{len(X)} training images: within {model.gap_:.2g} of {model.history_.primal.min():.0f} pixels.")
    found = {"pixel by pixel": [alone.predict(x[0]) for x in tested], "cut": model.predict(tested)}
    for k, name in enumerate(found):
        print(f"Intersection over union, {name}: {intersection_over_union(test_y, found[name]):.3f}")
        plt.subplot(1, 2, k + 1, title=name).imshow(found[name][0].reshape(test_y[0].shape))
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/nuclei.svg"

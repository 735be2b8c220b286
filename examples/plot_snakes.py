"""Snakes: labels of a grid
========================

Number the cells of a snake: edges of the grid score directions, colours and pairs of labels.
Trains on the snakes, read from $MAXMARGIN_DATA; without them, on snakes drawn at random.

.. image:: /figures/snakes.svg
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from maxmargin import GraphSVC, grid_directions, grid_edges
from maxmargin.datasets import load_snakes


def load():
    """Return training and test pictures with their labels."""
    try:
        return load_snakes()
    except FileNotFoundError as error:
        print(f"{error}\nInstead: snakes drawn at random.")
    drawn = [draw_snake(np.random.default_rng(seed)) for seed in range(60)]
    return zip(*drawn[:40], strict=True), zip(*drawn[40:], strict=True)


def draw_snake(rng, length=5):
    """Return a picture of a snake, in which colours show the direction of the next cell, and its labels."""
    image, y, (r, c) = np.zeros((7, 11, 3), dtype=np.uint8), np.zeros((7, 11), dtype=np.int64), (3, 5)
    for cell in range(1, length + 1):
        steps = [(0, 1), (0, -1), (1, 0)][: 3 if r < 6 else 2]
        way = rng.choice([k for k, step in enumerate(steps) if y[r + step[0], c + step[1]] == 0])
        image[r, c], y[r, c] = 100 + 50 * way, cell
        r, c = r + steps[way][0], c + steps[way][1]
    return image, y


def as_graph(image):
    """Return pixels with the colours around them, and edges with direction and the colours of both ends."""
    colours = np.eye(36)[image.astype(int) @ [1, 2, 4] // 51]
    (rows, columns), around = image.shape[:2], np.pad(colours, ((1, 1), (1, 1), (0, 0)))
    nodes = np.dstack([around[r : r + rows, c : c + columns] for r in range(3) for c in range(3)])
    edges, colours = grid_edges((rows, columns)), colours.reshape(rows * columns, -1)
    ends = np.hstack([colours[edges[:, 0]], colours[edges[:, 1]], np.ones((len(edges), 1))])
    each = grid_directions((rows, columns))[:, :, None] * ends[:, None, :]
    return csr_array(nodes.reshape(rows * columns, -1)), edges, csr_array(each.reshape(len(edges), -1))


def main():
    (images, y), (test_images, test_y) = load()
    graphs, test_graphs = ([as_graph(image) for image in some] for some in (images, test_images))
    model = GraphSVC(C=0.1, random_state=0).fit(graphs, y)
    print(f"{len(graphs)} training pictures, {model.n_iter_} passes; labels found by {model.inference_}.")
    print(f"Right on {len(test_graphs)} test pictures: {100 * model.score(test_graphs, test_y):.2f}%")
    predicted = model.predict(test_graphs[:1])[0].reshape(test_y[0].shape)
    for k, picture in enumerate((test_images[0], test_y[0], predicted)):
        plt.subplot(1, 3, k + 1, title=("picture", "truth", "predicted")[k]).imshow(picture)
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/snakes.svg"

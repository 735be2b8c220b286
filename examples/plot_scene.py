"""Sets of labels
==============

Independent labels, a tree of labels, and all pairs. The picture shows the pairs.
Trains on photographs of scenes, read from $MAXMARGIN_DATA; without them, on sets made at random.

.. image:: /figures/scene.svg
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification

from maxmargin import MultilabelSVC
from maxmargin.datasets import load_scene


def load():
    """Return training and test data, and the names of the labels."""
    try:
        return load_scene()
    except FileNotFoundError as error:
        print(f"{error}\nInstead: sets made at random.")
    X, y = make_multilabel_classification(400, n_labels=2, random_state=0)
    return (X[:200] / 20, y[:200]), (X[200:] / 20, y[200:]), [f"label {k}" for k in range(y.shape[1])]


def main():
    (X, y), (test_X, test_y), names = load()
    for structure in ("independent", "tree", "full"):
        model = MultilabelSVC(structure=structure, random_state=0).fit(X, y)
        wrong = np.mean(model.predict(test_X) != test_y)
        print(
            f"{structure}: {100 * model.score(test_X, test_y):.1f}% of sets right, {wrong:.3f} labels wrong"
        )

    together = np.zeros((len(names), len(names)))
    for (a, b), table in zip(model.edges_, model.edge_coef_, strict=True):
        together[a, b] = together[b, a] = table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]
    plt.imshow(together, cmap="coolwarm", vmin=-np.abs(together).max(), vmax=np.abs(together).max())
    plt.xticks(range(len(names)), names, rotation=60)
    plt.yticks(range(len(names)), names)
    plt.colorbar(label="what two labels gain together")
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/scene.svg"

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
from maxmargin.displays import TransitionsDisplay


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

    axes = TransitionsDisplay.from_estimator(model).ax_
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_yticks(range(len(names)), names)
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/scene.svg"

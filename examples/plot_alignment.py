"""Word alignment: a sentence and its translation
==============================================

Matchings link the words of a sentence to those of its translation. The picture shows one.
Trains on the Hansards, read from $MAXMARGIN_DATA; without them, on pairs of rows of scanned digits.

.. image:: /figures/alignment.svg
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import MatchingSVC
from maxmargin.datasets import alignment_error_rate
from maxmargin.displays import AlignmentDisplay
from word_alignment import DescribedPairs, load_described_hansards


def load():
    """Return training and test pairs."""
    try:
        return load_described_hansards(n_text=20_000)[:2]  # all text takes minutes, for better features
    except FileNotFoundError as error:
        print(f"{error}\nInstead: rows of scanned digits.")
    scans, digits = load_digits(return_X_y=True)
    return rows_of_digits(scans[:1000], digits[:1000]), rows_of_digits(scans[1000:], digits[1000:])


def rows_of_digits(scans, digits, n_pairs=150):
    """Draw pairs of rows of scans; the features of a link are the differences of its scans at each pixel."""
    rng, found = np.random.default_rng(0), DescribedPairs([], [], [], [], [])
    for _ in range(n_pairs):
        rows = [[rng.choice(np.flatnonzero(digits == d)) for d in rng.permutation(10)[:6]] for _ in range(2)]
        same = np.equal.outer(digits[rows[0]], digits[rows[1]])
        found.words.append(tuple([str(digit) for digit in digits[row]] for row in rows))
        found.X.append(np.abs(scans[rows[0]][:, None] - scans[rows[1]]) / 16)
        for links in found[2:]:
            links.append([(int(j), int(k)) for j, k in np.argwhere(same)])
    return found


def main():
    train, test = load()
    # Possible links are not in y, but they are not wrong either: in training they cost nothing.
    model = MatchingSVC(C=1.0, tol=0.05, random_state=0).fit(train.X, train.y, possible=train.possible)
    print(f"{len(train.X)} training pairs, {model.n_features_in_} features, {model.n_iter_} passes.")
    print(f"The objective is certified to be within {model.gap_:.2g} of its minimum.")
    predicted = model.predict(test.X)
    error = alignment_error_rate(test.sure, test.possible, predicted)
    print(f"Alignment error rate on {len(test.X)} test pairs: {error:.3f}")

    i = min(range(len(test.X)), key=lambda i: abs(test.X[i].shape[0] - 12))
    links, (sources, targets) = {"sure": test.sure[i], "possible": test.possible[i]}, test.words[i]
    AlignmentDisplay.from_estimator(model, test.X[i], **links, sources=sources, targets=targets)
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/alignment.svg"

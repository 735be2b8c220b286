"""Handwritten words: chains of first and second order
===================================================

A letter depends on one or two before it. The picture shows what three letters in a row score.
Trains on the OCR letters, read from $MAXMARGIN_DATA or fetched; without them, on words of scanned digits.

.. image:: /figures/words.svg
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import ChainSVC
from maxmargin.datasets import load_digit_words, load_ocr
from maxmargin.displays import TransitionsDisplay


def load():
    """Return training and test words, and the names of the labels, which are numbers."""
    try:
        return *load_ocr(), "abcdefghijklmnopqrstuvwxyz"
    except FileNotFoundError as error:
        print(f"{error}\nInstead: words of scanned digits.")
    # Noisy scans: at the default noise of 0.4 both orders get 12 % of the digits wrong.
    X_train, y_train, X_test, y_test = load_digit_words(noise=0.6)
    return [x - 0.5 for x in X_train], y_train, [x - 0.5 for x in X_test], y_test, "0123456789"


def main():
    X_train, y_train, X_test, y_test, names = load()
    for order in (1, 2):
        model = ChainSVC(C=0.1, order=order, tol=0.05, random_state=0).fit(X_train, y_train)
        wrong = 1 - model.score(X_test, y_test)
        print(
            f"Order {order}: {wrong:.2%} of the letters of {len(X_test)} test words are wrong; the objective"
        )
        print(f"is certified to be within {model.gap_:.2g} of its minimum after {model.n_iter_} passes.")

    # What the model has learnt about three letters in a row: trigrams_[i, j, k] scores k after j after i.
    letters = [names[k] for k in model.classes_]
    best = np.argsort(model.trigrams_, axis=None)[::-1][:5]
    for i, j, k in zip(*np.unravel_index(best, model.trigrams_.shape), strict=True):
        print(f"  {letters[i]}{letters[j]}{letters[k]}  {model.trigrams_[i, j, k]:+.3f}")
    middle = np.unravel_index(best[0], model.trigrams_.shape)[1]
    display = TransitionsDisplay(model.trigrams_[:, middle], letters, letters, meaning="score of the three")
    around = {"xlabel": f"what follows {letters[middle]}", "ylabel": f"what stands before {letters[middle]}"}
    display.plot().ax_.set(**around)
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/words.svg"

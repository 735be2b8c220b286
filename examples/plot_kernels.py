"""Handwritten words, read with a kernel
=====================================

A kernel of the pixels, exactly and by Nystroem's approximation.
Trains on a tenth of the OCR letters, read from $MAXMARGIN_DATA or fetched, and tests on the rest; without
them, on words of scanned digits. The picture shows the error against the seconds of training.

.. image:: /figures/kernels.svg
"""

import time

import matplotlib.pyplot as plt
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from maxmargin import ChainSVC, TokenTransformer
from maxmargin.datasets import load_digit_words, load_ocr

GAMMA = 0.05
OPTIONS = {"loss": "normalized_hamming", "tol": 0.02, "max_iter": 200, "random_state": 0}


def load():
    """Return training and test words."""
    try:
        X_rest, y_rest, X_fold, y_fold = load_ocr(fold=0)
        return X_fold, y_fold, X_rest, y_rest
    except FileNotFoundError as error:
        print(f"{error}\nInstead: words of scanned digits.")
    return load_digit_words(n_train=60, n_test=60)


def main():
    X_train, y_train, X_test, y_test = load()
    models = {
        "Linear": ChainSVC(C=0.1, **OPTIONS),
        "Gaussian kernel": ChainSVC(C=0.3, kernel="rbf", gamma=GAMMA, **OPTIONS),
    }
    for size in (30, 100, 300, 1000):
        if size < sum(map(len, X_train)):
            features = TokenTransformer(Nystroem(gamma=GAMMA, n_components=size, random_state=0))
            models[f"Nystroem, {size} components"] = make_pipeline(features, ChainSVC(C=0.3, **OPTIONS))
    for name, model in models.items():
        seconds = []
        for _ in range(2):  # the first may compile
            begin = time.perf_counter()
            model.fit(X_train, y_train)
            seconds.append(time.perf_counter() - begin)
        wrong = 1 - model.score(X_test, y_test)
        print(f"{name}: {wrong:.2%} of the letters wrong, trained in {seconds[1]:.1f} s")
        plt.plot(seconds[1], wrong, "o", label=name)
    plt.xscale("log")
    plt.xlabel("seconds to train")
    plt.ylabel("share of wrong letters")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/kernels.svg"

"""Read handwritten words with a kernel of the pixels, exactly and by Nystroem's approximation.

Trains on a tenth of the OCR letters, read from $MAXMARGIN_DATA or fetched, and tests on the rest; without
them, on words of scanned digits. The picture shows the error against the seconds of training.
"""

import time

import matplotlib.pyplot as plt
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from maxmargin import ChainSVC, TokenTransformer
from maxmargin.datasets import load_digit_words, load_ocr

COMPONENTS = (30, 100, 300, 1000)


def load():
    """Return training and test words, and the gamma of the kernel."""
    try:
        X_rest, y_rest, X_fold, y_fold = load_ocr(fold=0)
        return X_fold, y_fold, X_rest, y_rest, 0.05
    except FileNotFoundError as error:
        print(f"{error}\nInstead: words of scanned digits.")
    return *load_digit_words(n_train=60, n_test=60), 0.05


def compile_for(X, y, gamma):
    """Train models of all kinds on a few words, so that compiling does not count."""
    for few in (X[:10], [x + 0.5 for x in X[:10]]):  # sparse and dense
        ChainSVC(tol=1.0, random_state=0).fit(few, y[:10])
    ChainSVC(tol=1.0, kernel="rbf", gamma=gamma, random_state=0).fit(X[:10], y[:10])


def measured(name, model, words):
    """Train and test a model; print and return its seconds and its share of wrong letters."""
    X_train, y_train, X_test, y_test = words
    begin = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - begin
    wrong = 1 - model.score(X_test, y_test)
    print(f"{name}: {wrong:.2%} of the letters wrong, trained in {seconds:.1f} s")
    return seconds, wrong


def main():
    *words, gamma = load()
    compile_for(*words[:2], gamma)
    options = {"tol": 0.02, "max_iter": 200, "random_state": 0}
    linear = measured("Linear", ChainSVC(C=0.1, **options), words)
    exact = measured("Gaussian kernel", ChainSVC(C=0.3, kernel="rbf", gamma=gamma, **options), words)
    n_letters = sum(map(len, words[1]))
    approximate = []
    for n_components in COMPONENTS:
        if n_components < n_letters:
            features = Nystroem(gamma=gamma, n_components=n_components, random_state=0)
            model = make_pipeline(TokenTransformer(features), ChainSVC(C=0.3, **options))
            approximate.append(measured(f"Nystroem, {n_components} components", model, words))

    plt.plot(*zip(*approximate, strict=True), "o-", label="Nystroem")
    plt.plot(*exact, "s", label="kernel")
    plt.plot(*linear, "^", label="linear")
    plt.xscale("log")
    plt.xlabel("seconds to train")
    plt.ylabel("share of wrong letters")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()

"""Phrases as segments
===================

Divide sentences into phrases, which are labelled segments of words. The picture shows the scores of their
lengths.
Trains on CoNLL-2000, read from $MAXMARGIN_DATA or fetched; without it, on sentences of a toy grammar.

.. image:: /figures/phrases.svg
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import ChainSVC, SegmentSVC
from maxmargin.datasets import chunk_f1, load_conll2000, window_features

NOUNS, ADJECTIVES = ["dog", "cat", "house", "child"], ["old", "small", "grey"]
VERBS = [["sees"], ["has", "seen"], ["likes"], ["has", "been", "chasing"]]


def load():
    """Return training and test sentences, with a tag for each word."""
    try:
        X_train, y_train, X_test, y_test = load_conll2000()
        return X_train[:2000], y_train[:2000], X_test, y_test  # all sentences are better, but take minutes
    except FileNotFoundError as error:
        print(f"{error}\nInstead: sentences of a toy grammar.")
    rng = np.random.default_rng(0)
    X, y = zip(*(toy_sentence(rng) for _ in range(200)), strict=True)
    return X[:100], y[:100], X[100:], y[100:]


def toy_sentence(rng):
    """Return a sentence such as "the old dog has seen the cat ." and its tags."""
    words, tags = [], []
    for label in ("NP", "VP", "NP"):
        adjectives = [str(word) for word in rng.choice(ADJECTIVES, rng.integers(0, 3))]
        noun = ["the", *adjectives, str(rng.choice(NOUNS))]
        phrase = noun if label == "NP" else VERBS[rng.integers(len(VERBS))]
        words += [(word, word[-1]) for word in phrase]
        tags += [f"B-{label}", *[f"I-{label}"] * (len(phrase) - 1)]
    return window_features([*words, (".", ".")]), [*tags, "O"]


def main():
    X_train, y_train, X_test, y_test = load()
    settings = {"C": 0.2, "loss": "hamming", "min_count": 3, "tol": 0.05, "random_state": 0}
    model = SegmentSVC(**settings).fit(X_train, y_train)
    print(f"{len(X_train)} training sentences, {model.n_features_in_} features, {model.n_iter_} passes.")
    print(f"The objective is certified to be within {model.gap_:.2g} of its minimum.")
    print(f"F1 of phrases of {len(X_test)} test sentences: {model.score(X_test, y_test):.4f}")
    chain = ChainSVC(**settings).fit(X_train, y_train)
    print(f"The same of a chain of tags: {chunk_f1(y_test, chain.predict(X_test)):.4f}")

    most = np.abs(model.lengths_).max()
    plt.imshow(model.lengths_, cmap="coolwarm", vmin=-most, vmax=most)
    plt.yticks(range(len(model.lengths_)), [*model.classes_, "outside"])
    plt.xticks(range(model.lengths_.shape[1]), range(1, 1 + model.lengths_.shape[1]))
    plt.colorbar(label="score of a phrase with so many words")
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/phrases.svg"

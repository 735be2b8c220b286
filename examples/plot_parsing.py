"""Dependency parsing: the head of every word
==========================================

The picture shows the tree of one sentence.
Trains on the English Web Treebank, read from $MAXMARGIN_DATA; without it, on sentences of a toy grammar.

.. image:: /figures/parsing.svg
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import DependencySVC
from maxmargin.datasets import load_ud_ewt
from maxmargin.datasets.ud_ewt import Treebank
from maxmargin.displays import DependencyDisplay

NOUNS, VERBS, ADJECTIVES = ["dog", "cat", "house", "child"], ["sees", "likes", "chases"], ["old", "small"]


def load():
    """Return training and test sentences."""
    try:
        train, _, test = load_ud_ewt()
        return Treebank(train.X[:3000], train.y[:3000]), test  # all sentences are better, but take minutes
    except FileNotFoundError as error:
        print(f"{error}\nInstead: sentences of a toy grammar.")
    rng = np.random.default_rng(0)
    X, y = zip(*(toy_sentence(rng) for _ in range(200)), strict=True)
    return Treebank(X[:100], y[:100]), Treebank(X[100:], y[100:])


def toy_sentence(rng):
    """Return a sentence such as "the old dog sees the cat", and its heads."""
    (subject, subject_heads), (other, other_heads) = toy_phrase(rng), toy_phrase(rng)
    verb = len(subject) + 1
    heads = [*(h or verb for h in subject_heads), 0, *(h + verb if h else verb for h in other_heads)]
    return [*subject, (str(rng.choice(VERBS)), "VERB"), *other], heads


def toy_phrase(rng):
    adjectives = [(str(word), "ADJ") for word in rng.choice(ADJECTIVES, rng.integers(0, 3))]
    phrase = [("the", "DET"), *adjectives, (str(rng.choice(NOUNS)), "NOUN")]
    return phrase, [len(phrase)] * (len(phrase) - 1) + [0]


def main():
    train, test = load()
    model = DependencySVC(tol=0.05, random_state=0).fit(train.X, train.y)
    print(f"{len(train.X)} training sentences, {model.n_features_in_} features, {model.n_iter_} passes.")
    print(f"The objective is certified to be within {model.gap_:.2g} of its minimum.")
    print(f"Attachment score on {len(test.X)} test sentences: {model.score(test.X, test.y):.3f}")

    i = min(range(len(test.X)), key=lambda i: abs(len(test.X[i]) - 9))
    DependencyDisplay.from_estimator(model, test.X[i], y_true=test.y[i])
    plt.show()


if __name__ == "__main__":
    main()

# sphinx_gallery_thumbnail_path = "figures/parsing.svg"

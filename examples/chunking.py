"""Chunking: the phrases of a sentence
===================================

A chain whose features are plain strings finds the phrases of sentences.
Trains on CoNLL-2000, read from $MAXMARGIN_DATA or fetched; without it, on words of scanned digits.
"""

import numpy as np

from maxmargin import ChainSVC
from maxmargin.datasets import chunk_f1, load_conll2000, load_digit_words


def load():
    """Return training and test sequences; a token is the list of the names of its features."""
    try:
        return load_conll2000()
    except FileNotFoundError as error:
        print(f"{error}\nInstead: words of scanned digits.")
    X_train, y_train, X_test, y_test = load_digit_words()
    return dark_pixels(X_train), y_train, dark_pixels(X_test), y_test


def dark_pixels(words):
    """Return the names of the dark pixels of every scan: anything with a name can be a feature."""
    return [[[f"pixel{k}" for k in np.flatnonzero(scan > 0.5)] for scan in word] for word in words]


def main():
    X_train, y_train, X_test, y_test = load()
    # min_count: ignore features rarer than this. The defaults of C and tol were chosen on such tasks.
    model = ChainSVC(min_count=3, random_state=0)
    model.fit(X_train, y_train)
    print(f"{len(X_train)} training sequences, {model.n_features_in_} features, {model.n_iter_} passes.")
    # The certificate: no weights have an objective that is lower by more than this.
    print(f"The objective is certified to be within {model.gap_:.2g} of its minimum.")

    print(f"Token accuracy on {len(X_test)} test sequences: {model.score(X_test, y_test):.2%}")
    if isinstance(y_test[0][0], str):
        print(f"Chunk F1: {chunk_f1(y_test, model.predict(X_test)):.2%}")

    # Where to look for mistakes first: at tokens whose labels could change at the least cost.
    pairs = zip(model.predict(X_test), y_test, strict=True)
    wrong = np.concatenate([labels != np.asarray(truth) for labels, truth in pairs])
    first = np.argsort(np.concatenate(model.predict_margins(X_test)))[: len(wrong) // 20]
    print(f"The 5 % of tokens of smallest margin have {wrong[first].sum()} of {wrong.sum()} wrong labels.")

    # What the model has learnt about neighbouring labels: transitions_[j, k] scores label k after label j.
    print("Most favoured transitions:")
    best = np.argsort(model.transitions_, axis=None)[::-1][:5]
    for j, k in zip(*np.unravel_index(best, model.transitions_.shape), strict=True):
        print(f"  {model.classes_[j]} -> {model.classes_[k]}  {model.transitions_[j, k]:+.3f}")


if __name__ == "__main__":
    main()

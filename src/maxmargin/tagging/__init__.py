"""Tagging with chains, in processes that start at once.

`maxmargin tag` is often run on small files, where most of its time is the import of NumPy, Numba and
scikit-learn. The modules here import none of these, except for `lines`, which is compiled when there is no
code on disk yet, and `making`, which compiles it. Predictions are those of `ChainSVC`: scores are sums of the
same numbers in the same order, and the same function finds the best labelling.
Everything else is left to the estimator: other models, other data, and faulty files.
"""

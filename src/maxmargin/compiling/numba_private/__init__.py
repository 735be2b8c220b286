"""All uses of Numba beyond its public interface; no other package has any.

Private names may change with any release of Numba. Each group of names is tested when its module is imported,
and has a fallback. Our own way to lower and link kernels, and to pass tuples, is used only with the versions
of Numba that it was tested with (`versions.TESTED`): these classes rely on the meaning of names, too. With a
fallback, the package computes the same bits, but more slowly; the first compilation then issues one warning
that says what is lost.
"""

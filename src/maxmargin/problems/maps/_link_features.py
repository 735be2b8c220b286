"""Products of the features of a pair's links with weights and with moves.

The matrix ``x`` has one row per feature and one column per link. Loops take four features at a time, to save
memory traffic.
"""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.loops import add_scaled, clear


@helper
def sum_features(x, w, out):
    """``out[:] = w @ x``."""
    clear(out)
    quads = x.shape[0] // 4
    for quad in range(quads):
        f = 4 * quad
        _add_four(w[f : f + 4], x[f], x[f + 1], x[f + 2], x[f + 3], out)
    for f in range(4 * quads, x.shape[0]):
        add_scaled(w[f], x[f], out)


@helper
def _add_four(w, x0, x1, x2, x3, out):
    """``out += w[0] * x0 + w[1] * x1 + w[2] * x2 + w[3] * x3``."""
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    if w0 == 0.0 and w1 == 0.0 and w2 == 0.0 and w3 == 0.0:  # a move changes few features
        return
    for p in range(out.shape[0]):
        out[p] += (w0 * x0[p] + w1 * x1[p]) + (w2 * x2[p] + w3 * x3[p])


@helper
def push_links(x, support, delta, further, scale, w):
    """``w += scale * x @ delta[further:]``, where ``delta`` is zero outside ``support``."""
    quads = x.shape[0] // 4
    for quad in range(quads):
        f = 4 * quad
        _push_four(
            x[f], x[f + 1], x[f + 2], x[f + 3], support, delta, np.uint32(further), scale, w[f : f + 4]
        )
    for f in range(4 * quads, x.shape[0]):
        total = 0.0
        for c in range(support.shape[0]):
            if support[c] >= further:
                total += delta[support[c]] * x[f, np.uint32(support[c] - np.uint32(further))]
        w[f] += scale * total


@helper
def _push_four(x0, x1, x2, x3, support, delta, further, scale, w):
    """Push four features at once, so that their sums are computed in parallel."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for c in range(support.shape[0]):
        p = support[c]
        if p >= further:
            d, q = delta[p], np.uint32(p - further)
            t0, t1, t2, t3 = t0 + d * x0[q], t1 + d * x1[q], t2 + d * x2[q], t3 + d * x3[q]
    w[0] += scale * t0
    w[1] += scale * t1
    w[2] += scale * t2
    w[3] += scale * t3

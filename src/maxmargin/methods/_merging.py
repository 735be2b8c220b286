"""Active sets within a budget of memory: planes of small weight are merged into their mean.

A merged plane stands for a distribution over outputs. So the dual point stays the same, and merged planes can
be used like any others: its margin is at most the hinge, and weight may move to it and from it.
"""

from maxmargin.compiling import helper
from maxmargin.methods._planes import add_plane, drop_planes
from maxmargin.methods._pool import SIZE, START
from maxmargin.problems.moves import reset

# Bytes of an entry: its place and its value.
ENTRY_BYTES = 12


@helper
def fit_planes(planes, i, most, move):
    """Merge the planes of block i, those of smallest alpha first, until they have at most ``most`` entries.

    A merged plane is the mean of its planes under alpha, so the dual point of the block stays the same. The
    move is workspace, zero before and afterwards.
    """
    if planes.entries[i, SIZE] > most:
        drop_planes(planes, i)
    while planes.entries[i, SIZE] > most and planes.extent[i, SIZE] > 1:
        _merge_smallest(planes, i, move)
        planes.merges[0] += 1


@helper
def _merge_smallest(planes, i, move):
    """Replace the two planes of block i with the smallest alpha by their mean, which becomes the last one."""
    start, a, b = planes.extent[i, START], 0, 1
    if planes.alpha[start + b] < planes.alpha[start + a]:
        a, b = b, a
    for c in range(2, planes.extent[i, SIZE]):
        if planes.alpha[start + c] < planes.alpha[start + a]:
            a, b = c, a
        elif planes.alpha[start + c] < planes.alpha[start + b]:
            b = c
    alpha = planes.alpha[start + a] + planes.alpha[start + b]
    share = planes.alpha[start + a] / alpha
    loss = share * planes.loss[start + a] + (1.0 - share) * planes.loss[start + b]
    add_plane(planes, i, a, share, move)
    add_plane(planes, i, b, 1.0 - share, move)
    planes.alpha[start + a] = planes.alpha[start + b] = 0.0
    drop_planes(planes, i)
    _append_move(planes, i, alpha, loss, move)
    reset(move)


@helper
def _append_move(planes, i, alpha, loss, move):
    """Add the plane whose psi is delta to block i, which has space for it."""
    plane, end = planes.extent[i, START] + planes.extent[i, SIZE], planes.entries[i, SIZE]
    first = planes.entries[i, START]
    for c in range(move.size[0]):
        p = move.support[c]
        if move.delta[p] != 0.0:
            planes.where[first + end], planes.value[first + end] = p, move.delta[p]
            end += 1
    planes.alpha[plane], planes.loss[plane] = alpha, loss
    planes.entries[i, SIZE] = planes.stop[plane] = end
    planes.extent[i, SIZE] += 1

r"""Training on several machines, on Dask: data in partitions, which stay where they are.

**Who does what.** The driver `maxmargin.solve` runs in the client, on a problem of another kind:
`Partitioned` knows sizes, and where the examples are. Workers hold the partitions with their dual variables
(`maxmargin.dask.tasks`). The client holds the weights, and whatever `Accelerated` averages. `Distributed`
takes the place of `Divided`: partitions on one thread of a worker are one part. In a round every part moves
from the common weights, and only changes of weights travel (`maxmargin.dask.calls`): from the client the
entries that changed since the last round, back to it the sum of the parts' moves, which workers add up in a
tree. Hinges and dual losses are summed where the data are. Vocabularies and labels are merged in a tree, too.

**Work comes in short tasks.** A task ends after about three seconds and says whether it is done; the client
asks again for the rest. So Ctrl-C and ``time_limit`` end the work of all workers, and a worker that does not
answer for ``timeout`` seconds counts as hanging, however long a round takes. If a worker hangs when time is
up, the run ends some two seconds later with what it has: the point before the round that was under way.
Tasks are numbered: asked twice, a worker does its work once.

**What a lost worker costs.** Let G be the sum of :math:`\Phi_i z_i` over all examples, and n lam the scale
of the steps, with lam + kappa for lam under acceleration. Weights are :math:`w = c + G / (n \lambda)`,
where c does not depend on dual variables. The client keeps G. When a partition is lost, Dask computes it
again elsewhere, and its dual variables begin at the truth, :math:`z_i = 0`. All partitions then report
their sums, which add up to G', and w changes by :math:`(G' - G) / (n \lambda)`. So weights and dual
variables agree again, whatever each partition had done of the round that was under way, and the round is
repeated.

*Every certificate stays true.* An upper bound is the objective at some weights, whatever their origin; it
is computed again if a partition is lost meanwhile. A lower bound is :math:`\ell - \|G\|^2 / (2 \lambda
n^2)` of a feasible dual point, whether or not anybody still stores its variables. The point of
`Distributed` is the one before the loss, which was feasible, or the one after it, which is. The mean dual
point of `Accelerated` is a convex combination of points that were feasible when they were added. The set of
dual variables is convex and depends on the data alone. So the mean stays feasible: it need not be reset.
All this requires that a partition is the same when it is computed again: its digest is compared, and a
difference is an error.
"""

import lazy_loader

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "maxmargin.dask: dask and distributed must be installed; run: pip install 'maxmargin[dask]'."
    ) from _error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

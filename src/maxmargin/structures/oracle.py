r"""The oracle, the other half of a problem: outputs, their losses and statistics, and the best of them.

Notation, beyond that of `maxmargin.structures.feature_map`:

========================  ============================================================================
``y``                     an output, as an int64 array
``loss``                  :math:`L_i(y)`, zero at the truth :math:`y_i`, nowhere negative
``psi``                   :math:`s_i(y_i) - s_i(y)`; the paper's :math:`\psi_i(y)` is :math:`\Phi_i` times it
``z``                     :math:`\sum_y \alpha_i(y) (s_i(y_i) - s_i(y))`; the paper's :math:`w_i` is
                          :math:`\Phi_i z_i / (\lambda n)`
``hinge``                 :math:`\max_y H_i(y; w)`, :math:`H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle`
========================  ============================================================================

**To write an oracle**, define a named tuple of arrays and register `output_sizes`, `argmax`, `decode`,
`loss` and `psi` for it; it then runs compiled. Or write a Python class with methods of these names
(`PlainOracle`); it then runs interpreted. All other functions have defaults. An oracle sees scores, never
features.
"""

from typing import NamedTuple, Protocol

import numpy as np

from maxmargin.compiling import generic, generic_with_default, is_wrapper, python_generic
from maxmargin.compiling.generics import InnerWork, called, has_implementation
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray


class OutputSizes(NamedTuple):
    """The sizes of outputs.

    Attributes
    ----------
    output : int
        Length of the longest output.
    parts : int
        Largest number of entries that `psi` writes.
    """

    output: int
    parts: int


class PlainOracle(Protocol):
    """An oracle written as a Python class; the functions of this module describe its methods."""

    def sizes(self) -> OutputSizes:
        """Return the sizes of outputs."""

    def argmax(self, i: int, theta: FloatArray, y: IntArray, work: object) -> None:
        """Write the output of largest loss plus score to ``y``."""

    def decode(self, i: int, theta: FloatArray, y: IntArray, work: object) -> None:
        """Write the output of largest score to ``y``."""

    def loss(self, i: int, y: IntArray) -> float:
        """Return the loss of an output."""

    def psi(self, i: int, y: IntArray, index: UIntArray, value: FloatArray) -> int:
        """Write the statistics of the truth minus those of an output."""


@generic
def output_sizes(oracle):
    """Return the `OutputSizes` of the oracle."""
    return oracle.sizes()


@python_generic
def oracle_workspace(oracle):
    """Return work arrays for the functions below; each thread has its own.

    The workspace of a wrapper has that of the inner oracle in its field ``inner``.
    """
    if is_wrapper(type(oracle)):
        return InnerWork(oracle_workspace(oracle.inner))
    return oracle.workspace() if hasattr(oracle, "workspace") else np.zeros(0)


@generic
def argmax(oracle, i, theta, y, work):
    r"""Write :math:`\arg\max_y L_i(y) + \langle \theta, s_i(y) \rangle` to ``y``: the max oracle."""
    called(oracle, "argmax", i, theta, y, work)


@generic
def decode(oracle, i, theta, y, work):
    r"""Write :math:`\arg\max_y \langle \theta, s_i(y) \rangle` to ``y``: the prediction."""
    called(oracle, "decode", i, theta, y, work)


@generic
def loss(oracle, i, y):
    """Return :math:`L_i(y)`."""
    return called(oracle, "loss", i, y)


@generic
def psi(oracle, i, y, index, value):
    """Write the entries of :math:`s_i(y_i) - s_i(y)` and return their number.

    If an index occurs more than once, its values add up.
    """
    return called(oracle, "psi", i, y, index, value)


@generic
def output_size(oracle, i):
    """Return the length of the outputs of example i; the default is that of the longest."""
    return oracle.output_size(i) if hasattr(oracle, "output_size") else output_sizes(oracle).output


@output_size.register(tuple)
def tuple_output_size(oracle, i):
    return output_sizes(oracle).output


@generic_with_default
def foresee_truth(oracle, i):
    """Prefetch the truth of example i; optional."""


@generic
def expectation(oracle, i, theta, share, z, work):
    r"""Write the mean of psi under a Gibbs distribution to ``z``: the optional expectation oracle.

    .. math:: p(y) \propto \exp \left( c \, L_i(y) - \langle \theta, \psi_i(y) \rangle \right), \qquad
              z = \sum_y p(y) \, \psi_i(y), \qquad c = \text{share} .

    With c = 1/t and the scores theta / t, the exponents are the margins at temperature t; with zeros, the
    distribution is uniform. ``z`` has one entry for each statistic of the example, and all are written.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of these exponentials; at least zero, as the truth contributes one.
    loss : float
        The mean of :math:`L_i(y)`.
    """
    return oracle.expectation(i, theta, share, z, work)


@generic
def block_optimum(oracle, i, theta, curvature, z, work):
    r"""Replace ``z`` by the best mean of psi for block i: an optional oracle, for few outputs.

    .. math:: \max_\alpha \; \sum_y \alpha(y) L_i(y) - \langle \theta, z' \rangle - \frac{c}{2} \|z' - z\|^2 ,
              \qquad z' = \sum_y \alpha(y) \, \psi_i(y), \qquad c = \text{curvature} \ge 0 .

    Where the feature map has a `column_norm2`, this is the dual as a function of one block. ``z`` has one
    entry for each statistic of the example.

    Returns
    -------
    loss : float
        The mean of :math:`L_i(y)` under the best :math:`\alpha`.
    hinge : float
        The largest margin :math:`H_i(y)` at the scores theta.
    """
    return oracle.block_optimum(i, theta, curvature, z, work)


@generic
def is_exact(oracle: object) -> bool:
    """Whether `argmax` always returns an output of largest value; true by default.

    An approximate oracle may return any output. It gives no certificate, unless it has a `shortfall`: its
    hinges may be too small, and with them the objective and the gap.
    """
    return bool(oracle.is_exact()) if hasattr(oracle, "is_exact") else True


@generic
def shortfall(oracle, i, work):
    """Return an upper bound on how far the last answer of `argmax`, for example i, is below the maximum.

    It is zero for an exact oracle, which need not define it. An approximate one may have a bound, for
    instance from a relaxation, which `argmax` leaves in ``work``.
    """
    return oracle.shortfall(i, work) if hasattr(oracle, "shortfall") else 0.0


@shortfall.register(tuple)
def tuple_shortfall(oracle, i, work):
    """Return zero, the default for named tuples."""
    return 0.0


def is_bounded(oracle: object) -> bool:
    """Whether certificates hold: the oracle is exact, or has a `shortfall`."""
    return bool(is_exact(oracle)) or has_implementation(oracle, shortfall)


@generic
def write_output(oracle: object, i: int, output: object, y: IntArray) -> None:
    """Write ``output`` to ``y``, so that `loss` and `psi` of example i refer to it."""
    values = np.asarray(output)
    y[: len(values)] = values


ORACLE_REQUIRED = (output_sizes, argmax, decode, loss, psi)

r"""What a model must say of itself: the generic functions that every method is written in.

The joint feature map of every model factors as

.. math:: \phi(x_i, y) = \Phi_i \, s_i(y),

where the *statistics* :math:`s_i(y)` of an output are a short vector that knows nothing of the
features (for a chain: which label stands at which position, which label follows which), and
:math:`\Phi_i` is a linear map from statistics to weights. The space of statistics is called the
*output space*. A method touches an example through these functions alone, so the dual variables of
an example are as large as its output and not as its features. Notation, used throughout the package:

========================  ============================================================================
``w``                     weights, a flat vector in the model's own layout
``theta``                 :math:`\Phi_i^\top w`, the scores of the parts of outputs of example i
``y``                     an output, as an int64 array
``loss``                  :math:`L_i(y)`, zero at the truth :math:`y_i`, nowhere negative
``psi``                   :math:`s_i(y_i) - s_i(y)`; the paper's :math:`\psi_i(y)` is :math:`\Phi_i` times it
``z``                     :math:`\sum_y \alpha_i(y) (s_i(y_i) - s_i(y))`; the paper's :math:`w_i` is
                          :math:`\Phi_i z_i / (\lambda n)`
``move``                  a direction in output space: the vector ``move.delta``, zero outside the indices
                          ``move.support[:move.size[0]]``
``hinge``                 :math:`\max_y H_i(y; w)`, :math:`H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle`
========================  ============================================================================

A plain Python object may have methods of these names instead; it then runs interpreted.
"""

from typing import Any, NamedTuple

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import generic, generic_with_default, helper


class Sizes(NamedTuple):
    """The sizes that work space is allocated by.

    Attributes
    ----------
    examples : int
        n, the number of training examples.
    weights : int
        Length of ``w`` in the model's layout.
    statistics : int
        Length of the longest vector in output space.
    output : int
        Length of the longest output.
    parts : int
        Largest number of entries that `psi` writes.
    """

    examples: int
    weights: int
    statistics: int
    output: int
    parts: int


@generic
def sizes(problem):
    """Return the `Sizes` of the problem."""
    return problem.sizes()


@generic
def workspace(problem):
    """Return the model's own work arrays, handed back to the functions below; one per thread."""
    return problem.workspace()


@generic
def scores_at(problem: Any, w: FloatArray | None) -> FloatArray:
    """Return the array that `score` is to write to, at ``w`` if that is given.

    A model whose scores are the weights may return ``w`` itself, so that they need not be copied: no one
    writes to it but `score` and `push`.
    """
    return aligned_zeros(sizes(problem).statistics)


@generic
def score(problem, i, w, theta):
    r"""Write :math:`\theta = \Phi_i^\top w` to ``theta``."""
    problem.score(i, w, theta)


@generic
def argmax(problem, i, theta, y, work):
    r"""Write :math:`\arg\max_y L_i(y) + \langle \theta, s_i(y) \rangle` to ``y``: the max oracle."""
    problem.argmax(i, theta, y, work)


@generic
def decode(problem, i, theta, y, work):
    r"""Write :math:`\arg\max_y \langle \theta, s_i(y) \rangle` to ``y``: the prediction."""
    problem.decode(i, theta, y, work)


@generic
def loss(problem, i, y):
    """Return :math:`L_i(y)`."""
    return problem.loss(i, y)


@generic
def psi(problem, i, y, index, value):
    """Write the entries of :math:`s_i(y_i) - s_i(y)` and return their number.

    An index may occur more than once; its values then add up.
    """
    return problem.psi(i, y, index, value)


@generic
def gram(problem, i, move, image, work):
    r"""Write :math:`\Phi_i^\top \Phi_i \delta` to ``image``, for the direction ``move.delta``.

    By this much the scores of example i change for a move of its own block: an exact line search, and
    further steps in the block, need not look at the features.
    """
    problem.gram(i, move, image, work)


@helper
def dot_at(where, size, a, b):
    """``a[where[:size]] @ b[where[:size]]``"""
    total = 0.0
    for c in range(size):
        total += a[where[c]] * b[where[c]]
    return total


@generic_with_default
def norm2(problem, i, move, image, work):
    r"""Return :math:`\|\Phi_i \delta\|^2 = \langle \delta, \Phi_i^\top \Phi_i \delta \rangle`.

    ``image`` is work space. A model may know a shorter way than `gram`.
    """
    gram(problem, i, move, image, work)
    return dot_at(move.support, move.size[0], move.delta, image)


@generic
def push(problem, i, move, scale, w, work):
    r"""Add :math:`c\, \Phi_i \delta` to ``w``, with c = ``scale`` and the direction ``move.delta``."""
    problem.push(i, move, scale, w, work)


@generic
def output_size(problem, i):
    """Return the length of the outputs of example i."""
    return problem.output_size(i)


@generic_with_default
def foresee(problem, i):
    """Ask for the data of example i ahead of its visit, with `prefetch`; a model need not."""


@generic_with_default
def statistics_size(problem, i):
    """Return how many entries output space has for example i: the first so many of `Sizes.statistics`."""
    return sizes(problem).statistics


@generic
def expectation(problem, i, theta, share, z, work):
    r"""Write the mean of psi under a Gibbs distribution to ``z``: the expectation oracle, which is optional.

    .. math:: p(y) \propto \exp \left( c \, L_i(y) - \langle \theta, \psi_i(y) \rangle \right), \qquad
              z = \sum_y p(y) \, \psi_i(y), \qquad c = \text{share} .

    With c = 1/t and the scores theta / t these are the margins at the temperature t, with zeros the uniform
    distribution. ``z`` has at least `statistics_size` entries, all of which are written.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of these exponentials; at least zero, as that of the truth is one.
    loss : float
        The mean of :math:`L_i(y)`.
    """
    return problem.expectation(i, theta, share, z, work)


@generic
def is_exact(problem):
    """Whether `argmax` returns an output of largest value, always, as it does by default.

    Of an approximate one no more is asked than that it returns an output. What follows from it is no
    certificate, unless it has a `shortfall`: a hinge that it finds may be too small, and the objective and
    the gap with it.
    """
    return problem.is_exact() if hasattr(problem, "is_exact") else True


@is_exact.register(tuple)
def tuple_is_exact(problem):
    return True


@generic
def shortfall(problem, i, work):
    """Return by how much the last answer of `argmax`, for example i, is below the largest value, at most.

    Zero for an exact oracle, which needs no such function. An approximate one may know a bound, as from a
    relaxation; it is left in ``work`` by `argmax`.
    """
    return problem.shortfall(i, work) if hasattr(problem, "shortfall") else 0.0


@shortfall.register(tuple)
def tuple_shortfall(problem, i, work):
    return 0.0


@generic
def is_bounded(problem: Any) -> bool:
    """Whether no output's value is above that of the answer of `argmax` by more than its `shortfall`."""
    return bool(is_exact(problem)) or callable(getattr(problem, "shortfall", None))


@generic
def is_projected(problem: Any) -> bool:
    r"""Whether the weights of dual variables are not :math:`A \alpha`, but a projection of that image.

    The vector that methods keep and `push` changes may then be longer than the weights; the functions below
    lead from one to the other, on copies. Without a projection all three are one and the same array.
    """
    return False


@generic
def image(problem: Any, w: FloatArray) -> FloatArray:
    r"""Return the image :math:`v = A \alpha` to which the vector that methods keep belongs."""
    return w


@generic
def projected(problem: Any, v: FloatArray) -> FloatArray:
    """Return the weights of an image, alone."""
    return v


@generic
def settle(problem: Any, v: FloatArray, w: FloatArray) -> None:
    """Make ``w`` the vector that methods keep for the image ``v``."""
    if v is not w:
        w[:] = v


def weights_alone(problem: Any, w: FloatArray) -> FloatArray:
    """Return the weights, without what a method keeps beside them."""
    return projected(problem, image(problem, w))


def unpack(problem: Any, w: Any) -> Any:
    """Return the weights as a named tuple of arrays in the shapes that users know."""
    return problem.unpack(w)


REQUIRED = (sizes, workspace, score, argmax, decode, loss, psi, gram, push, output_size)


def provides(problem: Any, function: Any) -> bool:
    """Whether the generic function is registered for the problem's class, or is a method of it.

    Methods of a named tuple do not count: it runs compiled, and compiled code knows functions alone. One that
    wraps another problem provides what that does.
    """
    if not isinstance(problem, tuple) and callable(getattr(problem, function.__name__, None)):
        return True
    registered = function.dispatch(type(problem)) is not function.dispatch(object)
    return registered and (not hasattr(problem, "inner") or provides(problem.inner, function))

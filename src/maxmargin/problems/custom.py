r"""A problem given by three Python functions: features, loss and argmax, on objects of any kind.

Nothing is known of the features but what the functions say, so that the statistics of an output are its
features themselves, :math:`s_i(y) = \phi(x_i, y)`, and :math:`\Phi_i` is the identity. Scores are the
weights. All vectors are kept by their nonzeros: an example costs as much memory as those of the few
outputs that matter to it, whatever the number of weights. The functions run in Python, and the rest of a
step is compiled, for the `Space` in which the features live.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.encoding.joint import Entries, flaw, joint_of
from maxmargin.loops import copy
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.wording import described


class Space(NamedTuple):
    """The space of features: all that a step asks of a problem whose feature map is the identity."""

    n: int
    size: int
    exact: bool


class SpaceWork(NamedTuple):
    """Where `gram` has written, so that it need not clear all: ``where[:size[0]]``."""

    where: np.ndarray[Any, np.dtype[np.uint32]]
    size: IntArray


@protocol.sizes.register(Space)
def space_sizes(space):
    return protocol.Sizes(space.n, space.size, space.size, 1, space.size)


@protocol.workspace.register(Space)
def space_workspace(space):
    return SpaceWork(np.zeros(space.size, dtype=np.uint32), np.zeros(1, dtype=np.int64))


@protocol.is_exact.register(Space)
def space_is_exact(space):
    return space.exact


@protocol.gram.register(Space)
def space_gram(space, i, move, image, work):
    _copy_move(move, image, work)


@protocol.norm2.register(Space)
def space_norm2(space, i, move, image, work):
    return protocol.dot_at(move.support, move.size[0], move.delta, move.delta)


@protocol.push.register(Space)
def space_push(space, i, move, scale, w, work):
    _add_move(move, scale, w)


@helper
def _copy_move(move, image, work):
    """``image[:] = delta``, where image was zero but for what was written the last time."""
    for c in range(work.size[0]):
        image[work.where[c]] = 0.0
    for c in range(move.size[0]):
        work.where[c] = move.support[c]
        image[move.support[c]] = move.delta[move.support[c]]
    work.size[0] = move.size[0]


@helper
def _add_move(move, scale, w):
    """``w += scale * delta``"""
    for c in range(move.size[0]):
        w[move.support[c]] += scale * move.delta[move.support[c]]


@helper
def _write_difference(where, value, other, less, sums, seen, index, out):
    """Write the nonzeros of a sparse vector less another, and return their number; -1 if the other is none.

    ``sums`` and ``seen`` are zero before and after.
    """
    for e in range(other.shape[0]):
        if not (0 <= other[e] < sums.shape[0] and np.isfinite(less[e])):
            return -1
    count = _add_entries(1.0, where, value, sums, seen, index, 0)
    count = _add_entries(-1.0, other, less, sums, seen, index, count)
    kept = 0
    for c in range(count):
        p = index[c]
        if sums[p] != 0.0:
            index[kept], out[kept] = p, sums[p]
            kept += 1
        sums[p], seen[p] = 0.0, False
    return kept


@helper
def _add_entries(scale, where, value, sums, seen, index, count):
    """Add to the sums, and to the list of places where there is one; return its length."""
    for e in range(where.shape[0]):
        p = where[e]
        if not seen[p]:
            seen[p] = True
            index[count] = p
            count += 1
        sums[p] += scale * value[e]
    return count


class Custom:
    """A problem given by three functions; it runs interpreted, but for its steps.

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}`` or a
        pair ``(indices, values)``; of one kind and length for all.
    loss : callable
        ``loss(y_true, y)``, a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, and
        ``argmax(x, w)`` that of largest ``<w, features(x, y)>``. The weights w are a read-only array; for
        features that are dicts, an object with ``w[name]`` and ``w.dot(features)``.
    X, y : lists
        Examples and their true outputs: any objects.
    n_features : int, optional
        Number of weights; needed for pairs only.
    feature_names : iterable, optional
        Names that get a weight, where features are dicts; by default those of the truths' features.
    exact : bool
        Whether argmax finds the largest value of all outputs, always; if not, there is no certificate.
    owner : str
        Who speaks in errors.
    """

    def __init__(
        self,
        features: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], float],
        argmax: Callable[..., Any],
        X: Any,
        y: Any,
        *,
        n_features: int | None = None,
        feature_names: Any = None,
        exact: bool = True,
        owner: str = "Custom",
    ) -> None:
        self._functions, self.owner = {"features": features, "loss": loss, "argmax": argmax}, owner
        self.X, self.truths = _examples(X, y, owner)
        self._shapes = [truth.shape if isinstance(truth, np.ndarray) else None for truth in self.truths]
        self.answers = list(self.truths)
        given = [
            self._call("features", i, *pair) for i, pair in enumerate(zip(self.X, self.truths, strict=True))
        ]
        self.joint = joint_of(given, n_features, feature_names, owner)
        self.space = fitting(Space(len(self.X), self.joint.size, bool(exact)), owner)
        self._sizes = protocol.sizes(self.space)
        self._sums, self._seen = np.zeros(self.joint.size), np.zeros(self.joint.size, dtype=np.bool_)
        self._entries = [self._true_entries(i, truth) for i, truth in enumerate(given)]
        for i, truth in enumerate(self.truths):
            self._check_truth(i, self._loss_of(i, truth))

    def sizes(self) -> protocol.Sizes:
        """Output space is the space of features."""
        return self._sizes

    def workspace(self) -> SpaceWork:
        """Return that of the space."""
        return protocol.workspace(self.space)

    def output_size(self, i: int) -> int:
        """Outputs are objects, kept in ``answers``; the array is a place holder."""
        return 1

    def is_exact(self) -> bool:
        """Whether the user says so."""
        return self.space.exact

    def score(self, i: int, w: FloatArray, theta: FloatArray) -> None:
        """Scores are the weights."""
        if theta is not w:
            copy(w, theta)

    def argmax(self, i: int, theta: FloatArray, y: IntArray, work: SpaceWork) -> None:
        """Keep the answer of the user's argmax, given the truth."""
        self.recall(i, self._call("argmax", i, self.X[i], self.joint.given(theta), self.truths[i]))

    def decode(self, i: int, theta: FloatArray, y: IntArray, work: SpaceWork) -> None:
        """Keep the answer of the user's argmax without the truth."""
        self.recall(i, self._call("argmax", i, self.X[i], self.joint.given(theta)))

    def recall(self, i: int, answer: Any) -> None:
        """Make this output the one that `loss` and `psi` of example i speak of."""
        shape = self._shapes[i]
        if answer is None or (shape is not None and getattr(answer, "shape", None) != shape):
            raise ValueError(
                f"{self.owner}: argmax must return an output like the truth, {described(self.truths[i])}, "
                f"got {described(answer)} for example {i}."
            )
        self.answers[i] = answer

    def loss(self, i: int, y: IntArray) -> float:
        """Return the loss of the answer."""
        return self._loss_of(i, self.answers[i])

    def psi(self, i: int, y: IntArray, index: Any, value: FloatArray) -> int:
        """Write the features of the truth less those of the answer."""
        given = self._call("features", i, self.X[i], self.answers[i])
        where, less = self._entries_of(i, given)
        count = _write_difference(*self._entries[i], where, less, self._sums, self._seen, index, value)
        if count < 0:
            raise self._wrong_features(i, flaw((where, less), self.joint.size))
        return count

    def gram(self, i: int, move: Any, image: FloatArray, work: SpaceWork) -> None:
        """The map is the identity."""
        _copy_move(move, image, work)

    def push(self, i: int, move: Any, scale: float, w: FloatArray, work: SpaceWork) -> None:
        """The map is the identity."""
        _add_move(move, scale, w)

    def unpack(self, w: FloatArray) -> tuple[FloatArray]:
        """Return the weights."""
        return (w,)

    def _loss_of(self, i: int, answer: Any) -> float:
        value = float(self._call("loss", i, self.truths[i], answer))
        if not 0.0 <= value < np.inf:
            raise ValueError(f"{self.owner}: loss must be a finite number >= 0, got {value} for example {i}.")
        return value

    def _true_entries(self, i: int, given: Any) -> Entries:
        where, value = self._entries_of(i, given)
        entries = where.copy(), value.copy()  # kept: the user's function may use its arrays again
        wrong = flaw(entries, self.joint.size)
        if wrong:
            raise self._wrong_features(i, wrong)
        return entries

    def _entries_of(self, i: int, given: Any) -> Entries:
        try:
            return self.joint.entries(given)
        except ValueError as error:
            raise self._wrong_features(i, str(error)) from None

    def _wrong_features(self, i: int, wrong: str | None) -> ValueError:
        return ValueError(f"{self.owner}: features of example {i} are wrong: {wrong}.")

    def _check_truth(self, i: int, loss: float) -> None:
        if loss != 0.0:
            raise ValueError(f"{self.owner}: loss of the truth must be 0, got {loss} for example {i}.")

    def _call(self, name: str, i: int, *args: Any) -> Any:
        """Call the user's function; an error in it is left as it is, but says for which example."""
        try:
            return self._functions[name](*args)
        except Exception as error:
            error.add_note(f"{self.owner}: raised by {name} for example {i}")
            raise


@protocol.scores_at.register(Custom)
def custom_scores_at(problem: Custom, w: FloatArray | None) -> FloatArray:
    return np.zeros(problem.space.size) if w is None else w


def _examples(X: Any, y: Any, owner: str) -> tuple[list[Any], list[Any]]:
    """Return examples and truths as lists of one length."""
    for name, values in (("X", X), ("y", y)):
        if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
            raise TypeError(
                f"{owner}: {name} must be a list with one object per example, got {described(values)}."
            )
    X, y = list(X), list(y)
    if not X or len(X) != len(y):
        raise ValueError(
            f"{owner}: X and y must have one entry per example, and one or more, got {len(X)} and {len(y)}."
        )
    return X, y

r"""A problem given by three Python functions: features, loss and argmax, on objects of any kind.

The structure of the features is unknown. So the statistics of an output are its features themselves,
:math:`s_i(y) = \phi(x_i, y)`, and the map is the identity. The functions run in Python; the rest of a step is
compiled.
"""

from collections.abc import Callable, Hashable, Iterable
from copy import copy as shallow_copy
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import copy, dot_at
from maxmargin.encoding.sequences import paired_lists
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray, check_memory
from maxmargin.runtime.wording import call_user, caller, described
from maxmargin.structures import feature_map
from maxmargin.structures.custom.encode import Entries, flaw, joint_of
from maxmargin.structures.oracle import OutputSizes, write_output
from maxmargin.structures.problem import Problem, builder, fitting, is_same, take_half


@helper
def _write_difference(where, value, other, less, sums, seen, index, out):
    """Write the nonzeros of a sparse vector minus another; return their number, or -1 if that is invalid.

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
    """Add entries to the sums, and new indices to the list; return the length of the list."""
    for e in range(where.shape[0]):
        p = where[e]
        if not seen[p]:
            seen[p] = True
            index[count] = p
            count += 1
        sums[p] += scale * value[e]
    return count


class CustomOracle:
    """The oracle of a problem given by three functions; made by `maxmargin.problems.Custom`."""

    def __init__(
        self,
        features: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], float],
        argmax: Callable[..., object],
        X: object,
        y: object,
        n_features: int | None,
        feature_names: Iterable[Hashable] | None,
        exact: bool,
    ) -> None:
        # Errors during a run begin with what the user called to make the problem: Custom, or an estimator.
        self._functions, self.owner = {"features": features, "loss": loss, "argmax": argmax}, caller("Custom")
        self.X, self.truths = paired_lists(X, y)
        self._shapes = [truth.shape if isinstance(truth, np.ndarray) else None for truth in self.truths]
        self.answers = list(self.truths)
        given = [
            self._call("features", i, *pair) for i, pair in enumerate(zip(self.X, self.truths, strict=True))
        ]
        self.joint = joint_of(given, n_features, feature_names)
        self._exact = bool(exact)
        check_memory(8 * self.joint.size, f"{self.owner}: {self.joint.size} weights", "use fewer features")
        self._sums, self._seen = np.zeros(self.joint.size), np.zeros(self.joint.size, dtype=np.bool_)
        self._entries = [self._true_entries(i, truth) for i, truth in enumerate(given)]
        for i, truth in enumerate(self.truths):
            self._check_truth(i, self._loss_of(i, truth))

    def take(self, indices: IntArray) -> "CustomOracle":
        """Return the oracle of some examples, with separate workspace."""
        some = shallow_copy(self)
        for name in ("X", "truths", "_shapes", "answers", "_entries"):
            setattr(some, name, [getattr(self, name)[i] for i in indices])
        some._sums, some._seen = self._sums.copy(), self._seen.copy()
        return some

    def is_same(self, other: "CustomOracle") -> bool:
        """Whether both have the same functions and the same objects as examples."""
        names = ("X", "truths")
        return (
            self._functions == other._functions
            and self._exact == other._exact
            and all([*map(id, getattr(self, name))] == [*map(id, getattr(other, name))] for name in names)
            and is_same(tuple(self._entries), tuple(other._entries))
        )

    def sizes(self) -> OutputSizes:
        """Return the sizes: psi has up to one entry per feature."""
        return OutputSizes(1, self.joint.size)

    def output_size(self, i: int) -> int:
        """Return one: outputs are objects, stored in ``answers``, and the array is a placeholder."""
        return 1

    def is_exact(self) -> bool:
        """Whether the user declared argmax exact."""
        return self._exact

    def argmax(self, i: int, theta: FloatArray, y: IntArray, work: object) -> None:
        """Store the answer of the user's argmax, given the truth."""
        self.recall(i, self._call("argmax", i, self.X[i], self.joint.given(theta), self.truths[i]))

    def decode(self, i: int, theta: FloatArray, y: IntArray, work: object) -> None:
        """Store the answer of the user's argmax, without the truth."""
        self.recall(i, self._call("argmax", i, self.X[i], self.joint.given(theta)))

    def recall(self, i: int, answer: object) -> None:
        """Store this output, so that `loss` and `psi` of example i refer to it."""
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

    def psi(self, i: int, y: IntArray, index: UIntArray, value: FloatArray) -> int:
        """Write the features of the truth minus those of the answer."""
        given = self._call("features", i, self.X[i], self.answers[i])
        where, less = self._entries_of(i, given)
        count = _write_difference(*self._entries[i], where, less, self._sums, self._seen, index, value)
        if count < 0:
            raise self._wrong_features(i, flaw((where, less), self.joint.size))
        return count

    def _loss_of(self, i: int, answer: object) -> float:
        return checked_loss(self._call("loss", i, self.truths[i], answer), i, self.owner)

    def _true_entries(self, i: int, given: object) -> Entries:
        where, value = self._entries_of(i, given)
        entries = where.copy(), value.copy()  # copied, as the user's function may reuse its arrays
        wrong = flaw(entries, self.joint.size)
        if wrong:
            raise self._wrong_features(i, wrong)
        return entries

    def _entries_of(self, i: int, given: object) -> Entries:
        try:
            return self.joint.entries(given)
        except (TypeError, ValueError) as error:
            raise self._wrong_features(i, str(error)) from None

    def _wrong_features(self, i: int, wrong: str | None) -> ValueError:
        return ValueError(f"{self.owner}: features of example {i} are wrong: {wrong}.")

    def _check_truth(self, i: int, loss: float) -> None:
        if loss != 0.0:
            raise ValueError(f"{self.owner}: loss of the truth must be 0, got {loss} for example {i}.")

    def _call(self, name: str, i: int, *args: object) -> Any:
        """Call the user's function; if it raises, add a note to the error that names the example."""
        return call_user(self._functions[name], name, i, *args, otherwise=self.owner)


def checked_loss(value: Any, i: int, owner: str) -> float:
    """Return a loss of example i; raise unless it is a finite number that is not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number < np.inf:
        got = value if isinstance(value, Real) else described(value)
        raise ValueError(f"{owner}: loss must be a finite number >= 0, got {got} for example {i}.")
    return number


@write_output.register(CustomOracle)
def custom_write_output(oracle: CustomOracle, i: int, output: object, y: IntArray) -> None:
    oracle.recall(i, output)


# The feature map of users' functions.


class IdentityMap(NamedTuple):
    """The identity: statistics are features, and scores are weights; n examples, ``size`` features.

    Only the nonzeros of vectors are stored, so the memory for an example depends on its few relevant outputs,
    not on the number of weights.
    """

    n: int
    size: int


class IdentityWork(NamedTuple):
    """The entries that `gram` wrote last, ``where[:size[0]]``: it clears only these."""

    where: UIntArray
    size: IntArray


@feature_map.map_sizes.register(IdentityMap)
def identity_map_sizes(phi):
    return feature_map.MapSizes(phi.n, phi.size, phi.size)


@feature_map.map_workspace.register(IdentityMap)
def identity_map_workspace(phi: IdentityMap) -> IdentityWork:
    return IdentityWork(np.zeros(phi.size, dtype=np.uint32), np.zeros(1, dtype=np.int64))


@take_half.register(IdentityMap)
def identity_take_half(phi: IdentityMap, indices: IntArray) -> IdentityMap:
    return phi._replace(n=len(indices))


@feature_map.score_buffer.register(IdentityMap)
def identity_score_buffer(phi: IdentityMap, w: FloatArray | None) -> FloatArray:
    return np.zeros(phi.size) if w is None else w


@feature_map.score.register(IdentityMap)
def identity_score(phi, i, w, theta):
    if theta is not w and theta.ctypes.data != w.ctypes.data:  # the buffer may be the weights
        copy(w, theta)


@feature_map.gram.register(IdentityMap)
def identity_gram(phi, i, move, image, work):
    """Write delta to ``image``, which is zero except for the entries written last."""
    _copy_move(move, image, work)


@feature_map.norm2.register(IdentityMap)
def identity_norm2(phi, i, move, image, work):
    return dot_at(move.support, move.size[0], move.delta, move.delta)


@feature_map.push.register(IdentityMap)
def identity_push(phi, i, move, scale, w, work):
    _add_move(move, scale, w)


@feature_map.refresh.register(IdentityMap)
def identity_refresh(phi, i, move, prox, v, w):
    for c in range(move.size[0]):
        at = np.int64(move.support[c])
        feature_map.shrink(prox, v, w, at, at + 1)


@feature_map.unpack.register(IdentityMap)
def identity_unpack(phi: IdentityMap, w: FloatArray) -> tuple[FloatArray]:
    return (w,)


@helper
def _copy_move(move, image, work):
    """``image[:] = delta``"""
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


@builder("Custom")
def Custom(
    features: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], float],
    argmax: Callable[..., object],
    X: object,
    y: object,
    *,
    n_features: int | None = None,
    feature_names: Iterable[Hashable] | None = None,
    exact: bool = True,
) -> Problem[IdentityMap, CustomOracle]:
    """Return a problem given by three functions. Its loop is interpreted, its steps are compiled.

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}`` or a
        pair ``(indices, values)``; of the same kind and length for all.
    loss : callable
        ``loss(y_true, y)``, a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, and
        ``argmax(x, w)`` the y of largest ``<w, features(x, y)>``. The weights w are a read-only array; for
        features that are dicts, an object with ``w[name]`` and ``w.dot(features)``.
    X, y : lists
        Examples and their true outputs: any objects.
    n_features : int, optional
        Number of weights; needed only for pairs.
    feature_names : iterable, optional
        Names that get a weight, if features are dicts; by default the names in the features of the truths.
    exact : bool
        Whether argmax always returns the best output; if not, there is no certificate.
    """
    oracle = CustomOracle(features, loss, argmax, X, y, n_features, feature_names, exact)
    return fitting(Problem(IdentityMap(len(oracle.X), oracle.joint.size), oracle))

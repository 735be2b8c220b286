"""Any structure, given by three Python functions, as a scikit-learn estimator."""

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.encoding.sequences import as_list, paired_lists
from maxmargin.estimators import explanation, inspection
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Parts, Tally
from maxmargin.estimators.explanation import Contribution, Explanation, by_size, total
from maxmargin.estimators.inspection import NO_LABEL, WeightTable
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.state import Interval, snapshot
from maxmargin.estimators.structure import (
    COUNT,
    Call,
    Field,
    Layout,
    Problem,
    Question,
    Structure,
    choice,
    signed,
)
from maxmargin.files.container import NotPlain
from maxmargin.files.parts import Draft, Stored
from maxmargin.methods.protocol import BrokenOracle
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Shares
from maxmargin.runtime.wording import call_user, caller, errors_of, frames_to_user, quoted
from maxmargin.solving.kinds import is_idle
from maxmargin.solving.result import Callback, Result, Status
from maxmargin.solving.spot_check import beaten_answer, check_oracle, doubtful_prediction, patience
from maxmargin.structures.custom.encode import DenseJoint, Joint, NamedJoint, PairJoint, SparseJoint
from maxmargin.structures.custom.model import Custom, CustomOracle, IdentityMap, checked_loss
from maxmargin.structures.problem import Problem as PairProblem

_Data = tuple[list[object], list[object]]
_CustomProblem = PairProblem[IdentityMap, CustomOracle]
_TEXTS, _NAMES, _SIZE = "texts", "names", ".size"
_JOINTS: dict[str, type[DenseJoint]] = {"arrays": DenseJoint, "sparse": SparseJoint, "pairs": PairJoint}


def _write_joint(draft: Draft, name: str, joint: Joint) -> None:
    if not isinstance(joint, NamedJoint):
        draft.put(name, next(kind for kind, known in _JOINTS.items() if type(joint) is known))
    elif all(type(feature) is str for feature in joint.names):
        draft.put(name, _TEXTS)
        draft.put_texts(name, map(str, joint.names))
    else:
        draft.put(name, _NAMES)
        _write_names(draft, name, list(joint.names))
    draft.put(name + _SIZE, joint.size)


def _write_names(draft: Draft, name: str, names: list[Hashable]) -> None:
    try:
        draft.put_long(name, names)
    except NotPlain as error:
        raise ValueError(
            f"names of features must be texts, numbers or tuples of these to be saved, got {error}; pickle "
            "the model, or name features otherwise"
        ) from None


def _read_joint(stored: Stored, name: str) -> Joint:
    kind = choice(_TEXTS, _NAMES, *_JOINTS).read(stored, name)
    size = COUNT.read(stored, name + _SIZE)
    if kind in _JOINTS:
        return _JOINTS[kind](size)
    names = stored.take_texts(name) if kind == _TEXTS else stored.take_long(name)
    if not isinstance(names, list) or not all(isinstance(item, Hashable) for item in names):
        stored.fail(f"names for {name!r}", quoted(names))
    joint = NamedJoint(names)
    if joint.size != size:
        stored.fail(f"{size} names for {name!r}", str(joint.size))
    return joint


class _JointWeights(NamedTuple):
    """The weights of a user's features."""

    features: FloatArray


class _OwnLayout(Layout):
    """The layout of the weights of a user's features, which are one part."""

    def unpack(self, w: FloatArray) -> tuple[FloatArray, ...]:
        return _JointWeights(w)


class OwnOutputs(Structure["StructuredSVC", _Data, list[object], None]):
    """Outputs that users' functions define."""

    fields: ClassVar = {"_joint": Field(_write_joint, _read_joint)}

    def encode(
        self, model: "StructuredSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        if call.first:
            model._joint = None
        X, y = parts
        return Examples(paired_lists(X, y), weights)

    def problem(self, model: "StructuredSVC", examples: Examples[_Data]) -> Problem:
        custom = model._custom(*examples.data, model._joint)
        model._joint = custom.oracle.joint
        return model._signed(custom)

    def ask(self, model: "StructuredSVC", X: object) -> Question[list[object], None]:
        def outputs(codes: object = None) -> list[object]:
            w = model._known_joint.given(model.coef_)
            return [model._called("argmax", i, x, w) for i, x in enumerate(as_list(X))]

        def score(codes: object, y: object) -> Tally:
            predicted, truths = paired_lists(outputs(), y)
            pairs = enumerate(zip(truths, predicted, strict=True))
            losses = [checked_loss(model._called("loss", i, *pair), i, caller()) for i, pair in pairs]
            return Tally(1.0 - np.array(losses), np.ones(len(losses)))

        return Question(None, outputs, score)

    def layout(self, model: "StructuredSVC") -> Layout:
        size = model._known_joint.size
        return _OwnLayout(size, lambda: IdentityMap(1, size))

    def expose(self, model: "StructuredSVC") -> None:
        joint, model.coef_ = model._joint, model._w
        model.feature_names_ = list(joint.names) if isinstance(joint, NamedJoint) else None

    def features(self, model: "StructuredSVC") -> list[WeightTable]:
        names = range(len(model.coef_)) if model.feature_names_ is None else model.feature_names_
        return [WeightTable("output", names, NO_LABEL, model.coef_[:, None])]


class StructuredSVC(MaxMarginEstimator[_Data, list[object], None]):
    r"""Structural SVM for outputs of your own: three Python functions on any objects.

    .. math:: \min_w \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L(y_i, y) + \langle w,
              \phi(x_i, y) - \phi(x_i, y_i) \rangle \right)

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}``, or a
        pair ``(indices, values)``. The cost of sparse features is proportional to their nonzeros.
    loss : callable
        ``loss(y_true, y)``, the cost of the answer y: a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, for
        training, and ``argmax(x, w)`` that of largest ``<w, features(x, y)>``, for predictions: write
        ``def argmax(x, w, y_true=None)``. The weights w are a read-only array; where features are dicts, an
        object with ``w[name]``, zero for a name without weight, and ``w.dot(features)``.
    %(C)s
    %(l1_ratio)s
    n_features : int or None, default=None
        Number of weights; needed where features are pairs.
    feature_names : list, set or None, default=None
        Names that get a weight, where features are dicts. By default those that occur in the features of the
        true outputs; others are left out, in `features` and in ``w[name]`` alike.
    nonnegative : list, set or None, default=None
        Weights that must not be negative: their indices, or their names where features are dicts.
    exact : bool, default=True
        Whether argmax always finds the largest value. If it does not, set this to False: an answer that
        another output beats is then not an error. ``gap_``, which needs the largest values, is then not a
        certificate: it is too small, by the mean amount by which the answers fall short of the largest value.
    %(training)s

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights.
    feature_names_ : list or None
        Names of the weights, where features are dicts.
    %(certificate)s

    See Also
    --------
    maxmargin.check_problem : Find out what is wrong with the three functions.

    Notes
    -----
    Each `fit` compares some answers of an exact argmax with each other. Before training these are the answers
    to five examples, at zero and at random weights: 25 calls. After training, they are compared with the
    predictions at the last weights, for five examples or for as many as a twentieth of the calls of training
    allow. Fewer are compared if this takes longer than a second (or a twentieth of the training time), or
    than a small fraction of ``time_limit``.

    Before training, `fit` raises an error if another output beats an answer, or if the loss is never above 0.
    After training, it warns if another output beats an answer, if all weights are zero and predictions are
    wrong, or if there was nothing to learn. An argmax that is not exact gets only the last of these checks.

    Examples
    --------
    Which word of a sentence is its subject? An output is the position of a word.

    >>> from maxmargin import StructuredSVC
    >>> def features(x, y):
    ...     return {("word", x[y]): 1.0, ("before", x[y - 1] if y else ""): 1.0}
    >>> def loss(y_true, y):
    ...     return float(y != y_true)
    >>> def argmax(x, w, y_true=None):
    ...     def value(y):
    ...         return w.dot(features(x, y)) + (0.0 if y_true is None else loss(y_true, y))
    ...     return max(range(len(x)), key=value)
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["now", "the", "cow", "eats"]]
    >>> model = StructuredSVC(features, loss, argmax, C=10, random_state=0).fit(X, [1, 1, 2])
    >>> model.predict([["here", "the", "pig", "sleeps"]])
    [2]
    >>> bool(model.gap_ <= model.tol * model.history_.primal.min())
    True
    """

    _texts: ClassVar[dict[str, str]] = {
        "example": "example",
        "examples": "examples",
        "X": """
            X : list
                Any objects.
            """,
        "y": """
            y : list
                Their true outputs: any objects.
            """,
        "first": "Names that the first call gave no weight are left out.",
        "predict": """
            list
                The outputs, as `argmax` returns them.
            """,
        "kinds": 'The kind is "output".',
        "score": "Return one minus the mean loss of the predictions.",
    }
    _structure: ClassVar = OwnOutputs()
    features: Callable[[Any, Any], object]
    loss: Callable[[Any, Any], float]
    argmax: Callable[..., object]
    n_features: int | None
    feature_names: Collection[Hashable] | None
    nonnegative: Collection[Hashable] | None
    exact: bool
    coef_: FloatArray
    feature_names_: list[Hashable] | None
    _joint: Joint | None

    _parameter_constraints: ClassVar[Constraints] = {
        "features": [callable],
        "loss": [callable],
        "argmax": [callable],
        "n_features": [Interval(Integral, 1, None, closed="left"), None],
        "feature_names": ["array-like", set, frozenset, None],
        "nonnegative": ["array-like", set, frozenset, None],
        "exact": ["boolean"],
    }

    # There is no n_jobs: the user's functions may not be safe to call from several threads.
    def __init__(
        self,
        features: Callable[[Any, Any], object],
        loss: Callable[[Any, Any], float],
        argmax: Callable[..., object],
        C: float = 0.15,
        *,
        l1_ratio: float | None = None,
        n_features: int | None = None,
        feature_names: Collection[Hashable] | None = None,
        nonnegative: Collection[Hashable] | None = None,
        exact: bool = True,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        callbacks: Iterable[Callback] | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    predict_single = explanation.predict_single
    top_features = inspection.top_features_without_labels

    def problem(self, X: object, y: object) -> Problem:
        """Return the problem that `fit` solves.

        Parameters
        ----------
        %(X)s
        %(y)s

        Returns
        -------
        Custom, with signs if ``nonnegative`` is given
        """
        with errors_of(type(self).__name__):
            return self._signed(self._custom(X, y, None))

    def _solve(self, problem: Problem, examples: Examples[_Data], start: Result | None) -> Result:
        shares = Shares(self.time_limit, 1)
        check_oracle(problem, self._advice, patience(self.time_limit))
        self.time_limit = shares.next()  # on a draft; the user's limit stays
        try:
            result = super()._solve(problem, examples, start)
        except BrokenOracle as error:
            said = str(error).removeprefix("solve: ").rstrip(".")
            raise BrokenOracle(f"{caller()}: {said}; {self._advice}.") from error
        if result.status is not Status.INTERRUPTED:
            self._warn_of_doubts(problem, result)
        return result

    def _warn_of_doubts(self, problem: Problem, result: Result) -> None:
        """Warn if the weights show that the functions are wrong, or that nothing was learnt."""
        w, last = result.w, result.history.rows[-1]
        if is_idle(w, result.primal, result.dual):  # solve has warned
            return
        is_late = result.status is Status.TIME_LIMIT
        seconds = 0.0 if is_late else patience(self.time_limit, last.seconds)
        found = None if w.any() else doubtful_prediction(problem, w, seconds)
        doubt = beaten_answer(problem, w, seconds, last.oracle_calls)
        if found is not None:
            text = (
                f"all weights are zero after training (gap {self.gap_:.3g}), but {found}: argmax, loss or "
                "features may be wrong, or tol too large"
            )
        elif doubt is not None:
            text = f"the certificate does not hold: {doubt}"
        else:
            return
        warnings.warn(f"{caller()}: {text}; {self._advice}.", UserWarning, stacklevel=frames_to_user())

    @property
    def _advice(self) -> str:
        """What to do about functions that may be wrong."""
        check = "run check_problem(model, X, y) to find out what is wrong"
        return f"{check}, or set exact=False if argmax is approximate" if self.exact else check

    def _custom(self, X: object, y: object, known: Joint | None) -> _CustomProblem:
        """Return the problem, with the weights of earlier calls if there are any."""
        return Custom(
            self.features,
            self.loss,
            self.argmax,
            X,
            y,
            n_features=self.n_features if known is None else known.size,
            feature_names=known.names if isinstance(known, NamedJoint) else self.feature_names,
            exact=self.exact,
        )

    def _signed(self, problem: _CustomProblem) -> Problem:
        """Return the problem with the signs of its weights; a name without weight needs no sign."""
        joint, chosen = problem.oracle.joint, self.nonnegative
        if chosen is not None and isinstance(joint, NamedJoint):
            chosen = [joint.names[name] for name in chosen if name in joint.names]
        return signed(problem, chosen)

    @property
    def _known_joint(self) -> Joint:
        assert self._joint is not None  # it is fitted
        return self._joint

    def _called(self, name: str, i: int, *args: object) -> Any:
        """Return the answer of the user's function of this name for example i."""
        return call_user(getattr(self, name), name, i, *args, otherwise=type(self).__name__)

    @snapshot
    def explain(self, x: object) -> Explanation:
        """Explain the prediction for one example: what contributes to its score.

        The explanation has no changes, as `argmax` returns one output only.

        Parameters
        ----------
        x : object
            The example.

        Returns
        -------
        Explanation
            With the attributes output, score and contributions, and the method to_frame; without changes.
        """
        (table,), (output,) = self._structure.features(self), self._predict([x])
        entries = self._known_joint.entries(self._called("features", 0, x, output))
        rows = [
            Contribution(None, table.kind, table.features[column], None, value, weight, value * weight)
            for column, value, weight in zip(*entries, self.coef_[entries[0]], strict=True)
            if value * weight
        ]
        return Explanation(output, total(rows), by_size(rows), ())

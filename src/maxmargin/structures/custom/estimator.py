"""Any structure, given by three Python functions, as a scikit-learn estimator."""

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.encoding.sequences import as_list, paired_lists
from maxmargin.estimators.estimator import Call, MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Parts
from maxmargin.estimators.explanation import Contribution, Explanation, by_size, total
from maxmargin.estimators.fields import JOINT, Fields
from maxmargin.estimators.inspection import NO_LABEL, FeatureInspector, WeightTable
from maxmargin.estimators.model_files import Layout
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.problems import CustomProblem, Problem, joint_features, signed
from maxmargin.estimators.state import Interval, SinglePrediction, noted, snapshot
from maxmargin.methods.protocol import BrokenOracle
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Shares
from maxmargin.runtime.wording import frames_to_user
from maxmargin.solving.kinds import is_idle
from maxmargin.solving.result import Callback, Result, Status
from maxmargin.solving.spot_check import beaten_answer, check_oracle, doubtful_prediction, patience
from maxmargin.structures.custom.encode import Joint, NamedJoint
from maxmargin.structures.custom.model import Custom
from maxmargin.structures.custom.oracle import checked_loss

_Data = tuple[list[object], list[object]]


class _JointWeights(NamedTuple):
    """The weights of a user's features."""

    features: FloatArray


class StructuredSVC(FeatureInspector, SinglePrediction, MaxMarginEstimator[_Data, list[object]]):
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

    _fitted: ClassVar[Fields] = {"_joint": JOINT}
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
        return self._signed(self._custom(X, y, None))

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        if call.first:
            self._joint = None
        X, y = parts
        return Examples(paired_lists(X, y, self._owner), weights)

    def _problem(self, examples: Examples[_Data]) -> Problem:
        custom = self._custom(*examples.data, self._joint)
        self._joint = joint_features(custom)
        return self._signed(custom)

    def _solve(self, problem: Problem, examples: Examples[_Data], start: Result | None) -> Result:
        shares = Shares(self.time_limit, 1)
        check_oracle(problem, self._owner, self._advice, patience(self.time_limit))
        self.time_limit = shares.next()  # on a draft; the user's limit stays
        try:
            result = super()._solve(problem, examples, start)
        except BrokenOracle as error:
            said = str(error).removeprefix("solve: ").rstrip(".")
            raise BrokenOracle(f"{self._owner}: {said}; {self._advice}.") from error
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
        warnings.warn(f"{self._owner}: {text}; {self._advice}.", UserWarning, stacklevel=frames_to_user())

    @property
    def _advice(self) -> str:
        """What to do about functions that may be wrong."""
        check = "run check_problem(model, X, y) to find out what is wrong"
        return f"{check}, or set exact=False if argmax is approximate" if self.exact else check

    def _custom(self, X: object, y: object, known: Joint | None) -> CustomProblem:
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
            owner=self._owner,
        )

    def _signed(self, problem: CustomProblem) -> Problem:
        """Return the problem with the signs of its weights; a name without weight needs no sign."""
        joint, chosen = joint_features(problem), self.nonnegative
        if chosen is not None and isinstance(joint, NamedJoint):
            chosen = [joint.names[name] for name in chosen if name in joint.names]
        return signed(problem, chosen)

    def _keep(self, problem: Problem, examples: Examples[_Data], w: FloatArray) -> None:
        # With signs, a vector without them follows the weights.
        super()._keep(problem, examples, w[: self._n_cells()].copy())

    def _layout(self) -> Layout:
        return Layout(self._n_cells(), _JointWeights)

    def _n_cells(self) -> int:
        return self._joint.size  # type: ignore[union-attr]

    def _expose(self) -> None:
        joint, self.coef_ = self._joint, self._w
        self.feature_names_ = list(joint.names) if isinstance(joint, NamedJoint) else None

    def _feature_tables(self) -> list[WeightTable]:
        names = range(len(self.coef_)) if self.feature_names_ is None else self.feature_names_
        return [WeightTable("output", names, NO_LABEL, self.coef_[:, None])]

    def _predict(self, X: object) -> list[object]:
        w = self._joint.given(self.coef_)  # type: ignore[union-attr]
        return [self._called("argmax", i, x, w) for i, x in enumerate(as_list(X, self._owner))]

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
        (table,), (output,) = self._feature_tables(), self._predict([x])
        entries = self._joint.entries(self._called("features", 0, x, output))  # type: ignore[union-attr]
        rows = [
            Contribution(None, table.kind, table.features[column], None, value, weight, value * weight)
            for column, value, weight in zip(*entries, self.coef_[entries[0]], strict=True)
            if value * weight
        ]
        return Explanation(output, total(rows), by_size(rows), ())

    def _called(self, name: str, i: int, *args: object) -> Any:
        """Return the answer of the user's function of this name for example i."""
        with noted(self._owner, name, i):
            return getattr(self, name)(*args)

    def _score(self, X: object, y: object) -> float:
        predicted, truths = paired_lists(self._predict(X), y, self._owner)
        pairs = enumerate(zip(truths, predicted, strict=True))
        losses = [checked_loss(self._called("loss", i, *pair), i, self._owner) for i, pair in pairs]
        return 1.0 - float(np.mean(losses))

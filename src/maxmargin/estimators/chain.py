"""Sequence labelling as a scikit-learn estimator."""

import itertools
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from maxmargin._threads import threads
from maxmargin.decoding import decode_all
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.forbidden import check_allowed, check_lengths, encode_forbidden
from maxmargin.encoding.kinds import described
from maxmargin.encoding.tokens import Tokens, joined
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, check_loss
from maxmargin.problems import Chain, ChainWeights, SecondOrderChain, SecondOrderWeights
from maxmargin.problems._chain_k_best import KBest, k_best_labellings
from maxmargin.problems._labels import check_several
from maxmargin.problems.chain import unpack_chain
from maxmargin.problems.second_order import unpack_second_order
from maxmargin.rows import FloatArray, IntArray
from maxmargin.solve import Result

_MODELS: dict[int, type[Chain] | type[SecondOrderChain]] = {1: Chain, 2: SecondOrderChain}


class _Seen(NamedTuple):
    """What `partial_fit` has trained on, and where it stopped."""

    tokens: Tokens
    labels: IntArray
    result: Result


class ChainSVC(StructuralSVC):
    r"""Structural SVM for sequence labelling: a chain of first or second order.

    A labelling of a sequence scores :math:`\sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
    + \sum_t A_{y_{t-1} y_t}`, and :math:`\sum_t B_{y_{t-2} y_{t-1} y_t}` more if the order is two; training
    minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
    \text{score}_i(y_i) \right).

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    order : {1, 2}, default=1
        How many labels the next one depends on. An oracle of second order takes n_labels times longer.
    loss : {"normalized_hamming", "hamming"} or array of shape (n_labels, n_labels),
    default="normalized_hamming"
        Share of wrong labels, number of wrong labels, or a cost ``loss[truth, label]`` averaged over the
        sequence, labels in the order of ``classes_``.
    rescaling : {"margin", "slack"}, default="margin"
        What a loss stands for: the margin by which the truth must be ahead, as above, or the price of a
        margin below one, ``loss * (1 + score - score of the truth)``; the latter for the Hamming losses and
        order 1.
    forbidden : list of pairs (before, after) of labels, or "bio", optional
        What is neither predicted nor trained against: label ``after`` right behind label ``before``, where
        None stands for the start or the end. "bio" forbids ``I-x`` that does not continue ``B-x`` or ``I-x``.
    min_count : int, default=1
        Ignore named features (of dicts or strings) that occur in fewer tokens.
    method : {"auto", "pairwise", "away", "bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg", \
"ssg", "ssg-wavg", "ssg-avg", "perceptron", "perceptron-avg"}, default="auto"
        Accelerated pairwise steps; pairwise or away block steps; block-coordinate or batch Frank-Wolfe,
        stochastic subgradient steps or the perceptron, and which average of their iterates is returned:
        none, weighted, suffix or uniform. The perceptron has no certificate, and steps that know no C.
    tol : float, default=0.01
        Stop when the duality gap is at most this.
    max_iter : int, default=100
        Largest number of passes over the data.
    time_limit : float, optional
        Largest number of seconds.
    check_every : int, default=5
        Passes between certificates of the gap.
    sampling : {"permutation", "uniform", "gap"}, default="permutation"
        Order in which examples are visited.
    warm_start : bool, default=False
        Go on from the last `fit`, also at another C; from nothing if the data are others.
    n_jobs : int, optional
        Threads for the certificates and for `predict`; the result does not depend on it.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Labels, sorted.
    coef_ : array of shape (n_labels, n_features)
        W, the feature weights of each label.
    transitions_ : array of shape (n_labels, n_labels)
        A, where ``transitions_[j, k]`` scores label k after label j.
    trigrams_ : array of shape (n_labels, n_labels, n_labels)
        B, where ``trigrams_[i, j, k]`` scores label k after label j after label i; of order 2 only.
    start_, end_ : arrays of shape (n_labels,)
        b and e, the scores of a label at the start and at the end.
    feature_names_ : list of str or None
        Names of the columns of ``coef_`` where features have names.
    gap_ : float
        Certified bound on how far the objective is from its minimum.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import ChainSVC
    >>> X = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"], ["sleeps"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> model = ChainSVC(C=10, random_state=0).fit(X, y)
    >>> model.predict([[["the"], ["cat"], ["barks"]]])[0].tolist()
    ['DET', 'NOUN', 'VERB']
    >>> model.gap_ <= model.tol
    True
    """

    classes_: np.ndarray[Any, Any]
    feature_names_: list[str] | None
    n_features_in_: int
    _seen: _Seen | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "order": [Options(Integral, set(_MODELS))],
        "loss": [StrOptions({"normalized_hamming", "hamming"}), "array-like"],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "forbidden": [StrOptions({"bio"}), list, tuple, set, None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        order: int = 1,
        loss: Any = "normalized_hamming",
        rescaling: str = "margin",
        forbidden: Any = None,
        min_count: int = 1,
        method: str = "auto",
        tol: float = 1e-2,
        max_iter: int = 100,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.order = order
        self.loss = loss
        self.rescaling = rescaling
        self.forbidden = forbidden
        self.min_count = min_count
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.check_every = check_every
        self.sampling = sampling
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or one
            iterable of strings per token.
        y : list of sequences of labels
            Strings or ints, one per token.

        Returns
        -------
        ChainSVC
            The fitted estimator.
        """
        encoder = SequenceEncoder(min_count=self.min_count, owner="ChainSVC")
        tokens = encoder.fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets, owner="ChainSVC")
        self._w = self._fit(self._problem(tokens, labels, classes))
        self._keep(encoder, classes, None)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Train on these sequences and all those of earlier calls, from where the last call stopped.

        The sequences are kept: the answer is certified for all of them, as that of `fit` is. Only the
        work is saved that the last call has done.

        Parameters
        ----------
        X : list of sequences
            As for `fit`. Named features that the first call did not have are ignored.
        y : list of sequences of labels
        classes : array-like, optional
            All labels, in the first call; by default those of its ``y``.

        Returns
        -------
        ChainSVC
            The fitted estimator.
        """
        seen: _Seen | None = getattr(self, "_seen", None)
        encoder = (
            SequenceEncoder(min_count=self.min_count, owner="ChainSVC") if seen is None else self._encoder
        )
        tokens = encoder.fit_transform(X) if seen is None else encoder.transform(X)
        known = (None if classes is None else np.unique(classes)) if seen is None else self.classes_
        labels, known = encode_labels(y, tokens.offsets, classes=known, owner="ChainSVC")
        if seen is not None:
            tokens, labels = joined(seen.tokens, tokens), np.concatenate([seen.labels, labels])
        result = self._fit_more(self._problem(tokens, labels, known), seen)
        self._w = result.w
        self._keep(encoder, known, _Seen(tokens, labels, result))
        return self

    def _problem(self, tokens: Tokens, labels: IntArray, classes: Any) -> Any:
        check_several(len(classes), "ChainSVC")
        check_loss(self.loss, len(classes), "ChainSVC")
        if self.rescaling == "slack":
            self._check_rescalable()
        forbidden = encode_forbidden(self.forbidden, classes, owner="ChainSVC")
        if forbidden is not None:
            check_allowed(labels, tokens.offsets, forbidden, classes, owner="ChainSVC")
        problem = _MODELS[self.order].from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=self.loss, forbidden=forbidden
        )
        return RESCALINGS[self.rescaling](problem)

    def _check_rescalable(self) -> None:
        """Raise unless the oracle of slack rescaling, which counts wrong labels, knows this problem."""
        if self.order != 1:
            raise ValueError(f"ChainSVC: order must be 1 where rescaling is 'slack', got {self.order}.")
        if not isinstance(self.loss, str):
            raise ValueError(
                "ChainSVC: loss must be 'normalized_hamming' or 'hamming' where rescaling is 'slack', "
                "got a cost matrix."
            )
        if self.forbidden is not None:
            raise ValueError(
                "ChainSVC: forbidden must be None where rescaling is 'slack', "
                f"got {described(self.forbidden)}."
            )

    def _keep(self, encoder: SequenceEncoder, classes: Any, seen: "_Seen | None") -> None:
        """Set what a fit leaves behind, once nothing can fail any more."""
        self._encoder, self._seen, self._order = encoder, seen, int(self.order)
        self._forbidden = encode_forbidden(self.forbidden, classes, owner="ChainSVC")
        self.classes_ = classes
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_ = encoder.feature_names_

    def predict(self, X: Any) -> list[np.ndarray[Any, Any]]:
        """Return the labels of each sequence.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as those given to `fit`.

        Returns
        -------
        list of arrays
            One array of labels per sequence.
        """
        problem = self._unlabelled(X)
        with threads(self.n_jobs):
            codes = decode_all(problem, self._w)
        labels, bounds = self.classes_[codes], problem.offsets.tolist()
        return [labels[a:b] for a, b in itertools.pairwise(bounds)]

    def predict_k_best(self, X: Any, k: int) -> list[KBest]:
        """Return the k labellings of highest score of each sequence, or all if there are fewer.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as those given to `fit`.
        k : int
            How many labellings, >= 1.

        Returns
        -------
        list of KBest
            ``(labels, margins)`` of each sequence: an array with one row per labelling, from the best on, and
            by how much the score of each is below that of the first.
        """
        if not (isinstance(k, Integral) and int(k) >= 1):
            raise ValueError(f"ChainSVC: k must be an int >= 1, got {k!r}.")
        problem = self._unlabelled(X)
        if not isinstance(problem, Chain):
            raise ValueError(
                "ChainSVC: predict_k_best needs a model of order 1, got order 2; fit with order=1."
            )
        found = k_best_labellings(problem, self._w, int(k))
        return [KBest(self.classes_[labels], margins) for labels, margins in found]

    def _unlabelled(self, X: Any) -> Chain | SecondOrderChain:
        """The problem of predicting labels."""
        check_is_fitted(self)
        rows, offsets = self._encoder.transform(X)
        if self._forbidden is not None:
            check_lengths(offsets, self._forbidden, owner="ChainSVC")
        return _MODELS[self._order].for_prediction(rows, offsets, len(self.classes_), self._forbidden)

    def score(self, X: Any, y: Any) -> float:
        """Return the share of tokens whose label is predicted; a label not seen in `fit` counts as wrong.

        Parameters
        ----------
        X : list of sequences
        y : list of sequences of labels

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        offsets = np.cumsum([0, *map(len, predicted)])
        codes, classes = encode_labels(y, offsets, owner="ChainSVC")
        truth = classes[codes]
        return float(np.mean(truth == np.concatenate(predicted)))

    @property
    def _weights(self) -> ChainWeights | SecondOrderWeights:
        check_is_fitted(self)
        unpack = unpack_chain if self._order == 1 else unpack_second_order
        return unpack(self._w, self.n_features_in_, len(self.classes_))

    @property
    def coef_(self) -> FloatArray:
        """Feature weights of each label."""
        return self._weights.unary

    @property
    def transitions_(self) -> FloatArray:
        """Scores of each label after each label."""
        return self._weights.transitions

    @property
    def trigrams_(self) -> FloatArray:
        """Scores of each label after each two labels; of a model of order 2."""
        weights = self._weights
        if isinstance(weights, ChainWeights):
            raise AttributeError(
                "ChainSVC: trigrams_ needs a model of order 2, got order 1; fit with order=2."
            )
        return weights.trigrams

    @property
    def start_(self) -> FloatArray:
        """Score of each label at the start of a sequence."""
        return self._weights.start

    @property
    def end_(self) -> FloatArray:
        """Score of each label at the end of a sequence."""
        return self._weights.end

"""Sequence labelling as a scikit-learn estimator."""

import itertools
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.forbidden import check_allowed, check_lengths, encode_forbidden
from maxmargin.encoding.tokens import Tokens
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, check_loss, rescaled
from maxmargin.estimators._examples import Examples, appended, check_fixed, label_weights, weighed
from maxmargin.estimators._scores import check_kind, mean_right
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Chain, ChainWeights, SecondOrderChain, SecondOrderWeights
from maxmargin.problems._k_best import KBest, check_k, k_best_outputs
from maxmargin.problems._labels import check_several
from maxmargin.problems.chain import unpack_chain
from maxmargin.problems.second_order import unpack_second_order
from maxmargin.wording import described

_MODELS: dict[int, type[Chain] | type[SecondOrderChain]] = {1: Chain, 2: SecondOrderChain}


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
        margin below one, ``loss * (1 + score - score of the truth)``; the latter for the Hamming losses, by
        an oracle that takes as many times longer as the sequence has tokens.
    forbidden : list of pairs (before, after) of labels, or "bio", optional
        What is neither predicted nor trained against: label ``after`` right behind label ``before``, where
        None stands for the start or the end. "bio" forbids ``I-x`` that does not continue ``B-x`` or ``I-x``.
    min_count : int, default=1
        Ignore named features (of dicts or strings) that occur in fewer tokens.
    class_weight : dict or "balanced", optional
        What the loss of a wrong token is multiplied by, by its true label: ``{label: weight}``, 1 for labels
        that are not in it; or weights inverse to how many tokens have the label, with a mean of 1.
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
        Threads for certificates, for `predict` and, with method "auto", for training. For training any number
        but 1 divides the examples into two parts, whatever the number: the answer is that of two parts.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "order": [Options(Integral, set(_MODELS))],
        "loss": [StrOptions({"normalized_hamming", "hamming"}), "array-like"],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "forbidden": [StrOptions({"bio"}), list, tuple, set, None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
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
        class_weight: Any = None,
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
        self.class_weight = class_weight
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

    @transaction
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or one
            iterable of strings per token.
        y : list of sequences of labels
            Strings or ints, one per token.
        sample_weight : array of shape (n_sequences,), optional
            How often each sequence counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        ChainSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
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
        sample_weight : array of shape (n_sequences,), optional

        Returns
        -------
        ChainSVC
            The fitted estimator.
        """
        check_fixed(self.class_weight, "ChainSVC")
        return self._learn(X, y, sample_weight, classes, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, more: bool = False) -> Self:
        (X, y), weights = weighed((X, y), sample_weight, "ChainSVC")
        seen = self._before(more)
        encoder = (
            SequenceEncoder(min_count=self.min_count, owner="ChainSVC") if seen is None else self._encoder
        )
        tokens = encoder.fit_transform(X) if seen is None else encoder.transform(X)
        known = (None if classes is None else np.unique(classes)) if seen is None else self.classes_
        labels, known = encode_labels(y, tokens.offsets, classes=known, owner="ChainSVC")
        examples = appended(seen, Examples((tokens, labels), weights))
        tokens, labels = examples.data
        problem = self._problem(tokens, labels, known, examples.weights)
        self._w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        self._keep(encoder, known)
        return self

    def _problem(self, tokens: Tokens, labels: IntArray, classes: Any, weights: FloatArray | None) -> Any:
        check_several(len(classes), "ChainSVC")
        check_loss(self.loss, len(classes), "ChainSVC")
        self._check_counts()
        forbidden = encode_forbidden(self.forbidden, classes, owner="ChainSVC")
        if forbidden is not None:
            check_allowed(labels, tokens.offsets, forbidden, classes, owner="ChainSVC")
        problem = _MODELS[self.order].from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=self.loss, forbidden=forbidden
        )
        if self.class_weight is not None:
            by_token = None if weights is None else np.repeat(weights, np.diff(tokens.offsets))
            costs = label_weights(self.class_weight, classes, labels, by_token, "ChainSVC")
            problem = problem.costed(costs)
        return rescaled(problem, self.rescaling, "ChainSVC")

    def _check_counts(self) -> None:
        """Raise unless wrong labels count alike where they are counted."""
        if self.rescaling == "slack" and self.class_weight is not None:
            raise ValueError(
                "ChainSVC: class_weight must be None where rescaling is 'slack', got "
                f"{described(self.class_weight)}; leave it out, or use rescaling='margin'."
            )

    def _keep(self, encoder: SequenceEncoder, classes: Any) -> None:
        """Set what a fit leaves behind, once nothing can fail any more."""
        self._encoder, self._order = encoder, int(self.order)
        self._forbidden = encode_forbidden(self.forbidden, classes, owner="ChainSVC")
        self.classes_ = classes
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_ = encoder.feature_names_

    @snapshot
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
        codes = self._decoded(problem, self._w)
        labels, bounds = self.classes_[codes], problem.offsets.tolist()
        return [labels[a:b] for a, b in itertools.pairwise(bounds)]

    @snapshot
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
        found = k_best_outputs(self._unlabelled(X), self._w, check_k(k, "ChainSVC"))
        return [KBest(self.classes_[labels], margins) for labels, margins in found]

    def _unlabelled(self, X: Any) -> Chain | SecondOrderChain:
        """The problem of predicting labels."""
        rows, offsets = self._encoder.transform(X)
        if self._forbidden is not None:
            check_lengths(offsets, self._forbidden, owner="ChainSVC")
        return _MODELS[self._order].for_prediction(rows, offsets, len(self.classes_), self._forbidden)

    @snapshot
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
        check_kind(classes[0], self.classes_, "ChainSVC")
        return mean_right(classes[codes] == np.concatenate(predicted), None, "ChainSVC")

    @property
    @snapshot
    def _weights(self) -> ChainWeights | SecondOrderWeights:
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

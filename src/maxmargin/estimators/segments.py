"""Segmentation of sequences as a scikit-learn estimator."""

import itertools
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.segments import (
    EncodedSegments,
    Segment,
    decode_segments,
    encode_limits,
    encode_segments,
    list_segments,
    tags_of_segments,
)
from maxmargin.encoding.tokens import Offsets
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, rescaled
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._scores import check_kind
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Segments, SegmentWeights
from maxmargin.problems._k_best import KBestSegments, check_k, k_best_outputs
from maxmargin.problems.segments import LOSSES, check_choice, unpack_segments


class SegmentSVC(StructuralSVC):
    r"""Structural SVM that cuts sequences into labelled segments: a semi-Markov chain.

    A segmentation scores, for each segment, :math:`\langle W_k, x_t \rangle` summed over its tokens,
    :math:`\langle F_k, x_t \rangle` of the first and :math:`\langle G_k, x_t \rangle` of the last, a score of
    its label and length, and one of its label after the label before it; training minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
    \text{score}_i(y_i) \right).

    Tokens outside of segments, if `fit` sees any, are segments of one token with a label of their own.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    max_length : int or dict {label: int}, optional
        Largest number of tokens of a segment, or of one with each label; by default that of the longest in
        the training data with the label. Time grows with the largest of them.
    loss : {"normalized_hamming", "hamming", "segments"}, default="normalized_hamming"
        Share of tokens with a wrong tag, that is, a wrong label or a segment that starts where none does or
        the other way round; their number; or the number of segments that are predicted but not true or true
        but not predicted.
    rescaling : {"margin", "slack"}, default="margin"
        What a loss stands for: the margin by which the truth must be ahead, as above, or the price of a
        margin below one, ``loss * (1 + score - score of the truth)``; the latter for losses of tags.
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
        Threads for certificates, for `predict` and, with method "auto", for training. For training any number
        but 1 divides the examples into two parts, whatever the number: the answer is that of two parts.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted. The weights below have one row for each, and a last one for tokens outside of segments
        if `fit` saw any.
    coef_, first_coef_, last_coef_ : arrays of shape (n_labels, n_features)
        W, F and G, the feature weights of each label for all tokens of a segment, its first and its last.
    lengths_ : array of shape (n_labels, longest)
        ``lengths_[k, d]`` scores a segment of d + 1 tokens with label k.
    transitions_ : array of shape (n_labels, n_labels)
        ``transitions_[j, k]`` scores label k after label j.
    start_ : array of shape (n_labels,)
        Score of the first segment's label.
    max_length_ : array of shape (n_labels,)
        Largest number of tokens of a segment with each label.
    feature_names_ : list of str or None
        Names of the features where they have names.
    gap_ : float
        Certified bound on how far the objective is from its minimum.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import SegmentSVC
    >>> X = [[["the"], ["old"], ["dog"], ["barks"]], [["a"], ["cat"], ["sleeps"], ["now"]]]
    >>> y = [[(0, 3, "NP"), (3, 4, "VP")], [(0, 2, "NP"), (2, 3, "VP")]]
    >>> model = SegmentSVC(C=10, random_state=0).fit(X, y)
    >>> model.predict([[["the"], ["cat"], ["barks"], ["now"]]])
    [[(0, 2, 'NP'), (2, 3, 'VP')]]
    >>> model.predict_tags([[["the"], ["cat"], ["barks"], ["now"]]])
    [['B-NP', 'I-NP', 'B-VP', 'O']]
    """

    classes_: np.ndarray[Any, Any]
    feature_names_: list[str] | None
    max_length_: IntArray
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "max_length": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "loss": [StrOptions(set(LOSSES))],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        max_length: Any = None,
        loss: str = "normalized_hamming",
        rescaling: str = "margin",
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
        self.max_length = max_length
        self.loss = loss
        self.rescaling = rescaling
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

    @transaction
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or one
            iterable of strings per token.
        y : list of lists
            The segments ``(start, stop, label)`` of each sequence, of the tokens start, ..., stop - 1, or a
            tag per token: ``"B-label"`` where a segment starts, ``"I-label"`` where it goes on, else ``"O"``.
            Labels of segments are strings or ints.
        sample_weight : array of shape (n_sequences,), optional
            How often each sequence counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        SegmentSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on these sequences and all those of earlier calls, from where the last call stopped.

        The sequences are kept: the answer is certified for all of them, as that of `fit` is. Only the
        features, labels and largest lengths of the first call are known.

        Parameters
        ----------
        X : list of sequences
        y : list of lists
            Segments or tags, as for `fit`.
        sample_weight : array of shape (n_sequences,), optional

        Returns
        -------
        SegmentSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> Self:
        (X, y), weights = weighed((X, y), sample_weight, "SegmentSVC")
        seen = self._before(more)
        if seen is None:
            encoder = SequenceEncoder(min_count=self.min_count, owner="SegmentSVC")
            tokens = encoder.fit_transform(X)
            found = encode_segments(y, tokens.offsets, owner="SegmentSVC")
            limits = encode_limits(self.max_length, found, tokens.offsets, owner="SegmentSVC")
            check_choice(limits, "SegmentSVC")
        else:
            encoder, limits, known = self._encoder, self.max_length_, self.classes_
            tokens = encoder.transform(X)
            found = encode_segments(
                y, tokens.offsets, owner="SegmentSVC", classes=known, n_labels=len(limits)
            )
            lengths = dict(zip(known.tolist(), limits.tolist(), strict=False))
            encode_limits(lengths, found, tokens.offsets, owner="SegmentSVC")
        self._train(encoder, appended(seen, Examples((tokens, found.codes), weights)), found, limits, more)
        return self

    def _train(
        self,
        encoder: SequenceEncoder,
        examples: Examples,
        found: EncodedSegments,
        limits: IntArray,
        more: bool,
    ) -> None:
        """Train on the examples; set what a fit leaves behind, once nothing can fail any more."""
        tokens, codes = examples.data
        segments = found._replace(codes=codes)
        problem = Segments.from_encoded(tokens.rows, tokens.offsets, segments, limits, loss=self.loss)
        problem = rescaled(problem, self.rescaling, "SegmentSVC")
        self._w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        self._encoder, self.max_length_, self.classes_ = encoder, limits, found.classes
        self.n_features_in_ = encoder.n_features_in_
        self.feature_names_ = encoder.feature_names_

    @snapshot
    def predict(self, X: Any) -> list[list[Segment]]:
        """Return the segments of each sequence.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as those given to `fit`.

        Returns
        -------
        list of lists of tuples
            The segments ``(start, stop, label)`` of each sequence, in order.
        """
        return self._predict(X)[0]

    @snapshot
    def predict_tags(self, X: Any) -> list[list[str]]:
        """Return the segments of each sequence as tags.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as those given to `fit`.

        Returns
        -------
        list of lists of str
            For each token ``"B-label"`` where a segment starts, ``"I-label"`` where it goes on, else ``"O"``.
        """
        segments, offsets = self._predict(X)
        lengths = np.diff(offsets).tolist()
        return list(itertools.starmap(tags_of_segments, zip(segments, lengths, strict=True)))

    def _predict(self, X: Any) -> tuple[list[list[Segment]], Offsets]:
        """The segments, and the offsets of sequences."""
        problem = self._unlabelled(X)
        codes = self._decoded(problem, self._w)
        return decode_segments(codes, problem.offsets, self.classes_), problem.offsets

    @snapshot
    def predict_k_best(self, X: Any, k: int) -> list[KBestSegments]:
        """Return the k segmentations of highest score of each sequence, or all if there are fewer.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as those given to `fit`.
        k : int
            How many segmentations, >= 1.

        Returns
        -------
        list of KBestSegments
            ``(segments, margins)`` of each sequence: the segments of each segmentation, from the best on, and
            by how much the score of each is below that of the first.
        """
        k = check_k(k, "SegmentSVC")
        return [self._named(*found) for found in k_best_outputs(self._unlabelled(X), self._w, k)]

    def _named(self, codes: IntArray, margins: FloatArray) -> KBestSegments:
        """The segmentations with these codes, one in each row."""
        offsets = codes.shape[1] * np.arange(len(codes) + 1)
        return KBestSegments(decode_segments(codes.ravel(), offsets, self.classes_), margins)

    def _unlabelled(self, X: Any) -> Segments:
        """The problem of predicting segments."""
        rows, offsets = self._encoder.transform(X)
        return Segments.for_prediction(rows, offsets, self.max_length_)

    @snapshot
    def score(self, X: Any, y: Any) -> float:
        """Return the F1 score of segments: one counts as found if start, stop and label are predicted.

        Parameters
        ----------
        X : list of sequences
        y : list of lists
            True segments or tags, as for `fit`; their labels need not have been seen in `fit`.

        Returns
        -------
        float
            Between 0 and 1, over the segments of all sequences together; 1 if there are none at all.
        """
        predicted, offsets = self._predict(X)
        true = list_segments(y, offsets, owner="SegmentSVC")
        for _, _, label in itertools.chain.from_iterable(true):
            check_kind(label, self.classes_, "SegmentSVC")
        right = sum(len(set(a) & set(b)) for a, b in zip(true, predicted, strict=True))
        total = sum(map(len, true)) + sum(map(len, predicted))
        return 2 * right / total if total else 1.0

    @property
    @snapshot
    def _weights(self) -> SegmentWeights:
        limits = self.max_length_
        return unpack_segments(self._w, self.n_features_in_, len(limits), int(limits.max()))

    @property
    def coef_(self) -> FloatArray:
        """Feature weights of each label, for all tokens of a segment."""
        return self._weights.inside

    @property
    def first_coef_(self) -> FloatArray:
        """Feature weights of each label, for the first token of a segment."""
        return self._weights.first

    @property
    def last_coef_(self) -> FloatArray:
        """Feature weights of each label, for the last token of a segment."""
        return self._weights.last

    @property
    def lengths_(self) -> FloatArray:
        """Scores of each length for each label."""
        return self._weights.lengths

    @property
    def transitions_(self) -> FloatArray:
        """Scores of each label after each label."""
        return self._weights.transitions

    @property
    def start_(self) -> FloatArray:
        """Score of each label at the start of a sequence."""
        return self._weights.start

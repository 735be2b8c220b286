"""Segmentation of sequences as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from typing import ClassVar, NamedTuple, cast

import numpy as np

from maxmargin.encoding.kinds import Offsets, Tokens
from maxmargin.encoding.labels import Labels
from maxmargin.estimators.confidence import ListMarginalEstimator, ListMarginEstimator
from maxmargin.estimators.estimator import Call
from maxmargin.estimators.examples import Examples, Parts, check_kind, f1
from maxmargin.estimators.explanation import Contribution, Explainer, Part, Reader, RowReader, single
from maxmargin.estimators.fields import LABELS, Fields, ints
from maxmargin.estimators.inspection import (
    LabelFeatureInspector,
    TransitionInspector,
    WeightTable,
    joint_table,
)
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.problems import Problem, SequenceProblem, rescaled
from maxmargin.estimators.sequences import SequenceEstimator, TokenData, feature_part, weights_part
from maxmargin.estimators.state import Interval, StrOptions, snapshot
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.result import Callback
from maxmargin.structures.segments.answers import KBestSegments
from maxmargin.structures.segments.encode import (
    EncodedSegments,
    Segment,
    decode_segments,
    encode_limits,
    encode_segments,
    list_segments,
    tags_of_segments,
)
from maxmargin.structures.segments.model import Segments, SegmentWeights, check_choice


class SegmentReader(NamedTuple):
    """Reads segments, those of single tokens outside of all segments included.

    Attributes
    ----------
    tokens : RowReader
    labels : list
        The last may be that of tokens outside.
    weights : SegmentWeights
    n_classes : int
        Number of labels without that of tokens outside.
    """

    tokens: RowReader
    labels: list[object]
    weights: SegmentWeights
    n_classes: int

    def _segments(self, codes: IntArray) -> list[tuple[int, int, int]]:
        """Return start, stop and number of the label of all segments."""
        starts = np.flatnonzero(codes & 1)
        bounds = [*starts.tolist(), len(codes)]
        return [(a, b, int(codes[a]) >> 1) for a, b in itertools.pairwise(bounds)]

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(start, (start, stop)) for start, stop, _ in self._segments(codes)]

    def state(self, codes: IntArray, part: Part) -> object:
        first, end = cast("tuple[int, int]", part.name)
        touched = [each for each in self._segments(codes) if each[0] < end and each[1] > first]
        if [each[:2] for each in touched] == [(first, end)]:
            return self.labels[touched[0][2]]
        return tuple((start, stop, self.labels[k]) for start, stop, k in touched)

    def output(self, codes: IntArray) -> object:
        return [
            (start, stop, self.labels[k]) for start, stop, k in self._segments(codes) if k < self.n_classes
        ]

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        before: int | None = None
        for start, stop, k in self._segments(codes):
            found += self._segment(start, stop, k)
            found += self._transition((start, stop), before, k)
            before = k
        return found

    def _segment(self, start: int, stop: int, k: int) -> Iterator[Contribution]:
        """Yield the contributions of the tokens and of the length of a segment."""
        part, label, w = (start, stop), self.labels[k], self.weights
        yield from self.tokens.sums(range(start, stop), part, label, w.inside[k])
        for kind, t, weights in (("first", start, w.first), ("last", stop - 1, w.last)):
            yield from self.tokens._replace(kind=kind).contributions(t, part, label, weights[k])
        yield from single(part, "length", stop - start, label, w.lengths[k, stop - start - 1])

    def _transition(self, part: object, before: int | None, k: int) -> Iterator[Contribution]:
        """Yield the contributions of the label of a segment after the label before it."""
        if before is None:
            return single(part, "start", None, (None, self.labels[k]), self.weights.start[k])
        labels = self.labels[before], self.labels[k]
        return single(part, "transition", None, labels, self.weights.transitions[before, k])


_Data = TokenData


class SegmentSVC(
    Explainer,
    LabelFeatureInspector,
    TransitionInspector,
    ListMarginEstimator,
    ListMarginalEstimator[_Data, list[list[Segment]]],
    SequenceEstimator[_Data, list[list[Segment]]],
):
    r"""Structural SVM that cuts sequences into labelled segments: a semi-Markov chain.

    A segmentation scores, for each segment, :math:`\langle W_k, x_t \rangle` summed over its tokens,
    :math:`\langle F_k, x_t \rangle` of the first and :math:`\langle G_k, x_t \rangle` of the last, a score of
    its label and length, and a score of its label after the label before it. Training minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right).

    Tokens outside segments, if `fit` sees any, are segments of one token with a label of their own.

    Parameters
    ----------
    %(C)s
    max_length : int, dict {label: int} or None, default=None
        Largest number of tokens of a segment, for all labels or for each label; by default the length of the
        longest training segment with the label. Time grows with the largest of them.
    loss : {"hamming", "normalized_hamming", "segments"}, default="hamming"
        Number of tokens with a wrong tag, that is, with a wrong label or on the wrong side of the start of a
        segment; their share; or the number of segments that are predicted but not true, or true but not
        predicted.
    %(rescaling)s
        "slack" needs a loss of tags.
    %(min_count)s
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted. The weights below have one row per label, and a last row for tokens outside segments
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
        Names of the features, if they have names.
    %(support)s
        Here m is three times as large: for all tokens of a segment, for its first and for its last token.
    %(temperature)s
    %(certificate)s
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

    _texts: ClassVar[dict[str, str]] = {
        "y": """
            y : list of lists
                The segments ``(start, stop, label)`` of each sequence, of the tokens start, ..., stop - 1; or
                a tag per token, ``"B-label"`` where a segment starts, ``"I-label"`` where it continues, else
                ``"O"``. Labels of segments are strings or ints.
            """,
        "first": "The first call decides on the features, labels and largest lengths of all.",
        "predict": """
            list of lists of tuples
                The segments ``(start, stop, label)`` of each sequence, in order.
            """,
        "margins": """
            list of arrays
                One margin per segment that `predict` returns: an output differs there if it does not have a
                segment of this start, stop and label.
            """,
        "parts": "the labels of tokens",
        "marginals": """
            list of arrays of shape (n_tokens, n_labels)
                A row for each token and a column for each label of a segment, in the order of ``classes_``,
                with a last column for tokens outside of segments if `fit` saw any.
            """,
        "kinds": """
            The kind is "tokens", "first" or "last", for all tokens of a segment, its first and its
            last; or "length", whose feature is the number of tokens. The label "O" is that of tokens outside
            of segments.
            """,
        "transitions": """
            The kind is "transition"; or "start", where before is None. The label "O" is that of
            tokens outside of segments. The feature is None.
            """,
        "score": """
            Return the F1 score of the segments of all sequences together; 1 if there are none.

            A segment is found if its start, stop and label are predicted. True labels may be new.
            """,
    }
    max_length: int | Mapping[object, int] | None
    loss: str
    rescaling: str
    classes_: Labels
    max_length_: IntArray

    _fitted: ClassVar[Fields] = {"classes_": LABELS, "max_length_": ints(None)}
    _parameter_constraints: ClassVar[Constraints] = {
        "max_length": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "loss": [StrOptions(HAMMING | {"segments"})],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        max_length: int | Mapping[object, int] | None = None,
        loss: str = "hamming",
        rescaling: str = "margin",
        min_count: int = 1,
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        probability: bool = False,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        cache_size: float = 200.0,
        callbacks: Iterable[Callback] | None = None,
        checkpoint: CheckpointLike | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = parts
        tokens = self._tokens(X, call)
        found = self._first_segments(y, tokens) if call.first else self._more_segments(y, tokens)
        return self._trained(tokens, found.codes, weights)

    def _first_segments(self, y: object, tokens: Tokens) -> EncodedSegments:
        """Return the true segments, which decide on labels and largest lengths."""
        found = encode_segments(y, tokens.offsets, owner=self._owner)
        self.max_length_ = encode_limits(self.max_length, found, tokens.offsets, owner=self._owner)
        check_choice(self.max_length_, self._owner)
        self.classes_ = found.classes
        return found

    def _more_segments(self, y: object, tokens: Tokens) -> EncodedSegments:
        """Return the true segments, which must have known labels and no more than their largest lengths."""
        known, limits, owner = self.classes_, self.max_length_, self._owner
        found = encode_segments(y, tokens.offsets, owner=owner, classes=known, n_labels=len(limits))
        lengths = dict(zip(known.tolist(), limits.tolist(), strict=False))
        encode_limits(lengths, found, tokens.offsets, owner=owner)
        return found

    def _problem(self, examples: Examples[_Data]) -> Problem:
        tokens, codes = examples.data
        limits = self.max_length_
        found = EncodedSegments(codes, self.classes_, len(limits))
        rows = self._linear_rows(tokens.rows)
        problem = Segments.from_encoded(
            rows, tokens.offsets, found, limits, loss=self.loss, owner=self._owner
        )
        return rescaled(self._with_kernel(problem, tokens.rows), self.rescaling, self._owner)

    def _n_cells(self) -> int:
        n_labels, n_lengths = len(self.max_length_), int(self.max_length_.max(initial=0))
        return n_labels * (self._n_columns + n_labels + n_lengths)

    def _check_restored(self) -> None:
        super()._check_restored()
        if len(self.max_length_) - len(self.classes_) not in (0, 1):
            raise ValueError("labels must have a largest length each")
        check_choice(self.max_length_, self._owner)

    def _label_coefficients(self, coefficients: FloatArray) -> FloatArray:
        parts = coefficients.reshape(len(coefficients), 3, -1)[:, :, : len(self.max_length_)]
        return parts.reshape(len(coefficients), -1).T

    def _for_prediction(self, tokens: Tokens) -> SequenceProblem:
        return Segments.for_prediction(tokens.rows, tokens.offsets, self.max_length_)

    def _segments(self, X: object) -> tuple[list[list[Segment]], Offsets]:
        """Return the segments, and the offsets of the sequences."""
        tokens = self._read(X)
        codes = self._decoded(self._unlabelled(tokens))[: tokens.offsets[-1]]
        return decode_segments(codes, tokens.offsets, self.classes_), tokens.offsets

    def _predict(self, X: object) -> list[list[Segment]]:
        return self._segments(X)[0]

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        tokens = self._read(X)
        codes, margins = self._decoded_with_margins(self._unlabelled(tokens))
        found = decode_segments(codes[: tokens.offsets[-1]], tokens.offsets, self.classes_)
        firsts = [np.array([start for start, _, _ in segments], dtype=np.int64) for segments in found]
        return [margins[a + first] for a, first in zip(tokens.offsets[:-1], firsts, strict=True)]

    @snapshot
    def predict_tags(self, X: object) -> list[list[str]]:
        """Return the segments of each sequence as tags.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        list of lists of str
            For each token ``"B-label"`` where a segment starts, ``"I-label"`` where it continues, else
            ``"O"``.
        """
        segments, offsets = self._segments(X)
        return list(
            itertools.starmap(tags_of_segments, zip(segments, np.diff(offsets).tolist(), strict=True))
        )

    @snapshot
    def predict_k_best(self, X: object, k: int) -> list[KBestSegments]:
        """Return the k segmentations of highest score of each sequence, or all if there are fewer.

        Parameters
        ----------
        %(X)s
        k : int
            Number of segmentations, >= 1.

        Returns
        -------
        list of KBestSegments
            ``(segments, margins)`` of each sequence: the segments of each segmentation, the best first, and
            by how much the score of each is below that of the first.
        """
        return [self._named(*found) for found in self._k_best(X, k)]

    def _named(self, codes: IntArray, margins: FloatArray) -> KBestSegments:
        """Return the segmentations with these codes, one in each row."""
        offsets = codes.shape[1] * np.arange(len(codes) + 1)
        return KBestSegments(decode_segments(codes.ravel(), offsets, self.classes_), margins)

    def _score(self, X: object, y: object) -> float:
        predicted, offsets = self._segments(X)
        true = list_segments(y, offsets, owner=self._owner)
        for _, _, label in itertools.chain.from_iterable(true):
            check_kind(label, self.classes_, self._owner)
        right = sum(len(set(a) & set(b)) for a, b in zip(true, predicted, strict=True))
        return f1(right, sum(map(len, true)) + sum(map(len, predicted)))

    def _states(self, examples: Examples[_Data]) -> IntArray:
        return examples.data[1] >> 1

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._unlabelled(self._read(X))

    def _n_states(self) -> int:
        return len(self.max_length_)

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        tokens, numbers = self._read(X), {label: k for k, label in enumerate(self.classes_.tolist())}
        has_outside = len(self.max_length_) > len(self.classes_)
        states = np.full(tokens.offsets[-1], len(self.classes_) if has_outside else -1)
        true = list_segments(y, tokens.offsets, owner=self._owner)
        for first, segments in zip(tokens.offsets[:-1].tolist(), true, strict=True):
            for start, stop, label in segments:
                check_kind(label, self.classes_, self._owner)
                states[first + start : first + stop] = numbers.get(label, -1)
        return self._unlabelled(tokens), states

    def _label_names(self) -> list[object]:
        """Return the names of all labels, that of tokens outside of segments included."""
        outside = ["O"] * (len(self.max_length_) - len(self.classes_))
        return [*self.classes_.tolist(), *outside]

    def _feature_tables(self) -> list[WeightTable]:
        names, labels = self._feature_names(), self._label_names()
        parts = {"tokens": self.coef_, "first": self.first_coef_, "last": self.last_coef_}
        tables = [WeightTable(kind, names, labels, coef.T) for kind, coef in parts.items()]
        lengths = range(1, self.lengths_.shape[1] + 1)
        return [*tables, WeightTable("length", lengths, labels, self.lengths_.T)]

    def _transition_tables(self) -> list[WeightTable]:
        labels = self._label_names()
        return [
            joint_table("transition", self.transitions_, labels, labels),
            joint_table("start", self.start_, [None], labels),
        ]

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        self._check_linear("explain")
        tokens = self._read([x])
        if not tokens.offsets[-1]:
            return None
        rows, weights = self._token_reader(tokens, "tokens"), cast("SegmentWeights", self._weights)
        reader = SegmentReader(rows, self._label_names(), weights, len(self.classes_))
        return self._unlabelled(tokens), reader

    coef_ = feature_part("inside", "coef_", "Feature weights of each label, for all tokens of a segment.")
    first_coef_ = feature_part(
        "first", "first_coef_", "Feature weights of each label, for the first token of a segment."
    )
    last_coef_ = feature_part(
        "last", "last_coef_", "Feature weights of each label, for the last token of a segment."
    )
    lengths_ = weights_part("lengths", "Scores of each length for each label.")
    transitions_ = weights_part("transitions", "Scores of each label after each label.")
    start_ = weights_part("start", "Score of each label at the start of a sequence.")

"""Segmentation of sequences as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from typing import ClassVar, NamedTuple, cast

import numpy as np

from maxmargin.encoding.kinds import Offsets, Tokens, without_empty
from maxmargin.estimators import confidence, explanation, inspection, sequences, tables
from maxmargin.estimators.confidence import list_marginals, split_at
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Lesson, Parts, Tally, check_kind
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, single
from maxmargin.estimators.inspection import WeightTable, dense, joint_table
from maxmargin.estimators.kernels import check_linear, linear_rows, n_columns, support_properties, wrapped
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.sequences import weights_part
from maxmargin.estimators.state import Interval, StrOptions, snapshot
from maxmargin.estimators.structure import (
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    in_each_storage,
    ints,
)
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.result import Callback
from maxmargin.structures.questions import check_k
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


_Segmentations = list[list[Segment]]
# Tokens, the numbers of their labels, and whether a segment starts there.
_Data = tuple[Tokens, IntArray, IntArray]
_OUTSIDE = ("outside",)  # the key of a lesson for tokens outside of segments; labels are str or int


def _lesson(model: "SegmentSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    X, y = parts
    tokens, taught = sequences.tokens_lesson(model, X, weights)
    found, given = encode_segments(y, tokens.offsets), model.max_length
    labels = found.classes.tolist()
    if isinstance(given, Mapping):
        given = {label: length for label, length in given.items() if label in labels}
    encode_limits(given, found, tokens.offsets)  # raises if a segment is too long
    longest = encode_limits(None, found, tokens.offsets).tolist()
    largest = dict(zip([*labels, _OUTSIDE], longest, strict=False))
    return taught._replace(labels=found.classes, largest=largest)


def _learn(model: "SegmentSVC", lesson: Lesson) -> None:
    """Set what follows from the lesson of all partitions."""
    sequences.learn_tokens(model, lesson)
    # The longest segments, one in each sequence, teach what all of them do.
    longest = dict(lesson.largest)
    outside = longest.pop(_OUTSIDE, 0)
    y = [[(0, length, label)] for label, length in longest.items()] + [[]] * outside
    offsets = np.cumsum([0, *longest.values(), *[1] * outside])
    _first_segments(model, y, Tokens(np.zeros((offsets[-1], 0)), offsets))


def _check_lengths(model: "SegmentSVC") -> None:
    """Raise ValueError unless the attributes that a file had are those of one model."""
    if len(model.max_length_) - len(model.classes_) not in (0, 1):
        raise ValueError("labels must have a largest length each")
    check_choice(model.max_length_)


class SegmentedTokens(Structure["SegmentSVC", _Data, _Segmentations, list[FloatArray]]):
    """Segments of sequences; tokens outside of them may have a label of their own, the last."""

    named_parts = "inside", "first", "last"
    cluster = Cluster(_lesson, _learn)
    trials = in_each_storage(lambda X, labels: ([X], [["B-a", "I-a", "O"] * 3]))
    fields: ClassVar = {
        **sequences.FIELDS,
        **tables.LABEL_FIELDS,
        "max_length_": ints(None).checked(_check_lengths),
    }

    def validate(self, model: "SegmentSVC", parts: Parts, call: Call) -> Parts:
        return sequences.validated(model, parts)

    def encode(
        self, model: "SegmentSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        X, y = parts
        tokens = sequences.encoded(model, X, call)
        found = _first_segments(model, y, tokens) if call.first else _more_segments(model, y, tokens)
        (present, states), kept, _ = sequences.trained(tokens, found.codes >> 1, weights)
        return Examples((present, states, found.codes & 1), kept)

    def problem(self, model: "SegmentSVC", examples: Examples[_Data]) -> Problem:
        tokens, states, starts = examples.data
        codes = 2 * states + starts
        problem = Segments.from_encoded(
            linear_rows(model, tokens.rows),
            tokens.offsets,
            EncodedSegments(codes, model.classes_, len(model.max_length_)),
            model.max_length_,
            loss=model.loss,
        )
        return wrapped(model, problem, tokens.rows, model.rescaling)

    def read(self, model: "SegmentSVC", X: object) -> tuple[Tokens, Problem | None]:
        """Return tokens, and the problem of predicting their segments; None if there are none."""
        tokens = sequences.read(model, X)
        return tokens, _of_tokens(model, tokens) if tokens.offsets[-1] else None

    def ask(self, model: "SegmentSVC", X: object) -> Question[_Segmentations, list[FloatArray]]:
        tokens, problem = self.read(model, X)
        offsets = tokens.offsets

        def margins(codes: IntArray, found: FloatArray) -> list[FloatArray]:
            starts = [
                np.array([start for start, _, _ in segments], dtype=np.int64)
                for segments in decode_segments(codes, offsets, model.classes_)
            ]
            return [found[a + some] for a, some in zip(offsets[:-1], starts, strict=True)]

        return Question(
            problem,
            lambda codes: decode_segments(codes, offsets, model.classes_),
            lambda codes, y: _score(model, decode_segments(codes, offsets, model.classes_), offsets, y),
            margins,
            lambda y: _true_states(model, offsets, y),
            lambda values, shapes: list_marginals(values, shapes, np.diff(offsets), len(model.max_length_)),
        )

    def reader(self, model: "SegmentSVC", x: object) -> tuple[Problem, Reader] | None:
        check_linear(model, "explain")
        tokens, problem = self.read(model, [x])
        if problem is None:
            return None
        rows, weights = sequences.token_reader(model, tokens, "tokens"), sequences.weights_of(model)
        return problem, SegmentReader(
            rows, _label_names(model), cast("SegmentWeights", weights), len(model.classes_)
        )

    def layout(self, model: "SegmentSVC") -> Layout:
        n_labels, n_lengths = len(model.max_length_), int(model.max_length_.max(initial=0))
        least = n_labels * (n_columns(model) + n_labels + n_lengths)
        return Layout(least, lambda: _of_tokens(model, sequences.blank(model)).map)

    def expose(self, model: "SegmentSVC") -> None:
        sequences.name_features(model)

    def features(self, model: "SegmentSVC") -> list[WeightTable]:
        names, labels = sequences.feature_names(model), _label_names(model)
        parts = {"tokens": model.coef_, "first": model.first_coef_, "last": model.last_coef_}
        lengths = range(1, model.lengths_.shape[1] + 1)
        return [
            *(WeightTable(kind, names, labels, dense(coef).T) for kind, coef in parts.items()),
            WeightTable("length", lengths, labels, model.lengths_.T),
        ]

    def transitions(self, model: "SegmentSVC") -> list[WeightTable]:
        labels = _label_names(model)
        return [
            joint_table("transition", model.transitions_, labels, labels),
            joint_table("start", model.start_, [None], labels),
        ]


def _of_tokens(model: "SegmentSVC", tokens: Tokens) -> Problem:
    """Return the problem of predicting the segments of sequences, without those that are empty."""
    return Segments.for_prediction(tokens.rows, without_empty(tokens.offsets), model.max_length_)


def _first_segments(model: "SegmentSVC", y: object, tokens: Tokens) -> EncodedSegments:
    """Return the true segments, which decide on labels and largest lengths."""
    found = encode_segments(y, tokens.offsets)
    model.max_length_ = encode_limits(model.max_length, found, tokens.offsets)
    check_choice(model.max_length_)
    model.classes_ = found.classes
    return found


def _more_segments(model: "SegmentSVC", y: object, tokens: Tokens) -> EncodedSegments:
    """Return the true segments, which must have known labels and no more than their largest lengths."""
    known, limits = model.classes_, model.max_length_
    found = encode_segments(y, tokens.offsets, classes=known, n_labels=len(limits))
    lengths = dict(zip(known.tolist(), limits.tolist(), strict=False))
    encode_limits(lengths, found, tokens.offsets)
    return found


def _true_states(model: "SegmentSVC", offsets: Offsets, y: object) -> IntArray:
    """Return the number of the label of each token; -1 for a label that is not known."""
    numbers = {label: k for k, label in enumerate(model.classes_.tolist())}
    has_outside = len(model.max_length_) > len(model.classes_)
    states = np.full(offsets[-1], len(model.classes_) if has_outside else -1)
    true = list_segments(y, offsets)
    for first, segments in zip(offsets[:-1].tolist(), true, strict=True):
        for start, stop, label in segments:
            check_kind(label, model.classes_)
            states[first + start : first + stop] = numbers.get(label, -1)
    return states


def _score(model: "SegmentSVC", predicted: _Segmentations, offsets: Offsets, y: object) -> Tally:
    """Return what the F1 score of predicted segments is made of."""
    true = list_segments(y, offsets)
    for _, _, label in itertools.chain.from_iterable(true):
        check_kind(label, model.classes_)
    pairs = list(zip(true, predicted, strict=True))
    right = np.array([2.0 * len(set(a) & set(b)) for a, b in pairs])
    return Tally(right, np.array([float(len(a) + len(b)) for a, b in pairs]))


def _label_names(model: "SegmentSVC") -> list[object]:
    """Return the names of all labels, that of tokens outside of segments included."""
    outside = ["O"] * (len(model.max_length_) - len(model.classes_))
    return [*model.classes_.tolist(), *outside]


def _label_coefficients(model: "SegmentSVC", coefficients: FloatArray) -> FloatArray:
    """Return the coefficients of all tokens of segments, the first and the last, a row per label."""
    parts = coefficients.reshape(len(coefficients), 3, -1)[:, :, : len(model.max_length_)]
    return parts.reshape(len(coefficients), -1).T


class SegmentSVC(MaxMarginEstimator[_Data, _Segmentations, list[FloatArray]]):
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
    %(l1_ratio)s
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

    _texts: ClassVar[dict[str, str]] = sequences.TEXTS | {
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
    _structure: ClassVar = SegmentedTokens()
    max_length: int | Mapping[object, int] | None
    loss: str
    rescaling: str
    max_length_: IntArray

    _parameter_constraints: ClassVar[Constraints] = {
        "max_length": [Interval(Integral, 1, None, closed="left"), Mapping, None],
        "loss": [StrOptions(HAMMING | {"segments"})],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        l1_ratio: float | None = None,
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

    fit = sequences.fit
    predict_single = explanation.predict_single
    predict_margins = confidence.predict_margins
    predict_marginals = confidence.predict_marginals
    calibrate = confidence.calibrate
    explain = explanation.explain
    top_features = inspection.top_features
    sparsify = inspection.sparsify
    densify = inspection.densify
    top_transitions = inspection.top_transitions

    coef_ = weights_part("inside", "Feature weights of each label, for all tokens of a segment.", "coef_")
    first_coef_ = weights_part("first", "Feature weights of each label, for the first token.", "first_coef_")
    last_coef_ = weights_part("last", "Feature weights of each label, for the last token.", "last_coef_")
    lengths_ = weights_part("lengths", "Scores of each length for each label.")
    transitions_ = weights_part("transitions", "Scores of each label after each label.")
    start_ = weights_part("start", "Score of each label at the start of a sequence.")
    support_, dual_coef_, n_support_ = support_properties(_label_coefficients)

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
        tokens, problem = self._structure.read(self, X)
        segments = decode_segments(self._codes(problem), tokens.offsets, self.classes_)
        lengths = np.diff(tokens.offsets).tolist()
        return list(itertools.starmap(tags_of_segments, zip(segments, lengths, strict=True)))

    @snapshot
    def _tag_margins(self, X: object) -> list[FloatArray]:
        """Return for each token the margin of its segment, infinite outside of segments."""
        tokens, problem = self._structure.read(self, X)
        codes, found = confidence.with_margins(self, problem)
        begins = np.maximum.accumulate(np.where(codes & 1, np.arange(len(codes)), 0))
        is_outside = codes[begins] >> 1 == len(self.classes_)
        return split_at(np.where(is_outside, np.inf, found[begins]), tokens.offsets)

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
        checked = check_k(k)
        tokens, problem = self._structure.read(self, X)
        found = []
        for codes, margins in sequences.k_best(self, problem, tokens.offsets, checked):
            offsets = codes.shape[1] * np.arange(len(codes) + 1)
            found.append(KBestSegments(decode_segments(codes.ravel(), offsets, self.classes_), margins))
        return found

"""Sequence labelling as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.kinds import Tokens, without_empty
from maxmargin.encoding.labels import Labels, encode_labels, holds_arrays
from maxmargin.encoding.sequences import NumberedSequences
from maxmargin.encoding.table import number_fields
from maxmargin.estimators import confidence, explanation, inspection, kernels, sequences, tables
from maxmargin.estimators.confidence import known_states, list_marginals, split_at
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Lesson, Parts, Tally, check_kind, class_costs, tally
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, single
from maxmargin.estimators.inspection import WeightTable, by_name, dense, joint_table
from maxmargin.estimators.kernels import check_linear, linear_rows, n_columns, support_properties, wrapped
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.sequences import TokenData, weights_part
from maxmargin.estimators.state import Options, StrOptions, snapshot, transaction
from maxmargin.estimators.structure import (
    FLAG,
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    choice,
    flags,
    in_each_storage,
)
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.files.corpus.opening import CorpusLabels
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.result import Callback
from maxmargin.structures.questions import KBest, check_k
from maxmargin.structures.sequences.encode import check_allowed, check_lengths, encode_forbidden
from maxmargin.structures.sequences.model import Chain, SecondOrderChain


class ChainReader(NamedTuple):
    """Reads labels of tokens.

    Attributes
    ----------
    tokens : RowReader
    labels : list
    weights : ChainWeights or SecondOrderWeights
    """

    tokens: RowReader
    labels: list[object]
    weights: tuple[FloatArray, ...]
    gives_arrays: bool

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(t, t) for t in range(len(codes))]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.labels[codes[part.number]]

    def output(self, codes: IntArray) -> object:
        found = [self.labels[code] for code in codes.tolist()]
        return np.array(found) if self.gives_arrays else found

    def contributions(self, codes: IntArray) -> list[Contribution]:
        labels = [self.labels[code] for code in codes.tolist()]
        found: list[Contribution] = []
        for t, label in enumerate(labels):
            found += self.tokens.contributions(t, t, label, self.weights[0][codes[t]])
            found += self._transitions(codes, labels, t)
        return found

    def _transitions(self, codes: IntArray, labels: list[object], t: int) -> Iterator[Contribution]:
        """Yield the contributions of the label of token t together with those before it."""
        _, start, end, pairs, *trigrams = self.weights
        if t == 0:
            yield from single(t, "start", None, (None, labels[t]), start[codes[t]])
        else:
            weight = pairs[codes[t - 1], codes[t]]
            yield from single(t, "transition", None, (labels[t - 1], labels[t]), weight)
        if t > 1 and trigrams:
            weight = trigrams[0][tuple(codes[t - 2 : t + 1])]
            yield from single(t, "trigram", None, tuple(labels[t - 2 : t + 1]), weight)
        if t == len(codes) - 1:
            yield from single(t, "end", None, (labels[t], None), end[codes[t]])


_MODELS: dict[int, type[Chain] | type[SecondOrderChain]] = {1: Chain, 2: SecondOrderChain}
_ODD_LABELS = (
    "correct y, remove the pairs from forbidden, or set forbidden_in='prediction' to forbid them in "
    "predictions alone"
)
_Labellings = list[Labels] | list[list[str]] | list[list[int]]


def _attributes() -> tuple[object, object]:
    """Return a sequence of attributes as read from a file; a kernel numbers their names."""
    codes, counts, _ = number_fields(b"a\tb\nb\n")
    return NumberedSequences(["a", "b"], codes, None, counts, np.array([0, 2])), [[0, 1]]


def _lesson(model: "ChainSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    X, y = parts
    tokens, found = sequences.tokens_lesson(model, X, weights)
    labels = encode_labels(y, tokens.offsets)[1]
    attributes = {**found.attributes, "gives_arrays": holds_arrays(y)}
    return found._replace(labels=labels, attributes=attributes)


def _learn(model: "ChainSVC", lesson: Lesson) -> None:
    """Set what follows from the lesson of all partitions."""
    if "_encoder" in lesson.attributes:  # a corpus has all
        model.__dict__ |= lesson.attributes
        return
    sequences.learn_tokens(model, lesson)
    model._structure.learn_labels(model, lesson.labels, lesson.attributes["gives_arrays"])


class Chains(Structure["ChainSVC", TokenData, _Labellings, list[FloatArray]]):
    """Labels of the tokens of sequences."""

    named_parts = ("unary",)
    cluster = Cluster(_lesson, _learn)
    trials: ClassVar = {**in_each_storage(lambda X, labels: ([X], [labels])), "attributes": _attributes}
    fields: ClassVar = {
        **sequences.FIELDS,
        **tables.LABEL_FIELDS,
        "_order": choice(*_MODELS),
        "_forbidden": flags(None, None).or_none(),
        "_gives_arrays": FLAG,
    }

    def validate(self, model: "ChainSVC", parts: Parts, call: Call) -> Parts:
        return sequences.validated(model, parts)

    def encode(
        self, model: "ChainSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[TokenData]:
        X, y = parts
        y = list(y) if isinstance(y, Iterator) else y
        tokens = sequences.encoded(model, X, call)
        known = call.known_classes(model)
        if isinstance(y, CorpusLabels) and y.offsets is tokens.offsets:
            labels, classes = y.codes, y.classes
        else:
            labels, classes = encode_labels(y, tokens.offsets, classes=known)
        if call.first:
            self.learn_labels(model, classes, holds_arrays(y))
        forbidden = _forbidden_in_training(model)
        if forbidden is not None:
            check_allowed(labels, tokens.offsets, forbidden, model.classes_, advice=_ODD_LABELS)
        return sequences.trained(tokens, labels, weights)

    def learn_labels(self, model: "ChainSVC", classes: Labels, gives_arrays: bool) -> None:
        """Set the attributes that follow from the labels."""
        model.classes_, model._order, model._gives_arrays = classes, int(model.order), gives_arrays
        model._forbidden = None if model.forbidden is None else encode_forbidden(model.forbidden, classes)

    def problem(self, model: "ChainSVC", examples: Examples[TokenData]) -> Problem:
        tokens, labels = examples.data
        problem = _MODELS[model._order].from_encoded(
            linear_rows(model, tokens.rows),
            tokens.offsets,
            labels,
            len(model.classes_),
            loss=model.loss,
            forbidden=_forbidden_in_training(model),
            class_costs=class_costs(model, examples, labels),
            all_possible_states=_has_all_states(model),
        )
        return wrapped(model, problem, tokens.rows, model.rescaling)

    def read(self, model: "ChainSVC", X: object) -> tuple[Tokens, Problem | None]:
        """Return tokens, and the problem of predicting their labels; None if there are none."""
        tokens = sequences.read(model, X)
        if model._forbidden is not None:
            check_lengths(tokens.offsets, model._forbidden)
        return tokens, _of_tokens(model, tokens) if tokens.offsets[-1] else None

    def ask(self, model: "ChainSVC", X: object) -> Question[_Labellings, list[FloatArray]]:
        tokens, problem = self.read(model, X)
        offsets, known = tokens.offsets, model.classes_

        def arrays(codes: IntArray) -> list[Labels]:
            labels = known[codes]
            return [labels[a:b] for a, b in itertools.pairwise(offsets.tolist())]

        def score(codes: IntArray, y: object) -> Tally:
            true, classes = encode_labels(y, offsets)
            check_kind(classes[0], known)
            return tally(classes[true] == known[codes], offsets)

        return Question(
            problem,
            lambda codes: arrays(codes) if model._gives_arrays else [a.tolist() for a in arrays(codes)],
            score,
            margins=lambda codes, margins: split_at(margins, offsets),
            states=lambda y: known_states(*encode_labels(y, offsets), known),
            marginals=lambda values, shapes: list_marginals(values, shapes, np.diff(offsets), len(known)),
        )

    def reader(self, model: "ChainSVC", x: object) -> tuple[Problem, Reader] | None:
        check_linear(model, "explain")
        tokens, problem = self.read(model, [x])
        if problem is None:
            return None
        rows, labels = sequences.token_reader(model, tokens, "token"), model.classes_.tolist()
        return problem, ChainReader(rows, labels, sequences.weights_of(model), model._gives_arrays)

    def layout(self, model: "ChainSVC") -> Layout:
        n_labels = len(model.classes_)
        least = n_labels * (n_columns(model) + n_labels**model._order)
        return Layout(least, lambda: _of_tokens(model, sequences.blank(model)).map)

    def expose(self, model: "ChainSVC") -> None:
        sequences.name_features(model)

    def features(self, model: "ChainSVC") -> list[WeightTable]:
        names = sequences.feature_names(model)
        return [WeightTable("token", names, model.classes_.tolist(), dense(model.coef_).T)]

    def transitions(self, model: "ChainSVC") -> list[WeightTable]:
        labels, pairs = model.classes_.tolist(), _pairs(model)
        if model._order == 1:
            return pairs
        return [*pairs, joint_table("trigram", model.trigrams_, *3 * [labels])]


def _of_tokens(model: "ChainSVC", tokens: Tokens) -> Problem:
    """Return the problem of predicting the labels of sequences, without those that are empty."""
    n_labels, offsets = len(model.classes_), without_empty(tokens.offsets)
    return _MODELS[model._order].for_prediction(tokens.rows, offsets, n_labels, model._forbidden)


def _forbidden_in_training(model: "ChainSVC") -> NDArray[np.bool_] | None:
    return None if model.forbidden_in == "prediction" else model._forbidden


def _has_all_states(model: "ChainSVC") -> bool:
    """Whether features have weights for all labels; raise if it is not so and the rows have a kernel."""
    if not (model.all_possible_states or kernels.is_linear(model)):
        raise ValueError(
            "all_possible_states must be True with a kernel, which has no weights of features, got False."
        )
    return model.all_possible_states


def _pairs(model: "ChainSVC") -> list[WeightTable]:
    """Return the weights of a label after a label, or at the start or the end."""
    labels, none = model.classes_.tolist(), [None]
    return [
        joint_table("transition", model.transitions_, labels, labels),
        joint_table("start", model.start_, none, labels),
        joint_table("end", model.end_, labels, none),
    ]


class ChainSVC(MaxMarginEstimator[TokenData, _Labellings, list[FloatArray]]):
    r"""Structural SVM for sequence labelling: a chain of first or second order.

    A labelling of a sequence scores :math:`\sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
    + \sum_t A_{y_{t-1} y_t}`, plus :math:`\sum_t B_{y_{t-2} y_{t-1} y_t}` if the order is two. Training
    minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right).

    Parameters
    ----------
    %(C)s
    %(l1_ratio)s
    order : {1, 2}, default=1
        Number of labels that the next one depends on. An oracle of second order takes n_labels times longer.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels), default="hamming"
        Number of wrong labels, their share (the default of ``Chain.from_sequences``, as in the paper),
        or a cost ``loss[truth, label]``, labels in the order of ``classes_``. Costs are averaged over the
        sequence, unlike "hamming", which adds them up: multiply them by a typical length, or raise C.
    %(rescaling)s
        "slack" needs a Hamming loss. Its oracle is slower by a factor equal to the length of the sequence.
    forbidden : list of pairs (before, after) of labels, "bio" or None, default=None
        Pairs that are neither predicted nor trained against: label ``after`` right after label ``before``,
        where None stands for the start or the end. "bio" forbids ``I-x`` that does not continue ``B-x`` or
        ``I-x``.
    forbidden_in : {"both", "prediction"}, default="both"
        Where ``forbidden`` holds: in training and prediction, or in prediction alone. Training data that
        contain forbidden pairs need "prediction": training then compares with all labellings.
    all_possible_states : bool, default=True
        Whether a feature of sparse rows or with a name has a weight for each label, or only for the labels
        that it occurs with in training, which takes a fraction of the memory if names and labels are many.
    %(min_count)s
    %(class_weight)s
        Factors of the loss of a wrong token, by its true label: ``{label: weight}``, 1 for labels not listed;
        or weights inversely proportional to the number of tokens with the label, with a mean of 1.
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Labels, sorted.
    coef_ : array of shape (n_labels, n_features)
        W, the feature weights of each label.
    transitions_ : array of shape (n_labels, n_labels)
        A, where ``transitions_[j, k]`` scores label k after label j.
    trigrams_ : array of shape (n_labels, n_labels, n_labels)
        B, where ``trigrams_[i, j, k]`` scores label k after label j after label i; for order 2 only.
    start_, end_ : arrays of shape (n_labels,)
        b and e, the scores of a label at the start and at the end.
    state_features_ : dict
        The nonzero weights of ``coef_`` by (feature, label), from the largest to the smallest. A feature
        without a name is identified by its column index.
    transition_features_ : dict
        The nonzero weights of ``transitions_``, ``start_`` and ``end_`` by (before, after), from the largest
        to the smallest; None stands for the start or the end.
    feature_names_ : list of str or None
        Names of the columns of ``coef_``, if features have names.
    %(support)s
    %(temperature)s
    %(certificate)s
    n_features_in_ : int

    Notes
    -----
    *Features.* The score of a label is linear in the features of its token. So describe a token by everything
    that hints at its label: the word, its ending, whether it has capitals or digits, and the same of the
    words around it. Names, in dicts or lists of strings, are the usual form; ``min_count=2`` or 3 drops the
    names of words that are rarely seen. Labels before and after need no features, as transitions have
    weights.

    *Scaling.* The penalty treats all weights alike. So features with small values are hardly used, and those
    with large values dominate the others and slow training down. Bring the columns of arrays to one scale, by
    ``make_pipeline(TokenTransformer(StandardScaler()), ChainSVC())``, and numbers beside names to about one.

    Examples
    --------
    >>> from maxmargin import ChainSVC
    >>> X = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"], ["sleeps"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> model = ChainSVC(C=10, random_state=0).fit(X, y)
    >>> model.predict([[["the"], ["cat"], ["barks"]]])
    [['DET', 'NOUN', 'VERB']]
    >>> model.state_features_["the", "DET"] > 0
    True
    >>> bool(model.gap_ <= model.tol * model.history_.primal.min())
    True
    """

    _texts: ClassVar[dict[str, str]] = sequences.TEXTS | {
        "y": """
            y : list of sequences of labels
                Strings or ints, one per token.
            """,
        "first": "Named features that the first call did not have are ignored.",
        "predict": """
            list of lists, or of arrays
                The labels of each sequence: arrays if `fit` was given arrays of labels, else lists of str or
                int, as metrics for sequences expect.
            """,
        "margins": """
            list of arrays
                One margin per token.
            """,
        "parts": "the labels of tokens",
        "marginals": """
            list of arrays of shape (n_tokens, n_labels)
                A row for each token and a column for each label, in the order of ``classes_``. As lists of
                dicts: ``[[dict(zip(model.classes_, row)) for row in rows] for rows in marginals]``.
            """,
        "kinds": 'The kind is "token".',
        "transitions": """
            The kind is "transition"; "start" or "end", where a label is None; or, for order 2,
            "trigram", where before is a pair of labels. The feature is None.
            """,
        "score": "Return the share of tokens whose label is predicted; a label unknown to `fit` is wrong.",
    }
    _structure: ClassVar = Chains()
    order: int
    loss: str | FloatArray
    rescaling: str
    forbidden: object
    forbidden_in: str
    all_possible_states: bool
    class_weight: str | Mapping[object, float] | None
    _order: int
    _forbidden: NDArray[np.bool_] | None
    _gives_arrays: bool

    _parameter_constraints: ClassVar[Constraints] = {
        "order": [Options(Integral, set(_MODELS))],
        "loss": [StrOptions(HAMMING), "array-like"],
        "forbidden": [StrOptions({"bio"}), list, tuple, set, None],
        "forbidden_in": [StrOptions({"both", "prediction"})],
        "all_possible_states": ["boolean"],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        l1_ratio: float | None = None,
        order: int = 1,
        loss: str | FloatArray = "hamming",
        rescaling: str = "margin",
        forbidden: object = None,
        forbidden_in: str = "both",
        all_possible_states: bool = True,
        min_count: int = 1,
        class_weight: str | Mapping[object, float] | None = None,
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        probability: bool = False,
        method: object = "auto",
        tol: float = 0.1,
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

    coef_ = weights_part("unary", "Feature weights of each label.", linear="coef_")
    transitions_ = weights_part("transitions", "Scores of each label after each label.")
    start_ = weights_part("start", "Score of each label at the start of a sequence.")
    end_ = weights_part("end", "Score of each label at the end of a sequence.")
    support_, dual_coef_, n_support_ = support_properties()

    @property
    def trigrams_(self) -> FloatArray:
        """Scores of each label after each two labels, for a model of order 2."""
        weights = sequences.weights_of(self)
        if self._order == 1:
            raise AttributeError(
                f"{type(self).__name__}: trigrams_ needs a model of order 2, got order 1; fit with order=2."
            )
        return weights[-1]

    @property
    def state_features_(self) -> dict[tuple[str | int, str | int], float]:
        """Nonzero feature weights by (feature, label), from the largest to the smallest."""
        return by_name(self._structure.features(self))

    @property
    def transition_features_(self) -> dict[tuple[str | int | None, str | int | None], float]:
        """Nonzero scores of a label after a label, or None at the start and the end, largest first."""
        return by_name(_pairs(self))

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    @snapshot
    def predict_k_best(self, X: object, k: int) -> list[KBest]:
        """Return the k labellings of highest score of each sequence, or all if there are fewer.

        Parameters
        ----------
        %(X)s
        k : int
            Number of labellings, >= 1.

        Returns
        -------
        list of KBest
            ``(labels, margins)`` of each sequence, the best first: an array with one row per labelling, and
            how much less than the first each scores.
        """
        checked = check_k(k)
        tokens, problem = self._structure.read(self, X)
        found = sequences.k_best(self, problem, tokens.offsets, checked)
        return [KBest(self.classes_[codes], margins) for codes, margins in found]  # type: ignore[arg-type]

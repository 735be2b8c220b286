"""Sequence labelling as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.labels import Labels, encode_labels, holds_arrays
from maxmargin.estimators.confidence import ListMarginalEstimator, ListMarginEstimator, known_states, split_at
from maxmargin.estimators.estimator import Call, LabellingEstimator, Output
from maxmargin.estimators.examples import (
    Data,
    Examples,
    Parts,
    check_margins_rescaled,
    label_weights,
    share_right,
)
from maxmargin.estimators.explanation import Contribution, Explainer, Part, Reader, RowReader, single
from maxmargin.estimators.fields import FLAG, Fields, choice, flags
from maxmargin.estimators.inspection import (
    LabelFeatureInspector,
    TransitionInspector,
    WeightTable,
    by_name,
    joint_table,
)
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.problems import Problem, SequenceProblem, rescaled
from maxmargin.estimators.sequences import SequenceEstimator, TokenData, feature_part, weights_part
from maxmargin.estimators.state import Options, StrOptions, snapshot
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.files.corpus.opening import CorpusLabels
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving.result import Callback
from maxmargin.structures.k_best import KBest
from maxmargin.structures.sequences.encode import check_allowed, check_lengths, encode_forbidden
from maxmargin.structures.sequences.model import Chain, SecondOrderChain

# The weights of a chain: as arrays, by name, and as tables.


class ChainWeights(LabelFeatureInspector, TransitionInspector, SequenceEstimator[Data, Output]):
    """Base of `ChainSVC`: its weights."""

    classes_: Labels
    _order: int

    coef_ = feature_part("unary", "coef_", "Feature weights of each label.")
    transitions_ = weights_part("transitions", "Scores of each label after each label.")
    start_ = weights_part("start", "Score of each label at the start of a sequence.")
    end_ = weights_part("end", "Score of each label at the end of a sequence.")

    @property
    def state_features_(self) -> dict[tuple[str | int, str | int], float]:
        """Nonzero feature weights by (feature, label), from the largest to the smallest."""
        return by_name(self._feature_tables())

    @property
    def transition_features_(self) -> dict[tuple[str | int | None, str | int | None], float]:
        """Nonzero scores of a label after a label, or None at the start and the end, largest first."""
        return by_name(self._pair_tables())

    def _feature_tables(self) -> list[WeightTable]:
        return [WeightTable("token", self._feature_names(), self.classes_.tolist(), self.coef_.T)]

    def _pair_tables(self) -> list[WeightTable]:
        """Return the weights of a label after a label, or at the start or the end."""
        labels, none = self.classes_.tolist(), [None]
        return [
            joint_table("transition", self.transitions_, labels, labels),
            joint_table("start", self.start_, none, labels),
            joint_table("end", self.end_, labels, none),
        ]

    def _transition_tables(self) -> list[WeightTable]:
        tables, labels = self._pair_tables(), self.classes_.tolist()
        return (
            tables if self._order == 1 else [*tables, joint_table("trigram", self.trigrams_, *3 * [labels])]
        )

    @property
    def trigrams_(self) -> FloatArray:
        """Scores of each label after each two labels, for a model of order 2."""
        weights = self._weights
        if self._order == 1:
            raise AttributeError(
                f"{self._owner}: trigrams_ needs a model of order 2, got order 1; fit with order=2."
            )
        found: FloatArray = weights.trigrams  # type: ignore[attr-defined]
        return found


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
_Data = TokenData
_ODD_LABELS = (
    "correct y, remove the pairs from forbidden, or set forbidden_in='prediction' to forbid them in "
    "predictions alone"
)
_Labellings = list[Labels] | list[list[str]] | list[list[int]]


class ChainSVC(
    Explainer,
    ChainWeights[_Data, _Labellings],
    ListMarginEstimator,
    ListMarginalEstimator[_Data, _Labellings],
    LabellingEstimator[_Data, _Labellings],
    SequenceEstimator[_Data, _Labellings],
):
    r"""Structural SVM for sequence labelling: a chain of first or second order.

    A labelling of a sequence scores :math:`\sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
    + \sum_t A_{y_{t-1} y_t}`, plus :math:`\sum_t B_{y_{t-2} y_{t-1} y_t}` if the order is two. Training
    minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right).

    Parameters
    ----------
    %(C)s
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
    ``make_pipeline(TokenTransformer(StandardScaler()), ChainSVC())``, and use numbers of magnitude one beside
    names, for instance ``{"word": "dog", "length": 0.3}`` rather than ``{"length": 3}``.

    *Invalid tags.* To train on data that violate a tagging scheme such as BIO in places, use
    ``forbidden="bio", forbidden_in="prediction"``: predictions then follow the scheme.

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

    _texts: ClassVar[dict[str, str]] = {
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
    order: int
    loss: str | FloatArray
    rescaling: str
    forbidden: object
    forbidden_in: str
    class_weight: str | Mapping[object, float] | None
    _forbidden: NDArray[np.bool_] | None
    _gives_arrays: bool

    _fitted: ClassVar[Fields] = {
        "_order": choice(*_MODELS),
        "_forbidden": flags(None, None).or_none(),
        "_gives_arrays": FLAG,
    }
    _parameter_constraints: ClassVar[Constraints] = {
        "order": [Options(Integral, set(_MODELS))],
        "loss": [StrOptions(HAMMING), "array-like"],
        "forbidden": [StrOptions({"bio"}), list, tuple, set, None],
        "forbidden_in": [StrOptions({"both", "prediction"})],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        order: int = 1,
        loss: str | FloatArray = "hamming",
        rescaling: str = "margin",
        forbidden: object = None,
        forbidden_in: str = "both",
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

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = parts
        y = list(y) if isinstance(y, Iterator) else y
        tokens = self._tokens(X, call)
        known = self._known_classes(call)
        if isinstance(y, CorpusLabels) and y.offsets is tokens.offsets:
            labels, self.classes_ = y.codes, y.classes
        else:
            labels, self.classes_ = encode_labels(y, tokens.offsets, classes=known, owner=self._owner)
        if call.first:
            self._learn_labels(self.classes_, holds_arrays(y))
        if self._forbidden_in_training is not None:
            check_allowed(
                labels,
                tokens.offsets,
                self._forbidden_in_training,
                self.classes_,
                owner=self._owner,
                advice=_ODD_LABELS,
            )
        return self._trained(tokens, labels, weights)

    def _learn_labels(self, classes: Labels, gives_arrays: bool) -> None:
        """Set the attributes that follow from the labels."""
        self.classes_, self._order, self._gives_arrays = classes, int(self.order), gives_arrays
        self._forbidden = encode_forbidden(self.forbidden, self.classes_, owner=self._owner)

    def _problem(self, examples: Examples[_Data]) -> Problem:
        (tokens, labels), n_labels = examples.data, len(self.classes_)
        chosen = self.class_weight
        problem = _MODELS[self._order].from_encoded(
            self._linear_rows(tokens.rows),
            tokens.offsets,
            labels,
            n_labels,
            loss=self.loss,
            forbidden=self._forbidden_in_training,
            class_costs=None if chosen is None else self._token_costs(chosen, examples),
            owner=self._owner,
        )
        return rescaled(self._with_kernel(problem, tokens.rows), self.rescaling, self._owner)

    @property
    def _forbidden_in_training(self) -> NDArray[np.bool_] | None:
        return None if self.forbidden_in == "prediction" else self._forbidden

    def _n_cells(self) -> int:
        n_labels = len(self.classes_)
        return n_labels * (self._n_columns + n_labels**self._order)

    def _token_costs(
        self, class_weight: str | Mapping[object, float], examples: Examples[_Data]
    ) -> FloatArray:
        """Return the factor of the loss of a wrong token for each true label."""
        check_margins_rescaled(class_weight, self.rescaling, self._owner)
        (tokens, labels), weights, _ = examples
        by_token = None if weights is None else np.repeat(weights, np.diff(tokens.offsets))
        return label_weights(class_weight, self.classes_, labels, by_token, self._owner)

    def _for_prediction(self, tokens: Tokens) -> SequenceProblem:
        n_labels, forbidden = len(self.classes_), self._forbidden
        return _MODELS[self._order].for_prediction(tokens.rows, tokens.offsets, n_labels, forbidden)

    def _read(self, X: object) -> Tokens:
        tokens = super()._read(X)
        if self._forbidden is not None:
            check_lengths(tokens.offsets, self._forbidden, owner=self._owner)
        return tokens

    def _label_arrays(self, X: object) -> list[Labels]:
        """Return the labels of highest score of each sequence."""
        tokens = self._read(X)
        labels = self.classes_[self._decoded(self._unlabelled(tokens))]
        return [labels[a:b] for a, b in itertools.pairwise(tokens.offsets.tolist())]

    def _predict(self, X: object) -> _Labellings:
        found = self._label_arrays(X)
        return found if self._gives_arrays else [labels.tolist() for labels in found]

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        tokens = self._read(X)
        return split_at(self._decoded_with_margins(self._unlabelled(tokens)).margins, tokens.offsets)

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
            ``(labels, margins)`` of each sequence: an array with one row per labelling, the best first, and
            by how much the score of each is below that of the first.
        """
        found = self._k_best(X, k)
        return [KBest(self.classes_[codes], margins) for codes, margins in found]  # type: ignore[arg-type]

    def _score(self, X: object, y: object) -> float:
        predicted = self._label_arrays(X)
        found = encode_labels(y, np.cumsum([0, *map(len, predicted)]), owner=self._owner)
        return share_right(predicted, *found, self.classes_, self._owner)

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._unlabelled(self._read(X))

    def _n_states(self) -> int:
        return len(self.classes_)

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        tokens = self._read(X)
        codes, classes = encode_labels(y, tokens.offsets, owner=self._owner)
        return self._unlabelled(tokens), known_states(codes, classes, self.classes_, self._owner)

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        self._check_linear("explain")
        tokens = self._read([x])
        if not tokens.offsets[-1]:
            return None
        rows, labels = self._token_reader(tokens, "token"), self.classes_.tolist()
        return self._unlabelled(tokens), ChainReader(rows, labels, self._weights, self._gives_arrays)

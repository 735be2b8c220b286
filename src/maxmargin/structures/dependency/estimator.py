"""Dependency parsing as a scikit-learn estimator."""

import itertools
from collections.abc import Iterable
from typing import ClassVar, NamedTuple, TypedDict, cast, get_type_hints

import numpy as np
import scipy.sparse

from maxmargin.encoding.kinds import is_empty, without_empty
from maxmargin.estimators.confidence import ListMarginalEstimator, ListMarginEstimator, split_at
from maxmargin.estimators.estimator import Call
from maxmargin.estimators.examples import Examples, Parts
from maxmargin.estimators.explanation import Contribution, Explainer, Part, Reader, RowReader, named_by
from maxmargin.estimators.fields import ARCS, COUNT, Field, Fields
from maxmargin.estimators.inspection import NO_LABEL, FeatureInspector, WeightTable
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.problems import Problem
from maxmargin.estimators.state import SinglePrediction, StrOptions, present_weights
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described, quoted
from maxmargin.solving.result import Callback
from maxmargin.structures.dependency.encode import (
    ArcEncoder,
    Arcs,
    as_sentences,
    encode_arcs,
    encode_heads,
    encode_tagged,
    some_sentences,
)
from maxmargin.structures.dependency.model import Dependency


class HeadReader(NamedTuple):
    """Reads heads of words, which count from 1."""

    arcs: RowReader
    weights: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(j, j + 1) for j in range(len(codes))]

    def state(self, codes: IntArray, part: Part) -> object:
        return int(codes[part.number])

    def output(self, codes: IntArray) -> object:
        return codes

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for j, head in enumerate(codes.tolist()):
            found += self.arcs.contributions(j * (len(codes) + 1) + head, j + 1, None, self.weights)
        return found


_Data = tuple[Arcs, IntArray]


class _Trees(TypedDict):
    """The trees to choose among."""

    projective: bool
    single_root: bool


def _read_trees(stored: Stored, name: str) -> _Trees:
    found = stored.take(name)
    if not isinstance(found, dict) or {k: type(v) for k, v in found.items()} != get_type_hints(_Trees):
        stored.fail(f"{name!r} to say what trees there are", quoted(found))
    return cast("_Trees", found)


_TREES = Field(Draft.put, _read_trees)


class DependencySVC(
    Explainer,
    FeatureInspector,
    SinglePrediction,
    ListMarginEstimator,
    ListMarginalEstimator[_Data, list[IntArray]],
):
    r"""Structural SVM for dependency trees: every word has a head, which is another word or the root.

    A tree y of a sentence scores :math:`\sum_j \langle w, x_{j y_j} \rangle`, where :math:`x_{jh}` are the
    features of the arc to word j from head h. Training minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right)

    where the loss L counts wrong heads.

    Sentences are given as words with their tags, from which templates make the features of arcs (words and
    tags of both ends, tags around and between them, direction and length), or as features of arcs.

    Parameters
    ----------
    %(C)s
    projective : bool, default=False
        Choose among trees without crossing arcs, in time cubic in the number of words rather than quadratic.
    single_root : bool, default=True
        Choose among trees in which exactly one word has the root for its head.
    loss : {"hamming", "normalized_hamming"}, default="hamming"
        Number of wrong heads, or their share.
    min_count : int, default=1
        Ignore features made by templates that occur in fewer true arcs.
    %(training)s

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w, the weights of the arcs' features.
    %(temperature)s
    %(certificate)s
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import DependencySVC
    >>> X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    >>> model = DependencySVC(C=1.0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    >>> model.predict([[("a", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]])[0].tolist()
    [2, 3, 0]
    """

    _texts: ClassVar[dict[str, str]] = {
        "example": "sentence",
        "examples": "sentences",
        "X": """
            X : list of sentences
                Each is a list of pairs (word, tag) of strings; an array of shape (n_words, n_words + 1,
                n_features), whose entry [j, h] has the features of the arc to word j from head h, 0 for the
                root and 1 for the first word; or a sparse matrix with these arcs as rows, in this order. All
                sentences of all calls have the same form. Empty sentences have no heads, and change nothing
                in training.
            """,
        "y": """
            y : list of sequences of ints
                The head of each word, 0 for the root and 1 for the first word.
            """,
        "first": "Features made by templates that the true arcs of the first call did not have are ignored.",
        "predict": """
            list of int arrays
                The head of each word, 0 for the root and 1 for the first word.
            """,
        "margins": """
            list of arrays
                One margin per word. Trees that need not be projective take one more prediction for each word.
            """,
        "parts": "the heads of words",
        "marginals": """
            list of arrays of shape (n_words, n_words + 1)
                A row for each word and a column for each head, 0 for the root and 1 for the first word.
            """,
        "kinds": """
            The kind is "arc". Features that templates made from words and tags have names that say what they
            are made of.
            """,
        "score": """
            Return the unlabelled attachment score: the share of words whose head is predicted.

            True heads may be of trees that `fit` would refuse, such as trees of several roots.
            """,
    }
    projective: bool
    single_root: bool
    loss: str
    min_count: int
    coef_: FloatArray
    _encoder: ArcEncoder | None
    _trees: _Trees

    _fitted: ClassVar[Fields] = {"n_features_in_": COUNT, "_encoder": ARCS.or_none(), "_trees": _TREES}
    _parameter_constraints: ClassVar[Constraints] = {
        "projective": ["boolean"],
        "single_root": ["boolean"],
        "loss": [StrOptions(HAMMING)],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "hamming",
        min_count: int = 1,
        probability: bool = False,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        checkpoint: CheckpointLike | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = parts
        if call.first:
            self._trees = {"projective": bool(self.projective), "single_root": bool(self.single_root)}
            arcs, heads = self._first_arcs(X, y)
        else:
            arcs = self._known_arcs(X)
            heads = encode_heads(y, arcs.offsets, owner=self._owner, **self._trees)
        # The hinge of an empty sentence is zero at any weights.
        kept = present_weights(weights, np.diff(arcs.offsets))
        return Examples((arcs._replace(offsets=without_empty(arcs.offsets)), heads), kept)

    def _first_arcs(self, X: object, y: object) -> _Data:
        """Return the arcs of sentences in either form, and heads; learn the features of words and tags."""
        sentences = some_sentences(X, self._owner)
        if _has_arcs(sentences):
            arcs, self._encoder = encode_arcs(sentences, owner=self._owner), None
            return arcs, encode_heads(y, arcs.offsets, owner=self._owner, **self._trees)
        tagged = encode_tagged(sentences, owner=self._owner)
        heads = encode_heads(y, tagged.offsets, owner=self._owner, **self._trees)
        self._encoder = ArcEncoder(min_count=self.min_count).fit(tagged, heads)
        if not self._encoder.n_features_in_:
            raise ValueError(
                f"{self._owner}: no feature of X occurs in min_count={self.min_count} true arcs; lower "
                "min_count."
            )
        return self._encoder.transform(tagged), heads

    def _problem(self, examples: Examples[_Data]) -> Problem:
        return Dependency.from_encoded(*examples.data, loss=self.loss, **self._trees)

    def _keep(self, problem: Problem, examples: Examples[_Data], w: FloatArray) -> None:
        self.n_features_in_ = len(w)
        super()._keep(problem, examples, w)

    def _blank(self) -> Problem:
        # A sentence of one word has an arc from the root, and a place for one from the word itself.
        features = scipy.sparse.csr_array((2, self.n_features_in_))
        return Dependency.for_prediction(Arcs(features, np.array([0, 1])), **self._trees)

    def _n_cells(self) -> int:
        return self.n_features_in_

    def _check_restored(self) -> None:
        if self._encoder is not None and self._encoder.n_features_in_ != self.n_features_in_:
            raise ValueError("features must be those of the encoder")

    def _expose(self) -> None:
        self.coef_ = self._w

    def _feature_tables(self) -> list[WeightTable]:
        names = range(self.n_features_in_) if self._encoder is None else self._encoder.names()
        return [WeightTable("arc", names, NO_LABEL, self.coef_[:, None])]

    def _predict(self, X: object) -> list[IntArray]:
        sentences = as_sentences(X, self._owner)
        if all(map(is_empty, sentences)):
            return [np.zeros(0, dtype=np.int64) for _ in sentences]
        arcs = self._known_arcs(sentences)
        heads = self._decoded(self._unlabelled(arcs))
        return [heads[a:b] for a, b in itertools.pairwise(arcs.offsets.tolist())]

    def _unlabelled(self, arcs: Arcs) -> Problem:
        """Return the problem of predicting the heads of the sentences that have words."""
        present = arcs._replace(offsets=without_empty(arcs.offsets))
        return Dependency.for_prediction(present, **self._trees)

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        sentences = as_sentences(X, self._owner)
        if all(map(is_empty, sentences)):
            return [np.zeros(0) for _ in sentences]
        arcs = self._known_arcs(sentences)
        return split_at(self._decoded_with_margins(self._unlabelled(arcs)).margins, arcs.offsets)

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        sentences = as_sentences([x], self._owner)
        if is_empty(sentences[0]):
            return None
        arcs, names = self._known_arcs(sentences), named_by(range(self.n_features_in_))
        if self._encoder is not None:
            known = self._encoder.sentence_names(encode_tagged(sentences, owner=self._owner))
            names = named_by(known)
        return self._unlabelled(arcs), HeadReader(RowReader(arcs.features, "arc", names), self.coef_)

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._unlabelled(self._known_arcs(X))

    def _n_states(self) -> int:
        return 1  # the root

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        arcs = self._known_arcs(X)
        heads = encode_heads(y, arcs.offsets, owner=self._owner, projective=False, single_root=False)
        return self._unlabelled(arcs), heads

    def _known_arcs(self, X: object) -> Arcs:
        """Return the arcs of sentences, with the features of `fit`."""
        sentences = some_sentences(X, self._owner)
        if _has_arcs(sentences) != (self._encoder is None):
            forms = ("words and tags", "features of arcs")
            raise TypeError(
                f"{self._owner}: X has {forms[self._encoder is not None]}, but {self._owner} was fitted with "
                f"{forms[self._encoder is None]}; give sentences in the form that was given to fit."
            )
        if self._encoder is not None:
            return self._encoder.transform(encode_tagged(sentences, owner=self._owner))
        arcs = encode_arcs(sentences, owner=self._owner)
        self._check_width("arcs", arcs.features.shape[1], self.n_features_in_)
        return arcs

    def _score(self, X: object, y: object) -> float:
        predicted = self._predict(X)
        offsets = np.cumsum([0, *map(len, predicted)])
        if not offsets[-1]:
            raise ValueError(f"{self._owner}: X must have a word to score, got {described(X)} without any.")
        truth = encode_heads(y, offsets, owner=self._owner, projective=False, single_root=False)
        return float(np.mean(truth == np.concatenate(predicted)))


def _has_arcs(sentences: list[object]) -> bool:
    """Return whether sentences are given by the features of their arcs: as the first with words is."""
    first = next(sentence for sentence in sentences if not is_empty(sentence))
    return isinstance(first, np.ndarray) or bool(scipy.sparse.issparse(first))

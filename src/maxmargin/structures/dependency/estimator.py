"""Dependency parsing as a scikit-learn estimator."""

import itertools
from collections.abc import Iterable
from typing import ClassVar, NamedTuple, TypedDict, cast, get_type_hints

import numpy as np
import scipy.sparse

from maxmargin.encoding.kinds import is_empty, without_empty
from maxmargin.estimators import confidence, explanation, inspection
from maxmargin.estimators.confidence import list_marginals, split_at
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import (
    Examples,
    Lesson,
    Parts,
    Tally,
    check_width,
    lesson_of,
    present_weights,
    tally,
)
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, named_by
from maxmargin.estimators.inspection import NO_LABEL, WeightTable
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.state import StrOptions
from maxmargin.estimators.structure import (
    COUNT,
    Call,
    Cluster,
    Field,
    Layout,
    Problem,
    Question,
    Structure,
)
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import caller, described, quoted
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


def _write_arcs(draft: Draft, name: str, encoder: ArcEncoder) -> None:
    words, tags, keys = encoder.learnt
    draft.put_texts(name + ".words", words)
    draft.put_texts(name + ".tags", tags)
    draft.arrays[name] = keys


def _read_arcs(stored: Stored, name: str) -> ArcEncoder:
    words, tags = stored.take_texts(name + ".words"), stored.take_texts(name + ".tags")
    return ArcEncoder.restored(words, tags, stored.take_array(name, "u", None).astype(np.uint64))


def _lesson(model: "DependencySVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    examples = model._structure.encode(model, parts, weights, Call(first=True, more=False, warm=False))
    if model._encoder is not None:
        raise ValueError(
            "X must have the features of arcs as arrays on a cluster, got words and "
            f"tags; use maxmargin.{caller()}."
        )
    model.n_features_in_ = examples.data[0].features.shape[1]
    return lesson_of(examples)


def _check_encoder(model: "DependencySVC") -> None:
    """Raise ValueError unless the attributes that a file had are those of one model."""
    if model._encoder is not None and model._encoder.n_features_in_ != model.n_features_in_:
        raise ValueError("features must be those of the encoder")


class Sentences(Structure["DependencySVC", _Data, list[IntArray], list[FloatArray]]):
    """Heads of the words of sentences."""

    cluster = Cluster(_lesson)
    trials: ClassVar = {"tagged words": lambda: ([[("a", "X"), ("b", "Y")]], [[2, 0]])}
    fields: ClassVar = {
        "n_features_in_": COUNT,
        "_encoder": Field(_write_arcs, _read_arcs, check=_check_encoder).or_none(),
        "_trees": Field(Draft.put, _read_trees),
    }

    def encode(
        self, model: "DependencySVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        X, y = parts
        if call.first:
            model._trees = {"projective": bool(model.projective), "single_root": bool(model.single_root)}
            arcs, heads = _first_arcs(model, X, y)
        else:
            arcs = _known_arcs(model, X)
            heads = encode_heads(y, arcs.offsets, **model._trees)
        # The hinge of an empty sentence is zero at any weights.
        kept = present_weights(weights, np.diff(arcs.offsets))
        return Examples((_present(arcs), heads), kept)

    def problem(self, model: "DependencySVC", examples: Examples[_Data]) -> Problem:
        return Dependency.from_encoded(*examples.data, loss=model.loss, **model._trees)

    def ask(self, model: "DependencySVC", X: object) -> Question[list[IntArray], list[FloatArray]]:
        sentences, problem = as_sentences(X), None
        offsets = np.zeros(len(sentences) + 1, dtype=np.int64)
        if not all(map(is_empty, sentences)):
            arcs = _known_arcs(model, sentences)
            offsets = arcs.offsets
            problem = Dependency.for_prediction(_present(arcs), **model._trees)

        def states(y: object) -> IntArray:
            return encode_heads(y, offsets, projective=False, single_root=False)

        def score(codes: IntArray, y: object) -> Tally:
            if problem is None:
                raise ValueError(f"X must have a word to score, got {described(X)} without any.")
            return tally(states(y) == codes, offsets)

        return Question(
            problem,
            lambda codes: [codes[a:b] for a, b in itertools.pairwise(offsets.tolist())],
            score,
            lambda codes, margins: split_at(margins, offsets),
            states,
            lambda values, shapes: list_marginals(values, shapes, np.diff(offsets), 1),  # the root
        )

    def reader(self, model: "DependencySVC", x: object) -> tuple[Problem, Reader] | None:
        sentences = as_sentences([x])
        if is_empty(sentences[0]):
            return None
        arcs, names = _known_arcs(model, sentences), named_by(range(model.n_features_in_))
        if model._encoder is not None:
            known = model._encoder.sentence_names(encode_tagged(sentences))
            names = named_by(known)
        problem = Dependency.for_prediction(_present(arcs), **model._trees)
        return problem, HeadReader(RowReader(arcs.features, "arc", names), model.coef_)

    def layout(self, model: "DependencySVC") -> Layout:
        def blank() -> object:
            # A sentence of one word has an arc from the root, and a place for one from the word itself.
            features = scipy.sparse.csr_array((2, model.n_features_in_))
            return Dependency.for_prediction(Arcs(features, np.array([0, 1])), **model._trees).map

        return Layout(model.n_features_in_, blank)

    def expose(self, model: "DependencySVC") -> None:
        model.coef_, model.n_features_in_ = model._w, len(model._w)

    def features(self, model: "DependencySVC") -> list[WeightTable]:
        names = range(model.n_features_in_) if model._encoder is None else model._encoder.names()
        return [WeightTable("arc", names, NO_LABEL, model.coef_[:, None])]


def _present(arcs: Arcs) -> Arcs:
    """Return the arcs without empty sentences."""
    return arcs._replace(offsets=without_empty(arcs.offsets))


def _first_arcs(model: "DependencySVC", X: object, y: object) -> _Data:
    """Return the arcs of sentences in either form, and heads; learn the features of words and tags."""
    sentences = some_sentences(X)
    if _has_arcs(sentences):
        arcs, model._encoder = encode_arcs(sentences), None
        return arcs, encode_heads(y, arcs.offsets, **model._trees)
    tagged = encode_tagged(sentences)
    heads = encode_heads(y, tagged.offsets, **model._trees)
    model._encoder = ArcEncoder(min_count=model.min_count).fit(tagged, heads)
    if not model._encoder.n_features_in_:
        raise ValueError(f"no feature of X occurs in min_count={model.min_count} true arcs; lower min_count.")
    return model._encoder.transform(tagged), heads


def _known_arcs(model: "DependencySVC", X: object) -> Arcs:
    """Return the arcs of sentences, with the features of `fit`."""
    sentences = some_sentences(X)
    if _has_arcs(sentences) != (model._encoder is None):
        forms = ("words and tags", "features of arcs")
        raise TypeError(
            f"X has {forms[model._encoder is not None]}, but {caller()} was fitted with "
            f"{forms[model._encoder is None]}; give sentences in the form that was given to fit."
        )
    if model._encoder is not None:
        return model._encoder.transform(encode_tagged(sentences))
    arcs = encode_arcs(sentences)
    check_width("arcs", arcs.features.shape[1], model.n_features_in_)
    return arcs


def _has_arcs(sentences: list[object]) -> bool:
    """Return whether sentences are given by the features of their arcs: as the first with words is."""
    first = next(sentence for sentence in sentences if not is_empty(sentence))
    return isinstance(first, np.ndarray) or bool(scipy.sparse.issparse(first))


class DependencySVC(MaxMarginEstimator[_Data, list[IntArray], list[FloatArray]]):
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
    %(l1_ratio)s
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
    _structure: ClassVar = Sentences()
    projective: bool
    single_root: bool
    loss: str
    min_count: int
    coef_: FloatArray
    _encoder: ArcEncoder | None
    _trees: _Trees

    _parameter_constraints: ClassVar[Constraints] = {
        "projective": ["boolean"],
        "single_root": ["boolean"],
        "loss": [StrOptions(HAMMING)],
    }

    def __init__(
        self,
        C: float = 0.15,
        *,
        l1_ratio: float | None = None,
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

    predict_single = explanation.predict_single
    predict_margins = confidence.predict_margins
    predict_marginals = confidence.predict_marginals
    calibrate = confidence.calibrate
    explain = explanation.explain
    top_features = inspection.top_features_without_labels

"""Dependency parsing as a scikit-learn estimator."""

import itertools
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.arc_features import ArcEncoder
from maxmargin.encoding.arcs import Arcs, as_sentences, encode_arcs, encode_heads
from maxmargin.encoding.sentences import encode_tagged
from maxmargin.estimators._base import StructuralSVC
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Arborescence
from maxmargin.problems.arborescence import LOSSES


class DependencySVC(StructuralSVC):
    r"""Structural SVM for dependency trees: every word has a head, another word or the root.

    A tree y of a sentence scores :math:`\sum_j \langle w, x_{j y_j} \rangle`, where :math:`x_{jh}` are the
    features of the arc to word j from head h; training minimises

    .. math:: \frac{1}{2 C n} \|w\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
    \text{score}_i(y_i) \right)

    where the loss L counts wrong heads.

    Sentences are given as words with their tags, of which features of arcs are made by templates (words
    and tags of both ends, tags around and between them, direction and length), or as features of arcs.

    Parameters
    ----------
    C : float, default=0.05
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    projective : bool, default=False
        Choose among trees without crossing arcs, in time cubic in the number of words rather than quadratic.
    single_root : bool, default=True
        Choose among trees in which one word has the root for its head.
    loss : {"hamming", "normalized_hamming"}, default="hamming"
        Number of wrong heads, or their share.
    min_count : int, default=1
        Ignore features made by templates that occur in fewer true arcs.
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
    coef_ : array of shape (n_features,)
        w, the weights of the arcs' features.
    gap_ : float
        Certified bound on how far the objective is from its minimum.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import DependencySVC
    >>> X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    >>> model = DependencySVC(C=1.0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    >>> model.predict([[("a", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]])[0].tolist()
    [2, 3, 0]
    """

    coef_: FloatArray
    n_features_in_: int
    _encoder: ArcEncoder | None
    _kind: dict[str, bool]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "projective": ["boolean"],
        "single_root": ["boolean"],
        "loss": [StrOptions(set(LOSSES))],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 0.05,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "hamming",
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
        self.projective = projective
        self.single_root = single_root
        self.loss = loss
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
        """Train on sentences.

        Parameters
        ----------
        X : list of sentences
            Each a list of pairs (word, tag) of strings; an array of shape (n_words, n_words + 1, n_features),
            whose entry [j, h] has the features of the arc to word j from head h, 0 for the root and 1 for the
            first word; or a sparse matrix with these arcs as rows, in this order.
        y : list of sequences of ints
            The head of each word, 0 for the root and 1 for the first word.
        sample_weight : array of shape (n_sentences,), optional
            How often each sentence counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        DependencySVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on these sentences and all those of earlier calls, from where the last call stopped.

        The sentences are kept: the answer is certified for all of them, as that of `fit` is. Only the work is
        saved that the last call has done.

        Parameters
        ----------
        X : list of sentences
            In the form that the first call was given. Features made by templates that its true arcs did not
            have are ignored.
        y : list of sequences of ints
        sample_weight : array of shape (n_sentences,), optional

        Returns
        -------
        DependencySVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> Self:
        (X, y), weights = weighed((X, y), sample_weight, "DependencySVC")
        seen = self._before(more)
        if seen is None:
            kind = {"projective": self.projective, "single_root": self.single_root}
            arcs, heads, encoder = self._first_arcs(X, y, kind)
        else:
            kind, encoder, arcs = self._kind, self._encoder, self._known_arcs(X)
            heads = encode_heads(y, arcs.offsets, owner="DependencySVC", **kind)
        examples = appended(seen, Examples((arcs, heads), weights))
        arcs, heads = examples.data
        problem = Arborescence.from_encoded(arcs, heads, loss=self.loss, **kind)
        self.coef_ = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        self.n_features_in_, self._encoder, self._kind = len(self.coef_), encoder, kind
        return self

    def _first_arcs(self, X: Any, y: Any, kind: dict[str, bool]) -> tuple[Arcs, IntArray, ArcEncoder | None]:
        """The arcs of sentences in either form, their heads, and what makes features of words and tags."""
        sentences = as_sentences(X, "DependencySVC")
        if _has_arcs(sentences):
            arcs = encode_arcs(sentences, owner="DependencySVC")
            return arcs, encode_heads(y, arcs.offsets, owner="DependencySVC", **kind), None
        tagged = encode_tagged(sentences, owner="DependencySVC")
        heads = encode_heads(y, tagged.offsets, owner="DependencySVC", **kind)
        encoder = ArcEncoder(min_count=self.min_count).fit(tagged, heads)
        return encoder.transform(tagged), heads, encoder

    @snapshot
    def predict(self, X: Any) -> list[IntArray]:
        """Return the tree of best score for each sentence.

        Parameters
        ----------
        X : list of sentences
            In the form that was given to `fit`.

        Returns
        -------
        list of int arrays
            The head of each word, 0 for the root and 1 for the first word.
        """
        problem = Arborescence.for_prediction(self._known_arcs(X), **self._kind)
        heads = self._decoded(problem, self.coef_)
        return [heads[a:b] for a, b in itertools.pairwise(problem.offsets.tolist())]

    def _known_arcs(self, X: Any) -> Arcs:
        """The arcs of sentences, with the features of `fit`."""
        sentences = as_sentences(X, "DependencySVC")
        if _has_arcs(sentences) != (self._encoder is None):
            forms = ("words and tags", "features of arcs")
            raise TypeError(
                f"DependencySVC: X has {forms[self._encoder is not None]}, but DependencySVC was fitted with "
                f"{forms[self._encoder is None]}; give sentences in the form that was given to fit."
            )
        if self._encoder is not None:
            return self._encoder.transform(encode_tagged(sentences, owner="DependencySVC"))
        arcs = encode_arcs(sentences, owner="DependencySVC")
        if arcs.features.shape[1] != self.n_features_in_:
            raise ValueError(
                f"DependencySVC: arcs of X have {arcs.features.shape[1]} features, but DependencySVC was "
                f"fitted with {self.n_features_in_}; give the features that were given to fit."
            )
        return arcs

    @snapshot
    def score(self, X: Any, y: Any) -> float:
        """Return the unlabelled attachment score: the share of words whose head is predicted.

        Parameters
        ----------
        X : list of sentences
        y : list of sequences of ints
            True heads; they may be of trees that `fit` would refuse, such as trees of several roots.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        offsets = np.cumsum([0, *map(len, predicted)])
        truth = encode_heads(y, offsets, owner="DependencySVC", projective=False, single_root=False)
        return float(np.mean(truth == np.concatenate(predicted)))


def _has_arcs(sentences: list[Any]) -> bool:
    """Whether sentences are given by the features of their arcs: as the first one is."""
    return isinstance(sentences[0], np.ndarray) or bool(scipy.sparse.issparse(sentences[0]))

"""Any transformer of scikit-learn, applied to the tokens of sequences or to the nodes of graphs."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.encoding.kinds import Offsets, find_kind, is_empty, some_sequences
from maxmargin.encoding.labels import Labels, encode_labels
from maxmargin.encoding.matrices import checked_csr, csr_rows, dense_rows
from maxmargin.encoding.sequences import ARRAYS, SequenceEncoder
from maxmargin.estimators.state import TellsVersion
from maxmargin.runtime.arrays import CsrMatrix, is_sparse
from maxmargin.runtime.wording import caller, described, errors_of, shown
from maxmargin.structures.graphs.encode import nodes_as_given, number_node_labels
from maxmargin.structures.segments.encode import list_segments, tags_of_segments

Rows = NDArray[Any] | CsrMatrix
_INT32 = np.iinfo(np.int32).max


class Stack(NamedTuple):
    """The tokens of all sequences, or the nodes of all graphs, one after another.

    Attributes
    ----------
    rows : ndarray or csr_array
        New arrays, in the dtype of the features given. They may hold NaN and infinity.
    offsets : ndarray of int64 (n + 1,)
        The rows of sequence or graph i are ``rows[offsets[i]:offsets[i + 1]]``.
    graphs : list of tuples or None
        The graphs; None for sequences.
    lengths : int or None
        The length of all sequences if they are given as a 3-D array, else None.
    """

    rows: Rows
    offsets: Offsets
    graphs: list[Sequence[object]] | None = None
    lengths: int | None = None


def stack_parts(X: object) -> Stack | list[object]:
    """Return the tokens or nodes of X stacked, or a list of its sequences if their features are named."""
    sequences = some_sequences(X)
    if _is_graph(sequences[0]):
        rows, offsets = nodes_as_given(sequences)
        return Stack(rows, offsets, sequences)  # type: ignore[arg-type]  # all are tuples or lists by now
    kind = find_kind(sequences)
    if kind not in ARRAYS:
        return sequences
    if kind == "sparse":
        rows, offsets = csr_rows(sequences)
        return Stack(_narrow(rows), offsets)
    lengths = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 3 else None
    return Stack(*dense_rows(sequences), None, lengths)


def stack_named(sequences: list[object], encoder: SequenceEncoder, *, learn: bool) -> Stack:
    """Return the tokens of sequences whose features are named, encoded; the encoder may learn the names."""
    tokens = encoder.fit_transform(sequences) if learn else encoder.transform(sequences)
    return Stack(_narrow(csr_array(tokens.rows, copy=True)), tokens.offsets)  # the encoder's are read-only


def _narrow(rows: csr_array) -> csr_array:
    """Return the matrix with indices of 32 bits if they suffice: some transformers refuse longer ones."""
    if max(rows.nnz, *rows.shape) <= _INT32:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _is_graph(item: object) -> bool:
    """Return whether an item of X is a graph: its first field is a matrix, while a token is not."""
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        return False
    first = item[0]
    if is_sparse(first) or hasattr(first, "ndim"):
        return bool(first.ndim == 2)
    return isinstance(first, tuple | list) and bool(first) and isinstance(first[0], tuple | list | np.ndarray)


def put_back(stack: Stack, rows: Rows) -> object:
    """Return the sequences or graphs with views of new rows instead of the old, in the form given."""
    if stack.lengths is not None and isinstance(rows, np.ndarray):
        return rows.reshape(-1, stack.lengths, rows.shape[1])
    edges = stack.offsets.tolist()
    if isinstance(rows, np.ndarray):
        pieces: list[Rows] = [rows[a:b] for a, b in pairwise(edges)]
    else:
        pieces = [_some_rows(rows, a, b) for a, b in pairwise(edges)]
    if stack.graphs is None:
        return pieces
    return [(piece, *graph[1:]) for piece, graph in zip(pieces, stack.graphs, strict=True)]


def _some_rows(rows: CsrMatrix, a: int, b: int) -> CsrMatrix:
    """Return the rows a, ..., b - 1 of a sparse matrix, with views of its values and indices."""
    first, stop = rows.indptr[a], rows.indptr[b]
    some: CsrMatrix = csr_array((b - a, rows.shape[1]), dtype=rows.dtype)
    # Set one by one: scipy's constructor copies views of long arrays.
    some.data, some.indices = rows.data[first:stop], rows.indices[first:stop]
    some.indptr = rows.indptr[a : b + 1] - first
    return some


def flat_labels(y: object, stack: Stack) -> Labels:
    """Return the labels of all tokens or nodes; tokens of segments have the tags "B-x", "I-x" and "O"."""
    if stack.graphs is not None:
        codes, classes = number_node_labels(y, stack.offsets)
        return classes[codes]
    if isinstance(y, Iterable) and not isinstance(y, str | np.ndarray):
        y = list(y)
        if _are_segments(y):
            listed = list_segments(y, stack.offsets)
            lengths = np.diff(stack.offsets).tolist()
            y = [tags_of_segments(some, m) for some, m in zip(listed, lengths, strict=True)]
    codes, classes = encode_labels(y, stack.offsets)
    return classes[codes]


def _are_segments(y: list[object]) -> bool:
    """Return whether these are lists of segments, some of which may be empty, rather than of labels."""
    lists = [items for items in y if isinstance(items, tuple | list)]
    first = next((item for items in lists for item in items), None)
    return isinstance(first, tuple | list)


def _inner_has(name: str) -> Callable[["TokenTransformer"], bool]:
    """Return a function that tells whether the transformer has an attribute."""
    return lambda self: hasattr(getattr(self, "transformer_", self.transformer), name)


# Lists are not tables: `set_output` is not for them.
class TokenTransformer(  # type: ignore[call-arg]
    TransformerMixin,  # type: ignore[misc]
    TellsVersion,
    auto_wrap_output_keys=None,
):
    """Transform the features of tokens or nodes: scale them, or make new ones, in a pipeline.

    The transformer is fitted on the tokens of all sequences, or on the nodes of all graphs, as the rows of
    one table. The new features come back in the form of X, for the estimator that follows.

    Parameters
    ----------
    transformer : transformer
        Any transformer of scikit-learn that returns one row for each row, such as StandardScaler, PCA,
        Nystroem or a pipeline of these. It is cloned. Its parameters have the prefix ``transformer__`` here.

    Attributes
    ----------
    transformer_ : transformer
        The clone, fitted.
    n_features_in_ : int
        Number of features of a token or node before they are transformed.

    Notes
    -----
    The transformer is called once for all tokens. What it returns is split without a copy. Sparse features
    stay sparse, and float32 features stay float32, if the transformer preserves them. Features that are not
    finite are left to the transformer, which may impute them.

    Features of tokens that are dicts or strings are numbered in `fit`, as the estimators do it, and are given
    to the transformer as a sparse matrix. Names that did not occur in `fit` are ignored later.

    In graphs, only the features of nodes are transformed. Edges and their features stay as they are.

    Transformers that need labels get those of all tokens or nodes. Tokens of segments have the labels
    ``"B-x"``, ``"I-x"`` and ``"O"``. Weights of examples are not for the transformer.

    There is no ``set_output``: what comes back are sequences or graphs, not one table.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import TokenTransformer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = [np.array([[0.0, 10.0], [2.0, 30.0]]), np.array([[4.0, 20.0]])]
    >>> scaled = TokenTransformer(StandardScaler()).fit_transform(X)
    >>> [x.shape for x in scaled], np.concatenate(scaled).mean(axis=0).tolist()
    ([(2, 2), (1, 2)], [0.0, 0.0])
    """

    transformer: BaseEstimator
    transformer_: BaseEstimator
    n_features_in_: int
    _encoder: SequenceEncoder | None

    def __init__(self, transformer: object) -> None:
        self.transformer = transformer

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # lists of sequences or of graphs
        tags.target_tags.required = _needs_labels(self.transformer)
        return tags

    def fit(self, X: object, y: object = None) -> Self:
        """Fit the transformer to all tokens or nodes.

        Parameters
        ----------
        X : list of sequences, list of graphs, or 3-D array
            Sequences and graphs as the estimators take them: 2-D arrays or sparse matrices with one row per
            token, lists of tokens that are dicts or lists of strings, or tuples (node_features, edges) or
            (node_features, edges, edge_features). Or an array of shape (n_sequences, length, n_features).
        y : list, default=None
            The outputs, as the estimators take them. Used by transformers that need labels.

        Returns
        -------
        TokenTransformer
            The fitted transformer.
        """
        with errors_of(type(self).__name__):
            stack, encoder, fitted = self._learnt(X)
            fitted.fit(stack.rows, *self._labels(y, stack))
            self._keep(stack, encoder, fitted)
        return self

    def fit_transform(self, X: object, y: object = None) -> object:
        """Fit the transformer to all tokens or nodes, and transform them.

        Parameters
        ----------
        X : list of sequences, list of graphs, or 3-D array
            As in `fit`.
        y : list, default=None
            As in `fit`.

        Returns
        -------
        list or 3-D array
            X with the new features. Tokens that are dicts or strings become rows of sparse matrices.
        """
        with errors_of(type(self).__name__):
            stack, encoder, fitted = self._learnt(X)
            labels = self._labels(y, stack)
            if hasattr(fitted, "fit_transform"):
                rows = fitted.fit_transform(stack.rows, *labels)
            else:
                rows = fitted.fit(stack.rows, *labels).transform(stack.rows)
            found = self._restored(rows, stack)
            self._keep(stack, encoder, fitted)
        return found

    def transform(self, X: object) -> object:
        """Transform all tokens or nodes.

        Parameters
        ----------
        X : list of sequences, list of graphs, or 3-D array
            As in `fit`, with the same features.

        Returns
        -------
        list or 3-D array
            X with the new features. Tokens that are dicts or strings become rows of sparse matrices.
        """
        check_is_fitted(self)
        if isinstance(X, list | tuple) and all(map(is_empty, X)):
            return list(X)  # there are no tokens to transform
        with errors_of(type(self).__name__):
            stack = self._known(X)
            return self._restored(self.transformer_.transform(stack.rows), stack)

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the new features.

        Parameters
        ----------
        input_features : list of str, default=None
            The names of the features before they are transformed; by default those of dicts or strings.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if input_features is None and self._encoder is not None:
            input_features = self._encoder.feature_names_
        names: NDArray[np.object_] = self.transformer_.get_feature_names_out(input_features)
        return names

    def _learnt(self, X: object) -> tuple[Stack, SequenceEncoder | None, BaseEstimator]:
        """Return the tokens or nodes of X, the encoder that learnt their names if any, and a new clone."""
        chosen = self.transformer
        if isinstance(chosen, type) or not (hasattr(chosen, "fit") and hasattr(chosen, "transform")):
            raise TypeError(
                f"transformer must have the methods fit and transform, got {shown(chosen)}; "
                "give a transformer such as StandardScaler()."
            )
        found, encoder = stack_parts(X), None
        if not isinstance(found, Stack):
            encoder = SequenceEncoder()
            found = stack_named(found, encoder, learn=True)
        return found, encoder, clone(chosen)

    def _known(self, X: object) -> Stack:
        """Return the tokens or nodes of X, if they have the features of those of `fit`."""
        found = stack_parts(X)
        if isinstance(found, Stack) == (self._encoder is not None):
            kinds = "arrays or sparse matrices", "lists of dicts or of lists of strings"
            got, known = kinds if isinstance(found, Stack) else kinds[::-1]
            raise TypeError(f"X has {got}, but fit had {known}; give the form that fit had.")
        if not isinstance(found, Stack):
            assert self._encoder is not None
            found = stack_named(found, self._encoder, learn=False)
        n_features = found.rows.shape[1]
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {caller()} was fitted with "
                f"{self.n_features_in_}; give the features that were given to fit."
            )
        return found

    def _labels(self, y: object, stack: Stack) -> tuple[object, ...]:
        """Return the labels of all tokens or nodes if the transformer needs them, as the only item."""
        if not _needs_labels(self.transformer):
            return ()
        if y is None:
            raise ValueError(
                f"{type(self.transformer).__name__} needs labels, got y=None; give one list "
                "of labels per sequence or graph."
            )
        return (flat_labels(y, stack),)

    def _keep(self, stack: Stack, encoder: SequenceEncoder | None, fitted: object) -> None:
        self.transformer_, self._encoder, self.n_features_in_ = fitted, encoder, stack.rows.shape[1]

    def _restored(self, rows: object, stack: Stack) -> object:
        """Return the new features in the form of X; raise unless there is one row for each that was given."""
        name = type(self.transformer).__name__
        found: Rows
        found = csr_array(checked_csr(rows, f"the result of {name}")) if is_sparse(rows) else np.asarray(rows)
        expected = int(stack.offsets[-1])
        if found.ndim != 2 or found.shape[0] != expected:
            raise ValueError(
                f"{name} must return a matrix with one row for each of the {expected} rows "
                f"given, got {described(rows)}; use a transformer that keeps rows."
            )
        return put_back(stack, found)


def _needs_labels(transformer: BaseEstimator) -> bool:
    """Return whether `fit` of a transformer, or of an estimator within, needs y."""
    within = transformer.get_params().values() if hasattr(transformer, "get_params") else ()
    return any(_requires_y(each) for each in (transformer, *within) if hasattr(each, "fit"))


def _requires_y(estimator: BaseEstimator) -> bool:
    """Return whether `fit` requires y: by its tags, its signature, or that of its function of scores.

    The tags of univariate selectors do not tell, as their function of scores may do without y.
    """
    if isinstance(estimator, type):
        return False
    scores = getattr(estimator, "score_func", None)
    if _n_required(estimator.fit) > 1 or (callable(scores) and _n_required(scores) > 1):
        return True
    return hasattr(estimator, "__sklearn_tags__") and bool(get_tags(estimator).target_tags.required)


def _n_required(function: Callable[..., object]) -> int:
    """Return the number of required arguments of a function."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    return sum(each.kind in kinds and each.default is inspect.Parameter.empty for each in parameters)

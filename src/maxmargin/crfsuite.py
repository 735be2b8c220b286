"""``ChainSVC`` behind the names of python-crfsuite, for projects that use it.

``from maxmargin import crfsuite as pycrfsuite`` is the one line that changes. `Trainer` trains ``ChainSVC``
and writes its model file, which `maxmargin.load` reads, too; `Tagger` reads such files, not crfsuite's.
Names of features are those that python-crfsuite stores: ``{"next": {"word": "dog"}}`` is ``next:word:dog``.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.estimators.predictor import Predictor
from maxmargin.runtime.wording import described, errors_of, frames_to_user, quoted

if TYPE_CHECKING:  # tagging starts without the estimator
    from maxmargin.encoding.sequences import NumberedSequences
    from maxmargin.runtime.arrays import FloatArray
    from maxmargin.structures.sequences.estimator import ChainSVC

__all__ = ["ItemSequence", "ParsedDump", "Tagger", "Trainer"]

# What python-crfsuite puts between a name and a text, or the names within it.
_SIGN = ":"
# The parameters of each algorithm, with their defaults; a value has the type of the default.
_OF_ALL = {"feature.minfreq": 0.0, "feature.possible_states": False, "feature.possible_transitions": False}
_ONLINE = {**_OF_ALL, "max_iterations": 100, "epsilon": 0.0}
_CALIBRATION = {"eta": 0.1, "rate": 2.0, "samples": 1000.0, "candidates": 10, "max_trials": 20}
_LBFGS = {"max_iterations": 2**31 - 1, "num_memories": 6, "linesearch": "MoreThuente", "max_linesearch": 20}
_ALGORITHMS: dict[str, dict[str, Any]] = {
    "lbfgs": {**_OF_ALL, "c1": 0.0, "c2": 1.0, **_LBFGS, "epsilon": 1e-5, "period": 10, "delta": 1e-5},
    "l2sgd": {**_OF_ALL, "c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6}
    | {f"calibration.{name}": value for name, value in _CALIBRATION.items()},
    "averaged-perceptron": _ONLINE,
    "passive-aggressive": {**_ONLINE, "type": 1, "c": 1.0, "error_sensitive": True, "averaging": True},
    "arow": {**_ONLINE, "variance": 1.0, "gamma": 1.0},
}
_ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
# What stands for them in ``ChainSVC``, or is always on (None).
_COUNTERPARTS = {"feature.minfreq": "min_count", "max_iterations": "max_iter"}
_COUNTED_FOR = {*_COUNTERPARTS, *_OF_ALL}
# The weights of the first and the last label, as the attributes that stand for them in crfsuite.
_FIRST, _LAST = "__BOS__", "__EOS__"


class ItemSequence:
    """The features of the items of a sequence, read once.

    Parameters
    ----------
    pyseq : iterable of items, or ItemSequence
        An item is a dict or a collection of strings, as ``ChainSVC`` takes them.

    Examples
    --------
    >>> from maxmargin.crfsuite import ItemSequence
    >>> ItemSequence([["foo"], {"bar": {"baz": 2}, "word": "dog"}]).items()
    [{'foo': 1.0}, {'bar:baz': 2.0, 'word:dog': 1.0}]
    """

    def __init__(self, pyseq: object) -> None:
        self._numbered: NumberedSequences = (
            pyseq._numbered if isinstance(pyseq, ItemSequence) else _numbered(pyseq)
        )

    def items(self) -> list[dict[str, float]]:
        """Return names and values; the last value of a name that an item has twice, as python-crfsuite does.

        Training and tagging add them up.
        """
        names, codes, values, counts, _ = self._numbered
        of_all = np.ones(len(codes)) if values is None else values
        pairs = zip((names[code] for code in codes.tolist()), of_all.tolist(), strict=True)
        return [dict(next(pairs) for _ in range(count)) for count in counts.tolist()]

    def __len__(self) -> int:
        return len(self._numbered.counts)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


@errors_of("ItemSequence")
def _numbered(pyseq: object) -> "NumberedSequences":
    from maxmargin.encoding.kinds import as_sequences, find_kind, is_empty
    from maxmargin.encoding.names import plain_tokens, read_nested
    from maxmargin.encoding.sequences import NumberedSequences
    from maxmargin.encoding.table import learn

    (items,) = sequences = as_sequences([pyseq])
    kind = "strings" if is_empty(items) else find_kind(sequences)
    if kind not in ("dicts", "strings"):
        raise TypeError("items must be dicts or lists of strings, got numbers; give them names.")
    features = read_nested(plain_tokens(sequences, kind), _SIGN)
    if features.vectors:
        token, name, _ = features.vectors[0]
        raise TypeError(
            f"feature {quoted(name)} of {features.place(token)} is an array, which ItemSequence does not "
            "take, but ChainSVC does."
        )
    names, codes = learn(features.bags, int(features.sizes.sum()))
    return NumberedSequences(names, codes, features.values, features.counts, features.offsets)


def _joined(names: list[str], sequences: "list[NumberedSequences]") -> "NumberedSequences":
    """Return sequences whose codes are those of the names as one."""
    _, codes, values, counts, offsets = zip(*sequences, strict=True)
    of_all = [np.ones(len(c)) if v is None else v for v, c in zip(values, codes, strict=True)]
    return type(sequences[0])(
        names,
        np.concatenate(codes),
        None if all(v is None for v in values) else np.concatenate(of_all),
        np.concatenate(counts),
        np.cumsum([0, *(offset[-1] for offset in offsets)]),
    )


class Trainer:
    """Trains ``ChainSVC`` on sequences that are appended one by one.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default="lbfgs"
        Decides which parameters there are, and nothing else.
    params : dict, optional
        Parameters of crfsuite. ``feature.minfreq`` is ``min_count`` of ``ChainSVC``, ``max_iterations`` is
        ``max_iter``; weights for all labels and pairs of labels are always there. The others have no
        counterpart: `train` warns of those that are not at their defaults.
    verbose : bool, default=True
        Whether to show progress.
    estimator : ChainSVC, optional
        What to train, such as ``ChainSVC(C=1.0)``, of order 1 and without a kernel. The default,
        ``ChainSVC(probability=True, random_state=0)``, takes five more runs to fit probabilities.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin import crfsuite as pycrfsuite
    >>> trainer = pycrfsuite.Trainer(verbose=False)
    >>> for words in (["the", "dog"], ["the", "cat"]):
    ...     trainer.append([{"word": word} for word in words], ["DET", "NOUN"])
    >>> tagger = pycrfsuite.Tagger()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trainer.train(os.path.join(folder, "model"))
    ...     closing = tagger.open(os.path.join(folder, "model"))
    >>> tagger.tag([{"word": "a"}, {"word": "cat"}])
    ['DET', 'NOUN']
    """

    logparser = None  # crfsuite's log of iterations

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, object] | None = None,
        verbose: bool = True,
        *,
        estimator: "ChainSVC | None" = None,
    ) -> None:
        from maxmargin.structures.sequences.estimator import ChainSVC

        self.verbose = verbose
        self._estimator = ChainSVC(probability=True, random_state=0) if estimator is None else estimator
        self.clear()
        self.select("lbfgs" if algorithm is None else algorithm)
        self.set_params(params or {})

    def clear(self) -> None:
        """Remove all sequences."""
        self._numbers: dict[str, int] = {}
        self._examples: list[tuple[NumberedSequences, list[str], int]] = []

    def append(self, xseq: object, yseq: Iterable[str], group: int = 0) -> None:
        """Add a sequence of items, or an ItemSequence, with a label for each item."""
        x, labels = ItemSequence(xseq), list(map(_text, yseq))
        _check_lengths(len(x), len(labels))
        names, codes, *_ = x._numbered
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        codes = np.array(numbers, dtype=np.int32)[codes]
        self._examples.append((x._numbered._replace(names=[], codes=codes), labels, int(group)))

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm by name, which sets all parameters to its defaults."""
        name = str(algorithm).lower()
        self._algorithm = _ALIASES.get(name, name)
        if self._algorithm not in _ALGORITHMS or type != "crf1d":
            known = ", ".join([*_ALGORITHMS, *_ALIASES])
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}; use crf1d and {known}.")
        self._params = dict(_ALGORITHMS[self._algorithm])

    def params(self) -> list[str]:
        """Return the names of the parameters of the algorithm."""
        return list(self._params)

    def set(self, name: str, value: object) -> None:
        """Set a parameter; a text is read as a number where one is due."""
        kind: Any = type(self.get(name))
        try:
            self._params[name] = str(value) if kind is str else kind(float(value))  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"Trainer: {name} must be a number, got {described(value)}.") from None

    def get(self, name: str) -> object:
        """Return the value of a parameter."""
        if name not in self._params:
            raise ValueError(f"Parameter not found: {name}; {self._algorithm} has {', '.join(self._params)}.")
        return self._params[name]

    def set_params(self, params: Mapping[str, object]) -> None:
        """Set parameters by name."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, object]:
        """Return all parameters by name."""
        return dict(self._params)

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the sequences of all groups but one, and write the model.

        The empty string as a name writes no file.
        """
        kept = [(x, labels) for x, labels, group in self._examples if labels and group != holdout]
        if not kept:
            raise ValueError("Trainer: train needs sequences to train on, got none; append some.")
        X, y = map(list, zip(*kept, strict=True))
        fitted = self._prepared(len(y)).fit(_joined(list(self._numbers), X), y)
        if model != "":
            fitted.save(model)

    def _prepared(self, n: int) -> "ChainSVC":
        """Return the estimator, with its counterparts of parameters; warn of the others."""
        from sklearn.base import clone

        from maxmargin.structures.sequences.estimator import ChainSVC

        found, defaults = clone(self._estimator), _ALGORITHMS[self._algorithm]
        changed = {name: value for name, value in self._params.items() if value != defaults[name]}
        ignored = [name for name in changed if name not in _COUNTED_FOR]
        ignored += [] if self._algorithm == "lbfgs" else [f"algorithm {self._algorithm}"]
        if ignored:
            warnings.warn(
                f"Trainer: {', '.join(ignored)}: without a counterpart, and ignored. This trains ChainSVC "
                f"with C={found.C}; give an estimator to choose another C.",
                stacklevel=frames_to_user(),
            )
        if not isinstance(found, ChainSVC) or found.order != 1 or found.kernel != "linear":
            raise ValueError(
                f"Trainer: estimator must be a ChainSVC of order 1 without a kernel, got {found}."
            )
        for name in _COUNTERPARTS.keys() & changed:
            found.set_params(**{_COUNTERPARTS[name]: max(1, int(np.ceil(changed[name])))})
        found.set_params(probability=found.probability and n > 1)
        return found if self.verbose else found.set_params(verbose=0)


def _text(label: object) -> str:
    if not isinstance(label, str | bytes):
        raise TypeError(f"Trainer: labels must be strings, got {described(label)}.")
    return label if isinstance(label, str) else label.decode()


def _check_lengths(n_items: int, n_labels: int) -> None:
    if n_items != n_labels:
        raise ValueError(f"The numbers of items and labels differ: |x| = {n_items}, |y| = {n_labels}")


class ParsedDump(NamedTuple):
    """The weights of a model by name, and the numbers of its labels and attributes as texts.

    Attributes
    ----------
    header, labels, attributes : dict
        Attributes are those with weights.
    transitions : dict
        Weights by (before, after).
    state_features : dict
        Weights by (attribute, label). ``__BOS__`` and ``__EOS__`` stand for the beginning and the end of a
        sequence, as ``ChainSVC`` has weights for the labels there.
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[Any, Any], float]
    state_features: dict[tuple[Any, Any], float]


class Tagger:
    """Labels sequences by a model that `Trainer`, or ``ChainSVC.save``, has written.

    Tagging starts at once, as `maxmargin.Predictor` does. The other methods load the estimator, so the file
    has to stay as it is for them.
    """

    _predictor: Predictor | None

    def __init__(self) -> None:
        self.close()

    def open(self, name: str | os.PathLike[str]) -> "contextlib.closing[Tagger]":
        """Read a model file; raise OSError if there is none or it is crfsuite's, ValueError for others."""
        with open(name, "rb") as stream:
            if stream.read(4) == b"lCRF":
                raise OSError(f"Tagger: {name} is a model of crfsuite, expected one of maxmargin; train it.")
        predictor = Predictor(name)
        if predictor._tagger is None:
            from maxmargin.structures.sequences.estimator import ChainSVC

            model = predictor._estimator
            if not isinstance(model, ChainSVC) or model.order != 1 or model.feature_names_ is None:
                raise ValueError(f"Tagger: {name} must hold a ChainSVC of order 1 with names, got {model}.")
        self._predictor = predictor
        return contextlib.closing(self)

    def close(self) -> None:
        """Forget the model and the sequence."""
        self._predictor = None
        self.set([])

    def labels(self) -> list[str]:
        """Return the labels, sorted."""
        tagger = self._opened()._tagger
        return tagger.labels if tagger is not None else [str(label) for label in self._model().classes_]

    def set(self, xseq: object) -> None:
        """Take a sequence, for the methods that follow."""
        self._given = xseq if isinstance(xseq, list | tuple) else ItemSequence(xseq)
        self.__dict__.pop("_x", None)
        self.__dict__.pop("_marginals", None)

    @cached_property
    def _x(self) -> ItemSequence:
        return ItemSequence(self._given)

    @cached_property
    def _marginals(self) -> "FloatArray":
        return self._model().predict_marginals(self._x._numbered)[0]  # type: ignore[attr-defined, no-any-return]

    def tag(self, xseq: object = None) -> list[str]:
        """Return the labels of a sequence, or of the last one again."""
        tagger = self._opened()._tagger
        if xseq is not None:
            self.set(xseq)
        found = None if tagger is None else tagger.predict([self._given], _SIGN)
        if found is None:
            found = self._model().predict(self._x._numbered)
        return [str(label) for label in found[0]]

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a position of the last sequence, by `predict_marginals`."""
        (label,) = self._numbers([y])
        if not 0 <= pos < len(self._x):
            raise ValueError(f"The position, {pos} is out of range of {len(self._x)}")
        return float(self._marginals[pos, label])

    def probability(self, yseq: Iterable[str]) -> float:
        """Return the probability of all labels of the last sequence together."""
        model, y = self._model(), self._numbers(yseq)
        _check_lengths(len(self._x), len(y))
        if not hasattr(model, "temperature_"):
            raise ValueError("Tagger: probabilities need a temperature; train ChainSVC(probability=True).")
        return float(np.exp(_log_probability(*_scores(model, self._x._numbered), y))) if y else 1.0

    def _opened(self) -> Predictor:
        if self._predictor is None:
            raise ValueError("The tagger is not opened")
        return self._predictor

    def _model(self) -> Any:
        return self._opened()._estimator

    def _numbers(self, labels: Iterable[str]) -> list[int]:
        known = {label: k for k, label in enumerate(self.labels())}
        found = [known.get(label, quoted(label)) for label in labels]
        unknown = next((label for label in found if isinstance(label, str)), None)
        if unknown is not None:
            raise ValueError(f"Tagger: the model has no label {unknown}; it has {', '.join(known)}.")
        return found  # type: ignore[return-value]

    def info(self) -> ParsedDump:
        """Return the weights of the model by name."""
        model, labels = self._model(), self.labels()
        pairs: dict[Any, float] = {k: w for k, w in model.transition_features_.items() if None not in k}
        states: dict[Any, float] = dict(model.state_features_)
        for name, weights in ((_FIRST, model.start_), (_LAST, model.end_)):
            for label, weight in zip(labels, weights.tolist(), strict=True):
                states[name, label] = states.get((name, label), 0.0) + weight
        of_labels, of_names = _listed(labels), _listed(name for name, _ in states)
        header = {"type": "ChainSVC", "num_labels": str(len(labels)), "num_attrs": str(len(of_names))}
        return ParsedDump(header, of_labels, of_names, pairs, states)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write what `info` returns as crfsuite writes it, to a file or to the standard output."""
        header, labels, attributes, pairs, states = self.info()
        sections = {
            "FILEHEADER": [f"{name}: {value}" for name, value in header.items()],
            "LABELS": [f"{k}: {label}" for label, k in labels.items()],
            "ATTRIBUTES": [f"{k}: {name}" for name, k in attributes.items()],
            "TRANSITIONS": [f"(1) {a} --> {b}: {weight:f}" for (a, b), weight in pairs.items()],
            "STATE_FEATURES": [f"(0) {a} --> {b}: {weight:f}" for (a, b), weight in states.items()],
        }
        text = "".join("\n  ".join([f"{name} = {{", *rows]) + "\n}\n\n" for name, rows in sections.items())
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(filename).write_text(text, encoding="utf-8")


def _listed(names: Iterable[str]) -> dict[str, str]:
    return {name: str(k) for k, name in enumerate(dict.fromkeys(names))}


def _scores(model: "ChainSVC", x: "NumberedSequences") -> "tuple[FloatArray, FloatArray]":
    """Return the scores of labels at positions, and of pairs, divided by the temperature.

    The last row of pairs is for the start, the last column for the end. Forbidden pairs have no chance.
    """
    rows, K = model._structure.read(model, x)[0].rows, len(model.classes_)
    pairs = np.zeros((K + 1, K + 1))
    pairs[:K, :K], pairs[K, :K], pairs[:K, K] = model.transitions_, model.start_, model.end_
    if model._forbidden is not None:
        pairs[model._forbidden] = -np.inf
    return rows @ model.coef_.T / model.temperature_, pairs / model.temperature_


def _log_probability(unary: "FloatArray", pairs: "FloatArray", y: list[int]) -> float:
    r"""Return log p(y), where p(y) is proportional to the exponential of the score.

    .. math:: v_1(k) = b_k + u_1(k), \quad v_t(k) = u_t(k) + \log \sum_j e^{v_{t-1}(j) + p(j, k)}, \quad
              \log Z = \log \sum_k e^{v_T(k) + e_k}
    """
    K = len(pairs) - 1
    total = pairs[K, :K] + unary[0]
    for scores in unary[1:]:
        total = scores + np.logaddexp.reduce(total[:, None] + pairs[:K, :K], axis=0)
    score = unary[range(len(y)), y].sum() + pairs[[K, *y], [*y, K]].sum()
    return float(score - np.logaddexp.reduce(total + pairs[:K, K]))

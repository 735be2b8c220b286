"""The parameters that several estimators share: their constraints and documentation, each written once.

The documentation is inserted into the docstrings of each class when it is created (`document`), with other
texts that estimators share. A docstring names a text by ``%(name)s``. On a line of its own, the text takes
the place of the line, with its indentation; an empty text removes the line.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from os import PathLike
from textwrap import dedent, indent
from types import FunctionType
from typing import NamedTuple

from maxmargin.estimators.selection import CrossValidated
from maxmargin.estimators.state import HasMethods, Interval, StrOptions
from maxmargin.files.checkpoint import Checkpoint
from maxmargin.methods import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Subgradient,
)
from maxmargin.methods.rules import SAMPLINGS

_LINE = re.compile(r"^( *)%\((\w+)\)s\n?", re.MULTILINE)
_INLINE = re.compile(r"%\((\w+)\)s")
DUAL_METHODS: dict[str, Callable[[float], object]] = {
    "auto": lambda lam: Accelerated(Pairwise(lam=lam)),
    "pairwise": lambda lam: Pairwise(lam=lam),
    "away": lambda lam: Away(lam=lam),
    "bcfw": lambda lam: BlockFrankWolfe(lam=lam),
    "bcfw-wavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "weighted"),
    "bcfw-tavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "suffix"),
    "bcfw-avg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "uniform"),
    "fw": lambda lam: FrankWolfe(lam=lam),
    "fw-wavg": lambda lam: Averaged(FrankWolfe(lam=lam), "weighted"),
}
# For comparison: methods that keep the weights and no dual variables.
PRIMAL_METHODS: dict[str, Callable[[float], object]] = {
    "ssg": lambda lam: Subgradient(lam=lam),
    "ssg-wavg": lambda lam: Averaged(Subgradient(lam=lam), "weighted"),
    "ssg-avg": lambda lam: Averaged(Subgradient(lam=lam), "uniform"),
    "perceptron": lambda lam: Perceptron(lam=lam),
    "perceptron-avg": lambda lam: Averaged(Perceptron(lam=lam), "uniform"),
}
METHODS = DUAL_METHODS | PRIMAL_METHODS

HAMMING = {"normalized_hamming", "hamming"}
RESCALINGS = {"margin", "slack"}

Constraints = dict[str, list[object]]


class Parameter(NamedTuple):
    """A parameter: its type in words, its constraints, and its documentation."""

    kind: str
    constraints: list[object]
    text: str


def _listed(names: object) -> str:
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"  # type: ignore[attr-defined]


_POSITIVE_INT = Interval(Integral, 1, None, closed="left")

# How to train: these parameters do not change what is learnt.
TRAINING = {
    "C": Parameter(
        'float, "auto" or CrossValidated',
        [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), CrossValidated],
        """
        Inverse regularisation strength, > 0; lam = 1 / (C n). "auto" chooses it by cross-validation, and a
        `CrossValidated` has options for this; ``C_`` is the number.
        """,
    ),
    "method": Parameter(
        f"{_listed(METHODS)} or a method",
        [StrOptions(set(METHODS)), tuple, HasMethods("advance")],
        """
        Accelerated pairwise steps; pairwise or away steps on blocks; block-coordinate or batch Frank-Wolfe;
        stochastic subgradient steps; or the perceptron. A suffix says which average of the iterates is
        returned: weighted, in doubling rounds (tail) or uniform. The perceptron has no certificate, and its
        steps do not depend on C. Or a method of your choice, such as ``Averaged(Pairwise(lam=1.0),
        "suffix")``; its lam is replaced by 1 / (C n).
        """,
    ),
    "tol": Parameter(
        "float",
        [Interval(Real, 0, None, closed="left")],
        """
        Stop when the duality gap is at most this times the objective: no weights lower the objective by a
        larger fraction. An objective below 0.01, as on separable data, counts as 0.01.
        """,
    ),
    "max_iter": Parameter("int", [_POSITIVE_INT], "Largest number of passes over the data."),
    "time_limit": Parameter(
        "float or None",
        [Interval(Real, 0, None, closed="neither"), None],
        """
        Largest number of seconds of `fit`, in total if there are several runs, without compilation. If
        encoding the data takes longer, training ends before its first step, with a warning.
        """,
    ),
    "check_every": Parameter("int", [_POSITIVE_INT], "Number of passes between two certificates of the gap."),
    "sampling": Parameter(
        _listed(SAMPLINGS), [StrOptions(set(SAMPLINGS))], "Order in which examples are visited."
    ),
    "warm_start": Parameter(
        "bool",
        ["boolean"],
        """
        Continue from the last `fit`, even at another C; start afresh if the data have changed. The estimator
        keeps its training data for this, `kept_bytes_` in all. Pickles leave them out, except within
        `maxmargin.pickle_training_data`.
        """,
    ),
    "n_jobs": Parameter(
        "int or None",
        [_POSITIVE_INT, Interval(Integral, None, -1, closed="right"), None],
        """
        Number of threads for certificates, for decoding in `predict` and, with method "auto", for training.
        Training divides the examples into parts, one for each thread that does not compute certificates; with
        ``check_every=1``, half of the threads do. So the answer depends on the number of threads: it is
        certified to the same tol for any number, and is reproducible for a given number and seed.
        """,
    ),
    "cache_size": Parameter(
        "float",
        [Interval(Real, 0, None, closed="neither")],
        """
        Megabytes for the values of the kernel, which are float32 if all features are, else float64. If the
        matrix needs more, some columns are cached and the others are computed when they are needed. The
        answer does not depend on this size.
        """,
    ),
    "verbose": Parameter(
        "bool or int",
        ["verbose"],
        """
        Show a progress line on a terminal or in a notebook when training takes more than two seconds; 2 also
        writes lines to standard error where it is a log; 0 for none.
        """,
    ),
    "callbacks": Parameter(
        "list of callables or None",
        ["array-like", None],
        """
        Each is called after every pass with a `Progress`; training stops when one returns False.
        """,
    ),
    "checkpoint": Parameter(
        "path, Checkpoint or None",
        [str, PathLike, Checkpoint, None],
        """
        File in which `fit` stores its state every minute, or as often as a `Checkpoint` says. If the file
        exists, `fit` continues from it, bit for bit as if it had never stopped. It must come from the same
        data and parameters, apart from tol, max_iter, time_limit, verbose and callbacks; so every copy of an
        estimator that is fitted to other data needs a file of its own. It is kept after training ends, so
        that another `fit` returns after at most one pass. Remove it when you have saved the model. The
        additional runs of ``probability=True`` are not stored.
        """,
    ),
    "probability": Parameter(
        "bool",
        ["boolean"],
        """
        Fit the temperature of `predict_marginals` by cross-validation: train five more times, leaving out a
        different fifth of the examples each time, and calibrate on the examples left out. All runs share
        ``time_limit``; training itself may take half of it.
        """,
    ),
    "random_state": Parameter(
        "int, RandomState or None", ["random_state"], "Seed of the order of the examples."
    ),
}

# What to learn: for the estimators that have them.
MODEL = {
    "l1_ratio": Parameter(
        "float or None",
        [Interval(Real, 0, 1, closed="left"), None],
        """
        The share of the L1 norm in the penalty, as in scikit-learn's `ElasticNet`: training minimises the sum
        of the losses times C, plus ``l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2``. Many weights then are
        exactly zero. The larger l1_ratio, the larger C should be. None is for no such share.
        """,
    ),
    "rescaling": Parameter(
        _listed(sorted(RESCALINGS)),
        [StrOptions(RESCALINGS)],
        """
        What the loss scales: the margin by which the truth must score higher, or the price of a margin below
        one, ``loss * (1 + score - score of the truth)``.
        """,
    ),
    "min_count": Parameter(
        "int", [_POSITIVE_INT], "Ignore named features (of dicts or strings) that occur in fewer %(rows)s."
    ),
    "fit_intercept": Parameter("bool", ["boolean"], "Add a constant feature, regularised like the others."),
    "class_weight": Parameter('dict, "balanced" or None', [StrOptions({"balanced"}), dict, None], ""),
}

# Kernels, with the parameters of scikit-learn's SVC.
KERNEL = {
    "kernel": Parameter(
        '{"linear", "poly", "rbf", "sigmoid"} or callable',
        [StrOptions({"linear", "poly", "rbf", "sigmoid"}), callable],
        """
        The kernel of %(rows)s. A callable gets two lists or arrays of rows and returns the matrix of its
        values. If its attribute ``semidefinite`` is true, it is taken to be positive semidefinite, and
        results are certified.
        """,
    ),
    "degree": Parameter("int", [Interval(Integral, 0, None, closed="left")], 'Degree of "poly".'),
    "gamma": Parameter(
        '{"scale", "auto"} or float',
        [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        """
        Coefficient of "rbf", "poly" and "sigmoid": 1 / (n_features * X.var()), 1 / n_features, or a number.
        """,
    ),
    "coef0": Parameter(
        "float", [Interval(Real, None, None, closed="neither")], 'Constant term of "poly" and "sigmoid".'
    ),
}
SHARED = TRAINING | MODEL | KERNEL
_MORE = """Train on these %(examples)s and those of all earlier calls, from where the last call stopped.

The estimator keeps the %(examples)s, `kept_bytes_` in all. The answer is certified for all of them, as after
`fit`, but the work of earlier calls is not repeated. Pickles leave the %(examples)s out, except within
`maxmargin.pickle_training_data`. %(first)s
"""
_CLASSES = """classes : array-like, default=None
    All labels, in the first call; by default those of its ``y``.
"""


def _training(summary: str, classes: str = "") -> str:
    """Return the docstring of a method that trains."""
    return f"""{summary}
Parameters
----------
%(X)s
%(y)s
{classes}%(extra)s
sample_weight : array of shape (n_examples,), default=None
    How often each example counts, as if it occurred that many times; an example of weight 0 is left out.

Returns
-------
self
    The fitted estimator.
"""


# A class adds "examples", "X", "y", "predict" and "score", and may change "first" and "extra".
TEXTS = {
    "fit": _training("Train on %(examples)s.\n"),
    "partial_fit": _training(_MORE),
    "partial_fit_with_classes": _training(_MORE, _CLASSES),
    "first": "",
    "extra": "",
    "temperature": """
        temperature_ : float
            The temperature of `predict_marginals`; only after `calibrate`, or with ``probability=True``.
        """,
    "certificate": """
        C_ : float
            C as a number.
        l1_ratio_ : float
            The share of the L1 norm, where it was chosen together with C.
        cv_results_ : dict
            How the values of C that were tried did, where it was chosen by cross-validation, in the columns
            of ``GridSearchCV``. A score is the negative mean loss of held-out examples; it is NaN where not
            all folds were trained, as C was already known to be worse.
        gap_ : float
            Bound on how far the objective is from its minimum.
        certified_ : bool
            Whether the bound is guaranteed. It is not if the oracle is approximate without a bound, or if the
            kernel is not known to be positive semidefinite.
        history_ : History
            All certificates.
        n_iter_ : int
            Number of passes over the data.
        kept_bytes_ : int
            Size of what is kept for the next `partial_fit` or warm start, the training data included.
        """,
}


def filled(text: str, texts: Mapping[str, str]) -> str:
    """Return the text with the named texts inserted."""

    def block(match: re.Match[str]) -> str:
        found = filled(dedent(texts[match[2]]).strip(), texts)
        return indent(found, match[1]) + "\n" if found else ""

    return _INLINE.sub(lambda match: texts[match[1]], _LINE.sub(block, text))


def parameter_texts(init: Callable[..., None]) -> dict[str, str]:
    """Return the documentation of the shared parameters in a signature, and that of all for training."""
    found = {
        name: _entry(name, SHARED[name], parameter.default)
        for name, parameter in inspect.signature(init).parameters.items()
        if name in SHARED
    }
    together = (text for name, text in found.items() if name in TRAINING and name != "C")
    kernels = (text for name, text in found.items() if name in KERNEL)
    return found | {"training": "\n".join(together), "kernels": "\n".join(kernels)}


def _entry(name: str, parameter: Parameter, default: object) -> str:
    value = f'"{default}"' if isinstance(default, str) else repr(default)
    text = indent(dedent(parameter.text).strip(), "    ")
    return f"{name} : {parameter.kind}, default={value}\n{text}"


def document(cls: type, texts: Mapping[str, str]) -> None:
    """Insert the texts into the docstrings of a class and of its methods, inherited ones included."""
    cls.__doc__ = filled(inspect.getdoc(cls) or "", texts)
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if isinstance(method, FunctionType) and _INLINE.search(method.__doc__ or ""):
            setattr(cls, name, _copy_for(cls, name, method, texts))


def _copy_for(cls: type, name: str, method: FunctionType, texts: Mapping[str, str]) -> FunctionType:
    """Return a copy of the method with a docstring of its own, so that each class documents its own data."""
    copy = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
    copy.__dict__.update(vars(method))
    copy.__kwdefaults__, copy.__annotations__ = method.__kwdefaults__, method.__annotations__
    copy.__module__, copy.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
    copy.__doc__ = filled(inspect.getdoc(method) or "", texts).rstrip()
    found = inspect.signature(method)  # whose first argument need not say what it is
    self, *others = found.parameters.values()
    copy.__signature__ = found.replace(parameters=[self.replace(annotation=self.empty), *others])  # type: ignore[attr-defined]
    return copy

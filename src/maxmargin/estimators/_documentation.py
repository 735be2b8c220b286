"""Documentation that estimators share, inserted into the docstrings of each class when it is created.

A docstring names a text by ``%(name)s``. On a line of its own, the text takes the place of the line, with its
indentation; an empty text removes the line.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from textwrap import dedent, indent
from types import FunctionType

from maxmargin.estimators._parameters import KERNEL, SHARED, TRAINING, Parameter

_LINE = re.compile(r"^( *)%\((\w+)\)s\n?", re.MULTILINE)
_INLINE = re.compile(r"%\((\w+)\)s")

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
    "certificate": """
        C_ : float
            C as a number.
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
            setattr(cls, name, _copy_for(cls, method, texts))


def _copy_for(cls: type, method: FunctionType, texts: Mapping[str, str]) -> FunctionType:
    """Return a copy of the method with a docstring of its own, so that each class documents its own data."""
    copy = FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )
    copy.__dict__.update(vars(method))
    copy.__kwdefaults__, copy.__annotations__ = method.__kwdefaults__, method.__annotations__
    copy.__module__, copy.__qualname__ = cls.__module__, f"{cls.__qualname__}.{method.__name__}"
    copy.__doc__ = filled(inspect.getdoc(method) or "", texts).rstrip()
    return copy

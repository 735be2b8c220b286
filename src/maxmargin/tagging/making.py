"""Compile the loops of tagging to object code that runs without Numba.

Numba's public interface gives the optimised code of a function in LLVM's language. The wrapper that Python
would call is removed: only the wrapper refers to Numba and to the interpreter. The rest must have no external
references, and take the arguments that `object_code` passes; otherwise there is no object code. Nor is there
any with a version of Numba that is not tested, whose arrays may have other fields.
"""

import re
from collections.abc import Callable, Mapping
from typing import cast

import llvmlite.binding as llvm
import numpy as np
from numba import types

from maxmargin.compiling.generics import afresh
from maxmargin.compiling.numba_private import IS_TESTED
from maxmargin.compiling.object_code import Arguments, Array, Buffer, Function, ObjectCode, target_machine
from maxmargin.tagging.lines import index_features, tag_names, tag_text
from maxmargin.tagging.loops import ARGUMENTS

_TYPES = {
    "u1": types.uint8,
    "i4": types.int32,
    "i8": types.int64,
    "u8": types.uint64,
    "f8": types.float64,
}
_WRAPPER = re.compile(r"^define [^\n]*@_ZN7cpython.*?^}$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^define [^\n]*?i32 @([\w.$]+)\(([^\n]*)\)[^\n]*{$", re.MULTILINE)
_OUTSIDE = re.compile(r"^(?:declare [^\n]*?|)@([\w.$]+)(?:\(| = external)", re.MULTILINE)


class NotAlone(ValueError):
    """A function needs something outside of its own code, or takes other arguments than expected."""


def object_code(functions: Mapping[str, Callable[..., object]], arguments: Arguments) -> ObjectCode:
    """Return the object code of functions that `helper` has marked, for arguments of these types."""
    if not IS_TESTED:
        raise NotAlone("expected a version of Numba that is tested, got another")
    symbols, objects = {}, []
    for name, function in functions.items():
        signature = tuple(map(_type_of, arguments[name]))
        dispatcher = afresh(function.__wrapped__)  # type: ignore[attr-defined]
        dispatcher.compile(signature)
        symbols[name], content = emitted(dispatcher.inspect_llvm(signature), signature)
        objects.append(content)
    return ObjectCode(symbols, objects)


def _type_of(kind: Array | None) -> types.Type:
    return types.int64 if kind is None else types.Array(_TYPES[kind.dtype], kind.ndim, "C")


def emitted(text: str, signature: tuple[types.Type, ...]) -> tuple[str, bytes]:
    """Return the symbol of the function that a text defines, and its object code."""
    alone = _WRAPPER.sub("", text)
    found = [(symbol, taken) for symbol, taken in _FUNCTION.findall(alone) if "retptr" in taken]
    if len(found) != 1:
        raise NotAlone(f"expected one function, got {len(found)}")
    ((symbol, taken),) = found
    n_words = 2 + sum(5 + 2 * type_.ndim if isinstance(type_, types.Array) else 1 for type_ in signature)
    if taken.count("%") != n_words:
        raise NotAlone(f"expected {n_words} words of arguments, got {taken.count('%')}")
    for name in _OUTSIDE.findall(alone):
        if not name.startswith("llvm.") and len(re.findall(rf"@{re.escape(name)}\b", alone)) > 1:
            raise NotAlone(f"expected a function on its own, got one that uses {name}")
    return symbol, target_machine().emit_object(llvm.parse_assembly(alone))


# The loops of tagging by name, to be compiled or interpreted.
KERNELS: dict[str, Callable[..., int]] = {
    "index_features": index_features,
    "tag_text": tag_text,
    "tag_names": tag_names,
}


def made_code() -> ObjectCode | None:
    """Return the code of the loops; None if this version of Numba makes code that does not run alone."""
    try:
        return object_code(KERNELS, ARGUMENTS)
    except NotAlone:
        return None


# The loops of tagging in plain Python, for tests.
def interpreted_loops() -> dict[str, Function]:
    """Return functions that take what the compiled ones take."""
    return {name: _on_arrays(name) for name in ARGUMENTS}


def _on_arrays(name: str) -> Function:
    def call(*values: Buffer | int) -> int:
        kinds = ARGUMENTS[name]
        passed = [
            value
            if kind is None
            else np.frombuffer(cast(bytes, value.memory), dtype=kind.dtype).reshape(value.shape)  # type: ignore[union-attr]
            for kind, value in zip(kinds, values, strict=True)
        ]
        with np.errstate(over="ignore"):  # products wrap around; NumPy's scalars would warn
            return int(KERNELS[name](*passed))

    return call

"""Kernels compiled beforehand for a target that most processors support, the *baseline*.

Some wheels of the package carry them, and several users or machines can share a directory of them. Such a
kernel is used if the user's own cache has none, and only if it was compiled from the same sources with the
same versions of Numba and Python, as recorded in the name of its directory, and if the processor of this
process has all features of the baseline. Otherwise Numba compiles as usual. All results are bitwise the same.
"""

import os
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

from maxmargin.compiling.places import ROOT
from maxmargin.compiling.trust import read_trusted

# Names a directory that is read instead of the one in the package; if it is empty, none is.
VARIABLE = "MAXMARGIN_KERNELS"
_SHIPPED = ROOT / "_kernels"


class Baseline(NamedTuple):
    """A processor: its name in LLVM, and what a machine needs to run code for it."""

    name: str
    features: frozenset[str]


# The third level of the psABI: Intel's processors since 2013 and AMD's since 2015, but for some small ones.
_LEVEL_1 = "+64bit,+cmov,+cx8,+fxsr,+mmx,+sse,+sse2"
_LEVEL_2 = "+crc32,+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
_LEVEL_3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_X86_64 = Baseline("x86-64-v3", frozenset(f"{_LEVEL_1},{_LEVEL_2},{_LEVEL_3}".split(",")))
# What every processor of an architecture has, such as vectors of 128 bits on ARM's of 64 bits.
_GENERIC = Baseline("generic", frozenset())


def _of_architecture(triple: str) -> Baseline:
    return _X86_64 if triple.startswith("x86_64-") else _GENERIC


def host() -> tuple[str, str, str]:
    """Return the processor that Numba compiles for, as Numba does: LLVM's triple, its name, its features.

    It is this machine's, unless the environment names another one.
    """
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if name == "generic" else llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), name or llvm.get_host_cpu_name(), features


def within(processor: object) -> tuple[str, str, str] | None:
    """Return the baseline in Numba's description, or None if a processor so described lacks a feature of it.

    Settings such as ``NUMBA_CPU_NAME`` change the description of a processor, so they are honoured.
    """
    match processor:
        case (str() as triple, str(), str() as features):
            least = _of_architecture(triple)
            return (triple, least.name, "") if least.features <= {*features.split(",")} else None
    return None


def settings() -> dict[str, str]:
    """Return the environment of a process that only compiles, for the baseline."""
    return {
        "NUMBA_CPU_NAME": _of_architecture(llvm.get_process_triple()).name,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that few users have
        VARIABLE: "",
    }


def place() -> Path | None:
    """Return the directory of kernels compiled beforehand; None if the environment turns them off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return _SHIPPED
    return Path(chosen) if chosen else None


def read(file: str) -> bytes | None:
    """Return the content of a file that was compiled beforehand, by its path there, or None.

    Files in the package are as trusted as its Python code. Elsewhere, a file is read only if no one but this
    user or root can have written it.
    """
    at = place()
    if at is None:
        return None
    if VARIABLE in os.environ:
        chosen = at / file
        return read_trusted(Path(os.path.realpath(chosen.parent), chosen.name))
    try:
        return (at / file).read_bytes()
    except OSError:
        return None


def has(directory: str) -> bool:
    """Whether there are kernels compiled beforehand in a directory of this name, for this machine."""
    at = place()
    return at is not None and within(host()) is not None and (at / directory).is_dir()

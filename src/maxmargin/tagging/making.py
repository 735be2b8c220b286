"""Compile the loops of tagging."""

from maxmargin.compiling.ahead import NotAlone, object_code
from maxmargin.compiling.object_code import ObjectCode
from maxmargin.tagging.arguments import ARGUMENTS
from maxmargin.tagging.kernels import KERNELS


def made_code() -> ObjectCode | None:
    """Return the code of the loops; None if this version of Numba makes code that does not run alone."""
    try:
        return object_code(KERNELS, ARGUMENTS)
    except NotAlone:
        return None

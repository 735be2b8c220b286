"""How compiled functions pass named tuples to each other: whole, not field by field."""

from inspect import signature

from llvmlite import ir
from numba import types

from maxmargin.compiling.numba_private.losses import works_as_tested
from maxmargin.compiling.places import is_ours

try:
    from numba.core.datamodel import default_manager
    from numba.core.datamodel.models import TupleModel
except ImportError:
    default_manager, TupleModel = None, object  # the trial below fails


class WholeTuple(TupleModel):  # type: ignore[misc]
    """The representation of named tuples in compiled code, passed as one argument where they are ours.

    Numba passes every field of every array in a tuple as an argument of its own. A problem, a state and a
    workspace have some 300 of them, which parts of kernels pass on to other parts: half of the code that
    LLVM read took tuples apart and put them together again. Tuples of other packages are passed as usual.
    """

    def _is_whole(self) -> bool:
        return is_ours(self.fe_type.instance_class)

    def get_argument_type(self) -> object:
        """Return the type or types in which the tuple is passed."""
        return self.get_value_type() if self._is_whole() else super().get_argument_type()

    def as_argument(self, builder: ir.IRBuilder, value: ir.Value) -> object:
        """Return the argument or arguments that represent a tuple."""
        return value if self._is_whole() else super().as_argument(builder, value)

    def from_argument(self, builder: ir.IRBuilder, value: object) -> object:
        """Return the tuple that was passed."""
        return value if self._is_whole() else super().from_argument(builder, value)


def _pass_whole() -> None:
    """Look up the names that are overridden, and register the representation."""
    if default_manager._handlers[types.NamedTuple] is not TupleModel:
        raise LookupError("Numba has another representation of named tuples")
    for name, n_taken in (("get_argument_type", 1), ("as_argument", 3), ("from_argument", 3)):
        signature(getattr(TupleModel, name)).bind(*[None] * n_taken)
    default_manager.register(types.NamedTuple, WholeTuple)


ARE_WHOLE = works_as_tested(_pass_whole, "the first fit takes longer to compile")

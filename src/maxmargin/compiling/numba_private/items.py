"""Items of arrays in compiled code, with fewer instructions than Numba's.

For every access Numba copies the fields of an array into memory, from which LLVM has to load them again. Here
they are taken from the array itself, and LLVM generates the same code in less time.
"""

from inspect import signature
from typing import Protocol

from llvmlite import ir
from numba import types

try:
    from numba.core.lowering import Lower
    from numba.core.registry import cpu_target
    from numba.np.arrayobj import load_item, store_item
except ImportError:
    Lower = object  # the trial of compilers fails, and the class below is not used
    load_item = store_item = None


class _Variable(Protocol):
    name: str


class _Signature(Protocol):
    args: tuple[types.Type, ...]
    return_type: types.Type


class ItemLower(Lower):  # type: ignore[misc]
    """Numba's lowering, with another one for numbers of contiguous arrays."""

    def lower_getitem(
        self, wanted: types.Type, expression: object, array: _Variable, index: _Variable, found: _Signature
    ) -> ir.Value:
        """Generate the code of ``array[index]``."""
        if not self._is_number(array, index):
            return super().lower_getitem(wanted, expression, array, index, found)
        item = load_item(self.context, self.builder, self.typeof(array.name), self._place(array, index))
        return self._as_type(item, found.return_type, wanted)

    def lower_setitem(
        self, array: _Variable, index: _Variable, value: _Variable, found: _Signature
    ) -> ir.Value | None:
        """Generate the code of ``array[index] = value``."""
        if not self._is_number(array, index):
            return super().lower_setitem(array, index, value, found)
        kind, given, taken = self.typeof(array.name), self.typeof(value.name), found.args[2]
        item = self._as_type(self._as_type(self.loadvar(value.name), given, taken), taken, kind.dtype)
        store_item(self.context, self.builder, kind, item, self._place(array, index))
        return None

    def _is_number(self, array: _Variable, index: _Variable) -> bool:
        """Whether the item is a number of a contiguous array, and indices are not checked."""
        kind, indices = self.typeof(array.name), _axes(self.typeof(index.name))
        return (
            type(kind) is types.Array  # not one within a record
            and kind.layout == "C"
            and isinstance(kind.dtype, types.Number | types.Boolean)
            and len(indices) == kind.ndim
            and all(isinstance(each, types.Integer) for each in indices)
            and not self.context.enable_boundscheck
        )

    def _place(self, array: _Variable, index: _Variable) -> ir.Value:
        """Generate the address of an item: that of ``data[(i * shape[1] + j) * shape[2] + k]``, and so on."""
        fields, builder = self.context.data_model_manager[self.typeof(array.name)], self.builder
        whole, place = self.loadvar(array.name), None
        shape = fields.get(builder, whole, "shape")
        for axis in range(len(_axes(self.typeof(index.name)))):
            length = builder.extract_value(shape, axis)
            k = self._index(index, axis, length)
            place = k if place is None else builder.add(builder.mul(place, length), k)
        return builder.gep(fields.get(builder, whole, "data"), [place])

    def _index(self, index: _Variable, axis: int, length: ir.Value) -> ir.Value:
        """Generate the index of an axis of this length; a negative one counts from the end."""
        kind, given, builder = self.typeof(index.name), self.loadvar(index.name), self.builder
        if isinstance(kind, types.BaseTuple):
            kind, given = kind.types[axis], builder.extract_value(given, axis)
        if not kind.signed:
            return self._as_type(given, kind, types.uintp)
        k = self._as_type(given, kind, types.intp)
        return builder.select(builder.icmp_signed("<", k, k.type(0)), builder.add(length, k), k)

    def _as_type(self, value: ir.Value, given: types.Type, wanted: types.Type) -> ir.Value:
        return self.context.cast(self.builder, value, given, wanted)


def _axes(index: types.Type) -> tuple[types.Type, ...]:
    """Return the types of the indices of all axes."""
    return tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)


def look_up_items() -> None:
    """Look up what the lowering of items overrides or calls."""
    signature(Lower.lower_getitem).bind(*[None] * 6)
    signature(Lower.lower_setitem).bind(*[None] * 5)
    for function, n_taken in ((load_item, 4), (store_item, 5)):
        signature(function).bind(*[None] * n_taken)
    model = cpu_target.target_context.data_model_manager[types.Array(types.float64, 1, "C")]
    if not {"data", "shape"} <= {*model._fields}:
        raise LookupError("Numba's arrays have other fields")
    cpu_target.target_context.enable_boundscheck  # noqa: B018

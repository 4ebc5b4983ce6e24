"""Operand access: closures that read and write registers, constants, special registers and addresses for a group.

A register is a NumPy array of shape (warps, 32) of unsigned words of its width (predicates bool, .b128 two words). The
closures are made once per instruction; each call serves all warps of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.load.variables import Place
from ptxgen.emulator.state.clusters import RANK_SHIFT
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.types import TYPES, Type

if TYPE_CHECKING:
    from ptxgen.emulator.checks.uninitialized.taint import Quarters
    from ptxgen.emulator.load.calls import Calls
    from ptxgen.emulator.load.names import Names
    from ptxgen.emulator.state.group import Group
    from ptxgen.emulator.state.machine import Machine

Reader = Callable[["Group"], Any]
Writer = Callable[["Group", Any], None]

_UNSIGNED: dict[int, Any] = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.uint64}
_FLOAT: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}


class Unmodelled(Exception):
    """An instruction or operand that the emulator has no meaning for; the run ends as incomplete if reached."""


def numpy_type(type: Type) -> np.dtype[Any]:
    """The NumPy type that computes in a PTX type; .b types and packed formats are unsigned words."""
    if type.kind == "signed":
        return np.dtype(f"i{type.bytes}")
    if type.kind == "float":
        return np.dtype(_FLOAT[type.bits])
    return np.dtype(_UNSIGNED[type.bits])


def parts(word: Any, dtype: Any) -> NDArray[Any]:
    """The parts of words of a packed type, along a new last axis, the lowest first."""
    word = np.ascontiguousarray(word).reshape((*np.shape(word), 1))
    return word.view(dtype)


def joined(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Words of their parts: the inverse of `parts`."""
    return np.ascontiguousarray(values).view(dtype)[..., 0]


class Binder:
    """Makes access closures for the operands of one instruction in its scope."""

    def __init__(
        self,
        machine: Machine,
        names: Names,
        in_entry: bool = True,
        calls: Calls | None = None,
        targets: Sequence[int] = (),
        following: int = 0,
    ) -> None:
        self.machine = machine
        self.names = names
        #: Whether the instruction stands in the entry, whose frame begins at 0 in every thread.
        self.in_entry = in_entry
        #: The functions that the program can call.
        self.calls = calls
        #: The ranks of the blocks to which a branch may go, and of the one that follows in the text.
        self.targets, self.following = targets, following
        #: Registers that the bound operands read, and those that they write.
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        #: Those that they read as addresses, and those that the instruction reads or writes by itself.
        self.vital: set[int] = set()
        self.inputs: set[int] = set()
        self.touched: set[int] = set()
        #: Of those that it writes, those that it reads if a flag says so.
        self.adds: set[int] = set()
        self.if_true: Reader | None = None
        #: Of a shuffle, the lane that each lane's value comes from, if it is always the same.
        self.lanes: NDArray[np.int64] | None = None
        #: Of registers that it writes, what each quarter of their bits depends on alone: quarters of registers.
        self.quarters: dict[int, Quarters] = {}
        #: Whether the instruction is a strong access.
        self.strong = False

    def register(self, operand: syntax.Operand) -> NDArray[Any]:
        """The array behind a register operand, which the instruction writes in ways that are not told here."""
        found = self._array(operand)
        self.touched.add(id(found))
        return found

    def input(self, operand: syntax.Operand) -> NDArray[Any]:
        """The array behind a register operand, which the instruction reads in ways that are not told here."""
        found = self._array(operand)
        self.inputs.add(id(found))
        return found

    def depends(
        self, target: syntax.Operand, bits: int, quarters: Sequence[Iterable[tuple[syntax.Operand, int]]],
        source_bits: int | None = None,
    ) -> None:  # fmt: skip
        """Each quarter of a register that the instruction writes depends on these quarters of operands alone.

        Nothing is kept where a register has not just so many bits, but is wider.
        """
        found = self._register(target)
        made: list[list[tuple[int, int]]] = []
        for quarter in quarters:
            sources = [(self._register(operand), number) for operand, number in quarter]
            if any(each is not None and each.itemsize * 8 != (source_bits or bits) for each, _ in sources):
                return
            made.append([(id(each), number) for each, number in sources if each is not None])
        if found is not None and found.itemsize * 8 == bits:
            self.quarters[id(found)] = made

    def _register(self, operand: syntax.Operand) -> NDArray[Any] | None:
        """The array behind an operand that is a register of the program."""
        found = self.names(operand.text) if isinstance(operand, syntax.Name) else None
        return found if isinstance(found, np.ndarray) else None

    def _array(self, operand: syntax.Operand) -> NDArray[Any]:
        found = self.names(operand.text) if isinstance(operand, syntax.Name) else None
        if not isinstance(found, np.ndarray):
            raise Unmodelled(f"the operand {operand}")
        return found

    def predicate(self, operand: syntax.Operand) -> Reader:
        """Reads a predicate, `!p` negated, as bool; a constant as True or False."""
        if isinstance(operand, syntax.Negation):
            inner = self.predicate(operand.operand)
            return lambda g: ~inner(g)
        if isinstance(operand, syntax.Immediate):
            value = np.bool_(bool(operand.value))
            return lambda g: value
        special = self.machine.special(operand.text) if isinstance(operand, syntax.Name) else None
        if special is not None:
            return special
        array = self._array(operand)
        if array.dtype != np.bool_:
            raise Unmodelled(f"{operand}, which is no predicate,")
        self.reads.add(id(array))
        return lambda g: array[g.rows]

    def source(self, operand: syntax.Operand, type: Type | str) -> Reader:
        """Reads an operand as an array (warps of the group, 32) or a scalar of the type's NumPy type."""
        wanted = TYPES[type] if isinstance(type, str) else type
        dtype = numpy_type(wanted)
        if isinstance(operand, syntax.Immediate | syntax.Expression):
            value = constant(operand, wanted)
            return lambda g: value
        if isinstance(operand, syntax.Name):
            found = self.names(operand.text)
            if isinstance(found, np.ndarray):
                return self._from_register(found, wanted, dtype)
            special = self.machine.special(operand.text)
            if special is not None:
                return lambda g: special(g).astype(dtype, copy=False)
            if found is not None:
                return self._address_of(found, dtype)
        raise Unmodelled(f"the operand {operand}")

    def place(self, operand: syntax.Operand | None) -> Place | None:
        """The variable that an operand names, alone or as the base of an address; None if it names none."""
        base = operand.base if isinstance(operand, syntax.Address) else operand
        found = self.names(base.text) if isinstance(base, syntax.Name) else None
        return found if isinstance(found, Place) else None

    def _address_of(self, place: Place, dtype: np.dtype[Any]) -> Reader:
        """The address of a variable in its own state space: of a shared one with the rank of the warp's own CTA; in
        functions that of a local one depends on the thread.
        """
        word = np.array(place.address, np.uint64).astype(dtype)[()]
        clusters = self.machine.clusters
        if place.space == "local" and not self.in_entry:
            frame = self.machine.stack.frame
            return lambda g: (frame[g.rows] + place.address).astype(dtype, copy=False)
        if place.space == "shared" and clusters.size > 1:
            places = (clusters.row_rank[:, None] << RANK_SHIFT | place.address).astype(dtype)
            return lambda g: places[g.rows]
        return lambda g: word

    def _from_register(self, array: NDArray[Any], wanted: Type, dtype: np.dtype[Any]) -> Reader:
        self.reads.add(id(array))
        self._require_room(array, wanted)
        if wanted.bits == 128:
            return lambda g: array[g.rows]
        if array.dtype.itemsize == dtype.itemsize:
            viewed = array.view(dtype)
            return lambda g: viewed[g.rows]
        unsigned = _UNSIGNED[wanted.bits]
        return lambda g: array[g.rows].astype(unsigned).view(dtype)

    def destination(self, operand: syntax.Operand, type: Type | str) -> Writer:
        """Writes values of a type; a wider register gets them extended by the type's sign. `_` drops them."""
        if isinstance(operand, syntax.Name) and operand.text == "_":
            return lambda g, value: None
        wanted = TYPES[type] if isinstance(type, str) else type
        array = self._array(operand)
        self.writes.add(id(array))
        self._require_room(array, wanted)
        dtype, stored = numpy_type(wanted), array.dtype
        extended = (
            np.dtype(f"{'i' if wanted.kind == 'signed' else 'u'}{stored.itemsize}") if stored != np.bool_ else stored
        )

        def write(g: Group, value: Any) -> None:
            value = np.asarray(value)
            if value.dtype != dtype:
                value = value.astype(dtype)
            if stored.itemsize != dtype.itemsize:
                value = value.view(f"{extended.kind}{dtype.itemsize}").astype(extended)
            if value.dtype != stored:
                value = value.view(stored)
            g.store(array, value)

        return write

    @staticmethod
    def _require_room(array: NDArray[Any], wanted: Type) -> None:
        """Refuse registers that cannot hold a type; `ptxgen.check` says more about them."""
        if (array.dtype == np.bool_) != (wanted.kind == "predicate"):
            raise Unmodelled(f"a {'predicate' if array.dtype == np.bool_ else 'register'} for {wanted}")
        if (array.itemsize if array.ndim == 2 else 16) < wanted.bytes or (array.ndim == 3 and wanted.bits < 128):
            raise Unmodelled(f"a register of another width than {wanted}")

    def vector(self, operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
        """The elements of `{a, b}`, of a vector register, of a special one such as %tid; or the operand itself."""
        if isinstance(operand, syntax.Vector):
            return operand.elements
        if isinstance(operand, syntax.Name):
            special = special_register(operand.text)
            length = special.vector if special is not None else self.names.vector(operand.text)
            if length:
                return tuple(syntax.Name(f"{operand.text}.{axis}") for axis in "xyzw"[:length])
        return (operand,)

    def address(self, operand: syntax.Operand, bits: int = 64) -> Reader:
        """Reads an address operand as int64 (warps, 32) or scalar; 32-bit registers count as unsigned."""
        if not isinstance(operand, syntax.Address):
            raise Unmodelled(f"the address {operand}")
        offset = np.int64(operand.offset)
        base = operand.base
        if isinstance(base, syntax.Immediate):
            value = np.int64(int(base.value)) + offset
            return lambda g: value
        if isinstance(base, syntax.Name):
            found = self.names(base.text)
            if isinstance(found, np.ndarray):
                if found.dtype == np.bool_ or found.ndim != 2:
                    raise Unmodelled(f"the address {operand}")
                self.reads.add(id(found))
                self.vital.add(id(found))
                return lambda g: found[g.rows].astype(np.int64) + offset
            if found is not None:
                where = self._address_of(found, np.dtype(np.int64))
                return lambda g: where(g) + offset
        raise Unmodelled(f"the address {operand}")


def constant(operand: syntax.Operand, type: Type) -> Any:
    """A constant as a NumPy scalar of the type; integers wrap to the width, as ptxas does."""
    value = operand.evaluate({}) if isinstance(operand, syntax.Expression) else operand.value  # type: ignore[union-attr]
    dtype = numpy_type(type)
    bits = operand.bits if isinstance(operand, syntax.Immediate) else None
    if isinstance(value, float):
        if bits is not None and operand.width == type.bits:  # type: ignore[union-attr]
            return np.array(bits, _UNSIGNED[type.bits]).view(dtype)[()]
        word = np.array(value, _FLOAT[type.bits])
        return word.view(dtype)[()]
    if dtype == np.bool_:
        return np.bool_(bool(value))
    if type.kind == "float":
        return np.array(value, dtype)[()]
    wrapped = int(value) & ((1 << min(type.bits, 64)) - 1)
    return np.array(wrapped, _UNSIGNED[type.bits]).view(dtype)[()]

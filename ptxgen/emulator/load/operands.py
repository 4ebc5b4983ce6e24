"""Operand access: closures that read and write registers, constants, special registers and addresses for a group.

The closures are made once for a program, and serve all machines that run it: they find registers and views of them by
their index in the machine of the group, as arrays of shape (warps, 32) of unsigned words (predicates bool, .b128 two
words). Each call serves all warps of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.load.constants import constant, numpy_type
from ptxgen.emulator.load.registers import UNSIGNED, Register
from ptxgen.emulator.load.variables import Location
from ptxgen.emulator.state.special_registers import CLOCKS, SPECIAL_REGISTERS
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.types import TYPES, Type

if TYPE_CHECKING:
    from ptxgen.emulator.load.names import Names
    from ptxgen.emulator.load.program import Program
    from ptxgen.emulator.load.register_use import Quarters
    from ptxgen.emulator.state.group import Group

#: The bits of an address.
_WORD = (1 << 64) - 1

Reader = Callable[["Group"], Any]
Writer = Callable[["Group", Any], None]


class Unmodelled(Exception):
    """An instruction or operand that the emulator has no semantics for; the run ends as incomplete if reached."""


def parts(word: Any, dtype: Any) -> NDArray[Any]:
    """The parts of words of a packed type, along a new last axis, the lowest first."""
    word = np.ascontiguousarray(word).reshape((*np.shape(word), 1))
    return word.view(dtype)


def joined(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Words of their parts: the inverse of `parts`."""
    return np.ascontiguousarray(values).view(dtype)[..., 0]


def _words(value: int, dtype: np.dtype[Any]) -> Any:
    """An integer as a word of a type, without the bits that it has beyond."""
    return np.array(value & _WORD, np.uint64).astype(dtype)[()]


def _added(start: Any, more: Any) -> Any:
    """A sum that wraps."""
    with np.errstate(over="ignore"):
        return start + more


@cache
def _written(type: Type, bits: int) -> tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any], np.dtype[Any] | None, bool]:
    """How a register of so many bits takes a value of a type.

    The NumPy type of the value, that of the register, that to which the value is extended, and its own as an integer,
    None where the register is no wider; whether what results must be viewed as the register's.
    """
    dtype, stored = numpy_type(type), np.dtype(UNSIGNED[bits])
    extended = np.dtype(f"{'i' if type.kind == 'signed' else 'u'}{stored.itemsize}") if stored != np.bool_ else stored
    narrow = np.dtype(f"{extended.kind}{dtype.itemsize}") if stored.itemsize != dtype.itemsize else None
    return dtype, stored, extended, narrow, (dtype if narrow is None else extended) != stored


class Binder:
    """Makes access closures for the operands of one instruction in its scope."""

    def __init__(
        self,
        program: Program,
        names: Names,
        in_entry: bool = True,
        targets: Sequence[int] = (),
        following: int = 0,
    ) -> None:
        self.program = program
        self.names = names
        #: True: the instruction is in the entry, whose frame begins at 0 in every thread.
        self.in_entry = in_entry
        #: The ranks of the blocks to which a branch may go, and of the one that follows in the text.
        self.targets, self.following = targets, following
        #: Registers that the bound operands read, and those that they write.
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        #: Registers read as addresses; all registers read; registers that the instruction itself reads or writes.
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
        #: True: the instruction is a strong access.
        self.strong = False

    def register(self, operand: syntax.Operand) -> Register:
        """A register operand that the instruction writes by itself, without a closure from here."""
        found = self._register(operand)
        self.touched.add(found.index)
        return found

    def input(self, operand: syntax.Operand) -> Register:
        """A register operand that the instruction reads by itself, without a closure from here."""
        found = self._register(operand)
        self.inputs.add(found.index)
        return found

    def depends(
        self,
        target: syntax.Operand,
        bits: int,
        quarters: Sequence[Iterable[tuple[syntax.Operand, int]]],
        source_bits: int | None = None,
    ) -> None:
        """Each quarter of a register that the instruction writes depends on these quarters of operands alone.

        Nothing is kept where a register has not just so many bits, but is wider.
        """
        found = self._named(target)
        made: list[list[tuple[int, int]]] = []
        for quarter in quarters:
            sources = [(self._named(operand), number) for operand, number in quarter]
            if any(each is not None and each.bytes * 8 != (source_bits or bits) for each, _ in sources):
                return
            made.append([(each.index, number) for each, number in sources if each is not None])
        if found is not None and found.bytes * 8 == bits:
            self.quarters[found.index] = made

    def _named(self, operand: syntax.Operand) -> Register | None:
        """The register of the program that an operand names, if it does."""
        found = self.names(operand.text) if isinstance(operand, syntax.Name) else None
        return found if isinstance(found, Register) else None

    def _register(self, operand: syntax.Operand) -> Register:
        found = self._named(operand)
        if found is None:
            raise Unmodelled(f"the operand {operand}")
        return found

    def predicate(self, operand: syntax.Operand) -> Reader:
        """Reads a predicate, `!p` negated, as bool; a constant as True or False."""
        if isinstance(operand, syntax.Negation):
            inner = self.predicate(operand.operand)
            return lambda g: ~inner(g)
        if isinstance(operand, syntax.Immediate | syntax.Expression):
            value = np.bool_(bool(value_of(operand)))
            return lambda g: value
        special = self._special(operand)
        if special is not None:
            return special
        register = self._register(operand)
        if not register.is_predicate:
            raise Unmodelled(f"{operand}, which is no predicate,")
        index = register.index
        self.reads.add(index)
        return lambda g: g.machine.registers[index][g.warps]

    def _special(self, operand: syntax.Operand) -> Reader | None:
        """Reads a special register; None if the operand is none that the emulator has."""
        if not isinstance(operand, syntax.Name) or operand.text not in SPECIAL_REGISTERS:
            return None
        name = operand.text
        self.program.reads_time |= name.startswith(CLOCKS)
        self.program.uses_reserved_shared |= name == "%reserved_smem_offset_1"
        return lambda g: g.machine.special[name](g)

    def source(self, operand: syntax.Operand, type: Type | str) -> Reader:
        """Reads an operand as an array (warps of the group, 32) or a scalar of the type's NumPy type."""
        wanted = TYPES[type] if isinstance(type, str) else type
        dtype = numpy_type(wanted)
        if isinstance(operand, syntax.Name):
            found = self.names(operand.text)
            if isinstance(found, Register):
                return self._from_register(found, wanted, dtype)
            special = self._special(operand)
            if special is not None:
                return lambda g: special(g).astype(dtype, copy=False)
            if found is not None:
                return self._address_of(found, dtype)
        if isinstance(operand, syntax.Subscript):
            return self._element(operand, dtype)
        if isinstance(operand, syntax.Expression) and isinstance(operand.operands[0], syntax.Name):
            return self._sum(operand, wanted)
        if isinstance(operand, syntax.Immediate | syntax.Expression):
            try:
                value = constant(operand, wanted)
            except ValueError:  # it names something that has no value here
                raise Unmodelled(f"the operand {operand}") from None
            if wanted.bits == 128:
                pair = np.array([value, ~np.uint64(0) if int(value) >> 63 else 0], np.uint64)
                return lambda g: np.broadcast_to(pair, (g.size, 32, 2))
            return lambda g: value
        raise Unmodelled(f"the operand {operand}")

    def _sum(self, operand: syntax.Expression, wanted: Type) -> Reader:
        """Reads `register+4` or `symbol+4`, which wraps at the type's width (SASS of ptxas 13.5)."""
        name, *rest = operand.operands
        offset = value_of(rest[0]) if operand.operator == "+" and len(rest) == 1 else None
        dtype = numpy_type(wanted)
        if not isinstance(offset, int) or dtype.kind not in "iu" or wanted.bits == 128:
            raise Unmodelled(f"the operand {operand}")
        start, more = self.source(name, wanted), _words(offset, dtype)
        return lambda g: _added(start(g), more)

    def _element(self, operand: syntax.Subscript, dtype: np.dtype[Any]) -> Reader:
        """Reads the address of `array[2]`, `array[%r]` or `array[%r+1]`; any index wraps (PTX ISA 6.4.2; SASS)."""
        found, index = self.names(operand.base.text), value_of(operand.index)
        if not isinstance(found, Location) or dtype.kind not in "iu":
            raise Unmodelled(f"the operand {operand}")
        start, unit = self._address_of(found, dtype), found.unit
        if isinstance(index, int):
            more = _words(index * unit, dtype)
            return lambda g: _added(start(g), more)
        names = operand.index.operands[:1] if isinstance(operand.index, syntax.Expression) else (operand.index,)
        register = self.names(names[0].text) if isinstance(names[0], syntax.Name) else None
        wide = isinstance(register, Register) and register.bits == 64
        number = self.source(operand.index, "u64" if wide else "u32")
        return lambda g: _added(start(g), (np.asarray(number(g)).astype(np.uint64) * np.uint64(unit)).astype(dtype))

    def location(self, operand: syntax.Operand | None) -> Location | None:
        """The variable that an operand names, alone or as the base of an address; None if it names none."""
        base = operand.base if isinstance(operand, syntax.Address | syntax.Subscript) else operand
        found = self.names(base.text) if isinstance(base, syntax.Name) else None
        return found if isinstance(found, Location) else None

    def _address_of(self, location: Location, dtype: np.dtype[Any]) -> Reader:
        """The address of a variable in its own state space: of a shared one with the rank of the warp's own CTA; in
        functions that of a local one depends on the thread.
        """
        address, symbol = location.address, location.symbol
        word = np.array(address, np.uint64).astype(dtype)[()]
        if symbol is not None:
            return lambda g: np.array(g.machine.config.addresses[symbol], np.uint64).astype(dtype)[()]
        if location.space == "local" and not self.in_entry:
            return lambda g: (g.machine.stack.frame[g.warps] + address).astype(dtype, copy=False)
        if location.space == "shared":
            return lambda g: word if g.machine.clusters.size == 1 else g.machine.shared_address(address, dtype)[g.warps]
        return lambda g: word

    def _from_register(self, register: Register, wanted: Type, dtype: np.dtype[Any]) -> Reader:
        index = register.index
        self.reads.add(index)
        self._require_room(register, wanted)
        if wanted.bits == 128:
            return lambda g: g.machine.registers[index][g.warps]
        if register.bytes == dtype.itemsize:
            view = self.program.view(register, dtype)
            return lambda g: g.machine.views[view][g.warps]
        unsigned = UNSIGNED[wanted.bits]
        return lambda g: g.machine.registers[index][g.warps].astype(unsigned).view(dtype)

    def destination(self, operand: syntax.Operand, type: Type | str) -> Writer:
        """Writes values of a type; a wider register gets them extended by the type's sign. `_` drops them."""
        if isinstance(operand, syntax.Name) and operand.text == "_":
            return lambda g, value: None
        wanted = TYPES[type] if isinstance(type, str) else type
        register = self._register(operand)
        index = register.index
        self.writes.add(index)
        self._require_room(register, wanted)
        # Comparing types takes as long as a small operation: here once, not in each step.
        dtype, stored, extended, narrow, viewed = _written(wanted, register.bits)

        def write(g: Group, value: Any) -> None:
            value = np.asarray(value)
            if value.dtype is not dtype and value.dtype != dtype:
                value = value.astype(dtype)
            if narrow is not None:
                value = value.view(narrow).astype(extended)
            if viewed:
                value = value.view(stored)
            g.store(g.machine.registers[index], value)

        return write

    @staticmethod
    def _require_room(register: Register, wanted: Type) -> None:
        """Refuse registers that cannot hold a type; `ptxgen.check` says more about them."""
        if register.is_predicate != (wanted.kind == "predicate"):
            raise Unmodelled(f"a {'predicate' if register.is_predicate else 'register'} for {wanted}")
        if register.bits < wanted.bits or (register.bits == 128 and wanted.bits < 128):
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
        if isinstance(operand, syntax.Subscript):
            return self._element(operand, np.dtype(np.int64))
        if not isinstance(operand, syntax.Address):
            raise Unmodelled(f"the address {operand}")
        offset = np.array(operand.offset & _WORD, np.uint64).astype(np.int64)[()]
        base = operand.base
        if isinstance(base, syntax.Immediate | syntax.Expression):
            number = value_of(base)
            if not isinstance(number, int):
                raise Unmodelled(f"the address {operand}")
            value = np.int64((number + operand.offset + (1 << 63)) % (1 << 64) - (1 << 63))
            return lambda g: value
        if isinstance(base, syntax.Name):
            found = self.names(base.text)
            if isinstance(found, Register):
                if found.is_predicate or found.bits == 128:
                    raise Unmodelled(f"the address {operand}")
                index = found.index
                self.reads.add(index)
                self.vital.add(index)
                return lambda g: g.machine.registers[index][g.warps].astype(np.int64) + offset
            if found is not None:
                where = self._address_of(found, np.dtype(np.int64))
                return lambda g: where(g) + offset
        raise Unmodelled(f"the address {operand}")

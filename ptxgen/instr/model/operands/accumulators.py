"""Specification of C, the accumulator that mma and wmma read: registers, or constants in their place.

No manual has the constants (measured, ptxas 13.5.37, 2026-11-27); kernel libraries write them for a C of zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.instr.model.operands.compound import VectorSpec
from ptxgen.instr.model.operands.specification import type_of, value_of
from ptxgen.instr.model.symbols import Problem, Resolver, Subject
from ptxgen.instr.model.types import Type
from ptxgen.syntax import Expression, Immediate, Name, Operand

#: What ptxas takes of a constant in C: its bits, its value as a float, or its bits where it is a float of 32 bits.
Mode = Literal["bits", "value", "single"]


@dataclass(kw_only=True, slots=True)
class AccumulatorSpec(VectorSpec):
    """`{a, b, ...}` of registers and constants, whose bits ptxas copies into the registers.

    A constant is an integer, a float of 32 bits (`0f...`), or one of 64 bits (decimal ones too), of which a register of
    32 bits gets the low half. Instructions that ptxas takes apart on some targets take floats of any width ("value"),
    wmma only those of 32 bits for a register of 32 ("single").
    """

    mode: Callable[[Any], Mode] = lambda form: "bits"

    def _elements(self, elements: Sequence[Operand], form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        constants = [item for item in elements if isinstance(item, Immediate | Expression)]
        registers = [item for item in elements if not isinstance(item, Immediate | Expression)]
        # `slots=True` makes the class anew, so that super() without arguments would not find it.
        if registers:
            yield from VectorSpec._elements(self, registers, form, resolve)
        if not constants:
            return
        unknown = next((item for item in constants if value_of(item) is None), None)
        if unknown is not None:
            message = f"an element of {self.name} must be a constant that has a value, not {unknown}"
            yield Problem("operand-kind", message, part=str(unknown))
            return
        rule = self._broken(elements, constants, registers, form) or _registers(constants, registers, resolve)
        if rule is not None:
            yield Problem("operand-type", f"the elements of {self.name} must be {rule}")
        else:
            yield from self._other_values(constants, form)

    def _broken(
        self,
        elements: Sequence[Operand],
        constants: Sequence[Operand],
        registers: Sequence[Operand],
        form: Subject,
    ) -> str | None:
        """What the elements must be where they are not."""
        wanted, mode = type_of(self.type, form), self.mode(form)
        converts = mode == "value"
        floats = [item for item in constants if isinstance(value_of(item), float)]
        integers = [item for item in constants if not isinstance(value_of(item), float)]
        if integers and floats:
            return f"floats or integers, not {floats[0]} and {integers[0]}"
        if wanted.name == "s32":
            return f"integers, not {floats[0]}" if floats else None
        if wanted.name == "f16x2" and (mode != "bits" or not registers):
            beside = ", or constants beside registers" if mode == "bits" else ""
            return f"registers{beside}, not {constants[0]}"
        if wanted.name == "f64":
            single = next((item for item in floats if _is_single(item)), None)
            if single is not None:
                return f"floats of 64 bits, not {single}"
        elif integers and (mode != "bits" or not registers) and wanted.name == "f32":
            return f"floats, as in 0f00000000, not {integers[0]}"
        if not floats or converts or wanted.name == "f64":
            return None
        wide = next((item for item in floats if not _is_single(item)), None)
        if wide is not None and mode == "single":
            return f"registers or floats of 32 bits, as in 0f00000000, not {wide}"
        return _widths(elements, floats)

    def _other_values(self, constants: Sequence[Operand], form: Subject) -> Iterator[Problem]:
        """Advise of constants that ptxas takes as bits where a reader expects a value."""
        wanted = type_of(self.type, form)
        for item in constants:
            value = value_of(item)
            if wanted.name == "f64" and isinstance(value, int) and value:
                yield _warning(f"{self.name} has the bits of the integer {item}, not its value; write {float(value)}")
            elif wanted.name == "f32" and isinstance(value, float) and not _is_single(item):
                low = int.from_bytes(struct.pack("<d", value)[:4], "little")
                (single,) = struct.unpack("<I", struct.pack("<f", value)) if abs(value) < _LARGEST else (None,)
                if low != single:
                    fix = f"write 0f{single:08X}" if single is not None else "it is too large for .f32"
                    yield _warning(f"{self.name} has the low 32 bits of the double {item}, 0x{low:08x}; {fix}")


#: What rounds to an infinity is beyond this.
_LARGEST = 3.4e38


def _is_single(operand: Operand) -> bool:
    """Whether it is a float of 32 bits, `0f...`; all others have 64."""
    return isinstance(operand, Immediate) and operand.width == 32


def _warning(message: str) -> Problem:
    return Problem("constant-bits", message, "warning")


def _registers(constants: Sequence[Operand], registers: Sequence[Operand], resolve: Resolver | None) -> str | None:
    """Registers beside constants are of one type; floats and untyped ones fit floats, integers and these integers."""
    found: dict[Type, Operand] = {}
    for item in registers:
        symbol = resolve(item.text) if resolve is not None and isinstance(item, Name) else None
        if symbol is not None and symbol.type is not None:
            found.setdefault(symbol.type, item)
    if len(found) > 1:
        return f"registers of one type beside {constants[0]}, not {' and '.join(map(str, found.values()))}"
    kinds = ("float",) if isinstance(value_of(constants[0]), float) else ("unsigned", "signed")
    for type, item in found.items():
        if type.kind not in ("bits", *kinds) or type.name == "f16x2":
            return f"untyped registers beside {constants[0]}, not {item}, which is declared {type}"
    return None


def _widths(elements: Sequence[Operand], floats: Sequence[Operand]) -> str | None:
    """No decimal after a `0f...` that comes first, and not decimals alone, which have 64 bits."""
    wide = next((item for item in floats if not _is_single(item)), None)
    if wide is None:
        return None
    if _is_single(elements[0]):
        return f"of one width; {elements[0]} has 32 bits, {wide} has 64"
    if len(floats) == len(elements) and not any(map(_is_single, floats)):
        return f"registers or floats of 32 bits, as in 0f00000000; {wide} has 64 bits"
    return None

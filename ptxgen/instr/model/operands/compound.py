"""Specifications of addresses, vectors and parts of registers. PTX ISA 6.4, 9.4 and 9.7.18."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.instr.model.operands.specification import (
    ADDRESSABLE,
    EXAMPLE_PARAMETER,
    EXAMPLE_RESULT,
    RegisterSpec,
    SourceSpec,
    Specification,
    TypeRef,
    example_register,
    in_register,
    subscript_problem,
    type_of,
    type_problem,
    value_of,
)
from ptxgen.instr.model.symbols import Problem, Resolver, Subject, Symbol
from ptxgen.instr.model.types import TYPES, Type, holds, holds_wider
from ptxgen.syntax import Address, Expression, Immediate, Name, Negation, Operand, Subscript, Vector

#: Whose variables an address without a state space may name: those with generic addresses (measured, ptxas 13.5).
GENERIC = ("global", "shared", "local")


@dataclass(kw_only=True, slots=True)
class AddressSpec(Specification):
    """`[base]`, `[base+offset]`: base is a register that holds an address in `space`, or a variable in it.

    `space` names a state space, a modifier that carries one, or None for generic; `variables` are the spaces whose
    variables a generic address may name. `bits` fixes the register width where the space does not; `untyped` asks
    for a .b register; `narrow` takes 32 bits for a global or generic address, as ptxas does in some instructions, and
    `short` 8 or 16 bits for one in .shared, with a warning;
    `written` forbids what can only be read. `unified` allows `[a].unified`, `indexed` an element of an array without
    brackets, `a[2]` (6.4.2). `nameless`: spaces, as written, in which ptxas takes registers alone.
    """

    space: str | None = None
    bits: tuple[int, ...] | None = None
    short: bool = False
    untyped: bool = False
    narrow: bool = False
    variables: tuple[str, ...] = GENERIC
    written: bool = False
    unified: bool = False
    indexed: bool = False
    nameless: tuple[str, ...] = ()

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Subscript):
            return self.indexed
        return isinstance(operand, Address) and not operand.more

    def _qualified(self, form: Subject) -> str | None:
        """The state space in this instruction as it is written, `shared::cta`; None is generic."""
        return getattr(form, self.space, self.space) if self.space else None

    def space_of(self, form: Subject) -> str | None:
        """The state space in this instruction, without `::cta` and the like; None is generic."""
        space = self._qualified(form)
        return space.partition("::")[0] if space else None

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        space = self.space_of(form)
        base = operand.base if isinstance(operand, Address | Subscript) else operand
        if isinstance(operand, Subscript):
            problem = subscript_problem(operand, resolve)
            if problem is not None:
                yield problem
                return
        unified, offset = (operand.unified, operand.offset) if isinstance(operand, Address) else (False, 0)
        if unified and (not self.unified or space not in (None, "global")):
            yield Problem("operand-kind", f"the address {self.name} of {form.opcode_text} allows no .unified")
        elif isinstance(base, Subscript) or (offset < 0 and "+" not in str(operand)):
            yield Problem("operand-kind", f"the address {self.name} must be [base] or [base+offset], not {operand}")
        elif not isinstance(base, Name):
            if space != "local":
                yield Problem("operand-kind", f"a constant address requires .local, not {operand}")
        elif resolve is not None:
            symbol = resolve(base.text)
            if symbol is None:
                yield Problem("undeclared-name", f"{base} in the address {self.name} is not declared")
            elif symbol.kind == "register":
                yield from self._register(base, symbol, form)
            elif symbol.kind in ADDRESSABLE and symbol.kind != "function":
                yield from self._variable(base, symbol, form)
                if unified and not symbol.unified:
                    yield Problem("operand-kind", f"{operand} requires a variable with attribute .unified, not {base}")
            else:
                kind = f"{symbol.kind} register" if symbol.kind == "special" else symbol.kind
                yield Problem(
                    "operand-kind", f"the address {self.name} must be a register or variable, not the {kind} {base}"
                )

    def _register(self, base: Name, symbol: Symbol, form: Subject) -> Iterator[Problem]:
        declared, space = symbol.type, self.space_of(form)
        assert declared is not None
        where = f"the address {self.name}"
        if (self.written and space == "param") or self._qualified(form) == "param::func":
            # ptxas 13.5 crashes on a register in st.param (measured).
            yield Problem("operand-kind", f"{where} must be a .param variable of this block, not the register {base}")
            return
        if declared.kind in ("float", "packed", "predicate") or symbol.vector is not None or declared.bits > 64:
            yield Problem("operand-type", f"{where} must be in an integer register, but {base} is declared {declared}")
        elif self.short and space == "shared" and declared.bits < 32:
            yield Problem("address-width", f"{where} has only the {declared.bits} bits of {base}", "warning")
        elif self.bits is not None:
            if declared.bits not in self.bits:
                widths = " or ".join(f"{bits}-bit" for bits in self.bits)
                yield Problem("operand-type", f"{where} must be in a {widths} register, but {base} is {declared}")
            elif self.untyped and declared.kind != "bits":
                yield Problem("operand-type", f"{where} must be in a .b register, but {base} is declared {declared}")
        elif declared.bits == 32 and space in (None, "global") and not self.narrow:
            name = f".{space}" if space else "generic"
            yield Problem("operand-type", f"{where} is {name}, so 64 bits wide, but {base} is declared {declared}")
        elif declared.bits < (64 if space in (None, "global") else 32):
            yield Problem("address-width", f"{where} has only the {declared.bits} bits of {base}", "warning")

    def _variable(self, base: Name, symbol: Symbol, form: Subject) -> Iterator[Problem]:
        space = self.space_of(form)
        legal = self.variables if space is None else (space,)
        if self._qualified(form) in self.nameless:
            legal = ()
        if symbol.type is not None and symbol.type.kind == "opaque":
            yield Problem("operand-kind", f"the memory of {base} is hidden, as it is a {symbol.type}")
            return
        if not legal:
            yield Problem("operand-kind", f"the address {self.name} must be in a register, not the variable {base}")
        elif symbol.space not in legal:
            spaces = " or ".join(f".{each}" for each in legal)
            yield Problem("state-space", f"the address {self.name} must be in {spaces}, but {base} is .{symbol.space}")
        elif space == "param":
            yield from self._parameter(base, symbol, form)

    def _parameter(self, base: Name, symbol: Symbol, form: Subject) -> Iterator[Problem]:
        """What lives in .param: variables of a body belong to calls, and calls are never half made."""
        part = str(self._qualified(form)).partition("::")[2]
        if symbol.kind in ("parameter", "argument") if self.written else symbol.kind == "result":
            how = "written" if self.written else "read"
            yield Problem("state-space", f"the {symbol.kind} {base} cannot be {how}")
        elif symbol.kind == ("parameter" if part == "func" else "variable" if part == "entry" else ""):
            yield Problem("state-space", f"{form.opcode_text} is not for {base}, a {symbol.kind}")
        elif symbol.kind == "variable" and form.guard is not None:
            yield Problem("guard", f"{form.opcode_text} of {base}, which belongs to a call, cannot have a guard")

    def example(self, form: Subject, position: int) -> str:
        if self.written and self.space_of(form) == "param":
            return f"[{EXAMPLE_PARAMETER}]"
        if self._qualified(form) == "param::func":
            return f"[{EXAMPLE_RESULT}]"
        bits = self.bits[-1] if self.bits else 64
        return f"[{example_register(TYPES[f'b{bits}'], position)}]"

    def describe(self) -> str:
        return "an address in brackets"

    def explain(self, form: Subject) -> str:
        space = self.space_of(form)
        if space == "tmem":
            return "an address in brackets, in tensor memory"
        return f"an address in brackets, .{space}" if space else "an address in brackets, generic"


def _differ(kinds: Set[str]) -> bool:
    """Whether one is a float and another an integer."""
    return "float" in kinds and not kinds.isdisjoint(("unsigned", "signed"))


def _kind_of(item: Operand, resolve: Resolver | None) -> str:
    """The kind of an element's type, "" where it has none of its own."""
    value = value_of(item)
    if value is not None:
        return "float" if isinstance(value, float) else "signed"
    symbol = resolve(item.text) if resolve and isinstance(item, Name) else None
    return symbol.type.kind if symbol is not None and symbol.kind == "register" and symbol.type is not None else ""


@dataclass(kw_only=True, slots=True)
class VectorSpec(Specification):
    """`{a, b, ...}` of `count` registers or constants, or a vector register.

    With `scalar`, one element may stand without braces. `exact` makes the length part of the shape, for syntax lines
    that differ by nothing else. `sink` allows `_` for elements, but not for all of them, `discard` in place of
    the whole, `mixed` constants beside registers, or alone, not integers beside floats (measured, ptxas 13.5).
    `apart` forbids constants beside floats and special registers; `bits` allows other widths than that of the type;
    `braced` asks for braces around several elements and none around one, not a vector register. With `sums` the sum of
    a register and a constant may stand for one element without braces.
    """

    type: TypeRef
    count: int | Callable[[Any], int]
    exact: bool = False
    scalar: bool = False
    sink: bool | Callable[[Any], bool] = False
    discard: bool = False
    braced: bool = False
    immediate: bool = False
    mixed: bool | Literal["alone"] = False
    special: bool = False
    wide: bool = False
    apart: bool = False
    bits: tuple[int, ...] = ()
    sums: bool = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Vector):
            return not self.exact or len(operand.elements) == self.count
        if self.sums and isinstance(operand, Expression):
            operand = operand.operands[0]
        constant = self.immediate and isinstance(operand, Immediate | Expression)
        return self.scalar and (isinstance(operand, Name) or constant)

    def length(self, form: Subject) -> int:
        """The number of elements in this instruction."""
        return self.count(form) if callable(self.count) else self.count

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        length = self.length(form)
        if isinstance(operand, Vector):
            found = len(operand.elements)
            if found == length == 1 and self.braced:
                yield Problem("vector-length", f"{self.name} must be one register, without braces, not {operand}")
                return
            if found != length:
                yield Problem("vector-length", f"{self.name} must have {length} elements, not {found}")
                return
            yield from self._elements(operand.elements, form, resolve)
        elif self.discard and isinstance(operand, Name) and operand.text == "_":
            return
        elif length != 1:
            yield from self._whole(operand, length, form, resolve)
        elif self._skips(form) and isinstance(operand, Name) and operand.text == "_":
            yield Problem("operand-kind", f"{self.name} must be a register, not the sink _")
        else:
            yield from self._element(form, bare=True).problems(operand, form, resolve)

    def _skips(self, form: Subject) -> bool:
        return self.sink(form) if callable(self.sink) else self.sink

    def _element(self, form: Subject, *, bare: bool = False) -> Specification:
        if self.immediate or self.mixed:
            return SourceSpec(name=self.name, type=self.type, wide=self.wide, special=self.special)
        sums, skips = self.sums and bare, self._skips(form)
        return RegisterSpec(
            name=self.name, type=self.type, wide=self.wide, sink=skips, sums=sums, float_sums=False
        )  # fmt: skip

    def _whole(self, operand: Operand, length: int, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        """A register declared .v2 or .v4, or a special register of four."""
        symbol = resolve(operand.text) if resolve and isinstance(operand, Name) else None
        if (
            self.braced
            or symbol is None
            or not (symbol.kind == "register" or (symbol.kind == "special" and self.special))
        ):
            if resolve is not None or not isinstance(operand, Name):
                yield Problem("vector-length", f"{self.name} must be a vector of {length} elements, not {operand}")
            return
        problem = type_problem(self, operand, symbol, type_of(self.type, form), wide=self.wide, vector=length)
        if problem is not None:
            yield problem

    def _elements(self, elements: Sequence[Operand], form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        spec, skips = self._element(form), self._skips(form)
        declared: list[Type] = []
        special: list[Symbol] = []
        for item in elements:
            if skips and isinstance(item, Name) and item.text == "_":
                continue
            if not spec.fits(item):
                message = f"an element of {self.name} must be {spec.describe()}, not {item}"
                yield Problem("operand-kind", message, part=str(item))
                return
            symbol = resolve(item.text) if resolve and isinstance(item, Name) else None
            if symbol is not None and symbol.kind == "register" and symbol.type is not None and symbol.vector is None:
                declared.append(symbol.type)
            elif self.mixed and value_of(item) is not None:
                wanted = type_of(self.type, form)
                floating = wanted.name in ("f32", "f64") and isinstance(value_of(item), float)
                kind = wanted.name if floating else f"b{wanted.bits}"
                yield from SourceSpec(name=self.name, type=kind, wide=self.wide).problems(item, form, resolve)
            else:
                special += [symbol] if symbol is not None and symbol.kind == "special" else []
                yield from spec.problems(item, form, resolve)
        constants = [item for item in elements if (self.mixed or self.apart) and value_of(item) is not None]
        wanted = type_of(self.type, form)
        if declared and declared[0].bits in self.bits:
            wanted = TYPES[f"{wanted.name[0]}{declared[0].bits}"]
        yield from self._element_types(declared, constants, wanted)
        if self.immediate and not self.apart:
            other = next((each for each in declared if each.bits != wanted.bits), None)
            if other is not None and wanted.kind == "bits" and isinstance(value_of(elements[0]), float):
                # A float in first place has the width of the type (measured, ptxas 13.5).
                rule = f"the elements of {self.name} after {elements[0]} must have {wanted.bits} bits, not {other}"
                yield Problem("operand-type", rule)
            yield from self._neighbors(elements, resolve)
            yield from self._specials(special, elements, wanted)
        if self.apart and constants and special:
            yield Problem("operand-kind", f"{self.name} must have no constants beside special registers")
        if self.mixed is True and wanted.bits != 64 and all(isinstance(value_of(item), int) for item in elements):
            rule = f"{self.name} must have a register among its elements; integer constants alone have 64 bits"
            yield Problem("operand-type", rule)
        if skips and all(isinstance(item, Name) and item.text == "_" for item in elements):
            yield Problem("operand-kind", f"{self.name} must have a register among its elements, not _ alone")

    def _neighbors(self, elements: Sequence[Operand], resolve: Resolver | None) -> Iterator[Problem]:
        """Side by side, a float and an integer make no type, registers or constants (measured, ptxas 13.5)."""
        kinds = [_kind_of(item, resolve) for item in elements]
        for (one, first), (other, second) in itertools.pairwise(zip(elements, kinds, strict=True)):
            constant = value_of(one) is not None or value_of(other) is not None
            if constant and _differ({first, second}):
                rule = f"the elements of {self.name} must be floats or integers, not {one} beside {other}"
                yield Problem("operand-type", rule)
                return

    def _specials(self, special: Sequence[Symbol], elements: Sequence[Operand], wanted: Type) -> Iterator[Problem]:
        """A special register in a vector has the width of the elements, and %tid.x and its like no constant beside it
        (measured, ptxas 13.5).
        """
        constant = next((item for item in elements if value_of(item) is not None), None)
        for symbol in special:
            if symbol.type is not None and symbol.type.bits != wanted.bits:
                rule = (
                    f"an element of {self.name} must have {wanted.bits} bits, but {symbol.name} has {symbol.type.bits}"
                )
                yield Problem("operand-type", rule)
                return
            if constant is not None and "." in symbol.name:
                rule = f"{self.name} must have no constant beside {symbol.name}, not {constant}; move it to a register"
                yield Problem("operand-kind", rule)
                return

    def _element_types(self, declared: Sequence[Type], constants: Sequence[Operand], wanted: Type) -> Iterator[Problem]:
        """The elements make one type: their own if all have the same, else untyped; loads and stores take integers for
        floats.

        ptxas 13.5 compares neighbors only, so an untyped one may stand between a float and an integer (measured).
        """
        if self.mixed and not declared and constants and all(isinstance(value_of(item), float) for item in constants):
            declared = [TYPES["f64" if wanted.bits == 64 else "f32"]]
        names = " and ".join(dict.fromkeys(str(each) for each in (*declared, *constants)))
        kinds = {each.kind for each in declared}
        kinds.update("float" if isinstance(value_of(item), float) else "signed" for item in constants)
        if len({each.bits for each in declared}) > 1:
            yield Problem("operand-type", f"the elements of {self.name} must have one width, not {names}")
        elif any(_differ({one.kind, other.kind}) for one, other in itertools.pairwise(declared)) or (
            constants and _differ(kinds)
        ):
            yield Problem("operand-type", f"the elements of {self.name} must be floats or integers, not {names}")
        elif declared:
            together = declared[0]
            if len(set(declared)) > 1 or (self.wide and not kinds & {"float", "predicate"}):
                together = TYPES[f"b{together.bits}"]
            if not (holds_wider if self.wide else holds)(together, wanted):
                how = f"{in_register(wanted)} or wider" if self.wide else in_register(wanted)
                yield Problem("operand-type", f"the elements of {self.name} must be of type {how}, not {names}")

    def example(self, form: Subject, position: int) -> str:
        wanted, length = type_of(self.type, form), self.length(form)
        if self.scalar and length == 1:
            return example_register(wanted, position)
        # Vectors of neighboring operands share no register, which ptxas 13.5 needs where they are results (measured).
        base, first = example_register(wanted, 0)[:-1], 10 + 130 * (position % 3)
        return "{" + ", ".join(f"{base}{first + i}" for i in range(length)) + "}"

    def describe(self) -> str:
        return "a register or a vector in braces" if self.scalar else "a vector in braces"

    def explain(self, form: Subject) -> str:
        length, wanted = self.length(form), type_of(self.type, form)
        held = in_register(wanted)
        return f"{length} registers of {held} in braces" if length > 1 or not self.scalar else f"a {held} register"


def repeated(form: Subject, *results: str) -> str | None:
    """Why no register may stand twice among these results, vectors or registers, if one does."""
    seen: set[str] = set()
    for name in results:
        operand = getattr(form, name)
        for item in operand.elements if isinstance(operand, Vector) else [operand]:
            if isinstance(item, Name) and item.text in seen:
                return f"the results of {form.opcode_text} must be in different registers; {item} stands twice"
            seen.add(str(item))
    return None


@dataclass(kw_only=True, slots=True)
class PartSpec(SourceSpec):
    """A register of the video instructions, whole or a part that a selector picks, as in `r1.h0`; or a constant.

    `selectors` is a regular expression of what may follow the dot; `negatable` allows `-r1` and `-r1.h0`.
    """

    selectors: str = ""
    negatable: bool = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Negation):
            return self.negatable and operand.operator == "-" and isinstance(operand.operand, Name)
        return SourceSpec.fits(self, operand)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        inner = operand.operand if isinstance(operand, Negation) else operand
        if isinstance(inner, Name) and inner.component is not None:
            if not re.fullmatch(self.selectors, inner.component):
                legal = f"a selector like {self.selectors}" if self.selectors else "no selector"
                yield Problem("operand-kind", f"{self.name} allows {legal}, not .{inner.component}")
                return
            inner = Name(inner.base)
        yield from SourceSpec.problems(self, inner, form, resolve)

"""Operand declarations: what may stand in each operand position of an instruction.

A declaration is data in the body of an `Instruction` class. Each specification knows which syntax nodes fit it by
shape alone (used to tell syntax lines apart), which rules a fitting node may break, and an example for enumeration.
PTX ISA 6 (operands) and 9.4 (type rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ptxgen.instr.types import TYPES, Type, holds, holds_wider
from ptxgen.syntax import Address, Expression, Immediate, Name, Negation, Operand, Pair, Subscript, Vector

if TYPE_CHECKING:
    from ptxgen.instr.form import Instruction

#: A type by name (`"b32"`), by the modifier that carries it (`"type"`), or computed from the instruction.
TypeRef = str | Callable[[Any], str]

Severity = Literal["error", "warning"]
SymbolKind = Literal["register", "special", "variable", "parameter", "label", "function"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name stands for in its scope.

    `space` is set for variables and parameters, `vector` for vector registers, `widths` for special registers: the
    widths in bits at which they can be read.
    """

    name: str
    kind: SymbolKind
    type: Type | None = None
    space: str | None = None
    vector: int | None = None
    widths: tuple[int, ...] = ()


class Resolver(Protocol):
    """Finds the symbol of a name, None if it is not declared."""

    def __call__(self, name: str) -> Symbol | None: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: a stable code and one sentence with the rule, what was found and what is legal.

    A `warning` is what ptxas takes, but what no one wants.
    """

    code: str
    message: str
    severity: Severity = "error"


@dataclass(kw_only=True, slots=True)
class Specification:
    """Base of all operand declarations.

    `default` None makes the operand optional; `when` names a modifier that, if given, makes it required, and
    otherwise forbids it.
    """

    name: str = ""
    optional: bool = False
    when: str | None = None

    def fits(self, operand: Operand) -> bool:
        """Whether the node has the right shape."""
        raise NotImplementedError  # pragma: no cover

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        """Rules that a fitting node breaks."""
        raise NotImplementedError  # pragma: no cover

    def example(self, form: Instruction, position: int) -> str:
        """A legal operand text that uses the registers of `EXAMPLE_REGISTERS`."""
        raise NotImplementedError  # pragma: no cover

    def describe(self) -> str:
        """What is expected here, for error messages."""
        raise NotImplementedError  # pragma: no cover


#: Registers that example operands use, by type name; ten of each.
EXAMPLE_REGISTERS = {name: f"%x_{name}_" for name in ("b8", "b16", "b32", "b64", "b128", "f32", "f64", "pred")}
#: A label, and a .param variable that is declared in the body, as arguments of calls are.
EXAMPLE_LABEL, EXAMPLE_PARAMETER = "EXAMPLE_LABEL", "EXAMPLE_PARAMETER"


def type_of(reference: TypeRef, form: Instruction) -> Type:
    """The type that a reference stands for in this instruction."""
    name = reference(form) if callable(reference) else reference
    if name not in TYPES:
        name = getattr(form, name)
    return TYPES[name]


def _given(value: bool | Callable[[Any], bool], form: Instruction) -> bool:
    return value(form) if callable(value) else value


def _example_register(wanted: Type, position: int) -> str:
    name = {"predicate": "pred", "float": f"f{wanted.bits}"}.get(wanted.kind, f"b{wanted.bits}")
    return EXAMPLE_REGISTERS[name if name in EXAMPLE_REGISTERS else f"b{wanted.bits}"] + str(position)


def _undeclared(operand: Operand, wanted: Type) -> Problem:
    return Problem("undeclared-name", f"{operand} is not declared; declare it, for example .reg {wanted} {operand};")


def _type_problem(
    spec: Specification, operand: Operand, symbol: Symbol, wanted: Type, *, wide: bool, vector: int | None = None
) -> Problem | None:
    """Whether the declared type of a register can stand for `wanted`."""
    if symbol.vector != vector:
        if vector is None:
            rule = f"{spec.name} must be one register; {operand} is a vector of {symbol.vector}, write {operand}.x"
        else:
            rule = f"{spec.name} must be a vector of {vector} elements, not {operand}"
        return Problem("vector-length", rule)
    if symbol.kind == "special":
        fits = any(bits >= wanted.bits if wide else bits == wanted.bits for bits in symbol.widths)
        if wanted.kind in ("float", "packed") or not fits:
            widths = " or ".join(f"{bits}-bit" for bits in symbol.widths)
            return Problem("operand-type", f"{operand} is read as a {widths} integer, not as {wanted}")
        return None
    assert symbol.type is not None
    if (holds_wider if wide else holds)(symbol.type, wanted):
        return None
    how = f"{wanted} or wider" if wide else f"{wanted}"
    return Problem("operand-type", f"{spec.name} must be of type {how}, but {operand} is declared {symbol.type}")


def _register_problems(
    spec: Specification,
    operand: Operand,
    wanted: Type,
    resolve: Resolver | None,
    *,
    wide: bool = False,
    kinds: Sequence[SymbolKind] = ("register",),
) -> Iterator[Problem]:
    """Rules for a name that stands where a value of type `wanted` is read or written."""
    if resolve is None or not isinstance(operand, Name):
        return
    symbol = resolve(operand.text)
    if symbol is None:
        yield _undeclared(operand, wanted)
    elif symbol.kind not in kinds:
        yield Problem("operand-kind", f"{spec.name} must be a {' or '.join(kinds)}, not the {symbol.kind} {operand}")
    elif symbol.kind in ("register", "special"):
        problem = _type_problem(spec, operand, symbol, wanted, wide=wide)
        if problem is not None:
            yield problem


@dataclass(kw_only=True, slots=True)
class RegisterSpec(Specification):
    """A register of a type, to write or to read; `sink` allows `_`."""

    type: TypeRef
    sink: bool = False
    wide: bool | Callable[[Any], bool] = False

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        if isinstance(operand, Name) and operand.text == "_":
            if not self.sink:
                yield Problem("operand-kind", f"{self.name} must be a register, not the sink _")
            return
        wide = _given(self.wide, form)
        yield from _register_problems(self, operand, type_of(self.type, form), resolve, wide=wide)

    def example(self, form: Instruction, position: int) -> str:
        return _example_register(type_of(self.type, form), position)

    def describe(self) -> str:
        return "a register"


def _evaluated(operand: Immediate | Expression) -> int | float | None:
    """The value of a constant, None where there is none (it names a symbol, or divides by 0)."""
    try:
        return operand.evaluate()
    except ValueError:
        return None


def _constant_problem(spec: Specification, operand: Immediate | Expression, wanted: Type) -> Problem | None:
    """Whether a constant can be of a type. Integers may exceed the type, which cuts them (measured, ptxas 13.5)."""
    value = _evaluated(operand)
    if value is None:
        return Problem("operand-kind", f"{spec.name} must be a constant without names, not {operand}")
    if wanted.kind == "packed" or wanted.name == "f16":
        return Problem("operand-kind", f"{spec.name} must be a register for {wanted}, not the constant {operand}")
    if wanted.kind == "float":
        if isinstance(value, float):
            return None
        return Problem("operand-type", f"{spec.name} must be a floating-point constant for {wanted}, not {operand}")
    if not isinstance(value, float) or wanted.kind == "predicate":
        return None
    # An untyped operand takes the bits of a float of its own width; a decimal one has 64 (measured, ptxas 13.5).
    if wanted.kind == "bits" and isinstance(operand, Immediate) and (operand.width or 64) == wanted.bits:
        return None
    return Problem("operand-type", f"{spec.name} must be an integer constant for {wanted}, not {operand}")


@dataclass(kw_only=True, slots=True)
class SourceSpec(Specification):
    """A register or a constant, `low` to `high` in steps of `multiple`.

    `special` also allows special registers; `symbol` the address of a variable, parameter or function, or of what is
    in the state space that the modifier of this name carries. `advice`: ptxas does not check the upper limit.
    """

    type: TypeRef
    immediate: bool = True
    special: bool | Callable[[Any], bool] = False
    symbol: bool | str = False
    wide: bool | Callable[[Any], bool] = False
    low: int | None = None
    high: int | None = None
    multiple: int = 1
    advice: bool = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Name):
            return True
        if isinstance(operand, Immediate | Expression):
            return self.immediate
        return bool(self.symbol) and isinstance(operand, Subscript)

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        wanted = type_of(self.type, form)
        if isinstance(operand, Expression) and isinstance(base := operand.operands[0], Name):
            operand, is_sum = base, True
        else:
            is_sum = False
        if isinstance(operand, Subscript):
            operand = operand.base
        if isinstance(operand, Immediate | Expression):
            problem = _constant_problem(self, operand, wanted) or self._range_problem(operand)
            if problem is not None:
                yield problem
        elif isinstance(operand, Name):
            if operand.text == "_":
                yield Problem("operand-kind", f"{self.name} must be {self.describe()}, not the sink _")
            elif resolve is not None:
                yield from self._name_problems(operand, wanted, form, resolve, is_sum)

    def _range_problem(self, operand: Immediate | Expression) -> Problem | None:
        value = _evaluated(operand)
        if value is None:
            return None
        below = self.low is not None and value < self.low
        above = self.high is not None and value > self.high
        if not below and not above and (self.multiple == 1 or value % self.multiple == 0):
            return None
        low, high = self.low or 0, "" if self.high is None else f" to {self.high}"
        legal = f"{low}{high}" if high else f"{low} or more"
        step = f" in steps of {self.multiple}" if self.multiple > 1 else ""
        message = f"{self.name} must be {legal}{step}, not {operand}"
        return Problem("immediate-range", message, "warning" if self.advice and above else "error")

    def _name_problems(
        self, operand: Name, wanted: Type, form: Instruction, resolve: Resolver, is_sum: bool
    ) -> Iterator[Problem]:
        symbol = resolve(operand.text)
        if symbol is not None and self.symbol and symbol.kind in ("variable", "parameter", "function"):
            problem = self._symbol_problem(operand, symbol, wanted, form, is_sum)
            if problem is not None:
                yield problem
            return
        kinds: tuple[SymbolKind, ...] = ("register", "special") if _given(self.special, form) else ("register",)
        wide = _given(self.wide, form)
        yield from _register_problems(self, operand, wanted, resolve, wide=wide, kinds=kinds)

    def _symbol_problem(
        self, operand: Name, symbol: Symbol, wanted: Type, form: Instruction, is_sum: bool
    ) -> Problem | None:
        """The address of a variable or function is an integer; in .global one of 64 bits (measured, ptxas 13.5)."""
        if isinstance(self.symbol, str):
            space = getattr(form, self.symbol).partition("::")[0]
            if symbol.space != space:
                found = f".{symbol.space}" if symbol.space else f"a {symbol.kind}"
                return Problem("state-space", f"{self.name} must be in .{space}, but {operand} is {found}")
        if wanted.kind not in ("unsigned", "signed", "bits"):
            return Problem("operand-type", f"the address of {operand} is an integer, not {wanted}")
        if symbol.space == "global" and wanted.bits == 32 and not is_sum:
            return Problem("operand-type", f"the address of {operand} in .global is 64 bits wide, not {wanted}")
        if symbol.kind == "function" and is_sum:
            return Problem("operand-kind", f"{self.name} must be the plain function {operand}, without an offset")
        return None

    def example(self, form: Instruction, position: int) -> str:
        return _example_register(type_of(self.type, form), position)

    def describe(self) -> str:
        return "a register or a constant" if self.immediate else "a register"


@dataclass(kw_only=True, slots=True)
class ImmediateSpec(Specification):
    """A constant from `low` to `high`, in steps of `multiple`."""

    low: int
    high: int
    multiple: int = 1

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Immediate | Expression)

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        assert isinstance(operand, Immediate | Expression)
        value = _evaluated(operand)
        if not isinstance(value, int) or not self.low <= value <= self.high or value % self.multiple:
            step = f" in steps of {self.multiple}" if self.multiple > 1 else ""
            yield Problem("immediate-range", f"{self.name} must be {self.low} to {self.high}{step}, not {operand}")

    def example(self, form: Instruction, position: int) -> str:
        return str(self.low)

    def describe(self) -> str:
        return "a constant"


#: Whose variables an address without a state space may name: those with generic addresses (measured, ptxas 13.5).
GENERIC = ("global", "shared", "local")


@dataclass(kw_only=True, slots=True)
class AddressSpec(Specification):
    """`[base]`, `[base+offset]`: base is a register that holds an address in `space`, or a variable in it.

    `space` names a state space, a modifier that carries one, or None for generic; `variables` are the spaces whose
    variables a generic address may name. `bits` fixes the register width where the space does not; `untyped` asks
    for a .b register; `written` forbids the parameters of an entry.
    """

    space: str | None = None
    bits: tuple[int, ...] | None = None
    untyped: bool = False
    variables: tuple[str, ...] = GENERIC
    written: bool = False

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Address) and not operand.more

    def space_of(self, form: Instruction) -> str | None:
        """The state space in this instruction, without `::cta` and the like; None is generic."""
        space = self.space
        if space in form.form.positional:
            space = getattr(form, space)
        return space.partition("::")[0] if space else None

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        space = self.space_of(form)
        base = operand.base if isinstance(operand, Address) else operand
        if isinstance(base, Subscript):
            yield Problem("operand-kind", f"the address {self.name} must be [base] or [base+offset], not {operand}")
        elif not isinstance(base, Name):
            if space != "local":
                yield Problem("operand-kind", f"a number as address is for .local alone, not {operand}")
        elif resolve is not None:
            symbol = resolve(base.text)
            if symbol is None:
                yield Problem("undeclared-name", f"{base} in the address {self.name} is not declared")
            elif symbol.kind == "register":
                yield from self._register(base, symbol, space)
            elif symbol.kind in ("variable", "parameter"):
                yield from self._variable(base, symbol, space)
            else:
                kind = f"{symbol.kind} register" if symbol.kind == "special" else symbol.kind
                yield Problem(
                    "operand-kind", f"the address {self.name} must be a register or variable, not the {kind} {base}"
                )

    def _register(self, base: Name, symbol: Symbol, space: str | None) -> Iterator[Problem]:
        declared = symbol.type
        assert declared is not None
        where = f"the address {self.name}"
        if self.written and space == "param":
            # ptxas 13.5 crashes on a register here (measured).
            yield Problem("operand-kind", f"{where} must be a .param variable of this block, not the register {base}")
            return
        if declared.kind in ("float", "packed", "predicate") or symbol.vector is not None or declared.bits > 64:
            yield Problem("operand-type", f"{where} must be in an integer register, but {base} is declared {declared}")
        elif self.bits is not None:
            if declared.bits not in self.bits:
                widths = " or ".join(f"{bits}-bit" for bits in self.bits)
                yield Problem("operand-type", f"{where} must be in a {widths} register, but {base} is {declared}")
            elif self.untyped and declared.kind != "bits":
                yield Problem("operand-type", f"{where} must be in a .b register, but {base} is declared {declared}")
        elif declared.bits == 32 and space in (None, "global"):
            name = f".{space}" if space else "generic"
            yield Problem("operand-type", f"{where} is {name}, so 64 bits wide, but {base} is declared {declared}")
        elif declared.bits < 32:
            yield Problem("address-width", f"{where} has only the {declared.bits} bits of {base}", "warning")

    def _variable(self, base: Name, symbol: Symbol, space: str | None) -> Iterator[Problem]:
        legal = self.variables if space is None else (space,)
        if symbol.space not in legal:
            spaces = " or ".join(f".{each}" for each in legal)
            yield Problem("state-space", f"the address {self.name} must be in {spaces}, but {base} is .{symbol.space}")
        elif self.written and symbol.kind == "parameter":
            yield Problem("state-space", f"the parameter {base} cannot be written")

    def example(self, form: Instruction, position: int) -> str:
        if self.written and self.space_of(form) == "param":
            return f"[{EXAMPLE_PARAMETER}]"
        bits = self.bits[-1] if self.bits else 64
        return f"[{_example_register(TYPES[f'b{bits}'], position)}]"

    def describe(self) -> str:
        return "an address in brackets"


@dataclass(kw_only=True, slots=True)
class VectorSpec(Specification):
    """`{a, b, ...}` of `count` registers or constants, or a vector register.

    With `scalar`, one element may stand without braces. `exact` makes the length part of the shape, for syntax lines
    that differ by nothing else. `sink` allows `_` for elements, but not for all of them (measured, ptxas 13.5).
    """

    type: TypeRef
    count: int | Callable[[Any], int]
    exact: bool = False
    scalar: bool = False
    sink: bool = False
    immediate: bool = False
    special: bool = False
    wide: bool = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Vector):
            return not self.exact or len(operand.elements) == self.count
        constant = self.immediate and isinstance(operand, Immediate | Expression)
        return self.scalar and (isinstance(operand, Name) or constant)

    def length(self, form: Instruction) -> int:
        """The number of elements in this instruction."""
        return self.count(form) if callable(self.count) else self.count

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        length = self.length(form)
        if isinstance(operand, Vector):
            found = len(operand.elements)
            if found != length:
                yield Problem("vector-length", f"{self.name} must have {length} elements, not {found}")
                return
            yield from self._elements(operand.elements, form, resolve)
        elif length != 1:
            yield from self._whole(operand, length, form, resolve)
        elif self.sink and isinstance(operand, Name) and operand.text == "_":
            yield Problem("operand-kind", f"{self.name} must be a register, not the sink _")
        else:
            yield from self._element().problems(operand, form, resolve)

    def _element(self) -> Specification:
        if self.immediate:
            return SourceSpec(name=self.name, type=self.type, wide=self.wide, special=self.special)
        return RegisterSpec(name=self.name, type=self.type, wide=self.wide, sink=self.sink)

    def _whole(self, operand: Operand, length: int, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        """A register declared .v2 or .v4."""
        symbol = resolve(operand.text) if resolve and isinstance(operand, Name) else None
        if symbol is None or symbol.kind != "register":
            if resolve is not None or not isinstance(operand, Name):
                yield Problem("vector-length", f"{self.name} must be a vector of {length} elements, not {operand}")
            return
        problem = _type_problem(self, operand, symbol, type_of(self.type, form), wide=self.wide, vector=length)
        if problem is not None:
            yield problem

    def _elements(self, elements: Sequence[Operand], form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        spec = self._element()
        declared: list[Type] = []
        for item in elements:
            if not spec.fits(item):
                yield Problem("operand-kind", f"an element of {self.name} must be {spec.describe()}, not {item}")
                return
            symbol = resolve(item.text) if resolve and isinstance(item, Name) and item.text != "_" else None
            if symbol is not None and symbol.kind == "register" and symbol.type is not None and symbol.vector is None:
                declared.append(symbol.type)
            else:
                yield from spec.problems(item, form, resolve)
        yield from self._element_types(declared, type_of(self.type, form))
        if self.sink and all(isinstance(item, Name) and item.text == "_" for item in elements):
            yield Problem("operand-kind", f"{self.name} must have a register among its elements, not _ alone")

    def _element_types(self, declared: Sequence[Type], wanted: Type) -> Iterator[Problem]:
        """The elements make one type: their own if all are floats, else untyped (measured, ptxas 13.5)."""
        names = " and ".join(dict.fromkeys(str(each) for each in declared))
        kinds = {each.kind for each in declared}
        if len({each.bits for each in declared}) > 1:
            yield Problem("operand-type", f"the elements of {self.name} must have one width, not {names}")
        elif "float" in kinds and kinds & {"unsigned", "signed"}:
            yield Problem("operand-type", f"the elements of {self.name} must be floats or integers, not {names}")
        elif declared:
            together = declared[0]
            if kinds != {"float"} and kinds != {"predicate"}:
                together = TYPES[f"b{together.bits}"]
            if not (holds_wider if self.wide else holds)(together, wanted):
                how = f"{wanted} or wider" if self.wide else f"{wanted}"
                yield Problem("operand-type", f"the elements of {self.name} must be of type {how}, not {names}")

    def example(self, form: Instruction, position: int) -> str:
        wanted, length = type_of(self.type, form), self.length(form)
        if self.scalar and length == 1:
            return _example_register(wanted, position)
        base = _example_register(wanted, 0)[:-1]
        return "{" + ", ".join(f"{base}{10 + i}" for i in range(length)) + "}"

    def describe(self) -> str:
        return "a register or a vector in braces" if self.scalar else "a vector in braces"


@dataclass(kw_only=True, slots=True)
class PredicateSpec(Specification):
    """A predicate register; `negatable` allows `!p`, `sink` `_`, `immediate` integers, `special` special registers."""

    negatable: bool = False
    sink: bool = False
    immediate: bool = False
    special: bool = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Negation):
            return self.negatable
        return isinstance(operand, Name) or (self.immediate and isinstance(operand, Immediate | Expression))

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        if isinstance(operand, Immediate | Expression):
            if not isinstance(_evaluated(operand), int):
                yield Problem("operand-type", f"{self.name} must be an integer constant for .pred, not {operand}")
            return
        inner = operand.operand if isinstance(operand, Negation) else operand
        if isinstance(inner, Name) and inner.text == "_":
            if not self.sink:
                yield Problem("operand-kind", f"{self.name} must be a predicate, not the sink _")
            return
        kinds: tuple[SymbolKind, ...] = ("register", "special") if self.special else ("register",)
        yield from _register_problems(self, inner, TYPES["pred"], resolve, kinds=kinds)

    def example(self, form: Instruction, position: int) -> str:
        return _example_register(TYPES["pred"], position)

    def describe(self) -> str:
        return "a predicate"


@dataclass(kw_only=True, slots=True)
class SinkSpec(Specification):
    """`_` alone: there is a result in the syntax, but no register can take it."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name) and operand.text == "_"

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        return iter(())

    def example(self, form: Instruction, position: int) -> str:
        return "_"

    def describe(self) -> str:
        return "the sink _"


@dataclass(kw_only=True, slots=True)
class LabelSpec(Specification):
    """A label of the same function."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Instruction, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is None or not isinstance(operand, Name):
            return
        symbol = resolve(operand.text)
        if symbol is None:
            yield Problem("undeclared-name", f"the label {operand} is not in this function")
        elif symbol.kind != "label":
            yield Problem("operand-kind", f"{self.name} must be a label, not the {symbol.kind} {operand}")

    def example(self, form: Instruction, position: int) -> str:
        return EXAMPLE_LABEL

    def describe(self) -> str:
        return "a label"


def fields_of(operand: Operand, count: int) -> tuple[Operand, ...] | None:
    """The parts of `[a, b]` (count 2 or more) as separate operands, None if the shape differs."""
    if not isinstance(operand, Address) or len(operand.more) != count - 1:
        return None
    head = Address(operand.base, operand.offset) if operand.offset else Address(operand.base)
    return (head, *operand.more)


def pair_of(operand: Operand) -> tuple[Operand, Operand | None]:
    """The parts of `a|b`; the second is None where there is no bar."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None


# Field specifiers: how a declaration is written. They return Any because the attribute they fill holds an operand.


def register(type: TypeRef, *, sink: bool = False, wide: bool | Callable[[Any], bool] = False) -> Any:
    """A register operand. `wide` allows a register wider than the type, as ld, st and cvt do."""
    return RegisterSpec(type=type, sink=sink, wide=wide)


def source(
    type: TypeRef,
    *,
    immediate: bool = True,
    special: bool | Callable[[Any], bool] = False,
    symbol: bool | str = False,
    wide: bool | Callable[[Any], bool] = False,
    low: int | None = None,
    high: int | None = None,
    multiple: int = 1,
    advice: bool = False,
    when: str | None = None,
    default: Any = ...,
) -> Any:
    """A register or constant operand, `low` to `high` in steps of `multiple` if it is a constant."""
    return SourceSpec(
        type=type, immediate=immediate, special=special, symbol=symbol, wide=wide, low=low, high=high,
        multiple=multiple, advice=advice, when=when, optional=default is None,
    )  # fmt: skip


def immediate(low: int, high: int, *, multiple: int = 1, default: Any = ...) -> Any:
    """A constant operand."""
    return ImmediateSpec(low=low, high=high, multiple=multiple, optional=default is None)


def address(
    space: str | None = None,
    *,
    bits: tuple[int, ...] | None = None,
    untyped: bool = False,
    variables: tuple[str, ...] = GENERIC,
    written: bool = False,
    default: Any = ...,
) -> Any:
    """An address operand in brackets; the arguments are the fields of `AddressSpec`."""
    return AddressSpec(
        space=space, bits=bits, untyped=untyped, variables=variables, written=written, optional=default is None
    )


def vector(
    type: TypeRef,
    count: int | Callable[[Any], int],
    *,
    scalar: bool = False,
    sink: bool = False,
    immediate: bool = False,
    special: bool = False,
    wide: bool = False,
    exact: bool = False,
    when: str | None = None,
    default: Any = ...,
) -> Any:
    """A vector operand in braces; with `scalar`, a plain register where the count is 1."""
    return VectorSpec(
        type=type, count=count, scalar=scalar, sink=sink, immediate=immediate, special=special, wide=wide,
        exact=exact, when=when, optional=default is None,
    )  # fmt: skip


def predicate(
    *,
    negatable: bool = False,
    sink: bool = False,
    immediate: bool = False,
    special: bool = False,
    default: Any = ...,
) -> Any:
    """A predicate operand."""
    return PredicateSpec(negatable=negatable, sink=sink, immediate=immediate, special=special, optional=default is None)


def label() -> Any:
    """A label operand."""
    return LabelSpec()


def sink() -> Any:
    """A result that only `_` can take."""
    return SinkSpec()

"""Specifications of single operands: registers, constants, predicates, labels, the sink. PTX ISA 6 and 9.4.

A specification knows which syntax nodes fit it by shape alone (used to tell syntax lines apart), which rules a fitting
node may break, and an example for enumeration. Addresses and vectors are in `compound`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ptxgen.instr.model.symbols import Access, Problem, Resolver, Subject, Symbol, SymbolKind
from ptxgen.instr.model.targets import parse_version
from ptxgen.instr.model.types import TYPES, Type, holds, holds_wider
from ptxgen.syntax import Expression, Immediate, Name, Negation, Operand, Subscript

#: A type by name (`"b32"`), by the modifier that carries it (`"type"`), or computed from the instruction.
TypeRef = str | Callable[[Any], str]


@dataclass(kw_only=True, slots=True)
class Specification(ABC):
    """Base of all operand declarations.

    `default` None makes the operand optional; `when` names a modifier that, if given, makes it required, and
    otherwise forbids it, or one value of a modifier: `"override=global_dim_stride"`. `memory` is how the memory is
    accessed that the operand addresses or describes, in `memory_space` or, without it, in the space of the address.
    """

    name: str = ""
    optional: bool = False
    when: str | None = None
    memory: Access | None = None
    memory_space: str | None = None

    def wanted(self, modifiers: Mapping[str, Any]) -> bool:
        """Whether these modifiers ask for an operand that depends on them."""
        name, _, value = str(self.when).partition("=")
        found = modifiers.get(name)
        return str(found) == value if value else bool(found)

    @abstractmethod
    def fits(self, operand: Operand) -> bool:
        """Whether the node has the right shape."""

    @abstractmethod
    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        """Rules that a fitting node breaks."""

    @abstractmethod
    def example(self, form: Subject, position: int) -> str:
        """A legal operand text that uses the registers of `EXAMPLE_REGISTERS`."""

    @abstractmethod
    def describe(self) -> str:
        """What is expected here, for error messages."""

    def explain(self, form: Subject) -> str:
        """What is expected here in this instruction, with its type."""
        return self.describe()

    def assembler_problem(self, operand: Operand, version: tuple[int, int]) -> Problem | None:
        """Why ptxas releases that take this PTX version may refuse a node that is legal."""
        return None


#: Registers that example operands use, by type name; those of vectors begin at 10.
EXAMPLE_REGISTERS = {name: f"%x_{name}_" for name in ("b8", "b16", "b32", "b64", "b128", "f32", "f64", "pred")}
#: Names in examples: a label, .param variables of a body, as calls take and return them, a function, a list of branch
#: targets and a call prototype.
EXAMPLE_LABEL, EXAMPLE_PARAMETER, EXAMPLE_RESULT = "EXAMPLE_LABEL", "EXAMPLE_PARAMETER", "EXAMPLE_RESULT"
EXAMPLE_FUNCTION = "x_function"
EXAMPLE_BRANCHES, EXAMPLE_PROTOTYPE = "EXAMPLE_BRANCHES", "EXAMPLE_PROTOTYPE"
#: Variables of the opaque types; the sampler needs the independent texture mode.
EXAMPLE_OPAQUE = {"texref": "EXAMPLE_TEXTURE", "samplerref": "EXAMPLE_SAMPLER", "surfref": "EXAMPLE_SURFACE"}


def type_of(reference: TypeRef, form: Subject) -> Type:
    """The type that a reference stands for in this instruction."""
    name = reference(form) if callable(reference) else reference
    if name not in TYPES:
        name = getattr(form, name)
    return TYPES[name]


#: Names that have an address.
ADDRESSABLE: Sequence[SymbolKind] = ("variable", "parameter", "argument", "result", "function")


def _given(value: bool | Callable[[Any], bool], form: Subject) -> bool:
    return value(form) if callable(value) else value


def example_register(wanted: Type, position: int) -> str:
    name = {"predicate": "pred", "float": f"f{wanted.bits}"}.get(wanted.kind, f"b{wanted.bits}")
    return EXAMPLE_REGISTERS[name if name in EXAMPLE_REGISTERS else f"b{wanted.bits}"] + str(position)


def register_type(wanted: Type) -> str:
    """The type of a register for a value: packed formats live in untyped registers (`.b8` of `.e2m1x2`)."""
    return f".b{wanted.bits}" if wanted.kind == "packed" and wanted.name != "f16x2" else str(wanted)


def in_register(wanted: Type) -> str:
    """That type, with the format of the value where it is another: `.b8 for .e2m1x2`."""
    held = register_type(wanted)
    return held if held == str(wanted) or wanted.name[1:] == held[2:] else f"{held} for {wanted}"


def _a_register(wanted: Type) -> str:
    held = register_type(wanted)
    return f"a {held} register" + ("" if held == str(wanted) else f" for {wanted}")


def _undeclared(operand: Operand, wanted: Type) -> Problem:
    message = f"{operand} is not declared; declare it, for example .reg {register_type(wanted)} {operand};"
    return Problem("undeclared-name", message, part=str(operand))


def type_problem(
    spec: Specification,
    operand: Operand,
    symbol: Symbol,
    wanted: Type,
    *,
    wide: bool,
    vector: int | None = None,
    packed: bool = False,
) -> Problem | None:
    """Whether the declared type of a register can stand for `wanted`; `packed` takes a whole vector of its width."""
    if packed and symbol.vector and symbol.type and wanted == TYPES.get(f"b{symbol.vector * symbol.type.bits}"):
        return None
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
    how = f"{in_register(wanted)} or wider" if wide else in_register(wanted)
    message = f"{spec.name} must be of type {how}, but {operand} is declared {symbol.type}"
    return Problem("operand-type", message, part=str(operand))


def _register_problems(
    spec: Specification,
    operand: Operand,
    wanted: Type,
    resolve: Resolver | None,
    *,
    wide: bool = False,
    kinds: Sequence[SymbolKind] = ("register",),
    packed: bool = False,
) -> Iterator[Problem]:
    """Rules for a name that stands where a value of type `wanted` is read or written."""
    if resolve is None or not isinstance(operand, Name):
        return
    symbol = resolve(operand.text)
    if symbol is None:
        yield _undeclared(operand, wanted)
    elif symbol.kind not in kinds:
        message = f"{spec.name} must be a {' or '.join(kinds)}, not the {symbol.kind} {operand}"
        yield Problem("operand-kind", message, part=str(operand))
    elif symbol.kind in ("register", "special"):
        problem = type_problem(spec, operand, symbol, wanted, wide=wide, packed=packed)
        if problem is not None:
            yield problem


#: Whether an operand must be a whole register, as it is or of an instruction; with "or element" no sum may stand there,
#: with "or sum" no element.
Plain = bool | Literal["or element", "or sum"] | Callable[[Any], bool]


def _plain_problem(name: str, operand: Operand, plain: Plain, form: Subject) -> Problem | None:
    """Why ptxas, which makes a function of the instruction or crashes, takes no such value (measured, ptxas 13.5)."""
    if not (plain(form) if callable(plain) else plain):
        return None
    element = isinstance(operand, Name) and operand.component is not None and plain != "or element"
    is_sum = isinstance(operand, Expression) and isinstance(operand.operands[0], Name) and plain != "or sum"
    if not element and not is_sum:
        return None
    message = f"{name} must be a whole register, not {operand}: ptxas takes no sum or element here"
    return Problem("operand-kind", f"{message}; move the value to a register first")


def _register_sum(name: str, operand: Operand, wanted: Type) -> Problem:
    message = f"{name} must be {_a_register(wanted)}, not the sum of {operand} and a constant"
    return Problem("operand-kind", f"{message}: ptxas crashes on it in some runs and takes it in others")


def _float_sum(name: str, operand: Operand) -> Problem:
    message = f"{name} must be a register, not the sum of {operand} and a constant: ptxas crashes on it"
    return Problem("operand-kind", f"{message}; add in an instruction of its own")


@dataclass(kw_only=True, slots=True)
class RegisterSpec(Specification):
    """A register of a type, to write or to read.

    `sink` allows `_`, `packed` a vector register of a .b type's width, `untyped` asks for a .b register, `plain` for
    no element of a vector. With `sums` a sum of a register and a constant may stand here, and if it may be typed, of a
    variable and a constant; without `float_sums` not of a register of floats.
    """

    type: TypeRef
    sink: bool = False
    wide: bool | Callable[[Any], bool] = False
    packed: bool = False
    untyped: bool = False
    plain: Plain = False
    sums: bool = False
    float_sums: bool | Callable[[Any], bool] = True

    def fits(self, operand: Operand) -> bool:
        if self.sums and isinstance(operand, Expression):
            operand = operand.operands[0]
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if isinstance(operand, Name) and operand.text == "_":
            if not self.sink:
                yield Problem("operand-kind", f"{self.name} must be a register, not the sink _")
            return
        problem = _plain_problem(self.name, operand, self.plain, form)
        if problem is not None:
            yield problem
            return
        if isinstance(operand, Expression):
            operand = operand.operands[0]
            symbol = resolve(operand.text) if resolve is not None and isinstance(operand, Name) else None
            if symbol is not None and symbol.kind in ADDRESSABLE and symbol.kind != "function" and not self.untyped:
                return
            is_float = symbol is not None and symbol.type is not None and symbol.type.kind == "float"
            if is_float and not _given(self.float_sums, form):
                yield _float_sum(self.name, operand)
                return
        wide = _given(self.wide, form)
        wanted = type_of(self.type, form)
        if self.untyped:
            wanted = replace(wanted, kind="packed")
        yield from _register_problems(self, operand, wanted, resolve, wide=wide, packed=self.packed)

    def example(self, form: Subject, position: int) -> str:
        return example_register(type_of(self.type, form), position)

    def describe(self) -> str:
        return "a register"

    def explain(self, form: Subject) -> str:
        wanted = type_of(self.type, form)
        return _a_register(wanted)


def is_sink(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.text == "_"


def _is_vector(operand: Operand, resolve: Resolver) -> bool:
    symbol = resolve(operand.text) if isinstance(operand, Name) else None
    return symbol is not None and symbol.vector is not None


def value_of(operand: Operand) -> int | float | None:
    """The value of a constant, None where there is none (it names a symbol, or divides by 0)."""
    if not isinstance(operand, Immediate | Expression):
        return None
    try:
        return operand.evaluate()
    except ValueError:
        return None


def _signed(value: int | float) -> int | float:
    """An integer as ptxas 13.5 compares it with limits: of 64 bits, with a sign."""
    return (value + 2**63) % 2**64 - 2**63 if isinstance(value, int) else value


def _has_constants(wanted: Type) -> bool:
    return wanted.kind != "packed" and wanted.name != "f16"


def _width_of(constant: Operand) -> int:
    """The bits of a float: 32 as in 0f3F800000, else 64."""
    if isinstance(constant, Expression) and constant.operator == "()":
        return _width_of(constant.operands[0])
    return (constant.width if isinstance(constant, Immediate) else None) or 64


def _constant_problem(spec: Specification, operand: Immediate | Expression, wanted: Type) -> Problem | None:
    """Whether a constant can be of a type. Integers may exceed the type, which cuts them (measured, ptxas 13.5)."""
    value = value_of(operand)
    if value is None:
        return Problem("operand-kind", f"{spec.name} must be a constant that has a value, not {operand}")
    if not _has_constants(wanted):
        return Problem("operand-kind", f"{spec.name} must be {_a_register(wanted)}, not the constant {operand}")
    if wanted.kind == "float":
        if isinstance(value, float):
            return None
        return Problem("operand-type", f"{spec.name} must be a floating-point constant for {wanted}, not {operand}")
    if not isinstance(value, float) or wanted.kind == "predicate":
        return None
    # An untyped operand takes the bits of a float of its own width; a decimal one has 64 (measured, ptxas 13.5).
    if wanted.kind == "bits" and _width_of(operand) == wanted.bits:
        return None
    return Problem("operand-type", f"{spec.name} must be an integer constant for {wanted}, not {operand}")


def subscript_problem(operand: Subscript, resolve: Resolver | None) -> Problem | None:
    """Why an element of an array cannot have this name or index (measured, ptxas 13.5: any integer can be an index)."""
    if isinstance(value_of(operand.index), float):
        return Problem("operand-type", f"the index of {operand} must be an integer")
    symbol = resolve(operand.base.text) if resolve is not None else None
    if symbol is not None and (symbol.kind not in ADDRESSABLE or symbol.size is None):
        return Problem("operand-kind", f"{operand.base} is no array, so {operand} is no element of one")
    index = operand.index.operands[0] if isinstance(operand.index, Expression) else operand.index
    if resolve is not None and isinstance(index, Name) and resolve(index.text) is None:
        return Problem("undeclared-name", f"the index {index} of {operand} is not declared")
    return None


@dataclass(kw_only=True, slots=True)
class SourceSpec(Specification):
    """A register or a constant, `low` to `high` in steps of `multiple`.

    `special` also allows special registers; `symbol` the address of a variable, parameter or function, or of what is
    in the state space of this name, or that the modifier of this name carries. `advice`: ptxas does not check the
    upper limit. `constant_since` is the PTX version with which ptxas began to take a constant; earlier releases refuse
    it. `packed` allows a vector register of a .b type's width, if the operand of this name is none. Without `sums` no
    sum of a symbol and a constant may stand where a constant may. Of a `word` ptxas keeps the low 32 bits. `plain`
    allows no sum of a register and a constant and no element of a vector. Without `register_sums` no sum of a
    register and a constant may stand here, without `float_sums` none of a register of floats. A whole vector as the
    operand of `packed` lifts that.
    """

    type: TypeRef
    immediate: bool = True
    special: bool | Callable[[Any], bool] = False
    symbol: bool | str = False
    wide: bool | Callable[[Any], bool] = False
    low: int | None = None
    high: int | Callable[[Any], int] | None = None
    multiple: int = 1
    sums: bool = True
    register_sums: bool | Callable[[Any], bool] = True
    float_sums: bool | Callable[[Any], bool] = True
    advice: bool = False
    constant_since: str | None = None
    packed: str | None = None
    word: bool = False
    plain: Plain = False

    def fits(self, operand: Operand) -> bool:
        if isinstance(operand, Name):
            return True
        if isinstance(operand, Immediate | Expression):
            return self.immediate
        return bool(self.symbol) and isinstance(operand, Subscript)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        wanted = type_of(self.type, form)
        problem = _plain_problem(self.name, operand, self.plain, form)
        if problem is not None:
            yield problem
            return
        if isinstance(operand, Expression) and isinstance(base := operand.operands[0], Name):
            operand, is_sum = base, True
        else:
            is_sum = False
        if isinstance(operand, Subscript):
            problem = subscript_problem(operand, resolve)
            if problem is not None:
                yield problem
                return
            operand = operand.base
        if isinstance(operand, Immediate | Expression):
            problem = _constant_problem(self, operand, wanted) or self._range_problem(operand, form)
            if problem is not None:
                yield problem
        elif isinstance(operand, Name):
            if operand.text == "_":
                yield Problem("operand-kind", f"{self.name} must be {self.describe()}, not the sink _")
            elif resolve is not None:
                yield from self._name_problems(operand, wanted, form, resolve, is_sum)

    def assembler_problem(self, operand: Operand, version: tuple[int, int]) -> Problem | None:
        if self.constant_since is None or isinstance(operand, Name):
            return None
        major, minor = since = parse_version(self.constant_since)
        if version >= since:
            return None
        # PTX ISA 9.4 came with CUDA 13.4.
        message = f"ptxas before {major + 4}.{minor} refuses a constant {self.name}; a register works with every ptxas"
        return Problem("old-ptxas", message, "warning")

    def _takes_sums(self, wanted: Type) -> bool:
        """Whether the sum of a symbol and a constant may stand here (measured, ptxas 13.5).

        It may where a constant may, but for cache policies, masks of bytes, masks of CTAs in 16 bits, descriptors and
        what says so (`sums`).
        """
        if self.when in ("hint", "cp_mask") or (self.when == "multicast" and wanted.bits == 16):
            return False
        return self.sums and self.immediate is True and self.memory is None

    def _range_problem(self, operand: Immediate | Expression, form: Subject) -> Problem | None:
        value = value_of(operand)
        if value is None:
            return None
        value = _signed(value)
        wraps = self.word and isinstance(value, int) and not 0 <= value < 2**32
        if wraps:
            value %= 2**32
        below = self.low is not None and value < self.low
        high = self._highest(form)
        above = high is not None and value > high
        if not below and not above and (self.multiple == 1 or value % self.multiple == 0):
            if not wraps:
                return None
            message = f"of {self.name} 32 bits count, so {operand} is {value}"
            return Problem("immediate-range", message, "warning")
        message = f"{self.name} must be {self._range(form)}, not {operand}"
        return Problem("immediate-range", message, "warning" if self.advice and above else "error")

    def _name_problems(
        self, operand: Name, wanted: Type, form: Subject, resolve: Resolver, is_sum: bool
    ) -> Iterator[Problem]:
        symbol = resolve(operand.text)
        if symbol is not None and (self.symbol or (is_sum and self._takes_sums(wanted))) and symbol.kind in ADDRESSABLE:
            problem = self._symbol_problem(operand, symbol, wanted, form, is_sum)
            if problem is not None:
                yield problem
            return
        packed = self.packed is not None and not _is_vector(getattr(form, self.packed), resolve)
        is_float = symbol is not None and symbol.type is not None and symbol.type.kind == "float"
        if is_sum and is_float and not _given(self.float_sums, form):
            yield _float_sum(self.name, operand)
            return
        if is_sum and packed == (self.packed is not None) and not _given(self.register_sums, form):
            yield _register_sum(self.name, operand, wanted)
            return
        kinds: tuple[SymbolKind, ...] = ("register", "special") if _given(self.special, form) else ("register",)
        wide = _given(self.wide, form)
        yield from _register_problems(self, operand, wanted, resolve, wide=wide, kinds=kinds, packed=packed)

    def _symbol_problem(
        self, operand: Name, symbol: Symbol, wanted: Type, form: Subject, is_sum: bool
    ) -> Problem | None:
        """The address of a variable or function is an integer; in .global one of 64 bits (measured, ptxas 13.5)."""
        if isinstance(self.symbol, str):
            space = str(getattr(form, self.symbol, self.symbol)).partition("::")[0]
            if symbol.space != space:
                found = f".{symbol.space}" if symbol.space else f"a {symbol.kind}"
                return Problem("state-space", f"{self.name} must be in .{space}, but {operand} is {found}")
        if wanted.kind not in ("unsigned", "signed", "bits"):
            return Problem("operand-type", f"the address of {operand} is an integer, not {wanted}")
        if symbol.type is not None and symbol.type.kind == "opaque" and wanted.name != "u64":
            return Problem("operand-type", f"the address of {operand} is .u64, as it is a {symbol.type}, not {wanted}")
        if symbol.space == "global" and wanted.bits == 32 and not is_sum:
            return Problem("operand-type", f"the address of {operand} in .global is 64 bits wide, not {wanted}")
        if symbol.kind == "variable" and symbol.space == "param":
            return Problem("operand-kind", f"{operand} is an argument or result of a call and has no address")
        if symbol.kind == "function" and is_sum:
            return Problem("operand-kind", f"{self.name} must be the plain function {operand}, without an offset")
        return None

    def example(self, form: Subject, position: int) -> str:
        return example_register(type_of(self.type, form), position)

    def describe(self) -> str:
        return "a register or a constant" if self.immediate else "a register"

    def explain(self, form: Subject) -> str:
        wanted = type_of(self.type, form)
        kind = _a_register(wanted) + (" or a constant" if self.immediate and _has_constants(wanted) else "")
        return kind + ("" if self.low is None and self.high is None else f", {self._range(form)}")

    def _highest(self, form: Subject) -> int | None:
        return self.high(form) if callable(self.high) else self.high

    def _range(self, form: Subject) -> str:
        """The legal constants in words."""
        low, high = self.low or 0, self._highest(form)
        legal = f"{low} or more" if high is None else f"{low} to {high}"
        return legal + (f" in steps of {self.multiple}" if self.multiple > 1 else "")


@dataclass(kw_only=True, slots=True)
class ImmediateSpec(Specification):
    """A constant from `low` to `high`, in steps of `multiple` from `low` on. `advice`: ptxas does not check that."""

    low: int
    high: int
    multiple: int = 1
    advice: bool = False

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Immediate | Expression)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        assert isinstance(operand, Immediate | Expression)
        value = value_of(operand)
        value = value if value is None else _signed(value)
        if not isinstance(value, int) or not self.low <= value <= self.high or (value - self.low) % self.multiple:
            step = f" in steps of {self.multiple}" if self.multiple > 1 else ""
            message = f"{self.name} must be {self.low} to {self.high}{step}, not {operand}"
            yield Problem("immediate-range", message, "warning" if self.advice and isinstance(value, int) else "error")

    def example(self, form: Subject, position: int) -> str:
        return str(self.low)

    def describe(self) -> str:
        return "a constant"

    def explain(self, form: Subject) -> str:
        step = f" in steps of {self.multiple}" if self.multiple > 1 else ""
        return f"a constant, {self.low} to {self.high}{step}"


@dataclass(kw_only=True, slots=True)
class ChoiceSpec(Specification):
    """A constant that is one of a few values, which may depend on the instruction."""

    values: Callable[[Any], tuple[int, ...]]

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Immediate | Expression)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        value = value_of(operand)
        if not isinstance(value, int) or _signed(value) not in self.values(form):
            yield Problem("immediate-range", f"{self.name} must be {self._listed(form)}, not {operand}")

    def example(self, form: Subject, position: int) -> str:
        return str(self.values(form)[0])

    def describe(self) -> str:
        return "a constant"

    def explain(self, form: Subject) -> str:
        return f"a constant, {self._listed(form)}"

    def _listed(self, form: Subject) -> str:
        *first, last = map(str, self.values(form))
        return f"{', '.join(first)} or {last}" if first else last


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

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if isinstance(operand, Immediate | Expression):
            if not isinstance(value_of(operand), int):
                yield Problem("operand-type", f"{self.name} must be an integer constant for .pred, not {operand}")
            return
        inner = operand.operand if isinstance(operand, Negation) else operand
        if isinstance(inner, Name) and inner.text == "_":
            if not self.sink:
                yield Problem("operand-kind", f"{self.name} must be a predicate, not the sink _")
            return
        kinds: tuple[SymbolKind, ...] = ("register", "special") if self.special else ("register",)
        yield from _register_problems(self, inner, TYPES["pred"], resolve, kinds=kinds)

    def example(self, form: Subject, position: int) -> str:
        return example_register(TYPES["pred"], position)

    def describe(self) -> str:
        return "a predicate"


@dataclass(kw_only=True, slots=True)
class SinkSpec(Specification):
    """`_` alone: there is a result in the syntax, but no register can take it."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name) and operand.text == "_"

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        return iter(())

    def example(self, form: Subject, position: int) -> str:
        return "_"

    def describe(self) -> str:
        return "the sink _"


@dataclass(kw_only=True, slots=True)
class LabelSpec(Specification):
    """A label of the same function, or that of a list of branch targets."""

    kind: SymbolKind = "label"

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is None or not isinstance(operand, Name):
            return
        symbol = resolve(operand.text)
        if symbol is None:
            where = "in this block or one around it" if self.kind == "label" else "declared before this"
            yield Problem("undeclared-name", f"the label {operand} is not {where}")
        elif symbol.kind != self.kind:
            yield Problem("operand-kind", f"{self.name} must be {self.describe()}, not the {symbol.kind} {operand}")

    def example(self, form: Subject, position: int) -> str:
        return EXAMPLE_LABEL if self.kind == "label" else EXAMPLE_BRANCHES

    def describe(self) -> str:
        return "a label" if self.kind == "label" else "the label of a .branchtargets list"

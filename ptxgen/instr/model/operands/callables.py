"""Specifications of the operands of calls: the callee, its arguments, and the signature of a pointer.

A call is checked against the signature of the callee, or against all that a list or table of functions has (measured,
ptxas 13.5): types as for registers, arrays by their element type and size, and alignment exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptxgen.instr.model.operands.specification import (
    EXAMPLE_FUNCTION,
    EXAMPLE_PROTOTYPE,
    Specification,
    example_register,
)
from ptxgen.instr.model.symbols import Problem, Resolver, Signature, Subject, Symbol
from ptxgen.instr.model.types import TYPES, holds
from ptxgen.syntax import Arguments, Expression, Immediate, Name, Operand


@dataclass(kw_only=True, slots=True)
class ArgumentsSpec(Specification):
    """`(a, b)`: registers, `.param` variables or constants. What they must be, the callee says."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Arguments)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        return iter(())

    def example(self, form: Subject, position: int) -> str:
        return "()"

    def describe(self) -> str:
        return "a list in parentheses"


@dataclass(kw_only=True, slots=True)
class CalleeSpec(Specification):
    """A function by its name, checked with the arguments of the call."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is None or not isinstance(operand, Name):
            return
        symbol = resolve(operand.text)
        if symbol is None:
            yield Problem("undeclared-name", f"the function {operand} is not declared before this call")
        elif symbol.kind == "register":
            yield Problem("operand-count", f"a call of pointer {operand} requires a list of functions or a prototype")
        elif symbol.kind != "function" or any(each.entry for each in symbol.signatures):
            found = "entry" if symbol.kind == "function" else symbol.kind
            yield Problem("operand-kind", f"{self.name} must be a .func, not the {found} {operand}")
        else:
            yield from call_problems(str(operand), symbol.signatures, form, resolve)

    def example(self, form: Subject, position: int) -> str:
        return EXAMPLE_FUNCTION

    def describe(self) -> str:
        return "a function"


@dataclass(kw_only=True, slots=True)
class PointerSpec(Specification):
    """A register with the address of a function; one of 32 bits holds the low half alone (measured, ptxas 13.5)."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is None or not isinstance(operand, Name):
            return
        symbol = resolve(operand.text)
        if symbol is None:
            yield Problem("undeclared-name", f"{operand} is not declared; declare it, for example .reg .b64 {operand};")
        elif symbol.kind != "register":
            yield Problem("operand-kind", f"{self.name} must be a register, not the {symbol.kind} {operand}")
        elif symbol.vector or symbol.type is None or symbol.type.kind not in ("bits", "unsigned", "signed"):
            yield Problem("operand-type", f"{self.name} must be a 64-bit integer, but {operand} is {symbol.type}")
        elif symbol.type.bits not in (32, 64):
            yield Problem("operand-type", f"{self.name} must be 64 bits wide, but {operand} is {symbol.type}")
        elif symbol.type.bits == 32:
            yield Problem("address-width", f"{self.name} has only the 32 bits of {operand}", "warning")

    def example(self, form: Subject, position: int) -> str:
        return example_register(TYPES["b64"], position)

    def describe(self) -> str:
        return "a register with the address of a function"


@dataclass(kw_only=True, slots=True)
class TargetsSpec(Specification):
    """The signature of a pointer: a list of functions, a prototype, or an array of functions."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is None or not isinstance(operand, Name):
            return
        symbol = resolve(operand.text)
        if symbol is None:
            yield Problem("undeclared-name", f"{operand} is not declared before this call")
        elif symbol.kind in ("call targets", "prototype"):
            yield from call_problems(str(operand), symbol.signatures, form, resolve)
        elif symbol.kind == "variable" and symbol.size is not None and symbol.space in ("const", "global"):
            if symbol.type is None or symbol.type.name not in ("u8", "u32", "u64"):
                yield Problem("operand-type", f"{operand} must be an array of .u64, .u32 or .u8, not of {symbol.type}")
            elif not symbol.signatures:
                yield Problem("initializer", f"{operand} must have functions as its initial value")
            else:
                yield from call_problems(str(operand), symbol.signatures, form, resolve)
        else:
            yield Problem(
                "operand-kind",
                f"{self.name} must be a .calltargets list, a .callprototype or an array of functions, not {operand}",
            )

    def example(self, form: Subject, position: int) -> str:
        return EXAMPLE_PROTOTYPE

    def describe(self) -> str:
        return "a list of functions or a prototype"


def call_problems(callee: str, signatures: Sequence[Signature], form: Subject, resolve: Resolver) -> Iterator[Problem]:
    """How the arguments of a call differ from each of these signatures."""
    given = {name: _elements(getattr(form, name)) for name in ("returns", "arguments")}
    for wanted in dict.fromkeys(signatures):
        pairs = (("returns", wanted.returns), ("arguments", wanted.parameters))
        for name, formals in pairs:
            actual = given[name]
            least = len(formals)
            if name == "arguments" and formals and formals[-1].size == 0 and getattr(form, name) is not None:
                least -= 1  # An array without size may be left out.
            if not least <= len(actual) <= len(formals):
                what = "takes" if name == "arguments" else "returns"
                yield Problem("call-count", f"{callee} {what} {len(formals)} values, not {len(actual)}")
                return
            for formal, operand in zip(formals, actual, strict=False):
                problem = _argument_problem(callee, formal, operand, resolve, is_return=name == "returns")
                if problem is not None:
                    yield problem
                    if problem.severity == "error":
                        return


def _elements(operand: Operand | None) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Arguments) else ()


def _argument_problem(
    callee: str, formal: Symbol, operand: Operand, resolve: Resolver, *, is_return: bool
) -> Problem | None:
    """Why this cannot stand for a parameter or take a return value."""
    what = f"{operand} for {formal.name} of {callee}"
    if isinstance(operand, Name) and operand.text == "_":
        return None if is_return else Problem("operand-kind", f"{what} must be a value, not the sink _")
    if isinstance(operand, Immediate | Expression):
        return _constant_problem(what, formal, operand, is_return=is_return)
    assert isinstance(operand, Name)
    symbol = resolve(operand.text)
    if symbol is None:
        return Problem("undeclared-name", f"{what} is not declared")
    if symbol.kind in ("parameter", "argument", "result") or (symbol.kind == "variable" and symbol.space != "param"):
        found = f"in .{symbol.space}" if symbol.kind == "variable" else "of this function itself"
        return Problem("state-space", f"{what} must be a register or a .param variable of this block, but is {found}")
    if symbol.kind not in ("register", "variable"):
        return Problem("operand-kind", f"{what} must be a register or a .param variable, not a {symbol.kind}")
    if formal.type is not None and formal.type.kind == "predicate":
        return Problem("operand-type", f"{what} cannot be a .pred; pass it as a number")
    if formal.size is not None and formal.space == "reg":
        return Problem("state-space", f"{what} is an array of registers, which no argument can be")
    if formal.size is not None and symbol.kind == "register":
        return Problem("state-space", f"{what} must be a .param array of {formal.size} bytes, not a register")
    if not _fits(formal, symbol, is_return=is_return):
        return Problem("operand-type", f"{what} must be {_described(formal)}, but is {_described(symbol)}")
    align = symbol.align or (symbol.type.bytes * (symbol.vector or 1) if symbol.type else 1)
    wanted = formal.align or (formal.type.bytes * (formal.vector or 1) if formal.type else 1)
    if align != wanted:
        return Problem("alignment", f"{what} must be aligned to {wanted} bytes, but is aligned to {align}")
    return None


def _constant_problem(what: str, formal: Symbol, operand: Immediate | Expression, *, is_return: bool) -> Problem | None:
    kind = formal.type.kind if formal.type else "bits"
    try:
        is_float = isinstance(operand.evaluate(), float)
    except ValueError:
        return Problem("operand-kind", f"{what} must be a constant without names")
    dropped = is_return and is_float  # ptxas takes it where it takes the constant as an argument (measured, 13.5.37)
    if (is_return and not dropped) or formal.size is not None or kind == "predicate":
        return Problem("operand-kind", f"{what} must be {_described(formal)}, not a constant")
    if formal.vector or kind == "packed":
        # The bits of a constant: 64, or the 32 of 0f3F800000.
        bits = 32 if str(operand)[:2] in ("0f", "0F") else 64
        if formal.type is None or formal.type.bits * (formal.vector or 1) != bits:
            return Problem("operand-type", f"{what} must be {_described(formal)}, not a constant of {bits} bits")
        return _dropped_result(what) if dropped else None
    if kind != "bits" and is_float != (kind == "float"):
        return Problem("operand-type", f"{what} must be {_described(formal)}, not a constant of another kind")
    return _dropped_result(what) if dropped else None


def _dropped_result(what: str) -> Problem:
    return Problem("operand-kind", f"{what} is a constant, so the result is dropped; write _ for it", "warning")


def _fits(formal: Symbol, symbol: Symbol, *, is_return: bool) -> bool:
    if formal.type is None or symbol.type is None or (formal.size is None) != (symbol.size is None):
        return False
    if formal.size is not None:
        if formal.vector or symbol.vector or formal.size not in (0, symbol.size):
            return False  # Of arrays of vectors and of packed values ptxas takes none, not even the same.
        if "packed" in (formal.type.kind, symbol.type.kind):
            return False
        return formal.type == symbol.type or "bits" in (formal.type.kind, symbol.type.kind)
    if formal.vector is None and symbol.vector is None:
        kinds = {symbol.type.kind, formal.type.kind}
        packed = "packed" in kinds and symbol.type.bits == formal.type.bits and "predicate" not in kinds
        return packed or holds(symbol.type, formal.type)
    return _fits_vector(formal, symbol, is_return=is_return)


def _fits_vector(formal: Symbol, symbol: Symbol, *, is_return: bool) -> bool:
    """Whether the bits of one fill the other: elements of the source may be parts of those of the destination.

    On a scalar result in a vector register ptxas crashes, though its parser takes it.
    """
    assert formal.type is not None
    assert symbol.type is not None
    if formal.type.bits * (formal.vector or 1) != symbol.type.bits * (symbol.vector or 1):
        return False
    if symbol.space == "param":
        return True
    if is_return:
        return formal.vector is not None and formal.type.bits <= symbol.type.bits
    if formal.vector is None:
        return True
    if symbol.type.bits == 128:
        return formal.type.bits == 64
    if symbol.vector is None:  # measured: two values of 8 bits, of an integer, and not of .b16
        return formal.type.bits == 8 and symbol.type.name in ("u16", "s16")
    return symbol.type.bits <= formal.type.bits


def _described(symbol: Symbol) -> str:
    kind = f".v{symbol.vector} {symbol.type}" if symbol.vector else f"{symbol.type}"
    if symbol.size is None:
        return kind
    return f"an array of {kind}, {symbol.size} bytes" if symbol.size else f"an array of {kind} of any size"

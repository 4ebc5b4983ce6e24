"""Operand declarations: what may stand in each operand position of an instruction.

A declaration is data in the body of an `Instruction` class: `d = register("type")`. The functions here make the
specifications, whose classes (`specification`, `compound`) say what each argument means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ptxgen.instr.model.operands.accumulators import AccumulatorSpec, Mode
from ptxgen.instr.model.operands.callables import ArgumentsSpec, CalleeSpec, PointerSpec, TargetsSpec
from ptxgen.instr.model.operands.compound import GENERIC, AddressSpec, PartSpec, VectorSpec
from ptxgen.instr.model.operands.opaque import CoordinatesSpec, OpaqueSpec, SamplerSpec
from ptxgen.instr.model.operands.specification import (
    EXAMPLE_BRANCHES,
    EXAMPLE_FUNCTION,
    EXAMPLE_LABEL,
    EXAMPLE_OPAQUE,
    EXAMPLE_PARAMETER,
    EXAMPLE_PROTOTYPE,
    EXAMPLE_REGISTERS,
    EXAMPLE_RESULT,
    ChoiceSpec,
    ImmediateSpec,
    LabelSpec,
    Plain,
    PredicateSpec,
    RegisterSpec,
    SinkSpec,
    SourceSpec,
    Specification,
    TypeRef,
    is_sink,
    type_of,
)
from ptxgen.instr.model.symbols import Access, Problem, Resolver, Severity, Symbol, SymbolKind

__all__ = [
    "EXAMPLE_BRANCHES",
    "EXAMPLE_FUNCTION",
    "EXAMPLE_LABEL",
    "EXAMPLE_OPAQUE",
    "EXAMPLE_PARAMETER",
    "EXAMPLE_PROTOTYPE",
    "EXAMPLE_REGISTERS",
    "EXAMPLE_RESULT",
    "GENERIC",
    "Access",
    "AccumulatorSpec",
    "AddressSpec",
    "ArgumentsSpec",
    "CalleeSpec",
    "ChoiceSpec",
    "CoordinatesSpec",
    "ImmediateSpec",
    "LabelSpec",
    "OpaqueSpec",
    "PartSpec",
    "PointerSpec",
    "PredicateSpec",
    "Problem",
    "RegisterSpec",
    "Resolver",
    "SamplerSpec",
    "Severity",
    "SinkSpec",
    "SourceSpec",
    "Specification",
    "Symbol",
    "SymbolKind",
    "TargetsSpec",
    "TypeRef",
    "VectorSpec",
    "accumulator",
    "address",
    "callee",
    "choice",
    "coordinates",
    "immediate",
    "is_sink",
    "label",
    "opaque",
    "part",
    "pointer",
    "predicate",
    "register",
    "sampler",
    "sink",
    "source",
    "targets",
    "type_of",
    "values",
    "vector",
]

# Field specifiers: how a declaration is written. They return Any because the attribute they fill holds an operand.


def register(
    type: TypeRef,
    *,
    sink: bool = False,
    wide: bool | Callable[[Any], bool] = False,
    packed: bool = False,
    untyped: bool = False,
    plain: Plain = False,
    sums: bool = False,
    default: Any = ...,
) -> Any:
    """A register operand. `wide` allows a register wider than the type, as ld, st and cvt do."""
    return RegisterSpec(
        type=type,
        sink=sink,
        wide=wide,
        packed=packed,
        untyped=untyped,
        plain=plain,
        sums=sums,
        optional=default is None,
    )


def source(
    type: TypeRef,
    *,
    immediate: bool = True,
    special: bool | Callable[[Any], bool] = False,
    symbol: bool | str = False,
    wide: bool | Callable[[Any], bool] = False,
    low: int | None = None,
    high: int | Callable[[Any], int] | None = None,
    multiple: int = 1,
    advice: bool = False,
    constant_since: str | None = None,
    packed: str | None = None,
    word: bool = False,
    when: str | None = None,
    sums: bool = True,
    register_sums: bool | Callable[[Any], bool] = True,
    float_sums: bool | Callable[[Any], bool] = True,
    plain: Plain = False,
    memory: Access | None = None,
    memory_space: str | None = None,
    default: Any = ...,
) -> Any:
    """A register or constant operand, `low` to `high` in steps of `multiple` if it is a constant.

    One with `memory` is a descriptor of what is in `memory_space`.
    """
    return SourceSpec(
        type=type,
        immediate=immediate,
        special=special,
        symbol=symbol,
        wide=wide,
        low=low,
        high=high,
        multiple=multiple,
        advice=advice,
        constant_since=constant_since,
        packed=packed,
        word=word,
        when=when,
        sums=sums,
        register_sums=register_sums,
        float_sums=float_sums,
        plain=plain,
        memory=memory,
        memory_space=memory_space,
        optional=default is None,
    )


def immediate(low: int, high: int, *, multiple: int = 1, advice: bool = False, default: Any = ...) -> Any:
    """A constant operand."""
    return ImmediateSpec(low=low, high=high, multiple=multiple, advice=advice, optional=default is None)


def choice(values: Callable[[Any], tuple[int, ...]]) -> Any:
    """A constant operand that is one of a few values, which may depend on the instruction."""
    return ChoiceSpec(values=values)


def address(
    space: str | None = None,
    *,
    bits: tuple[int, ...] | None = None,
    short: bool = False,
    untyped: bool = False,
    narrow: bool = False,
    variables: tuple[str, ...] = GENERIC,
    written: bool = False,
    unified: bool = False,
    indexed: bool = False,
    nameless: tuple[str, ...] = (),
    memory: Access | None = None,
    memory_space: str | None = None,
    default: Any = ...,
) -> Any:
    """An address operand in brackets; the arguments are the fields of `AddressSpec`."""
    return AddressSpec(
        space=space,
        bits=bits,
        short=short,
        untyped=untyped,
        narrow=narrow,
        variables=variables,
        written=written,
        unified=unified,
        indexed=indexed,
        nameless=nameless,
        memory=memory,
        memory_space=memory_space,
        optional=default is None,
    )


def vector(
    type: TypeRef,
    count: int | Callable[[Any], int],
    *,
    scalar: bool = False,
    sink: bool | Callable[[Any], bool] = False,
    discard: bool = False,
    braced: bool = False,
    immediate: bool = False,
    mixed: bool | Literal["alone"] = False,
    special: bool = False,
    wide: bool = False,
    exact: bool = False,
    apart: bool = False,
    bits: tuple[int, ...] = (),
    sums: bool = False,
    when: str | None = None,
    memory: Access | None = None,
    memory_space: str | None = None,
    default: Any = ...,
) -> Any:
    """A vector operand in braces; with `scalar`, a plain register where the count is 1."""
    return VectorSpec(
        type=type,
        count=count,
        scalar=scalar,
        sink=sink,
        discard=discard,
        immediate=immediate,
        mixed=mixed,
        special=special,
        wide=wide,
        sums=sums,
        exact=exact,
        apart=apart,
        bits=bits,
        braced=braced,
        when=when,
        memory=memory,
        memory_space=memory_space,
        optional=default is None,
    )


def accumulator(
    type: TypeRef, count: int | Callable[[Any], int], *, mode: Callable[[Any], Mode] = lambda form: "bits"
) -> Any:
    """C of mma and wmma: registers in braces, or constants, read as `mode` says."""
    return AccumulatorSpec(type=type, count=count, mode=mode)


def part(
    type: TypeRef,
    selectors: str = "",
    *,
    immediate: bool = False,
    negatable: bool = False,
    sums: bool = True,
    plain: bool = False,
    default: Any = ...,
) -> Any:
    """A register, or a part of it by a selector that the regular expression matches: `r1.h0` of "b[0-3]|h[01]"."""
    optional = default is None
    return PartSpec(
        type=type,
        selectors=selectors,
        immediate=immediate,
        negatable=negatable,
        sums=sums,
        plain=plain,
        optional=optional,
    )


def predicate(
    *,
    negatable: bool = False,
    sink: bool = False,
    immediate: bool = False,
    special: bool = False,
    when: str | None = None,
    default: Any = ...,
) -> Any:
    """A predicate operand."""
    return PredicateSpec(
        negatable=negatable, sink=sink, immediate=immediate, special=special, when=when, optional=default is None
    )


def label(kind: SymbolKind = "label") -> Any:
    """A label operand, or with `kind` the label of a list."""
    return LabelSpec(kind=kind)


def callee() -> Any:
    """The name of a function to call; the operands `returns` and `arguments` must fit it."""
    return CalleeSpec()


def values(*, default: Any = ...) -> Any:
    """The values that a call passes, or that it returns, in parentheses."""
    return ArgumentsSpec(optional=default is None)


def pointer() -> Any:
    """A register with the address of a function to call."""
    return PointerSpec()


def targets() -> Any:
    """The declaration of the functions that a pointer may refer to; `returns` and `arguments` must fit all of them."""
    return TargetsSpec()


def sink() -> Any:
    """A result that only `_` can take."""
    return SinkSpec()


def opaque(
    type: str,
    *,
    unified_type: str | None = None,
    sampler: str | None = None,
    memory: Access = "none",
) -> Any:
    """A texture, sampler or surface in brackets; the arguments are the fields of `OpaqueSpec`."""
    return OpaqueSpec(
        type=type,
        unified_type=unified_type,
        sampler=sampler,
        memory=memory,
        memory_space="surface" if type == "surfref" else "texture",
    )


def sampler(*, default: Any = ...) -> Any:
    """The sampler of a texture access."""
    return SamplerSpec(optional=default is None)


def coordinates(
    type: TypeRef,
    count: int | Callable[[Any], int],
    *,
    layered: Callable[[Any], bool] = lambda form: False,
    scalar: bool = True,
    default: Any = ...,
) -> Any:
    """Coordinates in a texture or surface, `count` or more; with `scalar`, a single one needs no braces."""
    return CoordinatesSpec(type=type, count=count, layered=layered, scalar=scalar, optional=default is None)

"""Registers and variables: types, vectors, alignment, arrays, state spaces, attributes. PTX ISA 5.1 to 5.4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxgen import syntax
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.model.types import TYPES
from ptxgen.instr.module.context import Context, power_of_two
from ptxgen.instr.module.initializers import initializer_problems

OPAQUE = ("texref", "samplerref", "surfref")
#: Types that did not always exist. The manual has .f16x2 since 4.2; ptxas asks for its target alone (measured, 13.5).
_TYPES = {
    "b128": Availability("8.3", "sm_70+"),
    "f16x2": Availability("1.0", "sm_53+"),
    **dict.fromkeys(OPAQUE, Availability("1.5", ALL)),
}
_LINKAGES = {"weak": Availability("3.1", ALL), "common": Availability("5.0", ALL)}
ATTRIBUTES = {"managed": Availability("4.0", "sm_30+"), "unified": Availability("8.0", "sm_90+")}
#: What a .param variable may be aligned to, in bytes; that of an entry's parameter may be more.
PARAMETER_ALIGNMENT = 128
_LIMIT = 2**32


def attribute_name(attribute: str) -> str:
    """`unified` of `.unified(1, 2)`."""
    return attribute.strip(".").partition("(")[0]


def type_problems(type: str, vector: int | None, align: int | None, what: str, context: Context) -> Iterator[Problem]:
    """Rules on type, vector length and alignment, wherever they stand."""
    if type in _TYPES:
        yield from context.lacks(f"the type .{type}", _TYPES[type])
    if type == "samplerref" and context.texture_mode != "independent":
        yield Problem("target-option", f".samplerref {what} requires .target texmode_independent")
    if align is not None and not power_of_two(align):
        yield Problem("alignment", f"the alignment of {what} must be a power of two, not {align}")
    elif align is not None and align >= _LIMIT:
        yield Problem("alignment", f"the alignment of {what} must be less than 2^32, not {align}")
    if vector is not None:
        kind = TYPES.get(type)
        if kind is None or kind.kind in ("predicate", "opaque"):
            yield Problem("variable-type", f"{what} must be of a number type to be a vector, not .{type}")
        elif vector not in (2, 4) or vector * kind.bits > 128:
            yield Problem(
                "vector-length", f"a vector has 2 or 4 elements and up to 128 bits, but {what} .v{vector} {kind}"
            )


def register_problems(statement: syntax.RegisterDeclaration, context: Context, *, in_body: bool) -> Iterator[Problem]:
    """What is wrong with a `.reg`."""
    what = _names(statement)
    if not in_body and statement.declarators and context.version >= (3, 0):
        yield Problem(
            "state-space", f"registers are declared in a function since PTX ISA 3.0, not at module scope: {what}"
        )
    if statement.type in OPAQUE:
        yield Problem(
            "variable-type", f"{what} cannot be a register of type .{statement.type}; it is a .global variable"
        )
        return
    yield from type_problems(statement.type, statement.vector, statement.align, what, context)
    yield from _count_problems([(each.name, each.count) for each in statement.declarators])
    yield from _register_attribute_problems(statement, what, context)


def _register_attribute_problems(
    statement: syntax.RegisterDeclaration, what: str, context: Context
) -> Iterator[Problem]:
    """Attributes, which ptxas 13.5 overlooks on `.reg .b32;` and some on `.reg .b32 r<3>;`."""
    for name in map(attribute_name, statement.attributes):
        yield from context.lacks(f".attribute(.{name})", ATTRIBUTES[name])
        named = [each for each in statement.declarators if name == "unified" or each.count is None]
        severity = "error" if named else "warning"
        found = f"{what} is in .reg" if what else f"this is a declaration of .{statement.type}"
        yield Problem("attribute", f".{name} requires .global variables, but {found}", severity)


def variable_problems(
    statement: syntax.Variable, context: Context, scope: Scope, *, in_body: bool
) -> Iterator[Problem]:
    """What is wrong with a variable, its initial value included."""
    what = _names(statement)
    space, type = statement.space, statement.type
    # Of opaque types ptxas looks at scalars alone.
    scalar = any(not each.dims for each in statement.declarators)
    if not scalar:
        context = replace(context, texture_mode="independent")
    if not statement.declarators:  # ptxas asks for little where nothing is declared
        if space == "sreg":
            yield Problem("state-space", ".sreg is predefined; nothing can be declared in it")
        yield from type_problems(type, statement.vector, statement.align, f"a declaration of .{type}", context)
        if in_body and type in OPAQUE:
            yield Problem("variable-type", f"a declaration of .{type} must be at module scope")
        return
    yield from _space_problems(statement, what, context, in_body=in_body)
    if type in OPAQUE and (in_body or space != "global"):
        where = "at module scope" if in_body else "in .global"
        yield Problem("variable-type", f"{what} of type .{type} must be declared {where}")
    elif TYPES.get(type) == TYPES["pred"]:
        yield Problem("variable-type", f"a .pred is a register, {what} cannot be in .{space}")
        return
    if space == "param":
        yield from parameter_type_problems(type, statement.vector, [each.dims for each in statement.declarators], what)
        if statement.align is not None and statement.align > PARAMETER_ALIGNMENT:
            yield _alignment_problem(what, statement.align)
    yield from type_problems(type, statement.vector, statement.align, what, context)
    yield from _linkage_problems(statement, what, context)
    yield from _count_problems([(each.name, each.count) for each in statement.declarators])
    for each in statement.declarators:
        yield from _array_problems(each, statement)
        if each.initializer is not None:
            yield from initializer_problems(each, statement, context, scope)


def parameter_type_problems(
    type: str, vector: int | None, dims: list[tuple[int | None, ...]], what: str, *, external: bool = False
) -> Iterator[Problem]:
    """A .param variable holds scalars and arrays; packed values and vectors only as arrays.

    ptxas overlooks the others in prototypes and in functions of other modules (`external`; measured, 13.5).
    """
    scalar = any(not each for each in dims)
    if scalar and (type == "f16x2" or (vector is not None and type != "pred")):
        found = f".v{vector} .{type}" if vector else f".{type}"
        message = f"{what} cannot be in .param as {found}; make it .b32 or an array"
        yield Problem("variable-type", message, "warning" if external else "error")


def _alignment_problem(what: str, align: int) -> Problem:
    return Problem("alignment", f"{what} in .param is aligned to {PARAMETER_ALIGNMENT} bytes at most, not {align}")


def alignment_problems(what: str, align: int | None) -> Iterator[Problem]:
    """The limit on the alignment of parameters of functions."""
    if align is not None and align > PARAMETER_ALIGNMENT:
        yield _alignment_problem(what, align)


def _space_problems(statement: syntax.Variable, what: str, context: Context, *, in_body: bool) -> Iterator[Problem]:
    space = statement.space
    if space == "sreg":
        yield Problem("state-space", f".sreg is predefined; {what} cannot be declared")
    elif space == "tex":
        yield from context.removed(f".tex {what}", (1, 5), "declare a .global .texref")
    elif not in_body and space in ("local", "param"):
        where = "in a function" if space == "local" else "in parameter lists and functions"
        yield Problem("state-space", f".{space} variables are declared {where}, not at module scope: {what}")
    if statement.bank is not None:
        yield from context.removed(f".const[{statement.bank}] {what}", (2, 2), "leave the bank out")


def _linkage_problems(statement: syntax.Variable, what: str, context: Context) -> Iterator[Problem]:
    linkage, space = statement.linkage, statement.space
    if linkage in _LINKAGES:
        yield from context.lacks(f".{linkage}", _LINKAGES[linkage])
    if linkage == "common":
        if space != "global":
            yield Problem("linkage", f".common requires .global variables, but {what} is in .{space}")
        elif statement.type in OPAQUE and any(not each.dims for each in statement.declarators):
            yield Problem("linkage", f".common is not for {what} of type .{statement.type}")
    for name in map(attribute_name, statement.attributes):
        yield from context.lacks(f".attribute(.{name})", ATTRIBUTES[name])
        if space != "global":
            yield Problem("attribute", f".{name} requires .global variables, but {what} is in .{space}")


def _array_problems(each: syntax.Declarator, statement: syntax.Variable) -> Iterator[Problem]:
    size = 1
    for dimension in each.dims:
        size *= dimension or 0
    if size >= 2**64:
        message = f"the array {each} has {size} elements, of which ptxas counts {size % 2**64}"
        yield Problem("array-size", message, "warning")
    elif size == 0 and statement.linkage != "extern" and not _sized_by_value(each):
        yield Problem("array-size", f"the array {each} requires a size, an initial value or .extern")


def _sized_by_value(each: syntax.Declarator) -> bool:
    value = each.initializer
    return each.dims[:1] == (None,) and isinstance(value, syntax.Initializer) and len(value.elements) > 0


def _count_problems(declared: list[tuple[str, int | None]]) -> Iterator[Problem]:
    for name, count in declared:
        if count is not None and count >= _LIMIT:
            yield Problem("array-size", f"{name}<{count}> must declare fewer than 2^32 names")


def _names(statement: syntax.RegisterDeclaration | syntax.Variable) -> str:
    return ", ".join(str(each.name) for each in statement.declarators[:3])

"""Initial values of variables. PTX ISA 5.4.4.

A value has the shape of its variable: braces for each dimension, and for a vector. A list may be shorter than its
dimension, but not than a vector (measured, ptxas 13.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxgen import syntax
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.model.types import TYPES
from ptxgen.instr.module.context import Context

_ADDRESS = Availability("2.1", ALL)
_FUNCTION = Availability("2.1", "sm_20+")
_ENTRY = Availability("3.1", "sm_35+")
_GENERIC = Availability("3.1", ALL)
_MASK = Availability("7.1", ALL)
_MASKS = frozenset(0xFF << shift for shift in range(0, 64, 8))
_IMAGE = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size")
_ADDRESSING = ("filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2")
#: Fields of opaque variables, which are initialized by name (PTX ISA 5.3), by type (measured, ptxas 13.5).
_FIELDS = {
    "texref": (*_IMAGE, "normalized_coords", *_ADDRESSING, "num_mipmap_levels", "num_samples"),
    "samplerref": (*_ADDRESSING, "force_unnormalized_coords"),
    "surfref": (*_IMAGE, "memory_layout"),
}
#: Names that a field's value may have: modes of filters and of addresses.
_MODES = ("nearest", "linear", "wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")


def initializer_problems(
    declared: syntax.Declarator, statement: syntax.Variable, context: Context, scope: Scope
) -> Iterator[Problem]:
    """What is wrong with the initial value of a variable."""
    name, value = declared.name, declared.initializer
    assert value is not None
    if statement.linkage == "extern":
        yield Problem("initializer", f"{name} is .extern, so its value belongs to its definition")
    elif statement.space not in ("global", "const"):
        yield Problem(
            "initializer", f"only .global and .const variables have an initial value, {name} is .{statement.space}"
        )
    elif TYPES[statement.type].kind == "opaque":
        yield from _opaque(name, value, declared.dims, statement.type, context)
    else:
        problems = list(_shaped(name, value, declared.dims, statement, context, scope))
        yield from problems
        if not problems and statement.type == "f16x2" and next(_leaves(value), None) is not None:
            yield Problem(
                "initializer",
                f"the braces of {name} hold 32-bit words, not halves: ptxas stores an integer or the bits of an .f32; "
                "make it .b32",
                "warning",
            )


def _opaque(
    name: str, value: syntax.Operand, dims: Sequence[int | None], type: str, context: Context
) -> Iterator[Problem]:
    """Fields by name in braces; elements of an array may have braces of their own."""
    nested = isinstance(value, syntax.Initializer) and any(
        isinstance(each, syntax.Initializer) for each in value.elements
    )
    if nested and dims and isinstance(value, syntax.Initializer):
        if dims[0] is not None and len(value.elements) > dims[0]:
            yield Problem("initializer", f"{name} has {dims[0]} elements here, not {len(value.elements)}")
            return
        for element in value.elements:
            yield from _opaque(name, element, dims[1:], type, context)
        return
    for element in value.elements if isinstance(value, syntax.Initializer) else (value,):
        pair = element.operands if isinstance(element, syntax.Expression) and element.operator == "=" else ()
        if not pair or not isinstance(value, syntax.Initializer):
            yield Problem("initializer", f"{name} is initialized by name, as in {{ width = 16 }}, not by {element}")
            return
        field, given = str(pair[0]), pair[1]
        if field not in _FIELDS[type]:
            legal = " ".join(sorted(_FIELDS[type]))
            yield Problem("initializer", f"{name}, a .{type}, has no field {field}; the fields are {legal}")
        elif isinstance(given, syntax.Name) and given.text not in _MODES:
            yield Problem(
                "initializer", f"{field} of {name} must be a number or one of {' '.join(_MODES)}, not {given}"
            )
        elif type == "texref" and field in _ADDRESSING and context.texture_mode == "independent":
            message = f"{field} of {name} is ignored: .target texmode_independent takes it from the .samplerref"
            yield Problem("initializer", message, "warning")


def _shaped(
    name: str,
    value: syntax.Operand,
    dims: Sequence[int | None],
    statement: syntax.Variable,
    context: Context,
    scope: Scope,
) -> Iterator[Problem]:
    """Checks the braces of one level, then what is inside."""
    length = dims[0] if dims else statement.vector
    if not dims and statement.vector is None:
        if statement.type in ("f16", "f16x2"):
            yield from _half(name, value, statement, scope)
        elif isinstance(value, syntax.Initializer):
            yield Problem("initializer", f"an element of {name} must be one value, not {value}")
        else:
            yield from _value(name, value, statement, context, scope)
        return
    if not isinstance(value, syntax.Initializer):
        yield Problem("initializer", f"{name} is an array here and requires braces, not {value}")
        return
    found = len(value.elements)
    if dims and length is not None and found > length:
        yield Problem("initializer", f"{name} has {length} elements here, not {found}")
        return
    if not dims and found != length:
        yield Problem("initializer", f"{name} is a vector of {length} elements, not {found}")
        return
    inner = statement if dims else _scalar(statement)
    for element in value.elements:
        for problem in _shaped(name, element, dims[1:], inner, context, scope):
            yield problem
            return


def _half(name: str, value: syntax.Operand, statement: syntax.Variable, scope: Scope) -> Iterator[Problem]:
    """An element of .f16 has no value; one of .f16x2 has braces around anything, which ptxas takes for words of 32 bits
    (measured, 13.5).
    """
    if statement.type == "f16" or not isinstance(value, syntax.Initializer):
        bits = TYPES[statement.type].bits
        rule = f"{name} of type .{statement.type} cannot have an initial value; make it .b{bits}"
        yield Problem("initializer", rule)
        return
    for leaf in _leaves(value):
        symbol = _symbol_of(leaf)
        if symbol is not None:
            if scope(symbol) is None:
                yield Problem("undeclared-name", f"{symbol} in the value of {name} is not declared before it")
        elif isinstance(leaf, syntax.Immediate | syntax.Expression):
            try:
                leaf.evaluate()
            except ValueError as error:
                yield Problem("initializer", f"the value {leaf} of {name} cannot be computed: {error}")
        else:
            yield Problem("initializer", f"the value of {name} must be a constant or an address, not {leaf}")


def _leaves(value: syntax.Operand) -> Iterator[syntax.Operand]:
    """The values in nested braces, in their order."""
    if isinstance(value, syntax.Initializer):
        for element in value.elements:
            yield from _leaves(element)
    else:
        yield value


def _scalar(statement: syntax.Variable) -> syntax.Variable:
    return statement.replace(vector=None)


def _value(
    name: str, value: syntax.Operand, statement: syntax.Variable, context: Context, scope: Scope
) -> Iterator[Problem]:
    kind = TYPES[statement.type].kind
    symbol = _symbol_of(value)
    if symbol is not None:
        yield from _address(name, value, symbol, statement, context, scope)
        return
    if not isinstance(value, syntax.Immediate | syntax.Expression):
        yield Problem("initializer", f"the value of {name} must be a constant or an address, not {value}")
        return
    try:
        is_float = isinstance(value.evaluate(), float)
    except ValueError as error:
        yield Problem("initializer", f"the value {value} of {name} cannot be computed: {error}")
        return
    if kind != "bits" and is_float != (kind == "float"):
        wanted = "a floating-point" if kind == "float" else "an integer"
        yield Problem(
            "initializer", f"the value of {name} must be {wanted} constant for .{statement.type}, not {value}"
        )


def _symbol_of(value: syntax.Operand) -> str | None:
    """The name in `name`, `name+4`, `generic(name)+4` or `0xFF(name)`."""
    if isinstance(value, syntax.Name):
        return value.text
    if isinstance(value, syntax.Expression) and value.operator in ("+", "generic", "mask"):
        return _symbol_of(value.operands[-1 if value.operator == "mask" else 0])
    return None


def _operators(value: syntax.Operand) -> Iterator[syntax.Expression]:
    while isinstance(value, syntax.Expression):
        yield value
        value = value.operands[-1 if value.operator == "mask" else 0]


def _address(
    name: str, value: syntax.Operand, symbol: str, statement: syntax.Variable, context: Context, scope: Scope
) -> Iterator[Problem]:
    operators = {each.operator: each for each in _operators(value)}
    found = scope(symbol)
    if found is None:
        yield Problem("undeclared-name", f"{symbol} in the value of {name} is not declared before it")
        return
    is_function = found.kind == "function"
    if not is_function and (found.kind != "variable" or found.space not in ("global", "const")):
        where = f"in .{found.space}" if found.space else f"a {found.kind}"
        yield Problem("initializer", f"{symbol} in the value of {name} must be in .global or .const, but is {where}")
        return
    if is_function and {"+", "generic"} & operators.keys():
        yield Problem("initializer", f"the value of {name} must be the plain function {symbol}, not {value}")
    allowed = ("u8", "u32", "u64") if "mask" in operators else ("u32", "u64")
    if statement.type not in allowed:
        legal = " or ".join("." + each for each in allowed)
        hint = "; a byte of it is written as 0xFF(name)" if statement.type == "u8" else ""
        yield Problem("initializer", f"address {value} requires type {legal}, but {name} is .{statement.type}{hint}")
    mask = operators.get("mask")
    if mask is not None:
        yield from context.lacks(f"the mask in {value}", _MASK)
        number = mask.operands[0]
        if isinstance(number, syntax.Immediate) and number.evaluate() not in _MASKS:
            yield Problem("initializer", f"the mask in {value} must be 0xFF shifted by whole bytes, as 0xFF00")
    if "generic" in operators:
        yield from context.lacks("generic()", _GENERIC)
    is_entry = any(each.entry for each in found.signatures)
    availability = _ENTRY if is_entry else _FUNCTION if is_function else _ADDRESS
    yield from context.lacks(f"the address of {symbol} as a value", availability)

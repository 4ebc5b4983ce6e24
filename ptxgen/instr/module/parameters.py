"""Parameters and return values of entries, functions and call prototypes. PTX ISA 5.1.6, 7.1, 11.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxgen import syntax
from ptxgen.instr.model.scope import parameter
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.module.context import Context, power_of_two
from ptxgen.instr.module.variables import (
    ATTRIBUTES,
    OPAQUE,
    alignment_problems,
    attribute_name,
    parameter_type_problems,
    type_problems,
)

_ENTRY_LIST = Availability("1.4", ALL)
_POINTER = Availability("2.2", ALL)
_LIMIT = 2**32
_IN_PARAM = Availability("2.0", "sm_20+")
_UNSIZED = Availability("6.0", "sm_30+")
#: How many bytes of parameters an entry may have, and since when.
_SIZES = (
    (32764, Availability("8.1", "sm_70+")),
    (4352, Availability("1.5", ALL)),
    (256, Availability("1.4", ALL)),
)


def is_external(function: syntax.Function | syntax.CallPrototype) -> bool:
    """True if the function is a prototype or in another module, so that ptxas overlooks some of its parameters."""
    if isinstance(function, syntax.CallPrototype):
        return True
    return function.body is None and function.linkage == "extern"


def parameter_problems(
    function: syntax.Function | syntax.CallPrototype, context: Context
) -> Iterator[tuple[syntax.Statement, Problem]]:
    """What is wrong with the parameters and return values, each with its place."""
    is_entry = isinstance(function, syntax.Function) and function.kind == "entry"
    unnamed = isinstance(function, syntax.CallPrototype)
    defines = isinstance(function, syntax.Function) and function.body is not None
    external = is_external(function)
    for each in (*function.returns, *function.parameters):
        if each.ptr and not is_entry and isinstance(function, syntax.Function):
            message = f".ptr requires a parameter of an entry, not {each.name} of a function"
            yield each, Problem("parameter-attribute", message)
        for problem in _attribute_problems(each, context, is_entry=is_entry, defines=defines):
            yield each, problem
    for position, each in enumerate(function.parameters):
        is_last = position == len(function.parameters) - 1
        if is_entry:
            problems = _entry(each, context)
        else:
            problems = _formal(each, context, unnamed=unnamed, defines=defines, external=external, is_last=is_last)
        for problem in problems:
            yield each, problem
    for each in function.returns:
        for problem in _formal(each, context, unnamed=unnamed, defines=defines, external=external, is_return=True):
            yield each, problem
    if len(function.returns) > 1 and any(each.space != "reg" for each in function.returns):
        message = "a function returns one value in .param, or several in .reg; use a .param array for more"
        yield function.returns[1], Problem("return-count", message)
    if is_entry and isinstance(function, syntax.Function):
        if function._parameters is not None:
            for problem in context.lacks("a list of parameters of an entry", _ENTRY_LIST):
                yield function, problem
        for problem in _size_problems(function, context):
            yield function, problem


def _attribute_problems(
    each: syntax.Parameter, context: Context, *, is_entry: bool, defines: bool
) -> Iterator[Problem]:
    """Attributes belong to .global variables; ptxas 13.5 overlooks some on parameters of functions."""
    for name in map(attribute_name, each.attributes):
        yield from context.lacks(f".attribute(.{name})", ATTRIBUTES[name])
        refused = is_entry or (name == "managed" and defines)
        message = f".{name} requires .global variables, but {each.name} is a parameter in .{each.space}"
        yield Problem("attribute", message, "error" if refused else "warning")


def _common(each: syntax.Parameter, context: Context, *, external: bool = False) -> Iterator[Problem]:
    what = f"the parameter {each.name}"
    if each.space == "param":
        yield from parameter_type_problems(each.type, each.vector, [each.array or ()], what, external=external)
        if each.type == "pred":
            overlooked = external and each.array is None and each.vector is None
            message = f"a .pred is a register, {what} cannot be in .param"
            yield Problem("variable-type", message, "warning" if overlooked else "error")
            return
    elif each.array is not None:
        yield from _register_array_problems(each, what, external=external)
    yield from type_problems(each.type, each.vector, each.align, what, context)


def _register_array_problems(each: syntax.Parameter, what: str, *, external: bool) -> Iterator[Problem]:
    """A register is no array; ptxas overlooks a size where no body follows (measured, 13.5)."""
    overlooked = bool(each.size) and each.type != "pred" and external
    message = f"{what} is a register, which cannot be an array; declare it in .param"
    yield Problem("variable-type", message, "warning" if overlooked else "error")


def _entry(each: syntax.Parameter, context: Context) -> Iterator[Problem]:
    """A parameter of an entry, which is in .param and may be opaque or a pointer with attributes."""
    if each.space != "param":
        yield Problem("state-space", f"the parameter {each.name} of an entry must be in .param, not .{each.space}")
        return
    if each.array is not None:  # of opaque types ptxas looks at scalars alone
        context = replace(context, texture_mode="independent")
    yield from _common(each, context)
    if each.array is not None and not each.size:
        yield Problem("array-size", f"the parameter {each.name} of an entry requires a size")
    if each.ptr:
        yield from context.lacks(".ptr", _POINTER)
        if each.ptr_align is not None and not (power_of_two(each.ptr_align) and each.ptr_align < _LIMIT):
            message = f"the alignment of what {each.name} points to must be a power of two, not {each.ptr_align}"
            yield Problem("alignment", message)


def _formal(
    each: syntax.Parameter,
    context: Context,
    *,
    unnamed: bool,
    defines: bool,
    external: bool,
    is_last: bool = False,
    is_return: bool = False,
) -> Iterator[Problem]:
    """A parameter or return value of a function."""
    if each.type in OPAQUE:
        # What ptxas 13.5 does not look at: a declaration, and arrays.
        overlooked = each.space == "param" and each.array is not None if defines else True
        message = f".{each.type} requires a parameter of an entry, not {each.name} of a function"
        yield Problem("variable-type", message, "warning" if overlooked else "error")
        if not overlooked:
            return
        context = replace(context, texture_mode="independent")
    yield from _common(each, context, external=external)
    if (each.size or 0) >= _LIMIT:
        yield Problem("array-size", f"the parameter {each.name} must have fewer than 2^32 elements, not {each.size}")
    if each.name == "_" and not unnamed:
        yield Problem("parameter-name", "a parameter of a function requires a name; only a call prototype may write _")
    if each.space == "param":
        yield from context.lacks(f"{each.name} in .param", _IN_PARAM)
        yield from alignment_problems(f"the parameter {each.name}", each.align)
    if each.array is not None and not each.size:
        if is_return:
            yield Problem("array-size", f"the return value {each.name} requires a size")
        elif not is_last:
            yield Problem("array-size", f"only the last parameter may be an array without size, {each.name} is not")
        elif each.array == (None,):
            yield from context.lacks("an array without size as parameter", _UNSIZED)


def _size_problems(function: syntax.Function, context: Context) -> Iterator[Problem]:
    used = size_of(function.parameters)
    smallest = _SIZES[-1][0]
    if used <= smallest:
        return
    for limit, availability in _SIZES:
        if not any(context.lacks("", availability)):
            if used > limit:
                message = f"the parameters of {function.name} must fit {limit} bytes, but have {used}"
                yield Problem("parameter-size", message)
            return


def size_of(parameters: Sequence[syntax.Parameter]) -> int:
    """Bytes that parameters take one after the other."""
    offset = 0
    for symbol in map(parameter, parameters):
        if symbol.type is not None and symbol.space == "param":
            offset = -(-offset // symbol.align) * symbol.align
            offset += symbol.size if symbol.size is not None else symbol.type.bytes * (symbol.vector or 1)
    return offset

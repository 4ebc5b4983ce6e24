"""What the ABI of ptxas has no place for, and what needs the ABI (measured, ptxas 13.5.37).

Functions take and return no predicates and no integers of 8 or 16 bits: "In ABI compilation, passing predicate, 8-bit
and 16-bit parameters to device functions is not supported". Of a module with a function that returns several values
ptxas does without the ABI; then it says "Indirect function call requires ABI", "'Indirect Functions or Extern
Functions' requires ABI" and "Function 'f' is recursive".
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen import syntax
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.module.parameters import is_external
from ptxgen.instr.module.reach import Reach, instructions, operand_names


def abi_problems(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """Small parameters; with a function that returns several values the first place that needs the ABI."""
    several = next((each for each in module.functions if len(each.returns) > 1), None)
    if several is None:
        yield from _small_problems(module, analysis)
        return
    found = next(_needing(module, analysis), None)
    if found is not None:
        place, what = found
        message = (
            f"{several.name} returns {len(several.returns)} values, so ptxas does without the ABI, which {what} needs"
        )
        yield place, Problem("needs-abi", f"{message}; return a .param array")


#: Types of parameters that the ABI refuses, and what to declare; .b8, .b16 and .f16 pass, and so do arrays.
_SMALL = {
    "u8": ".b8 or .b32",
    "s8": ".b8 or .b32",
    "u16": ".b16 or .b32",
    "s16": ".b16 or .b32",
    "pred": ".b32 and compare it",
}


def _small_problems(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """Parameters and return values of _SMALL: errors where an entry reaches the function, else advice."""
    small = {each.name: found for each in module.functions if each.kind == "func" and (found := _small(each))}
    prototypes = [each for each in module.statements() if isinstance(each, syntax.CallPrototype) and _small(each)]
    if not small and not prototypes:
        return
    reach = Reach(analysis)
    bodies = {id(each): each for entry in module.entries for each in reach.functions(entry)}.values()
    named = {name for body in bodies for each in instructions(body) for operand in each.operands
             for name in operand_names(operand)}  # fmt: skip
    named |= {name for body in bodies for name in _listed(body, named)}
    for name, parameter in small.items():
        message = f"the ABI passes no .{parameter.type} to or from a function, as {parameter.name} of {name}"
        if name in named:
            yield parameter, Problem("variable-type", f"{message}; declare it {_SMALL[parameter.type]}")
        else:
            yield parameter, Problem("variable-type", f"{message}; ptxas --compile-only refuses it", "warning")
    for body in bodies:
        before: syntax.Statement | None = None
        for each in syntax.walk([body]):
            if isinstance(each, syntax.CallPrototype) and isinstance(before, syntax.Label) and before.name in named:
                parameter = _small(each)
                if parameter is not None:
                    message = f"the ABI passes no .{parameter.type} to or from a function, as in {before.name}"
                    yield each, Problem("variable-type", f"{message}; declare it {_SMALL[parameter.type]}")
            before = each


def _listed(body: syntax.Function, named: set[str]) -> Iterator[str]:
    """The functions of `.calltargets` whose labels are named."""
    before: syntax.Statement | None = None
    for each in syntax.walk([body]):
        listed = isinstance(before, syntax.Label) and before.name in named
        if listed and isinstance(each, syntax.Directive) and each.name == "calltargets":
            yield from each.arguments
        before = each


def _small(function: syntax.Function | syntax.CallPrototype) -> syntax.Parameter | None:
    """The first parameter or return value that the ABI has no place for."""
    for each in (*function.parameters, *function.returns):
        if each.type not in _SMALL or each.array is not None or each.vector is not None:
            continue
        # A .pred in .param is an error of its own where the function is defined.
        if each.type != "pred" or each.space == "reg" or is_external(function):
            return each
    return None


def _needing(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, str]]:
    names = {each.name for each in module.functions}
    bodies = {each.name for each in module.functions if each.body is not None}
    for item in module.items:
        if isinstance(item, syntax.Variable):
            for each in item.declarators:
                values = operand_names(each.initializer) if each.initializer is not None else ()
                for name in sorted(names.intersection(values)):
                    yield item, f"the address of {name}"
    reach = Reach(analysis)
    for function in module.functions:
        for statement in instructions(function):
            mentioned = {name for operand in statement.operands for name in operand_names(operand)} & names
            if not statement.is_call:
                for name in sorted(mentioned):
                    yield statement, f"the address of {name}"
            elif not mentioned:
                yield statement, "an indirect call"
            else:
                for name in sorted(mentioned - bodies):
                    if any(each.linkage == "extern" for each in module.functions if each.name == name):
                        yield statement, f"a call of {name}, which is .extern,"
        if function.body is not None and reach.calls_itself(function):
            yield function, f"{function.name}, which calls itself,"

"""What a module cannot have beside a function that returns several values: ptxas then does without the ABI.

Its words are "Indirect function call requires ABI", "'Indirect Functions or Extern Functions' requires ABI" and
"Function 'f' is recursive" (measured, ptxas 13.5.37).
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen import syntax
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.module.reach import Reach, instructions, operand_names


def abi_problems(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """The first place that needs the ABI in a module with a function that returns several values."""
    several = next((each for each in module.functions if len(each.returns) > 1), None)
    if several is None:
        return
    found = next(_needing(module, analysis), None)
    if found is not None:
        place, what = found
        message = (
            f"{several.name} returns {len(several.returns)} values, so ptxas does without the ABI, which {what} needs"
        )
        yield place, Problem("needs-abi", f"{message}; return a .param array")


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

"""One .cta_group for all tcgen05 instructions of a kernel. PTX ISA 9.7.16.7.1 and others.

"All tcgen05 instructions within a kernel must specify the same value for the .cta_group qualifier." ptxas 13.5 asks it
of each entry with the functions that it can reach, through pointers too, whether the code can be reached or not;
functions of no entry may mix, and tensor copies do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxgen import syntax
from ptxgen.instr.model.recognize import traits_of
from ptxgen.instr.model.symbols import Problem

_GROUPS = ("cta_group::1", "cta_group::2")


def group_of(opcode: str) -> str | None:
    """The .cta_group of a tcgen05 instruction, None where it has none."""
    if not opcode.startswith("tcgen05."):
        return None
    return next((token for token in opcode.split(".") if token in _GROUPS), None)


def group_problems(module: syntax.Module) -> Iterator[tuple[syntax.Statement, Problem]]:
    """For each entry that uses both groups, the first instruction that has another than the first one."""
    bodies = {function.name: function for function in module.functions if function.body is not None}
    reported: set[syntax.Statement] = set()
    for entry in module.entries:
        first: tuple[str, syntax.Instruction] | None = None
        for statement in _reachable(entry, bodies):
            group = group_of(statement.opcode)
            if group is None or (first is not None and first[0] == group):
                continue
            if first is None:
                first = group, statement
                continue
            if statement not in reported:
                reported.add(statement)
                yield (
                    statement,
                    Problem(
                        "cta-group",
                        f"{entry.name} uses .{first[0]} in line {first[1].line} and .{group} here; all tcgen05 "
                        "instructions of a kernel have the same",
                    ),
                )
            break


def _reachable(entry: syntax.Function, bodies: dict[str, syntax.Function]) -> Iterator[syntax.Instruction]:
    """The instructions of an entry, then those of the functions that it names, and so on."""
    waiting, seen = [entry], {entry.name}
    while waiting:
        function = waiting.pop(0)
        for statement in syntax.walk([function]):
            if not isinstance(statement, syntax.Instruction):
                continue
            yield statement
            traits = traits_of(statement.opcode)
            if traits is not None and (traits.control == "call" or traits.move):
                for name in _names(statement.operands):
                    if name in bodies and name not in seen:
                        seen.add(name)
                        waiting.append(bodies[name])


def _names(operands: Iterable[syntax.Operand]) -> Iterator[str]:
    return (operand.text for operand in operands if isinstance(operand, syntax.Name))

"""A kernel's text with one instruction replaced, and how a changed instruction is spelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxgen import syntax
from ptxgen.syntax import Immediate, Instruction, Operand, walk

#: The kind of a change, and the text that replaces the instruction.
Change = tuple[str, str]


@dataclass(frozen=True)
class Mutant:
    """One change of a kernel's text: what was done, to which instruction, where."""

    kind: str
    line: int
    column: int
    instruction: str
    start: int
    text: str

    def applied(self, source: str) -> str:
        """The kernel with the change."""
        return source[: self.start] + self.text + source[self.start + len(self.instruction) :]

    @property
    def spelled(self) -> str:
        """The instruction on one line, without its semicolon."""
        return " ".join(self.instruction.split()).rstrip("; ")

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.spelled}"


def every(source: str, changes: Callable[[Instruction], Iterator[Change]]) -> Iterator[Mutant]:
    """All mutants that `changes` makes of a kernel's text, in the order of its lines."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function in syntax.parse(source).functions:
        if function.body is None:
            continue
        for statement in walk(function.body.statements):
            if isinstance(statement, Instruction):
                start = starts[statement.line - 1] + statement.column - 1
                for kind, text in changes(statement):
                    yield Mutant(kind, statement.line, statement.column, statement.text, start, text)


def guarded(made: Instruction, text: str) -> str:
    """Another instruction under the same guard."""
    return f"{made.guard} {text}" if made.guard else text


def respelled(made: Instruction, opcode: str | None = None, operands: dict[int, object] | None = None) -> str:
    """The instruction with another opcode or other operands."""
    written = [str((operands or {}).get(number, each)).strip() for number, each in enumerate(made.operands)]
    return guarded(made, f"{opcode or made.opcode} {', '.join(written)};")


def computed(made: Instruction, position: int, bits: int, operation: str) -> str:
    """The instruction with an operand that an operation changes first, in a register of its own."""
    operand = str(made.operands[position]).strip()
    name = f"%mutated{bits}"
    changed = respelled(made, operands={position: name})
    return f"{{ .reg .b{bits} {name}; {operation.format(d=name, a=operand)} {changed} }}"


def counted(made: Instruction, position: int, change: int) -> str:
    """The instruction with a number added to an operand."""
    operand: Operand = made.operands[position]
    if isinstance(operand, Immediate):
        return respelled(made, operands={position: int(str(operand.evaluate())) + change})
    return computed(made, position, 32, f"add.s32 {{d}}, {{a}}, {change};")

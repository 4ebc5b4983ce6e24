"""Accumulators of wgmma that are read before a wait: ptxas puts a wgmma.wait_group of its own there.

Its words are "wgmma.wait_group is injected in around line N by compiler to allow use of registers defined by GMMA"
(C7517), or "wgmma.mma_async instructions are serialized" (C7514). A plain mov waits for nothing: what it copies is in
flight as well (measured, ptxas 13.5.37).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ptxgen import syntax
from ptxgen.instr.model.recognize import traits_of
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.module.reach import instructions, operand_names
from ptxgen.syntax.lexer import integer_value, is_integer

_MMA, _COMMIT, _WAIT = "wgmma.mma_async.", "wgmma.commit_group.", "wgmma.wait_group."
#: Groups beyond the most that a wait_group may leave.
_OLDEST = 8

#: Registers in flight: the MMA that writes each, and how many groups are committed after its own; -1: it is not yet.
State = dict[str, tuple[syntax.Instruction, int]]


def wait_problems(function: syntax.Function) -> Iterator[tuple[syntax.Statement, Problem]]:
    """The first read of each MMA's accumulators before a wait for it."""
    if function.body is None or not any(each.opcode.startswith(_MMA) for each in instructions(function)):
        return
    blocks = _blocks(function.body)
    found: dict[int, tuple[syntax.Instruction, syntax.Instruction, str]] = {}
    waiting = [0]
    while waiting:
        block = blocks[waiting.pop()]
        state = dict(block.entry)
        for statement in block.instructions:
            for name, mma in _step(statement, state):
                found.setdefault(id(mma), (statement, mma, name))
        for successor in block.successors:
            if blocks[successor].join(state):
                waiting.append(successor)
    for statement, mma, name in found.values():
        what = "the kernel ends" if not name else f"{statement.opcode.partition('.')[0]} reads {name}"
        message = (
            f"{what} while the wgmma.mma_async of line {mma.line} may still be writing its accumulators; ptxas puts a "
            "wgmma.wait_group here or runs the MMAs one by one; write the wait before this line"
        )
        yield statement, Problem("injected-wait", message, "warning")


def _step(statement: syntax.Instruction, state: State) -> Iterator[tuple[str, syntax.Instruction]]:
    """What an instruction reads of registers in flight, with their MMAs; `state` becomes that behind it."""
    opcode = statement.opcode
    if opcode.startswith(_MMA):
        for name in (name for each in statement.operands[:1] for name in operand_names(each)):
            state[name] = statement, -1
    elif opcode.startswith(_COMMIT):
        for name, (mma, age) in state.items():
            state[name] = mma, min(age + 1, _OLDEST)
    elif opcode.startswith(_WAIT):
        left = _groups(statement)
        for name in [name for name, (_, age) in state.items() if not left or age >= left]:
            del state[name]
    elif state:
        yield from _plain(statement, state)


def _plain(statement: syntax.Instruction, state: State) -> Iterator[tuple[str, syntax.Instruction]]:
    operands = statement.operands
    written = list(operand_names(operands[0])) if operands and not isinstance(operands[0], syntax.Address) else []
    read = [name for each in (operands[1:] if written else operands) for name in operand_names(each) if name in state]
    copied = [state[name] for name in read]
    if read and not statement.opcode.startswith("mov."):
        for name in read:
            yield name, state[name][0]
        copied = []
    if statement.guard is None:
        for name in written:
            state.pop(name, None)
    for name in written if copied else ():
        state[name] = min(copied, key=lambda each: each[1])
    traits = traits_of(statement.opcode)
    if traits is not None and traits.control in ("exit", "return") and state:
        yield "", min(state.values(), key=lambda each: each[1])[0]


def _groups(statement: syntax.Instruction) -> int:
    text = str(statement.operands[0]) if statement.operands else ""
    return integer_value(text) if is_integer(text) else 0


@dataclass(slots=True)
class _Basic:
    """Instructions that run one after the other, with the state before the first."""

    instructions: list[syntax.Instruction] = field(default_factory=list[syntax.Instruction])
    successors: list[int] = field(default_factory=list[int])
    entry: State = field(default_factory=dict[str, tuple[syntax.Instruction, int]])
    reached: bool = False

    def join(self, state: Mapping[str, tuple[syntax.Instruction, int]]) -> bool:
        """Take over what may be in flight before this block; whether that is news."""
        changed = not self.reached
        self.reached = True
        for name, each in state.items():
            known = self.entry.get(name)
            if known is None or each[1] < known[1]:
                self.entry[name] = each
                changed = True
        return changed


def _flattened(
    block: syntax.Block, around: tuple[Mapping[str, syntax.Label], ...] = ()
) -> Iterator[tuple[syntax.Statement, tuple[Mapping[str, syntax.Label], ...]]]:
    """The statements of a block and of those in it, each with the labels that it can name, innermost first."""
    labels = {each.name: each for each in block.statements if isinstance(each, syntax.Label)}
    scopes = (labels, *around)
    for each in block.statements:
        if isinstance(each, syntax.Block):
            yield from _flattened(each, scopes)
        else:
            yield each, scopes


def _blocks(body: syntax.Block) -> list[_Basic]:
    """The basic blocks of a function."""
    blocks = [_Basic()]
    starts: dict[int, int] = {}
    lists: dict[int, Sequence[str]] = {}
    jumps: list[tuple[int, str, tuple[Mapping[str, syntax.Label], ...]]] = []
    last: syntax.Statement | None = None
    for each, scopes in _flattened(body):
        if isinstance(each, syntax.Label):
            if blocks[-1].instructions:
                blocks.append(_Basic())
                blocks[-2].successors.append(len(blocks) - 1)
            starts[id(each)] = len(blocks) - 1
        elif isinstance(each, syntax.Directive) and each.name == "branchtargets":
            lists[id(last)] = each.arguments
        elif isinstance(each, syntax.Instruction):
            traits = traits_of(each.opcode)
            control = traits.control if traits is not None else None
            if control != "branch":
                blocks[-1].instructions.append(each)
            else:
                names = (name for operand in each.operands for name in operand_names(operand))
                jumps += [(len(blocks) - 1, name, scopes) for name in names]
            if control in ("branch", "exit", "return", "trap"):
                blocks.append(_Basic())
                if each.guard is not None:
                    blocks[-2].successors.append(len(blocks) - 1)
        last = each
    for block, name, scopes in jumps:
        label = _labelled(name, scopes)
        for target in lists.get(id(label), [name]):
            found = _labelled(target, scopes)
            if found is not None:
                blocks[block].successors.append(starts[id(found)])
    return blocks


def _labelled(name: str, scopes: tuple[Mapping[str, syntax.Label], ...]) -> syntax.Label | None:
    return next((labels[name] for labels in scopes if name in labels), None)

"""Runs: neighbors in a block that machine code executes one after the other, as one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxgen.emulator.load.program import Block, BlockCode, NativeBlocks, Operation
from ptxgen.emulator.native.encode import encode, encoded_guard
from ptxgen.emulator.native.library import Library, pointer_to
from ptxgen.emulator.state.group import Group
from ptxgen.instr import control


def with_runs(
    operations: Sequence[Operation], original: Sequence[Operation], blocks: NativeBlocks, library: Library
) -> list[Operation]:
    """The operations of a block, each run of them that the library has as one; what is watched stays as it is.

    An operation is watched where it does not execute as the `original` one does.
    """
    made: list[Operation] = []
    run: list[Operation] = []
    for operation, before in zip(operations, original, strict=True):
        if not _is_watched(operation, before) and _code(before, blocks, library) is not None:
            run.append(before)
            continue
        made += _joined(run, blocks, library)
        run = []
        made.append(operation)
    return made + _joined(run, blocks, library)


def _is_watched(operation: Operation, before: Operation) -> bool:
    return operation.run is not before.run or operation.guard is not before.guard


def code_of_block(
    block: Block, original: Sequence[Operation], blocks: NativeBlocks, library: Library
) -> BlockCode | None:
    """The code of a block with its runs, if all of it is one run and a branch; either may be missing."""
    operations = list(block.operations)
    instructions, target, guard = 0, -1, 0
    if operations and operations[-1].kind == "terminator":
        branch = operations.pop()
        found = encoded_guard(branch)
        if _is_watched(branch, original[-1]) or not isinstance(branch.instruction, control.bra) or found is None:
            return None
        instructions, target, guard = 1, block.targets[0], found
    code, length = 0, 0
    if operations:
        run = operations.pop()
        if operations or not run.parts:
            return None
        code, length = pointer_to(blocks.held[id(run)]), len(run.parts)
    last = len(blocks.times) - 1
    if target > last or ((target < 0 or guard) and block.following > last):
        return None
    # An empty block is a step that counts no instruction.
    return code, length, instructions + length, target, block.following, guard, 1


def _code(operation: Operation, blocks: NativeBlocks, library: Library) -> bytes | None:
    key = id(operation)
    if key not in blocks.codes:
        blocks.codes[key] = encode(operation, library)
    return blocks.codes[key]


def _joined(run: Sequence[Operation], blocks: NativeBlocks, library: Library) -> list[Operation]:
    if not run:
        return []
    first, key = run[0], tuple(map(id, run))
    found = blocks.runs.get(key)
    if found is None:
        codes = b"".join(code for each in run if (code := _code(each, blocks, library)) is not None)
        held = np.frombuffer(codes, np.uint8)
        found = blocks.runs[key] = Operation(
            first.statement,
            "plain",
            _execution(pointer_to(held), len(run), library),
            None,
            frozenset[int]().union(*(each.reads for each in run)),
            frozenset[int]().union(*(each.writes for each in run)),
            first.use,
            frozenset(),
            first.names,
            first.traits,
            parts=tuple(run),
        )
        blocks.held[id(found)] = held
    return [found]


def _execution(code: int, length: int, library: Library) -> Callable[[Group], None]:
    """What executes a run for all warps of a group. `NativeBlocks` holds its code."""
    execute = library.run

    def run(g: Group) -> None:
        machine, mask, warps = g.machine, g.mask, g.warps
        lanes = None if mask is None else np.ascontiguousarray(mask)
        execute(
            code,
            length,
            machine.register_addresses,
            None if isinstance(warps, slice) else pointer_to(warps),
            g.size,
            None if lanes is None else pointer_to(lanes),
        )

    return run

"""Runs: neighbors in a block that machine code executes one after the other, as one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxgen.emulator.load.program import NativeBlocks, Operation
from ptxgen.emulator.native.encode import encode
from ptxgen.emulator.native.library import Library, pointer_to
from ptxgen.emulator.state.group import Group


def with_runs(
    operations: Sequence[Operation], original: Sequence[Operation], blocks: NativeBlocks, library: Library
) -> list[Operation]:
    """The operations of a block, each run of them that the library has as one; what is watched stays as it is.

    An operation is watched where it does not execute as the `original` one does.
    """
    made: list[Operation] = []
    run: list[Operation] = []
    for operation, before in zip(operations, original, strict=True):
        if operation.run is before.run and _code(before, blocks, library) is not None:
            run.append(before)
            continue
        made += _joined(run, blocks, library)
        run = []
        made.append(operation)
    return made + _joined(run, blocks, library)


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
        found = blocks.runs[key] = Operation(
            first.statement,
            "plain",
            _execution(codes, len(run), library),
            None,
            frozenset[int]().union(*(each.reads for each in run)),
            frozenset[int]().union(*(each.writes for each in run)),
            first.use,
            frozenset(),
            first.names,
            first.traits,
            parts=tuple(run),
        )
    return [found]


def _execution(codes: bytes, length: int, library: Library) -> Callable[[Group], None]:
    """What executes a run for all warps of a group."""
    held = np.frombuffer(codes, np.uint8)
    code, execute = pointer_to(held), library.run

    def run(g: Group, held: object = held) -> None:
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

"""Whether the text has a wait for an access to tensor memory before it synchronizes with other warps.

A schedule may issue an MMA while a warp is still between its tcgen05.st and the wait that follows: then the wait is not
what is missing, but the synchronization after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Program

#: Instructions by which a warp gives others leave to go on.
_RELEASES = ("bar.", "barrier.", "mbarrier.arrive", "st.release", "red.release", "atom.")


def awaited_in_text(program: Program | None, access: Statement | None, wait: str) -> bool:
    """Whether an instruction `wait` ("tcgen05.wait::st") follows an access, before any release."""
    if program is None or not isinstance(access, Instruction):
        return False
    for rank, block in enumerate(program.blocks):
        for index, operation in enumerate(block.operations):
            if operation.statement is access:
                return _awaits(program, rank, index + 1, wait)
    return False


def _awaits(program: Program, rank: int, index: int, wait: str) -> bool:
    seen = set[int]()
    while rank < len(program.blocks) and rank not in seen:
        seen.add(rank)
        for operation in program.blocks[rank].operations[index:]:
            opcode = operation.statement.opcode
            if opcode.startswith(wait):
                return True
            if opcode.startswith(_RELEASES):
                return False
        rank, index = program.blocks[rank].following, 0
    return False

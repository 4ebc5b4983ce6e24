"""Barriers of the CTA. PTX ISA 9.7.13.1. Those of a warp's lanes are in `warp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.granules import distinct
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Terminator
from ptxgen.emulator.state.barriers import Reduction
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.emulator.state.group import Group
from ptxgen.instr import barrier
from ptxgen.instr.model.operands.specification import value_of

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation
    from ptxgen.emulator.schedule.scheduler import Scheduler


def require_whole_warps(g: Group, statement: syntax.Instruction) -> None:
    """Report an instruction that all threads of a warp must execute together, in a divergent warp.

    Lanes that come there only because all others wait are no error of their own if the launch ends as a deadlock.
    """
    if g.mask is None:  # all lanes are here
        return
    missing = g.machine.present[g.warps] & ~g.mask
    if any_set(missing):
        position = int(missing.any(axis=1).argmax())
        here, present = g.active[position], g.machine.present[g.indices[position]]
        access = g.machine.findings.access("accessor", statement, int(g.indices[position]), lanes=int(bits_of(here)))
        g.machine.findings.report(
            barriers.DIVERGENT_WARP,
            statement,
            summary=f"{statement.opcode.split('.sync')[0]} requires the whole warp; only {int(here.sum())} of "
            f"{int(present.sum())} lanes reached it together",
            accesses=(access,),
            unless_deadlock=g.machine.idle,
            cause=frozenset([causes.wait(statement.line)]),
        )


_Bar = barrier.bar_sync | barrier.bar_arrive | barrier.bar_red | barrier.bar_red_popc
_Barrier = barrier.barrier_sync | barrier.barrier_arrive | barrier.barrier_red | barrier.barrier_red_popc


def _kind(op: _Bar | _Barrier) -> str:
    """What it does besides arriving: sync, arrive, popc, and, or."""
    if isinstance(op, barrier.bar_red | barrier.barrier_red):
        return op.op
    if isinstance(op, barrier.bar_red_popc | barrier.barrier_red_popc):
        return "popc"
    return "sync" if isinstance(op, barrier.bar_sync | barrier.barrier_sync) else "arrive"


def _constant(name: syntax.Operand) -> int | None:
    """The number of a barrier that the text names as one; None if a register has it, or there is no such barrier."""
    value = value_of(name) if isinstance(name, syntax.Immediate) else None
    return value if isinstance(value, int) and 0 <= value < 16 else None


@semantics(*get_args(_Bar | _Barrier), kind="terminator")
def synchronize(op: _Bar | _Barrier, binder: Binder, statement: syntax.Instruction) -> Terminator:
    name = binder.source(op.name, "u32")
    threads = binder.source(op.threads, "u32") if op.threads is not None else None
    aligned, kind = op.traits.aligned, _kind(op)
    value = write = None
    if isinstance(op, barrier.bar_red | barrier.barrier_red):
        value, write = binder.predicate(op.c), binder.destination(op.p, "pred")
    elif isinstance(op, barrier.bar_red_popc | barrier.barrier_red_popc):
        value, write = binder.predicate(op.c), binder.destination(op.d, "u32")

    # Most name a constant, and all lanes the same barrier.
    constant = None if op.threads is not None else _constant(op.name)

    def run(g: Group, scheduler: Scheduler, block: Block, operation: Operation) -> None:
        if constant is not None and kind == "sync":
            if aligned:
                require_whole_warps(g, statement)
            scheduler.barriers.arrive(g, block, constant, None, operation, Reduction(kind, g, None, None))
            return
        names = g.full(name(g))
        counts = g.full(threads(g)) if threads is not None else None
        if aligned:
            require_whole_warps(g, statement)
        values = g.full(value(g)) if value is not None else None
        for number in distinct(names[g.active]):
            chosen = names == number
            part = g.narrowed(chosen)
            if number > 15:
                raise MemoryFault(barriers.BARRIER_NUMBER, f"barrier {number}")
            count = int(counts[g.active & chosen][0]) if counts is not None else None
            if count is not None and (count % 32 or count == 0):
                raise MemoryFault(barriers.BARRIER_COUNT, f"{statement.opcode} with a thread count of {count}")
            if part is not None:
                mine = values[np.isin(g.indices, part.indices)] if values is not None else None
                reduction = Reduction(kind, part, mine, write)
                scheduler.barriers.arrive(part, block, int(number), count, operation, reduction)

    return run

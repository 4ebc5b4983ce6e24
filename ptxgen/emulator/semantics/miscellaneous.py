"""Register counts, sleep, traps and performance events. PTX ISA 9.7.19."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry import barriers, calls
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import miscellaneous

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler


@semantics(miscellaneous.setmaxnreg, kind="blocking")
def set_registers(op: miscellaneous.setmaxnreg, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """A pool per CTA holds the registers that warps released; a warp waits until it has enough (9.7.19.5)."""
    count, raises = int(op.count.evaluate()), op.action == "inc"

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        require_whole_warps(g, statement)
        passing = np.ones((g.size, 32), np.bool_)
        pool = machine.register_pool
        if pool is None:
            machine.findings.report(
                barriers.SETMAXNREG_IGNORED,
                statement,
                summary="ptxas ignores setmaxnreg here",
                rule="No directive says how many registers a thread begins with",
            )
            return lambda warp: None, None
        for position, warp in enumerate(map(int, g.indices)):
            if (count < pool.count[warp]) if raises else (count > pool.count[warp]):
                access = machine.findings.access("accessor", statement, warp)
                machine.findings.report(
                    barriers.SETMAXNREG_DIRECTION,
                    statement,
                    summary=f"{access} requests {count} registers in a warp that has {pool.count[warp]}",
                    accesses=(access,),
                )
            passing[position] = pool.change(warp, count)
            if any_set(passing[position]):
                machine.effects += 1
                machine.events.registers_set(warp, statement, count)
                machine.wake(("registers", int(machine.cta_slot[warp])))
        return lambda warp: ("registers", int(machine.cta_slot[warp])), None if all_set(passing) else passing

    return run


_Pause = miscellaneous.nanosleep | miscellaneous.pmevent | miscellaneous.pmevent_mask | miscellaneous.mark


@semantics(*get_args(_Pause))
def nothing(op: _Pause, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Time passes anyway, and the emulator keeps no events."""
    return lambda g: None


@semantics(miscellaneous.trap, miscellaneous.brkpt)
def stop(op: miscellaneous.trap | miscellaneous.brkpt, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Without a debugger a breakpoint ends the kernel as a trap does."""

    def run(g: Group) -> None:
        warp = int(g.indices[0]) % g.machine.warps_per_cta
        slot = int(g.machine.cta_slot[g.indices[0]])
        raise MemoryFault(
            calls.TRAP, f"warp {warp} of {g.machine.cta_name(slot)} reached {statement.opcode}", rule="", fix=""
        )

    return run

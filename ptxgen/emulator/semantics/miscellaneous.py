"""Register counts, sleep, traps and performance events. PTX ISA 9.7.19."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.state.group import Group
from ptxgen.instr import miscellaneous

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler

_Run = Callable[[Group], None]


@meaning(miscellaneous.setmaxnreg, kind="gate")
def set_registers(op: Any, binder: Binder, statement: syntax.Instruction) -> Callable[..., Any]:
    """A pool per CTA holds what warps gave back; more than it has must be waited for (9.7.19.5)."""
    wanted, raises = int(op.count.evaluate()), op.action == "inc"

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        machine = g.machine
        require_whole_warps(g, statement)
        passing = np.ones((g.size, 32), np.bool_)
        budget = machine.registers_of_warps
        if budget is None:
            machine.findings.add(
                "setmaxnreg-ignored",
                "without .maxnreg, or .minnctapersm beside .reqntid or .maxntid, ptxas does not know how many "
                "registers a thread begins with, and ignores setmaxnreg",
                statement,
                severity="advice",
            )
            return lambda row: None, None
        for position, row in enumerate(map(int, g.indices)):
            if (wanted < budget.count[row]) if raises else (wanted > budget.count[row]):
                machine.findings.add(
                    "setmaxnreg-direction",
                    f"setmaxnreg.{op.action} to {wanted} registers by a warp that has {budget.count[row]}",
                    statement,
                )
            passing[position] = budget.change(row, wanted)
            if passing[position].any():
                machine.effects += 1
                machine.wake(("registers", int(machine.row_slot[row])))
        return lambda row: ("registers", int(machine.row_slot[row])), None if passing.all() else passing

    return run


@meaning(miscellaneous.nanosleep, miscellaneous.pmevent, miscellaneous.pmevent_mask, miscellaneous.mark)
def nothing(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """Time passes anyway, and nobody looks at the events."""
    return lambda g: None


@meaning(miscellaneous.trap, miscellaneous.brkpt)
def stop(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """Without a debugger a breakpoint ends the kernel as a trap does."""

    def run(g: Group) -> None:
        warp = int(g.indices[0]) % g.machine.warps_per_cta
        slot = int(g.machine.row_slot[g.indices[0]])
        raise MemoryFault("trap", f"warp {warp} of {g.machine.cta_name(slot)} reached {statement.opcode}")

    return run

"""Breakpoints, traps, sleep, performance events, and how many registers a warp has. PTX ISA 9.7.19."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import immediate, source
from ptxgen.instr.model.targets import ALL


class brkpt(Instruction, section="9.7.19.1", ptx="1.0", targets="sm_11+"):
    """Stop for a debugger."""

    syntax = "brkpt"


class trap(Instruction, section="9.7.19.4", ptx="1.0", targets=ALL, control="trap"):
    """End the kernel with an error."""

    syntax = "trap"


class pmevent(Instruction, section="9.7.19.3", ptx="1.4", targets=ALL):
    """Trigger performance event number `event`."""

    syntax = "pmevent event"
    event: OperandLike = immediate(0, 15)


class pmevent_mask(Instruction, opcode="pmevent.mask", section="9.7.19.3", ptx="3.0", targets="sm_20+"):
    """Trigger the performance events whose bits are set in `events`."""

    syntax = "pmevent.mask events"
    events: OperandLike = immediate(0, 0xFFFF)


class setmaxnreg(
    Instruction,
    section="9.7.19.5",
    ptx="8.0",
    targets="sm_90a sm_100f sm_110f sm_120f",
    issued_by="warpgroup",
    leading=1,
):
    """Give registers of the warp back (`dec`), or wait for more (`inc`), so that each thread has `count`."""

    syntax = "setmaxnreg.action.sync.aligned.u32 count"
    count: OperandLike = immediate(24, 256, multiple=8)
    _: KW_ONLY
    action: Literal["inc", "dec"]


class nanosleep(Instruction, section="9.7.19.2", ptx="6.2", targets="sm_70+"):
    """Sleep for about `time` nanoseconds, at most twice that and at most a millisecond."""

    syntax = "nanosleep.u32 time"
    time: OperandLike = source("u32")


class mark(Instruction, opcode="trace.mark", section="(not in the manual of 9.4)", ptx="9.5", targets="sm_107f"):
    """Put `event` into a trace (measured, ptxas 13.5; no manual describes it yet)."""

    syntax = "trace.mark event"
    event: OperandLike = immediate(0, 4095)

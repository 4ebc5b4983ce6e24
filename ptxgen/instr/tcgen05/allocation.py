"""Allocation of tensor memory, in columns of all 128 lanes. PTX ISA 9.7.16.7."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, source
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability
from ptxgen.instr.tcgen05.common import FAMILY
from ptxgen.syntax import Expression, Immediate

#: .exclusive is newer than the manual at hand (9.2): measured, ptxas 13.5, whose code for it takes all columns.
_NEEDS = {"exclusive": Availability("9.4", FAMILY)}


def _columns(form: Any) -> str | None:
    """A power of two from 32 to 512; with .exclusive, where it does not count, any positive multiple of 32."""
    if not isinstance(form.columns, Immediate | Expression):
        return None
    found = int(form.columns.evaluate()) % 2**32
    if form.exclusive:
        right, legal = found > 0 and found % 32 == 0, ".exclusive takes a positive multiple of 32"
    else:
        right, legal = found in (32, 64, 128, 256, 512), " takes 32, 64, 128, 256 or 512"
    return None if right else f"{form.form.opcode}{legal} columns, not {form.columns}"


class _Allocation(Instruction, section="9.7.16.7.1", ptx="8.6", targets=FAMILY, issued_by="warp"):
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")


class alloc(_Allocation, opcode="tcgen05.alloc"):
    """Allocate `columns` TMEM columns (32 to 512, a power of two) and write their address to shared memory.

    Waits until they are free. One warp per CTA; with cta_group 2 one warp of each CTA of the pair. `exclusive` takes
    all columns of the SM, 512, or 576 of sm_107, whatever `columns` says.
    """

    syntax = "tcgen05.alloc.cta_group.sync.aligned{.exclusive}{.space}.b32 [dst], columns"
    dst: OperandLike = address("space", bits=(32, 64), memory="write")
    columns: OperandLike = source("u32")
    _: KW_ONLY
    exclusive: bool = False
    space: Literal["shared::cta"] | None = None
    needs = _NEEDS
    _c = rule("columns", reads_operands=True)(_columns)


class dealloc(_Allocation, opcode="tcgen05.dealloc"):
    """Free `columns` TMEM columns at `taddr`, as allocated. Required before the kernel ends."""

    syntax = "tcgen05.dealloc.cta_group.sync.aligned{.exclusive}.b32 taddr, columns"
    taddr: OperandLike = source("u32")
    columns: OperandLike = source("u32")
    _: KW_ONLY
    exclusive: bool = False
    needs = _NEEDS
    _c = rule("columns", reads_operands=True)(_columns)


class relinquish_alloc_permit(_Allocation, opcode="tcgen05.relinquish_alloc_permit"):
    """Promise that this CTA allocates no more TMEM."""

    syntax = "tcgen05.relinquish_alloc_permit.cta_group.sync.aligned"

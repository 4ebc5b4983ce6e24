"""When asynchronous tcgen05 operations are done, and in what order with other threads. PTX ISA 9.7.16.11 and 12."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import address, source
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.tcgen05.common import FAMILY


class commit(Instruction, opcode="tcgen05.commit", section="9.7.16.12.1", ptx="8.6", targets=FAMILY, synchronizes=True):
    """Arrive once on an mbarrier when all earlier mma, cp and shift of this thread are done.

    Implies fence::before_thread_sync. `mask` names the CTAs of the cluster whose mbarrier at this offset is meant.
    """

    syntax = "tcgen05.commit.cta_group.mbarrier::arrive::one{.space}{.multicast}.b64 [mbar]{, mask}"
    mbar: OperandLike = address("space", bits=(32, 64), memory="read-write")
    # Measured: ptxas 12.9.86 to 13.3.73 refuse a constant, 13.4.92 and 13.5.37 take it.
    mask: OperandLike = source("u16", low=0, high=65535, constant_since="9.4", when="multicast", default=None)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    space: Literal["shared::cluster"] | None = None
    multicast: bool = flag("multicast::cluster", default=False)


class fence(
    Instruction, opcode="tcgen05", section="9.7.16.11.1", ptx="8.6", targets=FAMILY, leading=1, synchronizes=True
):
    """Order this thread's asynchronous tcgen05 operations before, or after, a synchronization of threads."""

    syntax = "tcgen05.where"
    _: KW_ONLY
    where: Literal["before_thread_sync", "after_thread_sync"] = modifier("fence::")

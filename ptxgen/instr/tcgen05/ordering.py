"""When asynchronous tcgen05 operations are done, and in what order with other threads. PTX ISA 9.7.16.11 and 12."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.bulk import mask_limit, mask_type
from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import address, source
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.tcgen05.common import FAMILY, RUBIN


class _Commit(
    Instruction, opcode="tcgen05.commit", section="9.7.16.12.1", ptx="8.6", targets=FAMILY, synchronizes=True
):
    mbar: OperandLike = address("space", bits=(32, 64), memory="read-write")
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    #: The first two are in no manual (measured, ptxas 13.5); the last is of PTX ISA 9.4, 9.7.18.12.1.
    sync_restrict: Literal["shared::cta", "shared::cluster", "shared::read::mma::a"] | None = modifier(
        "sync_restrict::", default=None
    )
    space: Literal["shared::cluster"] | None = None
    needs = {"sync_restrict::shared::read::mma::a": RUBIN}


class commit(_Commit):
    """Arrive once on an mbarrier when all earlier mma, cp and shift of this thread are done.

    Implies fence::before_thread_sync. `mask` names the CTAs of the cluster whose mbarrier at this offset is meant. With
    `sync_restrict` "shared::read::mma::a" the arrival waits only until the MMAs have read A in shared memory: D may not
    be there yet.
    """

    syntax = "tcgen05.commit.cta_group.mbarrier::arrive::one{.sync_restrict}{.space}{.multicast}.b64 [mbar]{, mask}"
    # Measured: ptxas 12.9.86 to 13.3.73 refuse a constant, 13.4.92 and 13.5.37 take it.
    mask: OperandLike = source("u16", low=0, high=65535, constant_since="9.4", when="multicast", default=None)
    _: KW_ONLY
    multicast: bool = flag("multicast::cluster", default=False)


class commit_multicast(_Commit, ptx="9.4"):
    """As commit, with the width of `mask` named: 16 or 32 CTAs of the cluster."""

    syntax = "tcgen05.commit.cta_group.mbarrier::arrive::one{.sync_restrict}{.space}.multicast.b64 [mbar], mask"
    mask: OperandLike = source(mask_type, low=0, high=mask_limit)
    _: KW_ONLY
    multicast: Literal["cluster::16b", "cluster::32b"] = modifier("multicast::")
    needs = {"sync_restrict::shared::read::mma::a": RUBIN, "multicast::cluster::32b": RUBIN}


class fence(
    Instruction, opcode="tcgen05", section="9.7.16.11.1", ptx="8.6", targets=FAMILY, leading=1, synchronizes=True
):
    """Order this thread's asynchronous tcgen05 operations before, or after, a synchronization of threads."""

    syntax = "tcgen05.where"
    _: KW_ONLY
    where: Literal["before_thread_sync", "after_thread_sync"] = modifier("fence::")

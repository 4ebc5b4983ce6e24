"""Memory and proxy fences. PTX ISA 9.7.13 (membar, fence); the tensormap and sync_restrict forms are not here yet."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.form import Instruction
from ptxgen.instr.targets import Availability

_Scope = Literal["cta", "cluster", "gpu", "sys"]
_CLUSTER = {"cluster": Availability("7.8", "sm_90+")}


class fence(Instruction, section="9.7.13 (fence)", ptx="6.0", targets="sm_70+"):
    """Order this thread's memory accesses before the fence against those after it, for observers in `scope`."""

    syntax = "fence{.sem}.scope"
    _: KW_ONLY
    sem: Literal["sc", "acq_rel", "acquire", "release"] | None = None
    scope: _Scope
    needs = {
        **_CLUSTER,
        "acquire": Availability("8.6", "sm_90+"),
        "release": Availability("8.6", "sm_90+"),
    }


class fence_mbarrier_init(
    Instruction, opcode="fence.mbarrier_init", section="9.7.13 (fence)", ptx="8.0", targets="sm_90+"
):
    """Make this thread's mbarrier.init visible to the cluster and to the async proxy."""

    syntax = "fence.mbarrier_init.release.cluster"


class fence_proxy_async(Instruction, opcode="fence.proxy.async", section="9.7.13 (fence)", ptx="8.0", targets="sm_90+"):
    """Order accesses through the generic proxy against the async proxy (bulk copies, wgmma, tcgen05), in `space`."""

    syntax = "fence.proxy.async{.space}"
    _: KW_ONLY
    space: Literal["global", "shared::cta", "shared::cluster"] | None = None


class fence_proxy_alias(Instruction, opcode="fence.proxy.alias", section="9.7.13 (fence)", ptx="7.5", targets="sm_70+"):
    """Order accesses to the same memory through different virtual addresses."""

    syntax = "fence.proxy.alias"

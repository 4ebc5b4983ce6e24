"""Fences among threads and among proxies. PTX ISA 9.7.13.4 (membar, fence).

A proxy fence orders accesses to the same memory through different proxies: generic (ld, st, atom), async (bulk copies,
wgmma, tcgen05), tensormap (reads of a tensormap), alias (other virtual addresses of the same memory) and fabric.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import address, immediate
from ptxgen.instr.model.targets import ALL, Availability

_SECTION = "9.7.13.4"
_Scope = Literal["cta", "cluster", "gpu", "sys"]
_CLUSTER = {"cluster": Availability("7.8", "sm_90+")}


class fence(Instruction, section=_SECTION, ptx="6.0", targets="sm_70+", synchronizes=True):
    """Order this thread's memory accesses before the fence against those after it, for observers in `scope`.

    Without `sem` it is acq_rel; sc fences have one order that all threads agree on.
    """

    syntax = "fence{.sem}.scope"
    _: KW_ONLY
    sem: Literal["sc", "acq_rel", "acquire", "release"] | None = None
    scope: _Scope
    needs = {
        **_CLUSTER,
        "acquire": Availability("8.6", "sm_90+"),
        "release": Availability("8.6", "sm_90+"),
    }


class fence_acquire_shared(
    Instruction, opcode="fence", section=_SECTION, ptx="8.6", targets="sm_90+", synchronizes=True
):
    """Acquire in cluster scope, for accesses to the shared memory of the cluster alone."""

    syntax = "fence.acquire.sync_restrict::shared::cluster.cluster"


class fence_release_shared(
    Instruction, opcode="fence", section=_SECTION, ptx="8.6", targets="sm_90+", synchronizes=True
):
    """Release in cluster scope, for accesses to this CTA's shared memory alone."""

    syntax = "fence.release.sync_restrict::shared::cta.cluster"


class fence_release_reads(
    Instruction, opcode="fence", section=_SECTION, ptx="9.5", targets="sm_90+", synchronizes=True
):
    """Release reads through aliased addresses, in system scope (measured, ptxas 13.5)."""

    syntax = "fence.alias.release.sync_restrict::read.sys"


class fence_mbarrier_init(
    Instruction, opcode="fence", section=_SECTION, ptx="8.0", targets="sm_90+", synchronizes=True
):
    """Make this thread's mbarrier.init visible to the cluster and to the async proxy."""

    syntax = "fence.mbarrier_init.release.cluster"


class fence_proxy_alias(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="7.5", targets="sm_70+", synchronizes=True
):
    """Order accesses to the same memory through different virtual addresses."""

    syntax = "fence.proxy.alias"


class fence_proxy_alias_ordered(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="9.4", targets="sm_90+", synchronizes=True
):
    """As fence.proxy.alias, in one direction and system scope (measured, ptxas 13.5)."""

    syntax = "fence.proxy.alias.sem.sys"
    _: KW_ONLY
    sem: Literal["acquire", "release"]


class fence_proxy_fabric(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="9.3", targets="sm_100+", synchronizes=True
):
    """Order accesses through the proxy named first, fabric or generic, before those through the second.

    In system scope (measured, ptxas 13.5).
    """

    syntax = "fence.proxy.alias.direction.sem.sys"
    _: KW_ONLY
    direction: Literal["fabric::generic", "generic::fabric", "fabric::fabric"]
    sem: Literal["acquire", "release"]


class fence_proxy_async(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="8.0", targets="sm_90+", synchronizes=True
):
    """Order accesses through the generic proxy against the async proxy (bulk copies, wgmma, tcgen05), in `space`."""

    syntax = "fence.proxy.async{.space}"
    _: KW_ONLY
    space: Literal["global", "shared::cta", "shared::cluster"] | None = None


class fence_proxy_async_acquire(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="8.6", targets="sm_90+", synchronizes=True
):
    """Later accesses through the async proxy to the cluster's shared memory follow what this thread acquires."""

    syntax = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"


class fence_proxy_async_release(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="8.6", targets="sm_90+", synchronizes=True
):
    """Release this thread's generic accesses to its CTA's shared memory, towards the async proxy of the cluster."""

    syntax = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"


class fence_proxy_async_release_reads(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="9.4", targets="sm_90+", synchronizes=True
):
    """Release this thread's generic reads of the cluster's shared memory, towards the async proxy."""

    syntax = "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.scope"
    _: KW_ONLY
    scope: Literal["cta", "cluster"]


class fence_proxy_tensormap_acquire(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="8.3", targets="sm_90+", synchronizes=True
):
    """Let later copies of this thread read the tensormap at `addr`, in global memory, as a release published it."""

    syntax = "fence.proxy.tensormap::generic.acquire.scope [addr], size"
    addr: OperandLike = address(variables=("global",), memory="none")
    size: OperandLike = immediate(128, 128)
    _: KW_ONLY
    scope: _Scope


class fence_proxy_tensormap_release(
    Instruction, opcode="fence.proxy", section=_SECTION, ptx="8.3", targets="sm_90+", synchronizes=True
):
    """Publish tensormaps that this thread wrote through the generic proxy to acquiring threads in `scope`."""

    syntax = "fence.proxy.tensormap::generic.release.scope"
    _: KW_ONLY
    scope: _Scope


class membar(Instruction, section=_SECTION, ptx="1.4", targets=ALL, synchronizes=True):
    """The older fence.sc, for the CTA, the GPU (`gl`) or the system."""

    syntax = "membar.level"
    _: KW_ONLY
    level: Literal["cta", "gl", "sys"]
    needs = {"sys": Availability("2.0", ALL)}


class membar_proxy(
    Instruction, opcode="membar.proxy", section=_SECTION, ptx="7.5", targets="sm_60+", synchronizes=True
):
    """The older fence.proxy."""

    syntax = "membar.proxy.kind"
    _: KW_ONLY
    kind: Literal["alias", "async"]
    needs = {"async": Availability("8.0", "sm_90+")}

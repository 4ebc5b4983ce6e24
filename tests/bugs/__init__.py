"""Bugs that real projects shipped, rebuilt as small kernels: one module a family, one `Bug` a bug."""

from __future__ import annotations

from tests.bugs import (
    async_copies,
    barriers,
    clusters,
    dependent_launches,
    global_memory,
    handoffs,
    lanes,
    launch_control,
    mbarriers,
    operands,
    pairs,
    polling,
    proxies,
    reductions,
    registers,
    reuse,
    shared_memory,
    tensor_memory,
    tensormaps,
    warps,
)
from tests.bugs.bug import Bug

#: By family, in the order of the documentation.
FAMILIES: dict[str, list[Bug]] = {
    "Shared memory": shared_memory.BUGS,
    "Lanes of a warp": lanes.BUGS,
    "Copies by cp.async": async_copies.BUGS,
    "Masks and warpgroups": warps.BUGS,
    "Barriers": barriers.BUGS,
    "mbarriers": mbarriers.BUGS,
    "Proxies": proxies.BUGS,
    "Tensor memory and tcgen05": tensor_memory.BUGS,
    "Tensormaps": tensormaps.BUGS,
    "Operands of MMAs": operands.BUGS,
    "Global memory": global_memory.BUGS,
    "Dependent launches": dependent_launches.BUGS,
    "Reductions and counters": reductions.BUGS,
    "Polling and convergence": polling.BUGS,
    "Clusters": clusters.BUGS,
    "Cluster launch control": launch_control.BUGS,
    "Pairs of CTAs": pairs.BUGS,
    "Registers": registers.BUGS,
    "From one warp, CTA or grid to another": handoffs.BUGS,
    "Storage that is used again": reuse.BUGS,
}
BUGS = [bug for bugs in FAMILIES.values() for bug in bugs]

"""Special registers: of the thread, its warp and CTA, the launch and the clock. PTX ISA 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import LaunchShape
from ptxgen.emulator.engines.timeline import Timeline
from ptxgen.emulator.memory.shared_memory import GROUPS_BYTES, RESERVED_BYTES
from ptxgen.emulator.state.clusters import Clusters


class Rows(Protocol):
    """The warps that read (`state.group.Group`)."""

    @property
    def warps(self) -> slice | NDArray[np.int64]: ...


Read = Callable[[Rows], NDArray[Any]]

#: Registers that change by themselves, by the beginnings of their names.
CLOCKS = ("%clock", "%globaltimer")
_VECTORS = ("%tid", "%ctaid", "%ntid", "%nctaid", "%cluster_nctaid", "%nclusterid", "%cluster_ctaid", "%clusterid")
_TIMES = {"%clock": 0, "%clock64": 0, "%clock_hi": 32, "%globaltimer": 0, "%globaltimer_lo": 0, "%globaltimer_hi": 32}
_OTHERS = (
    "%laneid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%warpid", "%smid",
    "%cluster_ctarank", "%is_explicit_cluster", "%nwarpid", "%nsmid", "%cluster_nctarank", "%gridid",
    "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size", "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end", "%reserved_smem_offset_cap", "%reserved_smem_offset_0", "%reserved_smem_offset_1",
    "%envreg1", "%envreg2", "%current_graph_exec",
)  # fmt: skip
#: All that the emulator has; elements of vectors by both of their names.
SPECIAL_REGISTERS = frozenset(
    [*_TIMES, *_OTHERS, *(f"{vector}.{element}" for vector in _VECTORS for element in "xyzwrgba")]
)


def special_registers(
    shape: LaunchShape,
    cluster: Clusters,
    cta: NDArray[np.uint32],
    shared_size: int,
    workspace: int,
    multiprocessors: int,
    timeline: Timeline,
) -> dict[str, Read]:
    """How each special register is read: (warps, 32), or what broadcasts to it.

    `cta` is %ctaid of each warp, (warps, 3), `shared_size` counts the bytes of a CTA's shared memory;
    `workspace` is the address that the halves %envreg1 (high) and %envreg2 make (measured, H200, driver 580.159.04,
    2026-11-23, as are the offsets of reserved shared memory, of a kernel that reads them).
    """
    x, y, z = shape.block
    warps = len(cluster.cta_slot)
    thread = (np.arange(warps) % cluster.warps_per_cta)[:, None] * 32 + np.arange(32)
    positions = {"x": thread % x, "y": thread // x % y, "z": thread // (x * y) % z}
    table: dict[str, Read] = {}
    #: %cluster_ctaid of each slot.
    inside = np.array([cluster.place(int(rank)) for rank in cluster.slot_rank], np.uint32)
    for axis, name in enumerate("xyz"):
        tid = positions[name].astype(np.uint32)
        table[f"%tid.{name}"] = lambda g, tid=tid: tid[g.warps]
        table[f"%ctaid.{name}"] = lambda g, axis=axis: cta[g.warps, axis : axis + 1]
        for register, value in (
            ("ntid", shape.block[axis]),
            ("nctaid", shape.grid[axis]),
            ("cluster_nctaid", cluster.dims[axis]),
            ("nclusterid", cluster.grid_clusters[axis]),
        ):
            table[f"%{register}.{name}"] = _constant(value, np.uint32)
        ctaid, extent = inside[cluster.cta_slot, axis : axis + 1], np.uint32(cluster.dims[axis])
        table[f"%cluster_ctaid.{name}"] = lambda g, ctaid=ctaid: ctaid[g.warps]
        table[f"%clusterid.{name}"] = lambda g, axis=axis, extent=extent: cta[g.warps, axis : axis + 1] // extent
    lane = np.arange(32, dtype=np.uint32)[None, :]
    warp = (np.arange(warps) % cluster.warps_per_cta).astype(np.uint32)[:, None]
    slot = cluster.cta_slot.astype(np.uint32)[:, None]
    rank = cluster.cta_rank.astype(np.uint32)[:, None]
    bit = np.uint32(1) << lane
    below = bit - np.uint32(1)
    fixed: dict[str, NDArray[Any]] = {
        "%laneid": lane,
        "%lanemask_eq": bit,
        "%lanemask_lt": below,
        "%lanemask_le": below | bit,
        "%lanemask_gt": ~(below | bit),
        "%lanemask_ge": ~below,
        "%is_explicit_cluster": np.array(cluster.explicit),
    }
    for name, value in fixed.items():
        table[name] = lambda g, value=value: value
    for name, value in (("%warpid", warp), ("%smid", slot % np.uint32(multiprocessors)), ("%cluster_ctarank", rank)):
        table[name] = lambda g, value=value: value[g.warps]
    whole = -(-shared_size // 128) * 128  # allocated in units of 128 bytes
    for name, number in (
        ("%nwarpid", 64),
        ("%nsmid", multiprocessors),
        ("%cluster_nctarank", cluster.size),
        ("%gridid", 1),
        ("%dynamic_smem_size", shape.shared_bytes),
        ("%total_smem_size", whole - RESERVED_BYTES),
        ("%aggr_smem_size", whole),
        ("%reserved_smem_offset_begin", 0),
        ("%reserved_smem_offset_end", GROUPS_BYTES),
        ("%reserved_smem_offset_cap", RESERVED_BYTES),
        ("%reserved_smem_offset_0", 0),
        ("%reserved_smem_offset_1", 0),
        ("%envreg1", workspace >> 32),
        ("%envreg2", workspace & 0xFFFFFFFF),
        ("%current_graph_exec", 0),  # no graph launched this
    ):
        table[name] = _constant(number, np.uint64)
    for name, shift in _TIMES.items():
        table[name] = lambda g, shift=shift: np.array(timeline.now >> shift, np.uint64)
    for vector in _VECTORS:  # the fourth element is always 0
        table[f"{vector}.w"] = _constant(0, np.uint64)
        table.update(
            {f"{vector}.{other}": table[f"{vector}.{axis}"] for other, axis in zip("rgba", "xyzw", strict=True)}
        )
    return table


def _constant(value: int, dtype: Any) -> Read:
    word = np.array(value, dtype)
    return lambda g: word

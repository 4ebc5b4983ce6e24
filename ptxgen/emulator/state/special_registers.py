"""Special registers: of the thread, its warp and CTA, the launch and the clock. PTX ISA 10."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
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
#: The number of an element of a vector, by both of its names.
_AXES = {name: number for names in ("xyzw", "rgba") for number, name in enumerate(names)}
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


class SpecialRegisters(dict[str, Read]):
    """How each special register is read, by name: (warps, 32), or what broadcasts to it. Made when first read.

    `cta` is %ctaid of each warp, (warps, 3), `shared_size` counts the bytes of a CTA's shared memory;
    `workspace` is the address that the halves %envreg1 (high) and %envreg2 make (measured, H200, driver 580.159.04,
    2026-11-23, as are the offsets of reserved shared memory, of a kernel that reads them).
    """

    def __init__(
        self,
        shape: LaunchShape,
        clusters: Clusters,
        cta: NDArray[np.uint32],
        shared_size: int,
        workspace: int,
        multiprocessors: int,
        timeline: Timeline,
    ) -> None:
        super().__init__()
        self._shape, self._clusters, self._cta, self._timeline = shape, clusters, cta, timeline
        self._multiprocessors = multiprocessors
        whole = -(-shared_size // 128) * 128  # allocated in units of 128 bytes
        #: The values of registers that are the same in all threads.
        self._numbers = {
            "%nwarpid": 64,
            "%nsmid": multiprocessors,
            "%cluster_nctarank": clusters.size,
            "%gridid": 1,
            "%dynamic_smem_size": shape.shared_bytes,
            "%total_smem_size": whole - RESERVED_BYTES,
            "%aggr_smem_size": whole,
            "%reserved_smem_offset_begin": 0,
            "%reserved_smem_offset_end": GROUPS_BYTES,
            "%reserved_smem_offset_cap": RESERVED_BYTES,
            "%reserved_smem_offset_0": 0,
            "%reserved_smem_offset_1": 0,
            "%envreg1": workspace >> 32,
            "%envreg2": workspace & 0xFFFFFFFF,
            "%current_graph_exec": 0,  # no graph launched this
        }

    def __missing__(self, name: str) -> Read:
        made = self[name] = self._made(name)
        return made

    def _made(self, name: str) -> Read:
        if name in self._numbers:
            return _constant(self._numbers[name], np.uint64)
        if name in _TIMES:
            timeline, shift = self._timeline, _TIMES[name]
            return lambda g: np.array(timeline.now >> shift, np.uint64)
        vector, _, element = name.partition(".")
        if vector in _VECTORS:
            return self._element(vector, _AXES[element])
        if name == "%is_explicit_cluster":
            return _same(np.array(self._clusters.explicit))
        if name == "%laneid" or name.startswith("%lanemask"):
            return _same(_lane(name.removeprefix("%lanemask_")))
        value = self._of_warps(name)
        return lambda g: value[g.warps]

    def _element(self, vector: str, axis: int) -> Read:
        """An element of a vector; the fourth is always 0."""
        shape, clusters, cta = self._shape, self._clusters, self._cta
        if axis == 3:
            return _constant(0, np.uint64)
        if vector == "%tid":
            tid = _thread(shape.block, clusters.warps_per_cta, len(clusters.cta_slot), axis)
            return lambda g: tid[g.warps]
        if vector == "%ctaid":
            return lambda g: cta[g.warps, axis : axis + 1]
        if vector == "%clusterid":
            extent = np.uint32(clusters.dims[axis])
            return lambda g: cta[g.warps, axis : axis + 1] // extent
        if vector == "%cluster_ctaid":
            inside = np.array([clusters.place(int(rank))[axis] for rank in clusters.slot_rank], np.uint32)
            ctaid = inside[clusters.cta_slot, None]
            return lambda g: ctaid[g.warps]
        extents = {
            "%ntid": shape.block,
            "%nctaid": shape.grid,
            "%cluster_nctaid": clusters.dims,
            "%nclusterid": clusters.grid_clusters,
        }
        return _constant(extents[vector][axis], np.uint32)

    def _of_warps(self, name: str) -> NDArray[np.uint32]:
        """What each warp has, (warps, 1)."""
        clusters = self._clusters
        if name == "%warpid":
            value = np.arange(len(clusters.cta_slot)) % clusters.warps_per_cta
        elif name == "%smid":
            value = clusters.cta_slot % self._multiprocessors
        else:  # %cluster_ctarank
            value = clusters.cta_rank
        return value.astype(np.uint32)[:, None]


@lru_cache(maxsize=16)
def _thread(block: tuple[int, int, int], per_cta: int, warps: int, axis: int) -> NDArray[np.uint32]:
    """An element of %tid in warps of CTAs of `per_cta` warps: (warps, 32), read-only."""
    thread = np.arange(32 * per_cta) // prod(block[:axis]) % block[axis]
    made = np.tile(thread.astype(np.uint32).reshape(-1, 32), (warps // per_cta, 1))
    made.flags.writeable = False
    return made


def _lane(which: str) -> NDArray[np.uint32]:
    """%laneid, or the mask of the lanes that stand so to each: "eq", "lt", ...; (1, 32)."""
    lane = np.arange(32, dtype=np.uint32)[None, :]
    bit = np.uint32(1) << lane
    below = bit - np.uint32(1)
    masks = {"eq": bit, "lt": below, "le": below | bit, "gt": ~(below | bit), "ge": ~below}
    return masks.get(which, lane)


def _same(value: NDArray[Any]) -> Read:
    return lambda g: value


def _constant(value: int, dtype: Any) -> Read:
    return _same(np.array(value, dtype))

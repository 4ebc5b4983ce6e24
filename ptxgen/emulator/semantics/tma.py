"""Bulk tensor copies. PTX ISA 9.7.9.27; tiled mode: 5.5.3.

The tensormap reaches the emulator as its 128 bytes in memory, and is decoded from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.descriptors.tensormap import Im2colMap, TiledMap
from ptxgen.emulator.checks.happens_before import UNIT
from ptxgen.emulator.group import Group
from ptxgen.emulator.machine import Machine, PendingStore
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE, PARAM_WINDOW, WINDOW_BYTES
from ptxgen.emulator.reductions import TENSOR_TYPES, Combine, combiner
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.instr import bulk, tma
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.layouts.tma import CHUNK, tile_bytes, tile_chunks

if TYPE_CHECKING:
    from ptxgen.emulator.scheduler import Scheduler

#: Shared-memory alignment of a tensor copy, in bytes (9.7.9.27, table of alignments).
_DESTINATION_ALIGNMENT = 128


@lru_cache(maxsize=256)
def decode(data: bytes) -> TiledMap | Im2colMap:
    """The tensormap of 128 bytes. Raises MemoryFault, with the rule, where they are none."""
    try:
        return TensorMap.decode(data)
    except DescriptorError as error:
        raise MemoryFault("illegal-tensormap", f"the tensormap's 128 bytes are not legal: {error}") from error


def tensormap_at(machine: Machine, address: int, statement: syntax.Instruction) -> TiledMap | Im2colMap:
    """The tensormap at a generic address, in the kernel's parameters or in global memory, as a copy reads it."""
    if address % 64:
        raise MemoryFault("misaligned", f"the tensormap at {address:#x} is not on a multiple of 64 bytes")
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
        offset = address - PARAM_WINDOW
        if offset + 128 > len(machine.parameters) - 64:
            raise MemoryFault("out-of-bounds", f"the tensormap at byte {offset} is not inside the kernel's parameters")
        return decode(machine.parameters[offset : offset + 128].tobytes())
    machine.memory.require_mapped(np.array([address - HEAP_BASE, address - HEAP_BASE + 127]), "the tensormap")
    data = machine.memory.view(address, 128).tobytes()
    if machine.tensormaps is not None:
        machine.tensormaps.use(address, data, statement)
    return decode(data)


def _four_rows(op: Any) -> bool:
    return op.load_mode in ("tile::gather4", "tile::scatter4")


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a tensor: `coords` are where it begins, or the column and the rows of gather4 and scatter4."""

    tensormap: TiledMap
    coords: tuple[int, ...]
    four_rows: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of the box, the innermost dimension first."""
        return (self.tensormap.box[0], 4) if self.four_rows else self.tensormap.box

    def indices(self, axis: int) -> NDArray[np.int64]:
        """Where the box is in a dimension of the tensor."""
        if self.four_rows and axis:
            return np.array(self.coords[1:], np.int64)
        return self.coords[axis] + np.arange(self.tensormap.box[axis], dtype=np.int64)


def box_places(machine: Machine, box: Box) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Where the units of a box lie in global memory, in linear order: heap offsets, which are inside the tensor, and
    the bytes of a unit (16 where rows allow it, an element otherwise).
    """
    tensormap, coords = box.tensormap, box.coords
    size = tensormap.element_bits // 8
    strides = (size, *tensormap.strides)
    # Offsets and validity of the box's rows, from the outermost dimension in; then along a row.
    outer, outer_valid = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for axis in reversed(range(1, tensormap.rank)):
        index = box.indices(axis)
        inside = (index >= 0) & (index < tensormap.dims[axis])
        outer = (outer[:, None] + np.where(inside, index * strides[axis], 0)).ravel()
        outer_valid = (outer_valid[:, None] & inside).ravel()
    index = box.indices(0)
    inside = (index >= 0) & (index < tensormap.dims[0])
    unit = CHUNK if _whole_chunks(inside, coords[0] * size, size) else size
    index, inside = index[:: unit // size], inside[:: unit // size]
    where = (tensormap.address - HEAP_BASE + outer[:, None] + index * size).ravel()
    mask = (outer_valid[:, None] & inside).ravel()
    machine.memory.require_mapped(where[mask], "the tensor copy")
    machine.memory.require_mapped(where[mask] + (unit - 1), "the tensor copy")
    return np.where(mask, where, 0), mask, unit


def gather_box(machine: Machine, box: Box) -> NDArray[np.uint8]:
    """The bytes of a box in linear order; elements outside the tensor have the fill value."""
    tensormap = box.tensormap
    where, mask, unit = box_places(machine, box)
    size = tensormap.element_bits // 8
    words = machine.memory.data.view(np.complex128 if unit == CHUNK else f"u{size}")
    raw = words[where // unit].view(np.uint8)
    if not mask.all():
        element = NAN_FILL[size] if tensormap.oob_fill == "nan" else bytes(size)
        raw.reshape(-1, unit)[~mask] = np.frombuffer(element * (unit // size), np.uint8)
    return raw


def scatter_box(machine: Machine, box: Box, data: NDArray[np.uint8]) -> None:
    """Write the bytes of a box to global memory; elements outside the tensor are dropped."""
    where, mask, unit = box_places(machine, box)
    words = machine.memory.data.view(np.complex128 if unit == CHUNK else f"u{box.tensormap.element_bits // 8}")
    words[where[mask] // unit] = data.view(words.dtype)[mask]


#: What elements outside a float tensor get with oob_fill "nan", by their bytes (measured for 2 and 4, H200, driver 580,
#: 2026-11-20; 8 inferred).
NAN_FILL = {2: bytes.fromhex("f77f"), 4: bytes.fromhex("f77ff77f"), 8: bytes.fromhex("f77ff77ff77ff77f")}


def _whole_chunks(valid: NDArray[np.bool_], start: int, size: int) -> bool:
    """Whether every 16 bytes of a row are all inside the tensor or all outside."""
    if start % CHUNK or (len(valid) * size) % CHUNK:
        return False
    groups = valid.reshape(-1, CHUNK // size)
    return bool((groups.all(axis=1) | ~groups.any(axis=1)).all())


def _require_plain(op: Any) -> None:
    """Boxes in tile mode, as the tensormap describes them."""
    if op.load_mode not in (None, "tile", "tile::gather4", "tile::scatter4"):
        raise Unmodelled(op.load_mode)
    if op.override_address:
        raise Unmodelled("override::global_address")
    if getattr(op, "report", None) not in (None, "disabled"):
        raise Unmodelled(f"mbarrier::report::{op.report}")


@meaning(tma.load)
def load(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    _require_plain(op)
    if op.multicast:
        raise Unmodelled("multicast")
    if op.cta_group == 2:
        raise Unmodelled("cta_group::2")
    destination, barrier = binder.address(op.dst_mem), binder.address(op.mbar)
    map_address = binder.address(op.tensor_map)
    coordinates = [binder.source(element, "s32") for element in binder.vector(op.coords)]

    def run(g: Group) -> None:
        machine = g.machine
        values = [coordinate(g) for coordinate in coordinates]
        for row, _, (place, where, mbar, *coords) in each(g, destination(g), map_address(g), barrier(g), *values):
            box = box_of(machine, op, where, tuple(coords), statement)
            clusters = machine.clusters
            issue(machine, row, statement, box, clusters.locate(row, place, op.dst), clusters.locate(row, mbar, op.dst))

    return run


def box_of(machine: Machine, op: Any, address: int, coords: tuple[int, ...], statement: syntax.Instruction) -> Box:
    """The box that an instruction names, by the tensormap at `address`. Raises MemoryFault."""
    tensormap, four_rows = tensormap_at(machine, address, statement), _four_rows(op)
    if not isinstance(tensormap, TiledMap):
        raise MemoryFault("tensormap-mode", f"the copy takes tiled tensormaps, not {tensormap.mode}")
    if op.dim != tensormap.rank:
        raise MemoryFault("tensormap-rank", f"{op.dim} dimensions (.{op.dim}d) with a map of rank {tensormap.rank}")
    if four_rows and tensormap.box[1] != 1:
        raise MemoryFault(
            "tensormap-box",
            f".{op.load_mode} takes maps with boxes of one row (5.5.3.4.1), not {tensormap.box[1]}",
        )
    return Box(tensormap, coords, four_rows)


def shared_units(machine: Machine, box: Box, start: int) -> tuple[NDArray[np.int64], int]:
    """The 16-byte units of shared memory that hold a box, in linear order, and its bytes. Raises MemoryFault."""
    tensormap, coords = box.tensormap, box.coords
    if tensormap.interleave != "none" or any(stride != 1 for stride in tensormap.element_strides):
        raise Unmodelled("interleaved or strided boxes")
    if tensormap.dtype.startswith("16u") or tensormap.swizzle not in SWIZZLES:
        raise Unmodelled(f"tensormaps of {tensormap.dtype} with swizzle {tensormap.swizzle}")
    size = tensormap.element_bits // 8
    if coords[0] * size % CHUNK:
        # Measured (H200, driver 580, 2026-11-20): the copy ends the kernel with an illegal-instruction error.
        raise MemoryFault(
            "misaligned",
            f"the first coordinate {coords[0]} is byte {coords[0] * size} of a row; "
            f"it must be on a multiple of {CHUNK} bytes",
        )
    alignment = _DESTINATION_ALIGNMENT
    total = tile_bytes(box.shape, size)
    chunks = tile_chunks(box.shape, size, tensormap.swizzle, start) if start % CHUNK == 0 else None
    if start % alignment or chunks is None:
        raise MemoryFault("misaligned", f"the copy's shared address is {start:#x}, not a multiple of {alignment}")
    units = chunks + start // UNIT
    machine.shared.require(int(units.min()) * UNIT, int(units.max() - units.min() + 1) * UNIT, CHUNK, "the tensor copy")
    return units, total


def issue(
    machine: Machine, row: int, statement: syntax.Instruction, box: Box, place: tuple[int, int],
    barrier_place: tuple[int, int],
) -> None:  # fmt: skip
    """Queue one box: bytes to shared memory at `place` (slot, offset), then complete_tx on the mbarrier."""
    (slot, start), (barrier_slot, mbar) = place, barrier_place
    if slot != barrier_slot:
        raise MemoryFault("not-own-shared", "the copy's mbarrier must be in the memory of the CTA that gets the data")
    units, total = shared_units(machine, box, start)
    barrier = machine.mbarrier(slot, mbar, row, statement)
    if not barrier.fenced:
        machine.findings.add(
            "mbarrier-init-proxy",
            f"the copy completes on the mbarrier of line {barrier.statement.line}, whose init no "
            "fence.mbarrier_init or fence.proxy.async has made visible to the async proxy",
            statement,
            severity="advice",
        )
    given = None
    if machine.ordering is not None:
        operation = machine.ordering.operation("tensor copy", statement, slot, swizzle=box.tensormap.swizzle)
        given = machine.ordering.known[row].copy()
        machine.ordering.async_write(operation, row, units)
        given.operations.add(operation.number)

    def complete() -> None:
        data = gather_box(machine, box)
        machine.shared.data[slot].view(np.complex128)[units] = data.view(np.complex128)
        machine.complete_on(slot, mbar, total, given, statement)

    machine.submit(slot, statement, complete)


# Stores, and the groups in which threads wait for them.


@meaning(tma.store, tma.reduce)
def store(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    _require_plain(op)
    source, map_address = binder.address(op.src_mem), binder.address(op.tensor_map)
    coordinates = [binder.source(element, "s32") for element in binder.vector(op.coords)]
    reduction = getattr(op, "op", None)

    def run(g: Group) -> None:
        values = [coordinate(g) for coordinate in coordinates]
        for row, _, (place, where, *coords) in each(g, source(g), map_address(g), *values):
            box = box_of(g.machine, op, where, tuple(coords), statement)
            _issue_store(g.machine, row, statement, box, place, reduction)

    return run


def _issue_store(
    machine: Machine, row: int, statement: syntax.Instruction, box: Box, place: int, reduction: str | None
) -> None:
    """Queue one box from shared to global memory, as part of the warp's open group."""
    if min(box.coords) < 0:
        # Measured (H200, driver 580, 2026-11-20): the store ends the kernel with an illegal-instruction error.
        raise MemoryFault("out-of-bounds", f"a tensor store takes no negative coordinates, such as {box.coords}")
    slot, start = machine.clusters.locate(row, place, "shared::cta")
    units, _ = shared_units(machine, box, start)
    combine = _tensor_combiner(reduction, box.tensormap.dtype) if reduction is not None else None
    pending = PendingStore()
    if machine.ordering is not None:
        what = "tensor store" if combine is None else "tensor reduction"
        operation = machine.ordering.operation(what, statement, slot, swizzle=box.tensormap.swizzle)
        machine.ordering.async_read(operation, row, units)
        pending.operation = operation.number
    machine.bulk_groups.setdefault(row, [[]])[-1].append(pending)

    def complete() -> None:
        data = machine.shared.data[slot].view(np.complex128)[units].view(np.uint8)
        if combine is None:
            scatter_box(machine, box, data)
        else:
            reduce_box(machine, box, data, combine)
        pending.done = True
        machine.wake(("bulk group", row))

    machine.submit(slot, statement, complete)


def _tensor_combiner(reduction: str, dtype: str) -> Combine:
    if dtype not in TENSOR_TYPES[reduction]:
        legal = ", ".join(TENSOR_TYPES[reduction])
        raise MemoryFault("tensormap-type", f".{reduction} takes tensors of {legal}, not {dtype} (9.7.9.25.5.3)")
    return combiner(reduction, dtype)


def reduce_box(machine: Machine, box: Box, data: NDArray[np.uint8], combine: Combine) -> None:
    """Combine the bytes of a box with global memory, element by element; elements outside the tensor are dropped."""
    size = box.tensormap.element_bits // 8
    where, mask, unit = box_places(machine, box)
    words, given = machine.memory.data.view(f"u{size}"), data.view(f"u{size}").reshape(-1, unit // size)
    rows = np.array_split(np.arange(len(where)), 4) if box.four_rows else [np.arange(len(where))]
    for chosen in rows:  # the same row may be named twice
        chosen = chosen[mask[chosen]]
        place = (where[chosen, None] // size + np.arange(unit // size)).ravel()
        words[place] = combine(words[place], given[chosen].ravel())


@meaning(tma.prefetch, tma.prefetch_im2col, bulk.prefetch)
def prefetch(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    """A hint."""
    return lambda g: None


@meaning(bulk.commit_group)
def commit_group(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    """Groups are kept by warp: what its threads issue is waited for together."""

    def run(g: Group) -> None:
        for row in g.indices:
            g.machine.bulk_groups.setdefault(int(row), [[]]).append([])

    return run


@meaning(bulk.wait_group, kind="gate")
def wait_group(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    pending = max(int(op.pending.value), 0)

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        machine = g.machine
        passing = np.ones((g.size, 32), np.bool_)
        for position, row in enumerate(g.indices):
            groups = machine.bulk_groups.get(int(row), [[]])
            awaited = groups[: max(len(groups) - 1 - pending, 0)]
            if not all(each.done for group in awaited for each in group):
                passing[position] = False
                continue
            if machine.ordering is not None:
                machine.ordering.known[int(row)].operations.update(e.operation for group in awaited for e in group)
            del groups[: len(awaited)]
        return lambda row: ("bulk group", row), None if passing.all() else passing

    return run

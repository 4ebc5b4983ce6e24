"""Bulk tensor copies. PTX ISA 9.7.9.25.5; what they touch is found in `ptxgen.emulator.engines.tensor_copies`.

The tensormap reaches the emulator as its 128 bytes in memory, and is decoded from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.descriptors.tensormap import Im2colMap, TiledMap, without_unused_dimensions
from ptxgen.descriptors.tensormap.tables import TYPES
from ptxgen.emulator.checks.registry.descriptors import (
    ILLEGAL_TENSORMAP,
    TENSORMAP_MODE,
    TENSORMAP_RANK,
    TENSORMAP_TYPE,
)
from ptxgen.emulator.checks.registry.memory import MISALIGNED, OUT_OF_BOUNDS
from ptxgen.emulator.engines import tensor_copies
from ptxgen.emulator.engines.bulk_copies import Destination, deliver, destinations, each_store, keep_in_group
from ptxgen.emulator.engines.tensor_copies import Box
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE, PARAM_WINDOW, WINDOW_BYTES
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.reductions import TENSOR_TYPES, Combine, combiner
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import tma

_Load = tma.load | tma.load_im2col
_Store = tma.store | tma.reduce
_Hint = tma.prefetch | tma.prefetch_im2col | tma.applypriority | tma.applypriority_im2col

#: Shared-memory alignment of a tensor copy, in bytes (9.7.9.25.5; a kernel that breaks it ends, measured).
_ALIGNMENT = 128
#: The bits of a tensormap that a copy reads. CuTe DSL (4.8.1) encodes its maps without the driver: their second half,
#: the driver's data about the box, is whatever was on the stack; bit 1 of word 2, which the driver leaves 0, is set.
_READ_BITS = (1 << 512) - 1 & ~(1 << 2 * 32 + 1)


@lru_cache(maxsize=256)
def decode(data: bytes) -> TiledMap | Im2colMap:
    """The tensormap of 128 bytes. Raises MemoryFault, with the rule, where they are not a legal one."""
    read = without_unused_dimensions(int.from_bytes(data, "little") & _READ_BITS).to_bytes(128, "little")
    try:
        return TensorMap.decode(read)
    except DescriptorError as error:  # the problems alone: its message begins with the 128 bytes
        problems = "; ".join(TensorMap.read(read).problems)
        raise MemoryFault(ILLEGAL_TENSORMAP, problems, rule="The copy requires a legal tensormap") from error


def tensormap_at(
    machine: Machine, warp: int, address: int, statement: syntax.Instruction, *, prefetches: bool = False
) -> TiledMap | Im2colMap:
    """The tensormap at a generic address, in the kernel's parameters or in global memory, as a warp's copy reads it, or
    its prefetch.
    """
    if address % 64:
        raise MemoryFault(
            MISALIGNED,
            f"the tensormap is at {address:#x}",
            rule="The address of a tensormap must be a multiple of 64",
        )
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
        offset = address - PARAM_WINDOW
        if offset + 128 > len(machine.parameters) - 64:
            raise MemoryFault(OUT_OF_BOUNDS, f"the tensormap at byte {offset} lies outside the kernel's parameters")
        data = machine.parameters[offset : offset + 128].tobytes()
        machine.events.constant_tensormap_used(warp, data, statement, prefetches=prefetches)
        return decode(data)
    machine.memory.require_mapped(np.array([address - HEAP_BASE, address - HEAP_BASE + 127]), "the tensormap")
    data = machine.memory.view(address, 128).tobytes()
    machine.events.tensormap_used(warp, address, data, statement, prefetches=prefetches)
    return decode(data)


def box_of(
    machine: Machine,
    op: _Load | _Store,
    warp: int,
    address: int,
    coords: Sequence[int],
    offsets: Sequence[int],
    statement: syntax.Instruction,
    base: int | None = None,
) -> Box:
    """The box that an instruction copies, by the tensormap at `address`, of the tensor at `base` where that is given.
    Raises MemoryFault where the two mismatch.
    """
    tensormap, mode = tensormap_at(machine, warp, address, statement), op.load_mode or "tile"
    if base is not None:
        tensormap = _based(tensormap, base)
    required = "im2col" if mode.startswith("im2col") else "tiled"
    if tensormap.mode != required:
        raise MemoryFault(
            TENSORMAP_MODE,
            f"the instruction has .{mode}, the tensormap has mode {tensormap.mode}",
            rule=f".{mode} requires a tensormap of mode {required}",
        )
    if op.dim != tensormap.rank:
        raise MemoryFault(TENSORMAP_RANK, f"the instruction is .{op.dim}d, the tensormap has rank {tensormap.rank}")
    if isinstance(tensormap, TiledMap):
        return tensor_copies.tile(tensormap, coords) if mode == "tile" else tensor_copies.four_rows(tensormap, coords)
    if mode in ("im2col", "im2col_no_offs"):
        return tensor_copies.pixels(tensormap, coords, offsets or [0] * (op.dim - 2))
    halo, offset = offsets or (0, 0)
    return tensor_copies.wide_pixels(tensormap, coords, halo, offset, fixed=mode == "im2col::w::128")


def _based(tensormap: TiledMap | Im2colMap, base: int) -> TiledMap | Im2colMap:
    """The map of another tensor of this shape (.override::global_address, PTX ISA 9.4, 9.7.10.28.5.2.1)."""
    try:
        return tensormap.replace(address=base)
    except DescriptorError as error:
        raise MemoryFault(
            MISALIGNED,
            f"the tensor of .override::global_address is at {base:#x}",
            rule="Its address must be a multiple of 16 (PTX ISA 9.4, 9.7.10.28.5.2.1)",
        ) from error


def _require_modelled(op: _Load | _Store) -> None:
    """Raise Unmodelled for what PTX 9.4 adds for sm_107."""
    if getattr(op, "override", None):
        raise Unmodelled(f"override::{getattr(op, 'override', None)}")
    if isinstance(op, _Load) and op.report not in (None, "disabled"):
        raise Unmodelled(f"mbarrier::report::{op.report}")


def _vector(binder: Binder, operand: syntax.Operand, type: str) -> list[Reader]:
    return [binder.source(element, type) for element in binder.vector(operand)]


def _aligned(machine: Machine, box: Box, start: int) -> NDArray[np.int64]:
    """The 16-byte units of a box at `start`. Raises MemoryFault where they are misaligned or outside."""
    if start % _ALIGNMENT:
        raise MemoryFault(
            MISALIGNED,
            f"the tensor copy is at shared address {start:#x}",
            rule=f"The shared address of a tensor copy must be a multiple of {_ALIGNMENT}",
        )
    granules = box.granules(start)
    machine.shared.require(
        int(granules.min()) * GRANULE, int(granules.max() - granules.min() + 1) * GRANULE, GRANULE, "the tensor copy"
    )
    return granules


@semantics(*get_args(_Load))
def load(op: _Load, binder: Binder, statement: syntax.Instruction) -> Plain:
    _require_modelled(op)
    destination, barrier = binder.address(op.dst_mem), binder.address(op.mbar)
    map_address = binder.address(op.tensor_map)
    coordinates = _vector(binder, op.coords, "s32")
    offsets = _vector(binder, op.offsets, "u16") if isinstance(op, tma.load_im2col) else []
    mask = binder.source(op.mask, "u32" if op.multicast == "cluster::32b" else "u16") if op.multicast else None
    bases = [binder.source(op.base, "u64")] if op.override_address else []
    count, first = len(coordinates), len(bases)

    def run(g: Group) -> None:
        machine = g.machine
        values = [value(g) for value in (*bases, *coordinates, *offsets)]
        chosen = mask(g) if mask is not None else 0
        for warp, lane, (place, where, mbar, ranks, *numbers) in each(
            g, destination(g), map_address(g), barrier(g), chosen, *values
        ):
            coords, others = numbers[first : first + count], numbers[first + count :]
            box = box_of(machine, op, warp, where, coords, others, statement, numbers[0] if bases else None)
            copies = destinations(
                machine, warp, statement, place, mbar, ranks if mask is not None else None, op.dst, op.cta_group or 1
            )
            granules = _aligned(machine, box, copies[0].offset)

            def act(box: Box = box, granules: NDArray[np.int64] = granules, copies: list[Destination] = copies) -> None:
                data = box.gather(machine.memory)
                for copy in copies:
                    box.put(machine.shared.data[copy.slot], granules, data)

            size, swizzle, heap = box.bytes, box.tensormap.swizzle, box.heap_granules()
            deliver(
                machine,
                warp,
                lane,
                statement,
                copies,
                granules,
                size,
                "tensor copy",
                act,
                swizzle,
                heap=heap,
                box=box,
            )

    return run


@semantics(*get_args(_Store))
def store(op: _Store, binder: Binder, statement: syntax.Instruction) -> Plain:
    _require_modelled(op)
    source, map_address = binder.address(op.src_mem), binder.address(op.tensor_map)
    coordinates = _vector(binder, op.coords, "s32")
    bases = [binder.source(op.base, "u64")] if op.override_address else []
    reduction, first = op.op if isinstance(op, tma.reduce) else None, len(bases)

    def run(g: Group) -> None:
        values = [source(g), map_address(g), *(value(g) for value in (*bases, *coordinates))]
        for warp, lanes, (place, where, *numbers) in each_store(g, values, merge=reduction is None):
            base = numbers[0] if bases else None
            _issue_store(g.machine, op, warp, lanes, statement, where, numbers[first:], place, reduction, base)

    return run


def _issue_store(
    machine: Machine,
    op: _Store,
    warp: int,
    lanes: NDArray[np.bool_],
    statement: syntax.Instruction,
    where: int,
    coords: Sequence[int],
    place: int,
    reduction: str | None,
    base: int | None,
) -> None:
    """Queue one box from shared to global memory, as part of the warp's open group."""
    if min(coords) < 0:
        # Measured (H200, driver 580, 2026-11-20): the store ends the kernel with an illegal-instruction error.
        raise MemoryFault(
            OUT_OF_BOUNDS,
            f"the tensor store has coordinates {tuple(coords)}",
            rule="The coordinates of a tensor store must not be negative",
        )
    slot, start = machine.clusters.locate(warp, place, "shared::cta")
    box = box_of(machine, op, warp, where, coords, [], statement, base)
    granules = _aligned(machine, box, start)
    tensormap = box.tensormap
    if tensormap.swizzle.endswith("_flip_8B") or tensormap.dtype == "16u4_align16b":
        what = f"swizzle {tensormap.swizzle}" if tensormap.swizzle.endswith("_flip_8B") else tensormap.dtype
        raise MemoryFault(
            TENSORMAP_TYPE,
            f"a tensor store uses a map with {what}",
            rule=f"Maps with {what} support loads only (9.7.9.25.5.1)",
        )
    combine = _tensor_combiner(reduction, tensormap.dtype) if reduction is not None else None
    written = box.stored()

    def read() -> NDArray[np.uint8]:
        return machine.shared.data[slot].view(np.complex128)[granules].view(np.uint8)

    def write(data: NDArray[np.uint8]) -> None:
        if combine is None:
            written.scatter(machine.memory, data)
        else:
            written.reduce(machine.memory, data, combine)

    what = "tensor store" if combine is None else "tensor reduction"
    keep_in_group(
        machine,
        warp,
        lanes,
        statement,
        slot,
        granules,
        what,
        written.heap_granules(),
        read,
        write,
        tensormap.swizzle,
        box.used(),
    )


def _tensor_combiner(reduction: str, dtype: str) -> Combine:
    if dtype not in TENSOR_TYPES[reduction] or TYPES[dtype].packed_bits:
        legal = ", ".join(TENSOR_TYPES[reduction])
        raise MemoryFault(
            TENSORMAP_TYPE,
            f".{reduction} on a tensor of {dtype}",
            rule=f".{reduction} requires elements of one of {legal} (9.7.9.25.5.3)",
        )
    return combiner(reduction, dtype)


@semantics(*get_args(_Hint))
def prefetch(op: _Hint, binder: Binder, statement: syntax.Instruction) -> Plain:
    """A hint, which reads its tensormap."""
    map_address = binder.address(op.tensor_map)

    def run(g: Group) -> None:
        for warp, _, (where,) in each(g, map_address(g)):
            tensormap_at(g.machine, warp, where, statement, prefetches=True)

    return run

"""Tensormaps that a kernel modifies, and their release to the tensormap proxy. PTX ISA 9.7.9.26 and 9.7.13.16."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors.tensormap import replace_field
from ptxgen.emulator.checks.registry.descriptors import ILLEGAL_TENSORMAP
from ptxgen.emulator.checks.registry.memory import MISALIGNED
from ptxgen.emulator.load.operands import Binder, Reader
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE, MAP_BYTES, SHARED_WINDOW, WINDOW_BYTES
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import tensormap

#: The alignment of a tensormap, in bytes.
MAP_ALIGNMENT = 64
#: Strides are kept in units of so many bytes (CUDA driver API, cuTensorMapEncodeTiled).
STRIDE_UNIT = 16


def _global_bytes(machine: Machine, address: int, what: str) -> NDArray[np.uint8]:
    """The bytes of a map in global memory, as a view. Raises MemoryFault."""
    if address % MAP_ALIGNMENT:
        raise MemoryFault(
            MISALIGNED,
            f"{what}: the tensormap is at {address:#x}",
            rule=f"The address of a tensormap must be a multiple of {MAP_ALIGNMENT}",
        )
    offset = address - HEAP_BASE
    machine.memory.require_mapped(np.array([offset, offset + MAP_BYTES - 1]), what)
    return machine.memory.view(address, MAP_BYTES)


_Replace = tensormap.replace | tensormap.replace_dimension | tensormap.replace_choice


@semantics(*get_args(_Replace))
def replace(op: _Replace, binder: Binder, statement: syntax.Instruction) -> Plain:
    """A weak read and write of the whole object by the generic proxy."""
    address = binder.address(op.addr)
    type = "b32" if isinstance(op, tensormap.replace_choice) else op.type
    value: Reader = binder.source(op.value, "u64" if type == "b64" else "u32")
    ordinal = int(op.ordinal.evaluate()) if isinstance(op, tensormap.replace_dimension) else 0

    def run(g: Group) -> None:
        machine = g.machine
        machine.effects += 1
        lanes, shared = list(each(g, address(g), value(g))), list[tuple[int, int, int, int]]()
        maps = list[NDArray[np.uint8]]()
        for warp, lane, (place, _) in lanes:
            if op.space == "shared::cta" or SHARED_WINDOW <= place < SHARED_WINDOW + WINDOW_BYTES:
                slot, offset = machine.clusters.locate(warp, place, op.space)
                machine.shared.require(offset, MAP_BYTES, MAP_ALIGNMENT, "tensormap.replace")
                shared.append((warp, lane, slot, offset))
                maps.append(machine.shared.data[slot, offset : offset + MAP_BYTES])
            else:
                maps.append(_global_bytes(machine, place, "tensormap.replace"))
                machine.events.tensormap_changes(warp, place, statement)
        if shared:
            machine.events.shared_tensormaps_change(shared, statement)
        for (warp, lane, (_, number)), data in zip(lanes, maps, strict=True):
            if op.field == "global_stride" and number % STRIDE_UNIT:
                issuer = machine.findings.access("issuer", statement, warp, lanes=1 << lane)
                machine.findings.report(
                    ILLEGAL_TENSORMAP,
                    statement,
                    summary=f"{issuer} sets the stride of dimension {ordinal + 1} to {number} bytes",
                    rule=f"A stride must be a multiple of {STRIDE_UNIT} bytes; the map gets "
                    f"{number - number % STRIDE_UNIT}",
                    fix=f"pad the rows to a multiple of {STRIDE_UNIT} bytes",
                    accesses=(issuer,),
                    severity="advice",
                )
            encoded = replace_field(int.from_bytes(data.tobytes(), "little"), op.field, number, ordinal)
            data[:] = np.frombuffer(encoded.to_bytes(MAP_BYTES, "little"), np.uint8)

    return run


@semantics(tensormap.cp_fenceproxy)
def publish(op: tensormap.cp_fenceproxy, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The threads of a warp copy the same bytes to the same address, and release them to the tensormap proxy."""
    destination, source = binder.address(op.dst), binder.address(op.src)

    def run(g: Group) -> None:
        machine = g.machine
        machine.effects += 1
        done: set[tuple[int, int, int]] = set()
        for warp, _, (to, place) in each(g, destination(g), source(g)):
            if (warp, to, place) in done:
                continue
            done.add((warp, to, place))
            slot, offset = machine.clusters.locate(warp, place, "shared::cta")
            machine.shared.require(offset, MAP_BYTES, MAP_ALIGNMENT, "tensormap.cp_fenceproxy from shared memory")
            data = _global_bytes(machine, to, "tensormap.cp_fenceproxy to global memory")
            machine.events.tensormap_publishes(warp, slot, offset, to, statement)
            data[:] = machine.shared.data[slot, offset : offset + MAP_BYTES]

    return run

"""Tensor memory and fifth-generation tensor cores. PTX ISA 9.7.16.

kind::f16, dense, both operands in shared memory, one CTA. Products are exact, the sum is kept in .f32 in an order that
the manual leaves open (9.7.16.10; results are compared with a tolerance). The tensor core of a CTA runs its operations
in the order of their issue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import DescriptorError, InstructionDescriptor, SmemDescriptor
from ptxgen.emulator.checks.happens_before import UNIT
from ptxgen.emulator.group import Group
from ptxgen.emulator.machine import Machine, PendingLoad, PendingStore
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.tensor_memory import POISON
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.instr import tcgen05
from ptxgen.layouts.operands import operand_addresses
from ptxgen.layouts.tmem import LANES, accumulator_cells, load_cells, split_address

if TYPE_CHECKING:
    from ptxgen.emulator.scheduler import Scheduler

_Run = Callable[[Group], None]
_MMA_K = 16


# Allocation.


@meaning(tcgen05.alloc, kind="gate")
def alloc(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    _one_cta(op)
    _no_exclusive(op)
    destination, columns = binder.address(op.dst), binder.source(op.columns, "b32")

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(destination(g)), g.full(columns(g))
        passing = np.ones((g.size, 32), np.bool_)
        for position, row in enumerate(g.indices):
            row = int(row)
            lanes = g.active[position]
            slot = int(machine.row_slot[row])
            column = machine.tensor.allocate(slot, int(wanted[position, lanes][0]), statement)
            if column is None:
                passing[position] = False
                continue
            offset = machine.clusters.locate(row, int(places[position, lanes][0]), op.space)[1]
            machine.shared.require(offset, 4, 4, "tcgen05.alloc")
            machine.shared.data[slot, offset : offset + 4].view(np.uint32)[0] = column
            if machine.ordering is not None:
                mask = np.array([0xF << offset % UNIT], np.uint16)
                machine.ordering.write(row, np.array([offset // UNIT]), mask, statement)
            machine.effects += 1
        return lambda row: ("tmem", int(machine.row_slot[row])), None if passing.all() else passing

    return run


@meaning(tcgen05.dealloc)
def dealloc(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    _one_cta(op)
    _no_exclusive(op)
    address, columns = binder.source(op.taddr, "b32"), binder.source(op.columns, "b32")

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(address(g)), g.full(columns(g))
        for position, row in enumerate(g.indices):
            row = int(row)
            lanes = g.active[position]
            slot = int(machine.row_slot[row])
            place, size = int(places[position, lanes][0]), int(wanted[position, lanes][0])
            machine.tensor.free(slot, place, size)
            if machine.ordering is not None:
                _check_free(machine, row, slot, place & 0xFFFF, size, statement)
            machine.effects += 1
            machine.wake(("tmem", slot))

    return run


def _check_free(machine: Machine, row: int, slot: int, column: int, size: int, statement: syntax.Statement) -> None:
    ordering = machine.ordering
    assert ordering is not None
    operation = ordering.operation("tcgen05.dealloc", statement, slot)
    unknown = [
        n for n in np.unique(ordering.tensor_writer[slot][:, column : column + size]) if n in ordering.operations
    ]
    for number in unknown:
        if int(number) not in ordering.known[row].operations:
            earlier = ordering.operations[int(number)]
            machine.findings.add(
                "tmem-freed-in-use",
                f"frees columns that the {earlier.what} of line {earlier.statement.line} may still write; its "
                "warp has not waited for it",
                statement,
            )
    ordering.tensor_write(operation, row, [0, 1, 2, 3], range(column, column + size))
    ordering.tensor_writer[slot][:, column : column + size] = 0


@meaning(tcgen05.relinquish_alloc_permit)
def relinquish(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    _one_cta(op)

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        g.machine.tensor.relinquished[g.machine.row_slot[g.indices]] = True

    return run


def _no_exclusive(op: Any) -> None:
    if op.exclusive:
        raise Unmodelled(".exclusive")


def _one_cta(op: Any) -> None:
    if op.cta_group == 2:
        raise Unmodelled("cta_group::2")


# Matrix multiplication.


@lru_cache(maxsize=4096)
def _matrix(value: int) -> SmemDescriptor:
    try:
        return SmemDescriptor.decode(value)
    except DescriptorError as error:
        raise MemoryFault("illegal-descriptor", f"the shared-memory descriptor {value:#018x}: {error}") from error


@lru_cache(maxsize=256)
def _instruction(value: int, kind: str) -> InstructionDescriptor:
    try:
        return InstructionDescriptor.decode(value, kind=kind, cta_group=1)
    except DescriptorError as error:
        raise MemoryFault("illegal-descriptor", f"the instruction descriptor {value:#010x}: {error}") from error


@lru_cache(maxsize=4096)
def _operand(value: int, major: str, rows: int, negate: bool, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Element indexes (16-bit units of shared memory) of an operand [rows, 16], and the 16-byte units it touches."""
    descriptor = _matrix(value)
    if descriptor.lbo_mode != "relative":
        raise Unmodelled("the absolute LBO mode")
    try:
        addresses = operand_addresses(descriptor, major, rows, _MMA_K, 16)  # type: ignore[arg-type]
    except ValueError as error:
        raise MemoryFault("illegal-descriptor", f"the shared-memory descriptor {value:#018x}: {error}") from error
    if addresses.min() < 1024 or addresses.max() + 2 > size:
        raise MemoryFault(
            "out-of-bounds",
            f"the shared-memory descriptor {value:#018x} reaches {int(addresses.min()):#x} to "
            f"{int(addresses.max()) + 1:#x}; the CTA has 0x400 to {size:#x}",
        )
    return addresses // 2, np.unique(addresses // UNIT)


def _values(words: NDArray[np.uint16], type: str, negate: bool) -> NDArray[np.float32]:
    if type == "bf16":
        result = (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        result = words.view(np.float16).astype(np.float32)
    return -result if negate else result


@meaning(tcgen05.mma)
def mma(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    _one_cta(op)
    if op.kind != "f16":
        raise Unmodelled(f".kind::{op.kind}")
    if op.scale_input_d is not None:
        raise Unmodelled("scale-input-d")
    off = binder.vector(op.disable_output_lane) if op.disable_output_lane is not None else ()
    disabled = [binder.source(element, "b32") for element in off]
    accumulator = binder.address(op.d)
    a, b, idesc = binder.source(op.a, "b64"), binder.source(op.b, "b64"), binder.source(op.idesc, "b32")
    accumulate = binder.predicate(op.enable_input_d)

    def run(g: Group) -> None:
        values = (accumulator(g), a(g), b(g), idesc(g), accumulate(g), *(word(g) for word in disabled))
        for row, _, (place, a_value, b_value, i_value, add, *off) in each(g, *values):
            descriptor = _instruction(i_value, op.kind)
            _issue(g.machine, row, statement, place, a_value, b_value, descriptor, bool(add), _lanes_off(off))

    return run


def _lanes_off(words: Sequence[int]) -> NDArray[np.bool_] | None:
    """Which of the 128 lanes stay as they are: bit i of word w is lane 32w + i (9.7.16.10.9.1). None for none."""
    if not any(words):
        return None
    return ((np.array(words, np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.bool_).ravel()


def _issue(
    machine: Machine, row: int, statement: syntax.Instruction, place: int, a: int, b: int,
    idesc: InstructionDescriptor, accumulate: bool, off: NDArray[np.bool_] | None = None,
) -> None:  # fmt: skip
    if idesc.sparse:
        raise Unmodelled("sparse matrices")
    slot, size = int(machine.row_slot[row]), machine.shared.size
    a_index, a_units = _operand(a, idesc.a_major, idesc.m, idesc.negate_a, size)
    b_index, b_units = _operand(b, idesc.b_major, idesc.n, idesc.negate_b, size)
    lane0, column0 = split_address(place)
    lanes, columns = accumulator_cells(idesc.m, idesc.n)
    rows_at, columns_at = lanes[:, 0] + lane0, range(column0, column0 + idesc.n)
    del columns
    if lane0 not in ((0,) if idesc.m == LANES else (0, 16)):
        legal = "0" if idesc.m == LANES else "0 or 16"
        raise MemoryFault("tmem-out-of-bounds", f"an accumulator of M {idesc.m} starts on lane {legal}, not on {lane0}")
    machine.tensor.require(slot, range(int(rows_at[0]), int(rows_at[-1]) + 1), columns_at, "tcgen05.mma")
    if machine.ordering is not None:
        operation = machine.ordering.operation("tcgen05.mma", statement, slot, swizzle=_matrix(a).swizzle)
        machine.ordering.async_read(operation, row, a_units)
        operation.swizzle = _matrix(b).swizzle
        machine.ordering.async_read(operation, row, b_units)
        quarters = sorted(set((rows_at // 32).tolist()))
        machine.ordering.tensor_write(operation, row, quarters, columns_at, accumulates=accumulate)
        operation.swizzle = None
        machine.tensor_operations.setdefault(slot, []).append(operation.number)
    whole = idesc.m == LANES
    half = idesc.d_type == "f16"

    def execute() -> None:
        words = machine.shared.data[slot].view(np.uint16)
        left = _values(words[a_index], idesc.a_type, idesc.negate_a)
        right = _values(words[b_index], idesc.b_type, idesc.negate_b)
        product = left @ right.T
        cells = machine.tensor.cells[slot]
        target = cells[:, column0 : column0 + idesc.n]
        kept = target[off].copy() if off is not None else None
        if half:
            before = (target[rows_at] & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float32)
            total = (product + before if accumulate else product).astype(np.float16)
            target[rows_at] = total.view(np.uint16).astype(np.uint32)
        elif whole:
            floats = target.view(np.float32)
            np.add(floats, product, out=floats) if accumulate else np.copyto(floats, product)
        else:
            before = target[rows_at].view(np.float32)
            target[rows_at] = (product + before if accumulate else product).view(np.uint32)
        if kept is not None:
            target[off] = kept

    machine.submit(slot, statement, execute, pipe=("tensor core", slot))


@meaning(tcgen05.commit)
def commit(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    _one_cta(op)
    if op.multicast:
        raise Unmodelled("multicast")
    address = binder.address(op.mbar)

    def run(g: Group) -> None:
        machine = g.machine
        for row, _, (place,) in each(g, address(g)):
            _arrive_when_done(machine, row, _commit_place(machine, row, place, op.space, statement), statement)

    return run


def _commit_place(
    machine: Machine, row: int, place: int, space: str | None, statement: syntax.Instruction
) -> tuple[int, int]:
    """The mbarrier's slot and offset. A shared address as a generic one works too: UTCBAR takes its low 32 bits (ptxas
    13.5).
    """
    if space is None and place < 1 << 32:
        machine.findings.add(
            "generic-shared-address",
            f"{place:#x} is an address in shared memory, but without .shared::cluster the operand is a generic address",
            statement,
            severity="advice",
        )
        space = "shared::cluster"
    return machine.clusters.locate(row, place, space)


def _arrive_when_done(machine: Machine, row: int, place: tuple[int, int], statement: syntax.Instruction) -> None:
    """Arrive on the mbarrier at `place` (slot, offset) when the earlier operations of the warp's CTA are done."""
    issuer, (slot, offset) = int(machine.row_slot[row]), place
    barrier = machine.mbarrier(slot, offset, row, statement)
    given = None
    if machine.ordering is not None:
        given = machine.ordering.release(row)
        # All earlier operations, those of earlier commits too (9.7.16.12.1); what everybody knows is dropped.
        earlier = [n for n in machine.tensor_operations.get(issuer, ()) if n in machine.ordering.operations]
        machine.tensor_operations[issuer] = earlier
        given.operations.update(earlier)

    def arrive() -> None:
        barrier.release(given)
        barrier.arrive(1)
        barrier.last_arrival = statement
        machine.settle(slot, barrier)

    machine.submit(issuer, statement, arrive, pipe=("tensor core", issuer))


# Loads from tensor memory.


@meaning(tcgen05.ld, tcgen05.ld_halves)
def load(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    if op.pack:
        raise Unmodelled(".pack::16b")
    halves = isinstance(op, tcgen05.ld_halves)
    shape = "16x32bx2" if halves else op.shape
    split = int(op.split.value) if halves else 0
    lanes, columns = load_cells(shape, op.num, split)
    address = binder.address(op.taddr)
    registers = [binder.register(element) for element in binder.vector(op.r)]
    if len(registers) != columns.shape[1]:
        raise Unmodelled(f"{len(registers)} registers where .{shape}.x{op.num} has {columns.shape[1]}")
    names = frozenset(id(register) for register in registers)

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places = g.full(address(g))
        for position, row in enumerate(g.indices):
            row = int(row)
            active = g.active[position]
            place = int(places[position, active][0])
            start, column = _reach(machine, row, place, shape, lanes, columns, "tcgen05.ld")
            if machine.ordering is not None:
                span = range(column + int(columns.min()), column + int(columns.max()) + 1)
                machine.ordering.tensor_read(row, span, statement)
            slot = int(machine.row_slot[row])
            _fetch(machine, slot, row, start + lanes, column + columns, registers, names, active, statement)

    return run


def _reach(
    machine: Machine, row: int, place: int, shape: str, lanes: NDArray[np.int64], columns: NDArray[np.int64], what: str
) -> tuple[int, int]:
    """The lane and column at which a warp's load or store begins. Raises MemoryFault where the warp may not reach."""
    warp = row % machine.warps_per_cta
    lane, column = split_address(place)
    quarter = 32 * (warp % 4)
    starts = (0,) if shape == "32x32b" else (0, 16)
    # The lane field is the warp's own quarter, or relative to it (facts of two implementations; unverified).
    if lane & ~31 not in (0, quarter) or lane & 31 not in starts:
        raise MemoryFault(
            "tmem-lane-rights",
            f"warp {warp} reaches lanes {quarter}-{quarter + 31} of tensor memory with .{shape} from lane "
            f"{' or '.join(str(quarter + start) for start in starts)} on, not from lane {lane}",
        )
    start = quarter + (lane & 31)
    reach = range(column + int(columns.min()), column + int(columns.max()) + 1)
    machine.tensor.require(
        int(machine.row_slot[row]), range(start + int(lanes.min()), start + int(lanes.max()) + 1), reach, what
    )
    return start, column


def _fetch(
    machine: Machine, slot: int, row: int, lanes: NDArray[np.int64], columns: NDArray[np.int64],
    registers: list[NDArray[Any]], names: frozenset[int], active: NDArray[np.bool_], statement: syntax.Instruction,
) -> None:  # fmt: skip
    """Bring cells into registers; until they arrive the registers hold poison."""
    pending = PendingLoad(names, statement)
    machine.pending_loads.setdefault(row, []).append(pending)
    for register in registers:
        register[row][active] = POISON

    def complete() -> None:
        words = machine.tensor.cells[slot][lanes, columns]
        for index, register in enumerate(registers):
            register[row][active] = words[active, index]
        pending.done = True
        machine.wake(("tcgen05.wait", row))

    machine.submit(slot, statement, complete, pipe=("tensor load", row))


@meaning(tcgen05.st, tcgen05.st_halves)
def store(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """The registers are read at once; the cells change later, those of one warp in the order of its stores."""
    if op.unpack:
        raise Unmodelled(".unpack::16b")
    halves = isinstance(op, tcgen05.st_halves)
    shape = "16x32bx2" if halves else op.shape
    lanes, columns = load_cells(shape, op.num, int(op.split.value) if halves else 0)
    address = binder.address(op.taddr)
    sources = [binder.source(element, "b32") for element in binder.vector(op.r)]
    if len(sources) != columns.shape[1]:
        raise Unmodelled(f"{len(sources)} registers where .{shape}.x{op.num} has {columns.shape[1]}")

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places = g.full(address(g))
        words = np.stack([g.full(source(g)).astype(np.uint32, copy=False) for source in sources], axis=-1)
        for position, row in enumerate(g.indices):
            row = int(row)
            place = int(places[position, g.active[position]][0])
            start, column = _reach(machine, row, place, shape, lanes, columns, "tcgen05.st")
            pending = PendingStore()
            slot = int(machine.row_slot[row])
            if machine.ordering is not None:
                operation = machine.ordering.operation("tcgen05.st", statement, slot, row=row)
                pending.operation = operation.number
                span = range(column + int(columns.min()), column + int(columns.max()) + 1)
                machine.ordering.tensor_store(operation, row, span)
            machine.pending_stores.setdefault(row, []).append(pending)
            _put(machine, slot, row, start + lanes, column + columns, words[position].copy(), pending, statement)

    return run


def _put(
    machine: Machine, slot: int, row: int, lanes: NDArray[np.int64], columns: NDArray[np.int64],
    words: NDArray[np.uint32], pending: PendingStore, statement: syntax.Instruction,
) -> None:  # fmt: skip
    def complete() -> None:
        machine.tensor.cells[slot][lanes, columns] = words
        pending.done = True
        machine.wake(("tcgen05.wait", row))

    machine.submit(slot, statement, complete, pipe=("tensor store", row))


@meaning(tcgen05.wait, kind="gate")
def wait(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    """Warps stay until their loads, or their stores, have arrived."""

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        machine = g.machine
        passing = np.ones((g.size, 32), np.bool_)
        require_whole_warps(g, statement)
        for position, row in enumerate(g.indices):
            row = int(row)
            stores = machine.pending_stores.get(row, ()) if op.what == "st" else ()
            awaited = stores if op.what == "st" else machine.pending_loads.get(row, ())
            if not all(each.done for each in awaited):
                passing[position] = False
            elif op.what == "ld":
                machine.pending_loads.pop(row, None)
            else:
                if machine.ordering is not None:
                    machine.ordering.stored(row, [each.operation for each in stores])
                machine.pending_stores.pop(row, None)
        return lambda row: ("tcgen05.wait", row), None if passing.all() else passing

    return run


@meaning(tcgen05.fence)
def fence(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    def run(g: Group) -> None:
        ordering = g.machine.ordering
        if ordering is not None and op.where == "after_thread_sync":
            for row in g.indices:
                ordering.after_thread_sync(int(row))

    return run

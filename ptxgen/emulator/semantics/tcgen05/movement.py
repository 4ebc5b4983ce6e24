"""Between tensor memory, registers and shared memory. PTX ISA 9.7.16.8 and 9.7.16.9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.checks.registry import tcgen05 as tcgen05_checks
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.tensor_memory import POISON
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.semantics.tcgen05.elements import expanded
from ptxgen.emulator.semantics.tcgen05.operands import SharedMatrix, advise_version, shared_matrix
from ptxgen.emulator.semantics.tcgen05.pairs import advise_one_lane, pipe_of, require_one_value, slots_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.tensor_transfers import TensorLoad, TensorStore
from ptxgen.instr import tcgen05
from ptxgen.layouts.tmem import (
    COPY_SHAPES,
    LANES,
    WARP_LANES,
    Cells,
    LoadShape,
    bands_of,
    copy_lanes,
    load_cells,
    packed_cells,
    shift_lanes,
    split_address,
)

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler

_Reduction = tcgen05.ld_red | tcgen05.ld_red_halves
_Load = tcgen05.ld | tcgen05.ld_halves | _Reduction
_Store = tcgen05.st | tcgen05.st_halves
_Halves = tcgen05.ld_halves | tcgen05.ld_red_halves | tcgen05.st_halves
#: Columns that tcgen05.shift moves: 32 bytes.
_SHIFT_COLUMNS = 8


def _split(op: _Halves) -> int:
    """How many columns apart the halves are: the low 32 bits of the constant, signed, as ptxas 13.5 encodes it."""
    return (int(op.split.evaluate()) + (1 << 31)) % (1 << 32) - (1 << 31)


def _cells(op: _Load | _Store, packed: bool, count: int) -> tuple[str, Cells]:
    """The shape and the cells of `count` registers, [32, registers] or [32, registers, 2] if packed."""
    shape: LoadShape = "32x32b"
    split = 0
    if isinstance(op, _Halves):
        shape, split = "16x32bx2", _split(op)
    elif not isinstance(op, tcgen05.ld_red):
        shape = op.shape
    lanes, columns = (packed_cells if packed else load_cells)(shape, op.num, split)
    if count != columns.shape[1]:
        raise Unmodelled(f"{count} registers where .{shape}.x{op.num} has {columns.shape[1]}")
    return shape, (lanes, columns)


def _reach(
    machine: Machine,
    warp: int,
    place: int,
    shape: str,
    cells: Cells,
    spans: Sequence[range],
    statement: syntax.Instruction,
) -> tuple[int, list[range]]:
    """The lane at which a warp's load or store begins, and its columns. Raises MemoryFault where it may not reach."""
    warp_id = warp % machine.warps_per_cta
    lane, column = split_address(place)
    quarter = WARP_LANES * (warp_id % 4)
    starts = (0,) if shape == "32x32b" else (0, 16)
    if LANES <= lane < 2 * LANES:  # a pair's second CTA, by the rows of D: fact tmem-lane-field
        access = machine.findings.access("accessor", statement, warp, space="tensor", address=place)
        machine.findings.report(
            tcgen05_checks.TMEM_LANE_RIGHTS,
            statement,
            summary=f"{access} names lane {lane}",
            rule=f"Tensor memory has lanes 0-{LANES - 1} (9.7.16.1.1), in the second CTA of a pair too. Hardware takes "
            f"lane {LANES} for lane 0, and so on",
            fix=f"subtract {LANES} from the lane",
            accesses=(access,),
            severity="advice",
        )
        lane -= LANES
    if lane & ~31 not in (0, quarter) or lane & 31 not in starts:  # fact tmem-lane-field
        raise MemoryFault(
            tcgen05_checks.TMEM_LANE_RIGHTS,
            f"{statement.opcode.partition('.sync')[0]} of warp {warp_id} begins on lane {lane}",
            rule=f"The warp reaches lanes {quarter}-{quarter + 31}, with .{shape} from lane "
            f"{' or '.join(str(quarter + start) for start in starts)}",
        )
    start = quarter + (lane & 31)
    lanes, _ = cells
    reached, what = (
        range(start + int(lanes.min()), start + int(lanes.max()) + 1),
        statement.opcode.partition(".sync")[0],
    )
    used = _from(spans, column)
    for columns in used:
        machine.tensor.require(int(machine.cta_slot[warp]), reached, columns, what)
    return start, used


def _spans(cells: Cells) -> tuple[range, ...]:
    """The columns from the instruction's address on, which are apart where .16x32bx2 splits them."""
    columns = np.unique(cells[1])
    parts = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    return tuple(range(int(part[0]), int(part[-1]) + 1) for part in parts)


def _from(spans: Sequence[range], column: int) -> list[range]:
    """The same from a column of tensor memory on."""
    return [range(column + each.start, column + each.stop) for each in spans]


# Loads.


@semantics(*get_args(_Load))
def load(op: _Load, binder: Binder, statement: syntax.Instruction) -> Plain:
    packed = not isinstance(op, _Reduction) and op.pack
    registers = [binder.register(element) for element in binder.vector(op.r)]
    shape, cells = _cells(op, packed, len(registers))
    spans = _spans(cells)
    address = binder.address(op.taddr)
    reduction = op if isinstance(op, _Reduction) else None
    result = binder.register(reduction.result) if reduction is not None else None
    written = [*registers, result] if result is not None else registers

    def fetch(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """What the registers get of the cells' words: [32, registers], the reduction last."""
        if packed:
            return words[..., 0] & np.uint32(0xFFFF) | words[..., 1] << np.uint32(16)
        if reduction is not None:
            return np.concatenate([words, _reduced(words, reduction)[:, None]], axis=1)
        return words

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places = g.full(address(g))
        require_one_value(g, places, "the address", statement)
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            active = g.active[position]
            place = int(places[position, active][0])
            lane, used = _reach(machine, warp, place, shape, cells, spans, statement)
            if machine.events.observes("tensor_read"):
                for columns in used:
                    machine.events.tensor_read(warp, bands_of(cells[0] + lane), columns, statement)
            at = cells[0] + lane, cells[1] + used[0].start - spans[0].start
            _submit_load(machine, warp, at, used, written, fetch, active, statement)

    return run


def _submit_load(
    machine: Machine,
    warp: int,
    cells: Cells,
    spans: Sequence[range],
    written: list[Register],
    fetch: Callable[[NDArray[np.uint32]], NDArray[np.uint32]],
    active: NDArray[np.bool_],
    statement: syntax.Instruction,
) -> None:
    """Bring cells into registers; until they arrive the registers hold poison."""
    slot = int(machine.cta_slot[warp])
    registers = [machine.registers[each.index] for each in written]
    for stored in machine.transfers.stores.get(warp, ()):  # fact tmem-store-then-load
        stored.complete()
    for register in registers:
        register[warp][active] = POISON

    def complete() -> None:
        if pending.done:
            return
        words = fetch(machine.tensor.cells[slot][cells])
        for index, register in enumerate(registers):
            register[warp][active] = words[active, index]
        pending.done = True
        machine.wake(("tcgen05.wait", warp))

    numbers = frozenset(each.index for each in written)
    pending = TensorLoad(numbers, statement, bands_of(cells[0]), spans, complete)
    machine.transfers.loads.setdefault(warp, []).append(pending)
    pipe = ("tensor load", warp)
    work = machine.issue("tcgen05.ld", statement, slot, warp, active, pipe=pipe)
    work.bytes = 128 * len(registers)
    machine.submit(slot, statement, complete, pipe=pipe, works=[work])


def _reduced(words: NDArray[np.uint32], op: _Reduction) -> NDArray[np.uint32]:
    """Least or greatest of each thread's words, [32]."""
    least = op.op == "min"
    if op.type != "f32":
        values = words.view(np.int32) if op.type == "s32" else words
        return (values.min(axis=1) if least else values.max(axis=1)).view(np.uint32)
    if op.abs:
        words = words & np.uint32(0x7FFFFFFF)
    nan = (words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    # Order of .f32 as an order of integers, -0 below +0.
    negative = words >> np.uint32(31) != 0
    keys = np.where(negative, ~words, words | np.uint32(0x80000000))
    keys = np.where(nan, np.uint32(0xFFFFFFFF if least else 0), keys)
    chosen = keys.argmin(axis=1) if least else keys.argmax(axis=1)
    found = words[np.arange(len(words)), chosen]
    lost = nan.any(axis=1) if op.NaN else nan.all(axis=1)
    return np.where(lost, np.uint32(0x7FFFFFFF), found)


# Stores.


@semantics(*get_args(_Store))
def store(op: _Store, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The registers are read at once; the cells change later, those of one warp in the order of its stores."""
    sources = [binder.source(element, "b32") for element in binder.vector(op.r)]
    shape, cells = _cells(op, op.unpack, len(sources))
    spans = _spans(cells)
    address = binder.address(op.taddr)

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places = g.full(address(g))
        require_one_value(g, places, "the address", statement)
        words = np.stack([g.full(source(g)).astype(np.uint32, copy=False) for source in sources], axis=-1)
        if op.unpack:
            words = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=-1)
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            place = int(places[position, g.active[position]][0])
            lane, used = _reach(machine, warp, place, shape, cells, spans, statement)
            slot, pipe = int(machine.cta_slot[warp]), ("tensor store", warp)
            work = machine.issue("tcgen05.st", statement, slot, warp, g.active[position], pipe=pipe)
            work.bytes = 128 * len(sources)
            if machine.events.observes("tensor_stored"):
                for columns in used:
                    machine.events.tensor_stored(work, bands_of(cells[0] + lane), columns)
            at = cells[0] + lane, cells[1] + used[0].start - spans[0].start
            _submit_store(machine, work, at, words[position].copy())

    return run


def _submit_store(machine: Machine, work: AsyncWork, cells: Cells, words: NDArray[np.uint32]) -> None:
    slot, warp = work.slot, work.warp

    def complete() -> None:
        if store.done:
            return
        machine.tensor.cells[slot][cells] = words
        store.done = True
        machine.wake(("tcgen05.wait", warp))

    store = TensorStore(work, complete)
    machine.transfers.stores.setdefault(warp, []).append(store)
    machine.submit(slot, work.statement, complete, pipe=work.pipe, works=[work])


@semantics(tcgen05.wait, kind="blocking")
def wait(op: tcgen05.wait, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """Warps stay until their loads, or their stores, have arrived."""

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        passing = np.ones((g.size, 32), np.bool_)
        require_whole_warps(g, statement)
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            transfers = machine.transfers
            awaited = (transfers.loads if op.what == "ld" else transfers.stores).get(warp, [])
            if not all(each.done for each in awaited):
                passing[position] = False
            elif op.what == "ld":
                machine.events.tensor_loads_awaited(warp, transfers.loads.pop(warp, []))
            else:
                stores = transfers.stores.pop(warp, [])
                machine.events.tensor_stores_awaited(warp, [each.work for each in stores])
        return lambda warp: ("tcgen05.wait", warp), None if all_set(passing) else passing

    return run


# By the tensor core.


@semantics(tcgen05.cp)
def copy(op: tcgen05.cp, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Each CTA of a pair copies from its own shared memory."""
    rows, bits = COPY_SHAPES[op.shape]
    lanes = copy_lanes(op.shape, op.multicast)
    address, descriptor = binder.address(op.taddr), binder.source(op.sdesc, "b64")
    element = {None: 8, "b6x16_p32": 6, "b4x16_p64": 4}[op.src_fmt]

    def run(g: Group) -> None:
        machine = g.machine
        advise_one_lane(g, address(g), statement)
        for warp, thread, (place, value) in each(g, address(g), descriptor(g)):
            advise_version(machine, value, statement)
            source = shared_matrix(value, "k", rows, bits // 8, 8, machine.shared.size)
            _submit_copy(machine, warp, thread, op.cta_group, source, lanes, place, bits // 32, element, statement)

    return run


def _submit_copy(
    machine: Machine,
    warp: int,
    thread: int,
    cta_group: int,
    source: SharedMatrix,
    lanes: NDArray[np.int64],
    place: int,
    width: int,
    element: int,
    statement: syntax.Instruction,
) -> None:
    """Elements of 4 and 6 bits are expanded to bytes of their own."""
    issuer, slots = int(machine.cta_slot[warp]), slots_of(machine, warp, cta_group)
    lane, column = split_address(place)
    span = range(column, column + width)
    for slot in slots:
        machine.tensor.require(slot, range(int(lanes.min()) + lane, int(lanes.max()) + lane + 1), span, "tcgen05.cp")
    pipe, events = pipe_of(machine, warp, cta_group), machine.events
    work = machine.issue("tcgen05.cp", statement, issuer, warp, thread, pipe=pipe)
    if events.observes("tensor_written"):
        bands, bytes_read = bands_of(lanes + lane), np.uint16((1 << 2 * element) - 1)
        for slot in slots:
            events.work_reads_shared(work, [warp], slot, source.touched, bytes_read, source.swizzle)
            events.tensor_written(work, slot, bands, span)

    def execute() -> None:
        for slot in slots:
            data = source.lines(machine, slot)
            words = (data if element == 8 else expanded(data, element)).view(np.uint32)
            machine.tensor.cells[slot][lanes + lane, column : column + width] = words

    machine.submit(issuer, statement, execute, pipe=pipe, works=[work])


@semantics(tcgen05.shift)
def shift(op: tcgen05.shift, binder: Binder, statement: syntax.Instruction) -> Plain:
    address = binder.address(op.taddr)

    def run(g: Group) -> None:
        advise_one_lane(g, address(g), statement)
        for warp, thread, (place,) in each(g, address(g)):
            _submit_shift(g.machine, warp, thread, op.cta_group, place, statement)

    return run


def _submit_shift(
    machine: Machine, warp: int, thread: int, cta_group: int, place: int, statement: syntax.Instruction
) -> None:
    """All four quarters move, whichever lane the address has (fact shift-direction)."""
    issuer, slots = int(machine.cta_slot[warp]), slots_of(machine, warp, cta_group)
    lane, column = split_address(place)
    if lane % WARP_LANES:
        raise MemoryFault(
            memory.MISALIGNED,
            f"tcgen05.shift at lane {lane}",
            rule="The lane must be a multiple of 32 (9.7.16.9.3)",
            fix="",
        )
    span, bands = range(column, column + _SHIFT_COLUMNS), bands_of(range(LANES))
    for slot in slots:
        machine.tensor.require(slot, range(LANES), span, "tcgen05.shift")
    pipe, events = pipe_of(machine, warp, cta_group), machine.events
    work = machine.issue("tcgen05.shift", statement, issuer, warp, thread, pipe=pipe)
    for slot in slots:
        events.tensor_operand_read(work, slot, bands, span, "rows")
        events.tensor_written(work, slot, bands, span)
    to, source = shift_lanes()

    def execute() -> None:
        for slot in slots:
            cells = machine.tensor.cells[slot][:, column : column + _SHIFT_COLUMNS]
            cells[to] = cells[source]

    machine.submit(issuer, statement, execute, pipe=pipe, works=[work])

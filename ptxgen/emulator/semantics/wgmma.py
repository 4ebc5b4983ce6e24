"""Warpgroup-wide MMAs of Hopper. PTX ISA 9.7.15.

An MMA is one asynchronous operation of its warpgroup, whose warps converge to issue it: one warp's wait covers all of
it, and one thread may free a stage (CUTLASS relies on that, include/cutlass/pipeline). Shared memory, A in registers
and the accumulator are read, and the accumulator is written, when it completes. The MMAs of a warpgroup complete in the
order of their issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import DescriptorError, WgmmaDescriptor
from ptxgen.emulator.arithmetic import matrix_multiply, tensor_sums
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry import descriptors, memory
from ptxgen.emulator.checks.registry import wgmma as registry
from ptxgen.emulator.engines.matrix_operands import MatrixOperand, matrix_operand
from ptxgen.emulator.engines.work import WARP, AsyncWork, MmaShape
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.shared_memory import RESERVED_BYTES
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.warpgroups import Arrival, Kept, PendingMma
from ptxgen.instr import wgmma
from ptxgen.layouts.fragments import (
    WARPGROUP,
    inverse,
    metadata_places,
    wgmma_a_fragment,
    wgmma_accumulator_fragment,
)
from ptxgen.layouts.operands import Major, operand_addresses

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler

_Words = list[NDArray[Any]]
_F16 = wgmma.mma_async_f16 | wgmma.mma_async_f16_rs | wgmma.mma_async_sp_f16 | wgmma.mma_async_sp_f16_rs
_Tf32 = wgmma.mma_async_tf32 | wgmma.mma_async_tf32_rs | wgmma.mma_async_sp_tf32 | wgmma.mma_async_sp_tf32_rs
_F8 = wgmma.mma_async_f8 | wgmma.mma_async_f8_rs | wgmma.mma_async_sp_f8 | wgmma.mma_async_sp_f8_rs
_I8 = wgmma.mma_async_i8 | wgmma.mma_async_i8_rs | wgmma.mma_async_sp_i8 | wgmma.mma_async_sp_i8_rs
_Mma = _F16 | _Tf32 | _F8 | _I8 | wgmma.mma_async_b1 | wgmma.mma_async_b1_rs
_Sparse = (
    wgmma.mma_async_sp_f16
    | wgmma.mma_async_sp_f16_rs
    | wgmma.mma_async_sp_tf32
    | wgmma.mma_async_sp_tf32_rs
    | wgmma.mma_async_sp_f8
    | wgmma.mma_async_sp_f8_rs
    | wgmma.mma_async_sp_i8
    | wgmma.mma_async_sp_i8_rs
)
_ROWS = 64
_ALL_BYTES = np.uint16(0xFFFF)
#: Bits of a row of A and of a column of B that a dense MMA takes.
_DEPTH = 256


class Shape(NamedTuple):
    """What the modifiers say: types, columns, and whether A is sparse."""

    a_type: str
    b_type: str
    d_type: str
    n: int
    sparse: bool
    saturate: bool

    @property
    def bits(self) -> int:
        """Bits of an element of A and B."""
        return matrix_multiply.BITS[self.a_type]

    @property
    def k(self) -> int:
        """Columns of A, with its zeros."""
        return _DEPTH // self.bits * (2 if self.sparse else 1)


def _shape(op: _Mma) -> Shape:
    a_type, b_type = (op.type, op.type) if isinstance(op, _F16) else (op.atype, op.btype)
    return Shape(a_type, b_type, op.dtype, op.n, isinstance(op, _Sparse), isinstance(op, _I8) and op.satfinite)


# Operands in shared memory.


class Chunks(NamedTuple):
    """Where an operand lies: numbers of 16-byte granules, [rows, chunks of k] or, MN-major, [chunks of rows, k]."""

    places: NDArray[np.int64]
    granules: NDArray[np.int64]
    swizzle: str


@lru_cache(maxsize=4096)
def _chunks(value: int, major: Major, rows: int, k: int, bits: int, size: int) -> Chunks:
    """An operand [rows, k] by its descriptor, in a CTA whose shared memory ends at `size`."""
    try:
        descriptor = WgmmaDescriptor.decode(value)
    except DescriptorError as error:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR, f"matrix descriptor {value:#018x}", rule=str(error)
        ) from error
    if bits == 1:
        k, bits = k // 8, 8
    addresses = operand_addresses(descriptor, major, rows, k, bits)
    step = 8 * GRANULE // bits
    places = (addresses[:, ::step] if major == "k" else addresses[::step]) // GRANULE
    granules = np.unique(places)
    if granules[0] * GRANULE < RESERVED_BYTES or (granules[-1] + 1) * GRANULE > size:
        hints = descriptor.replace(major=major).offsets_in_bytes()
        raise MemoryFault(
            memory.OUT_OF_BOUNDS,
            f"matrix descriptor {value:#018x} covers shared memory {int(granules[0]) * GRANULE:#x} to "
            f"{int(granules[-1] + 1) * GRANULE - 1:#x}",
            rule="; ".join([f"The CTA has {RESERVED_BYTES:#x} to {size - 1:#x}", *hints]),
            fix="correct the start address and strides of the descriptor",
        )
    return Chunks(places, granules, descriptor.swizzle)


@lru_cache(maxsize=4096)
def _operand(side: str, value: int, major: Major, rows: int, k_bytes: int, bits: int, type: str) -> MatrixOperand:
    """A or B as its descriptor names it, for checks."""
    return matrix_operand(side, "wgmma", WgmmaDescriptor.decode(value), major, rows, k_bytes, bits, type)


def _fetch(machine: Machine, slots: NDArray[np.int64], chunks: Chunks, major: Major, type: str) -> NDArray[np.float32]:
    """The values of an operand in some CTAs: [ctas, rows, k]."""
    bits = matrix_multiply.BITS[type]
    raw = machine.shared.data.view(np.complex128)[slots[:, None, None], chunks.places]
    if bits == 1:
        return matrix_multiply.decode(np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little"), type)
    elements = raw.view(f"u{bits // 8}")
    if major == "mn":
        ctas, blocks, k = raw.shape
        elements = elements.reshape(ctas, blocks, k, -1).swapaxes(2, 3).reshape(ctas, -1, k)
    return matrix_multiply.decode(elements, type)


# Operands in registers.


@lru_cache(maxsize=128)
def _to_registers(n: int, bits: int) -> NDArray[np.int64]:
    """Element numbers of an accumulator [64, n] in the order [registers, 128 threads, elements]."""
    warp, column = wgmma_accumulator_fragment(n, bits)
    return np.ascontiguousarray((warp * n + column).transpose(1, 0, 2))


@lru_cache(maxsize=128)
def _from_registers(n: int, bits: int) -> NDArray[np.int64]:
    """For each element of an accumulator [64, n], its number in [128 threads, registers, elements]."""
    return inverse(wgmma_accumulator_fragment(n, bits), _ROWS, n)


@lru_cache(maxsize=8)
def _a_from_registers(bits: int) -> NDArray[np.int64]:
    """For each element of A [64, k], its number in [128 threads, registers, elements]."""
    return inverse(wgmma_a_fragment(bits), _ROWS, _DEPTH // bits)


def _read(registers: _Words, warps: NDArray[np.int64], bits: int, places: NDArray[np.int64]) -> NDArray[Any]:
    """The elements of a matrix in the registers of some warpgroups: [warpgroups, 64, columns]."""
    words = np.stack([register[warps] for register in registers], axis=-1).reshape(len(warps), WARPGROUP, -1)
    elements = matrix_multiply.split(words, bits).reshape(len(warps), -1)
    return np.ascontiguousarray(elements[:, places])


def _write(registers: _Words, warps: NDArray[np.int64], words: NDArray[Any]) -> None:
    """Put the words of accumulators [warpgroups, 64, n] into the registers of their warps."""
    bits = words.dtype.itemsize * 8
    ordered = words.reshape(len(words), -1)[:, _to_registers(words.shape[-1], bits)]
    # [registers, warps, lanes]
    joined = matrix_multiply.join(ordered.transpose(1, 0, 2, 3), bits).reshape(len(registers), -1, 32)
    for register, word in zip(registers, joined, strict=True):
        register[warps] = word


def _uniform(words: Sequence[NDArray[Any]], machine: Machine, statement: syntax.Instruction) -> None:
    """Report descriptors and flags that are not the same in all threads of a warpgroup: [warpgroups, 4, 32]."""
    for word in words:
        if any_set(word != word[:, :1, :1]):
            machine.findings.report(
                registry.DIVERGENT_WARPGROUP,
                statement,
                summary="a matrix descriptor or scale-d differs between threads of the warpgroup",
                rule="It must be the same in all 128 threads",
            )


@semantics(*get_args(_Mma), kind="blocking")
def multiply(op: _Mma, binder: Binder, statement: syntax.Instruction) -> Blocking:
    return _Multiply(op, binder, statement).run


class _Multiply:
    """One wgmma.mma_async, bound."""

    def __init__(self, op: _Mma, binder: Binder, statement: syntax.Instruction) -> None:
        self.shape, self.statement = _shape(op), statement
        self.d = [binder.register(element) for element in binder.vector(op.d)]
        self.a = [binder.input(element) for element in op.a.elements] if isinstance(op.a, syntax.Vector) else []
        self.a_descriptor = None if self.a else binder.source(op.a, "b64")
        self.b_descriptor = binder.source(op.b, "b64")
        self.scale_d = binder.predicate(op.scale_d)
        binder.adds.update(register.index for register in self.d)
        binder.if_true = self.scale_d
        sparse = isinstance(op, _Sparse)
        self.metadata = binder.source(binder.vector(op.sp_meta)[0], "b32") if sparse else None
        self.selector = int(op.sp_sel.evaluate()) if sparse else 0
        scaled = isinstance(op, _F16 | _Tf32 | _F8)
        self.negate = scaled and op.imm_scale_a.evaluate() != op.imm_scale_b.evaluate()
        self.majors: tuple[Major, Major] = (
            _major(op.imm_trans_a) if isinstance(op, wgmma.mma_async_f16 | wgmma.mma_async_sp_f16) else "k",
            _major(op.imm_trans_b) if isinstance(op, _F16) else "k",
        )
        self.accumulator = binder.program.follow(self.d)
        self.input = binder.program.follow(self.a)

    def run(self, g: Group, scheduler: Scheduler) -> Passing:
        machine, warpgroups = g.machine, g.machine.warpgroups
        require_whole_warps(g, self.statement)
        warps, present = warpgroups.members(g.indices, "wgmma.mma_async")
        if all_set(present) and not warpgroups.issuing:
            self._issue(g, warps)
            return lambda warp: None, None
        passing, complete = warpgroups.converge(g.indices, self.statement)
        if len(complete):
            self._issue(Group(machine, complete.ravel(), None), complete)
            for first in complete[:, 0]:
                machine.wake(Arrival(int(first), "wgmma.mma_async"))
        if all_set(passing):
            return lambda warp: None, None
        return (
            lambda warp: Arrival(warp - warp % machine.warps_per_cta % 4, "wgmma.mma_async"),
            np.broadcast_to(passing[:, None], (g.size, 32)),
        )

    def _issue(self, g: Group, warps: NDArray[np.int64]) -> None:
        """Queue the MMAs of whole warpgroups, `warps` [n, 4]."""
        machine = g.machine
        readers = (self.b_descriptor, self.scale_d, self.a_descriptor)
        values = [g.full(reader(g)).reshape(*warps.shape, 32) for reader in readers if reader is not None]
        if machine.findings.checks:
            _uniform(values, machine, self.statement)
            machine.warpgroups.issue(warps.ravel(), self.accumulator, self.input, self.shape.n, self.statement)
        for warpgroup in warps.tolist():
            machine.events.warpgroup_issues(warpgroup)
        b, scale, *a = (value[:, 0, 0] for value in values)
        nibbles = None
        if self.metadata is not None:
            nibbles = self._nibbles(machine, g.full(self.metadata(g)).reshape(*warps.shape, 32))
        everything = np.arange(len(warps))
        # At random times each warpgroup has its own; else all that are here complete together.
        parts = everything[:, None] if machine.timeline.schedule == "random" else everything[None, :]
        for part in parts:
            work = _Work(
                warps[part],
                a[0][part] if a else None,
                b[part],
                scale[part],
                nibbles[part] if nibbles is not None else None,
            )
            self._submit(machine, work)

    def _nibbles(self, machine: Machine, metadata: NDArray[np.uint32]) -> NDArray[np.uint8]:
        thread, bit = metadata_places(self.shape.k, self.shape.bits, self.selector, _ROWS)
        words = metadata.reshape(len(metadata), -1)[:, thread]
        nibbles = ((words >> bit.astype(np.uint32)) & np.uint32(15)).astype(np.uint8)
        return matrix_multiply.checked_metadata(nibbles, self.shape.bits, machine, self.statement)

    def _submit(self, machine: Machine, work: _Work) -> None:
        statement, size = self.statement, machine.shared.size
        slots = machine.cta_slot[work.warps[:, 0]]
        pipe = ("wgmma", int(work.warps[0, 0]))
        begun: list[PendingMma] = []
        for position, warps in enumerate(work.warps):
            a = self._a_chunks(int(work.a[position]), size) if work.a is not None else None
            b = self._b_chunks(int(work.b[position]), size)
            issued = machine.issue("wgmma.mma_async", statement, int(slots[position]), int(warps[0]), pipe=pipe)
            issued.mma = MmaShape(_ROWS, self.shape.n, a_in_shared=work.a is not None, registers=len(self.accumulator))
            for chunks in (a, b):
                if chunks is not None:
                    machine.events.work_reads_shared(
                        issued, warps.tolist(), issued.slot, chunks.granules, _ALL_BYTES, chunks.swizzle
                    )
            if machine.events.observes("operand_read"):
                self._emit_operands(machine, issued, work, position)
            mma = PendingMma(frozenset(self.accumulator), frozenset(self.input), issued)
            machine.warpgroups.begin(warps, mma)
            begun.append(mma)

        def execute() -> None:
            if begun[0].done:
                return  # a read of the result has completed it
            if machine.timeline.computes:
                with machine.while_reading([mma.work.number for mma in begun]):
                    self._compute(machine, slots, work)
            for mma in begun:
                mma.done = True
            for warp in work.warps.ravel():
                machine.wake(("wgmma.wait_group", int(warp)))

        for mma in begun:
            mma.finish = execute
        works = [mma.work for mma in begun]
        machine.submit(slots if len(slots) == 1 else np.unique(slots), statement, execute, pipe=pipe, works=works)

    def _emit_operands(self, machine: Machine, issued: AsyncWork, work: _Work, position: int) -> None:
        """Emit which operands the MMA of a warpgroup reads in shared memory."""
        shape, sum = self.shape, (int(work.warps[position, 0]), self.accumulator[0] if self.accumulator else None)
        stored = _DEPTH // shape.bits
        for side, values, major, rows, k, type in (
            ("A", work.a, self.majors[0], _ROWS, stored, shape.a_type),
            ("B", work.b, self.majors[1], shape.n, shape.k, shape.b_type),
        ):
            if values is not None:
                operand = _operand(side, int(values[position]), major, rows, k * shape.bits // 8, shape.bits, type)
                accumulates = bool(work.scale[position])
                machine.events.operand_read(issued, issued.slot, operand, sum, accumulates=accumulates)

    def _a_chunks(self, value: int, size: int) -> Chunks:
        stored = _DEPTH // self.shape.bits
        return _chunks(value, self.majors[0], _ROWS, stored, self.shape.bits, size)

    def _b_chunks(self, value: int, size: int) -> Chunks:
        return _chunks(value, self.majors[1], self.shape.n, self.shape.k, self.shape.bits, size)

    def _compute(self, machine: Machine, slots: NDArray[np.int64], work: _Work) -> None:
        """Multiply, warpgroups with the same descriptors at once."""
        a = work.a if work.a is not None else np.zeros(len(slots), np.uint64)
        pairs = np.stack([a, work.b], axis=-1)
        if all_set(pairs == pairs[0]):
            self._compute_alike(machine, slots, work)
            return
        for pair in np.unique(pairs, axis=0):
            chosen = (pairs == pair).all(axis=1)
            self._compute_alike(machine, slots[chosen], work.part(chosen))

    def _compute_alike(self, machine: Machine, slots: NDArray[np.int64], work: _Work) -> None:
        shape, size = self.shape, machine.shared.size
        if work.a is None:
            machine.warpgroups.settle(work.warps, frozenset(self.input))
            elements = _read(_arrays(machine, self.a), work.warps, shape.bits, _a_from_registers(shape.bits))
            a = matrix_multiply.decode(elements, shape.a_type)
        else:
            a = _fetch(machine, slots, self._a_chunks(int(work.a[0]), size), self.majors[0], shape.a_type)
        b = _fetch(machine, slots, self._b_chunks(int(work.b[0]), size), self.majors[1], shape.b_type)
        columns = None
        if work.nibbles is not None:
            columns = matrix_multiply.chosen_columns(work.nibbles, shape.bits, shape.k)
            a = matrix_multiply.dense(a, columns, shape.k)
        self._accumulate(machine, work, -a if self.negate else a, b, columns)

    def _accumulate(
        self,
        machine: Machine,
        work: _Work,
        a: NDArray[np.float32],
        b: NDArray[np.float32],
        columns: NDArray[np.int64] | None,
    ) -> None:
        """Add products [warpgroups, 64, n] to accumulators, which go to registers only when these may be read."""
        shape, bits = self.shape, 16 if self.shape.d_type == "f16" else 32
        warps = work.warps.ravel()
        kept = machine.warpgroups.keep(
            Kept(frozenset(self.accumulator), work.warps, lambda words: _write(_arrays(machine, self.d), warps, words))
        )
        old = kept.words
        if not any_set(work.scale):
            old = None
        elif old is None:
            old = _read(_arrays(machine, self.d), work.warps, bits, _from_registers(shape.n, bits))
        if old is not None and not all_set(work.scale):
            old = np.where(work.scale[:, None, None], old, old.dtype.type(0))
        if shape.d_type == "s32":
            kept.words = matrix_multiply.total(matrix_multiply.multiply(a, b), old, saturate=shape.saturate)
            return
        rule = tensor_sums.HOPPER_F8 if shape.bits == 8 else tensor_sums.HOPPER
        c = matrix_multiply.addends(old, shape.d_type) if old is not None else None
        sums = tensor_sums.fused(a, b, c, (shape.a_type, shape.b_type, shape.d_type), rule, columns=columns)
        kept.words = tensor_sums.words_of(sums, shape.d_type)


def _arrays(machine: Machine, registers: Sequence[Register]) -> list[NDArray[Any]]:
    return [machine.registers[register.index] for register in registers]


class _Work(NamedTuple):
    """MMAs of some warpgroups: their warps [n, 4], descriptors, flags and metadata [n, ...]."""

    warps: NDArray[np.int64]
    a: NDArray[np.uint64] | None
    b: NDArray[np.uint64]
    scale: NDArray[np.bool_]
    nibbles: NDArray[np.uint8] | None

    def part(self, chosen: NDArray[np.bool_]) -> _Work:
        return _Work(*(None if each is None else each[chosen] for each in self))  # type: ignore[arg-type]


def _major(transposed: syntax.Immediate | syntax.Expression) -> Major:
    return "mn" if transposed.evaluate() else "k"


# Order.


@semantics(wgmma.fence, kind="blocking")
def fence(op: wgmma.fence, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """The warps of a warpgroup converge here, as they do on hardware (WARPGROUP.ARRIVE of its SASS)."""

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        require_whole_warps(g, statement)
        warps = g.indices
        first = warps - warps % machine.warps_per_cta % 4
        machine.effects += int(any_set(~machine.warpgroups.waiting[warps]))  # looking again is none
        passing = machine.warpgroups.arrive(warps)
        for warpgroup in np.unique(first[passing]):
            machine.wake(Arrival(int(warpgroup), "wgmma.fence"))
        if all_set(passing):
            return lambda warp: None, None
        return (
            lambda warp: Arrival(warp - warp % machine.warps_per_cta % 4, "wgmma.fence"),
            np.broadcast_to(passing[:, None], (g.size, 32)),
        )

    return run


@semantics(wgmma.commit_group)
def commit(op: wgmma.commit_group, binder: Binder, statement: syntax.Instruction) -> Plain:
    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        for warp in g.indices:
            g.machine.warpgroups.commit(int(warp))

    return run


@semantics(wgmma.wait_group, kind="blocking")
def wait(op: wgmma.wait_group, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """Warps stay until the groups before the latest ones are done."""
    pending = int(op.pending.evaluate())

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        require_whole_warps(g, statement)
        passing = np.ones((g.size, 32), np.bool_)
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            awaited = machine.warpgroups.awaited(warp, pending)
            if not all(mma.done for mma in awaited):
                passing[position] = False
                continue
            machine.events.work_awaited(warp, WARP, [mma.work for mma in awaited])
            machine.warpgroups.retire(warp, pending)
        machine.warpgroups.settle(g.indices[passing[:, 0]])
        return lambda warp: ("wgmma.wait_group", warp), None if all_set(passing) else passing

    return run

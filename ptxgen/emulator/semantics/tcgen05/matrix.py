"""Issuing tcgen05.mma in all its forms. PTX ISA 9.7.16.10.9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import BlockScaledInstructionDescriptor
from ptxgen.emulator.checks.registry import tcgen05 as tcgen05_checks
from ptxgen.emulator.engines.matrix_operands import MatrixOperand, matrix_operand
from ptxgen.emulator.engines.work import AsyncWork, MmaShape
from ptxgen.emulator.load.operands import Binder, Reader
from ptxgen.emulator.load.program import Incomplete
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.semantics.tcgen05.mma import Call, Form, Shape, execute, shape_of, zero_columns
from ptxgen.emulator.semantics.tcgen05.operands import (
    SharedMatrix,
    advise_version,
    matrix_descriptor,
    require_k96,
    require_wide_k,
    shared_matrix,
)
from ptxgen.emulator.semantics.tcgen05.pairs import advise_one_lane, pipe_of, slots_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import tcgen05
from ptxgen.layouts.scale_factors import scale_cells
from ptxgen.layouts.tmem import LANES, bands_of, metadata_cells, split_address

#: Scale vectors by kind and .scale_vectorsize (PTX ISA tables 56 and 57).
_VECTORS = {
    ("mxf8f6f4", None): "1X",
    ("mxf8f6f4", "block32"): "1X",
    ("mxf4", None): "2X",
    ("mxf4", "block32"): "2X",
    ("mxf4nvf4", "block32"): "2X",
    ("mxf4nvf4", "block16"): "4X",
}
_Sparse = tcgen05.mma_sp | tcgen05.mma_sp_ts
_Unscaled = tcgen05.mma | tcgen05.mma_ts | _Sparse
_SparseScaled = tcgen05.mma_sp_scaled | tcgen05.mma_sp_scaled_ts
_Scaled = tcgen05.mma_scaled | tcgen05.mma_scaled_ts | _SparseScaled
_SparseStationary = tcgen05.mma_ws_sp | tcgen05.mma_ws_sp_ts
_Stationary = tcgen05.mma_ws | tcgen05.mma_ws_ts | _SparseStationary
_Mma = _Unscaled | _Scaled | _Stationary


def _form(op: _Mma) -> Form:
    vector = ""
    if isinstance(op, _Scaled):
        size = op.scale_vectorsize
        vector = size[-2:] if size and size.startswith("scale_vec") else _VECTORS[op.kind, size]
    return Form(
        kind=op.kind,
        cta_group=1 if isinstance(op, _Stationary) else op.cta_group,
        ws=isinstance(op, _Stationary),
        sparse=isinstance(op, _Sparse | _SparseScaled | _SparseStationary),
        scale_vector=vector,
        a_in_tensor_memory=isinstance(op.a, syntax.Address),
        ashift=isinstance(op, tcgen05.mma_ts | tcgen05.mma_sp_ts) and op.ashift,
    )


@semantics(*get_args(_Mma))
def mma(op: _Mma, binder: Binder, statement: syntax.Instruction) -> Callable[[Group], None]:
    """Collector buffers change no values: an operand must not change while its MMA may still read it."""
    form = _form(op)
    readers: dict[str, Reader] = {
        "d": binder.address(op.d),
        "a": binder.address(op.a) if form.a_in_tensor_memory else binder.source(op.a, "b64"),
        "b": binder.source(op.b, "b64"),
        "idesc": binder.source(op.idesc, "b32"),
        "accumulate": binder.predicate(op.enable_input_d),
    }
    if isinstance(op, _Sparse | _SparseScaled | _SparseStationary):
        readers["metadata"] = binder.address(op.metadata)
    if isinstance(op, _Scaled):
        readers["scale_a"], readers["scale_b"] = binder.address(op.scale_a), binder.address(op.scale_b)
    if isinstance(op, _Stationary) and op.zero_column_mask is not None:
        readers["mask"] = binder.source(op.zero_column_mask, "b64")
    scale_input = 0
    if isinstance(op, _Unscaled):
        off = op.disable_output_lane
        for index, word in enumerate(binder.vector(off) if off is not None else ()):
            readers[f"off{index}"] = binder.source(word, "b32")
        scale_input = int(op.scale_input_d.evaluate()) if op.scale_input_d is not None else 0

    def run(g: Group) -> None:
        advise_one_lane(g, readers["d"](g), statement)
        for warp, lane, given in each(g, *(reader(g) for reader in readers.values())):
            _issue(g.machine, warp, lane, statement, form, dict(zip(readers, given, strict=True)), scale_input)

    return run


def _issue(
    machine: Machine,
    warp: int,
    lane: int,
    statement: syntax.Instruction,
    form: Form,
    given: dict[str, int],
    scale_input: int,
) -> None:
    shape = shape_of(given["idesc"], form)
    if shape.dense_k == 96:
        require_k96(machine, "K 96")
    if shape.wide:
        require_wide_k(machine, f"K {shape.idesc.k}")
    if unknown := _unknown(shape):
        raise Incomplete(statement, f"no source says {unknown}")
    slots = slots_of(machine, warp, form.cta_group)
    zeroed, shift = zero_columns(given["mask"], shape) if "mask" in given else (None, 0)
    call = Call(
        descriptors=(None if form.a_in_tensor_memory else given["a"], given["b"]),
        statement=statement,
        shape=shape,
        slots=slots,
        d=split_address(given["d"]),
        a=() if form.a_in_tensor_memory else _matrices(machine, shape, slots, given["a"], "a", statement),
        b=_matrices(machine, shape, slots, given["b"], "b", statement, shift),
        accumulate=bool(given["accumulate"]),
        a_place=split_address(given["a"]) if form.a_in_tensor_memory else (0, 0),
        metadata=split_address(given.get("metadata", 0)),
        scale_a=split_address(given.get("scale_a", 0)),
        scale_b=split_address(given.get("scale_b", 0)),
        lanes_off=_lanes_off([word for name, word in given.items() if name.startswith("off")]),
        scale_input=scale_input,
        zero_columns=zeroed,
        column_shift=shift,
    )
    if form.scale_vector:
        # Scale-factor ids may be in bits 30 and 31 of the addresses, too: they are no part of the lane.
        call = replace(call, scale_a=_scale_place(call.scale_a), scale_b=_scale_place(call.scale_b))
    spans = _tensor_reads(call)
    _require_cells(machine, call, spans)
    issuer, pipe = int(machine.cta_slot[warp]), pipe_of(machine, warp, form.cta_group)
    work = machine.issue("tcgen05.mma", statement, issuer, warp, lane, pipe=pipe)
    size = shape.idesc
    work.mma = MmaShape(size.m, size.n, form.cta_group, a_in_shared=not form.a_in_tensor_memory)
    if machine.events.observes("tensor_written"):
        _emit_accesses(machine, work, call, spans)

    def complete() -> None:
        if machine.timeline.computes:
            with machine.while_reading([work.number]):
                execute(machine, call)

    machine.submit(issuer, statement, complete, pipe=pipe, works=[work])


def _unknown(shape: Shape) -> str:
    """What of sm_107 the manual (PTX ISA 9.4) and the public models leave open; empty for nothing."""
    idesc = shape.idesc
    if shape.form.kind == "ti16" and "mn" in (idesc.a_major, idesc.b_major):
        return "whether ti16 may be MN-major: tables 51 and 62 of PTX ISA 9.4 contradict each other"
    if shape.wide and shape.form.sparse:
        return f"where the metadata of a sparse A lie at K {idesc.k}"
    if shape.wide and shape.form.kind == "mxf8f6f4":
        return f"how many scale factors a row has at K {idesc.k}: PTX ISA 9.4, table 68, has one, for a block of 32"
    if isinstance(idesc, BlockScaledInstructionDescriptor) and idesc.sfa_lanes == 128:
        return "which byte of 128 lanes of scale factors of A belongs to which block"
    return ""


def _scale_place(place: tuple[int, int]) -> tuple[int, int]:
    return place[0] & 0x3FFF, place[1]


def _matrices(
    machine: Machine,
    shape: Shape,
    slots: Sequence[int],
    value: int,
    side: str,
    statement: syntax.Instruction,
    more: int = 0,
) -> list[SharedMatrix]:
    """The parts of A or B in the shared memory of each CTA; `more` rows of B are there for a column shift."""
    idesc = shape.idesc
    left = side == "a"
    rows = shape.rows if left else shape.n // len(slots) + more
    major, type = (idesc.a_major, idesc.a_type) if left else (idesc.b_major, idesc.b_type)
    k_bytes = shape.k_bytes_a if left else shape.k_bytes_b
    advise_version(machine, value, statement)
    if matrix_descriptor(value).lbo_mode == "absolute":
        require_k96(machine, "the absolute LBO mode")
    matrix = shared_matrix(value, major, rows, k_bytes, shape.element_bits(type), machine.shared.size)  # type: ignore[arg-type]
    return [matrix] * len(slots)


def _lanes_off(words: Sequence[int]) -> NDArray[np.bool_] | None:
    """The lanes that are not written: bit i of word w is lane 32w + i (9.7.16.10.9.1). None if there are none."""
    if not any(words):
        return None
    return ((np.array(words, np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.bool_).ravel()


def _tensor_reads(call: Call) -> list[tuple[str, list[int], range, range]]:
    """(what, bands of the lanes, lanes, columns) of what the MMA reads in tensor memory besides D."""
    shape, form = call.shape, call.shape.form
    all_lanes = range(LANES)
    found: list[tuple[str, list[int], range, range]] = []
    if form.a_in_tensor_memory:
        lane, column = call.a_place
        first, last = (int(edge([part.lanes for part in shape.parts])) for edge in (np.min, np.max))
        lanes = range(first + lane, last + lane + 1)
        found.append(("A", shape.bands(lane), lanes, range(column, column + shape.columns_of_a)))
    if form.sparse:
        lane, column = call.metadata
        cells, columns, _ = metadata_cells(
            form.kind, shape.m, selector=shape.selector, cta_group=form.cta_group, ws=form.ws
        )
        lanes = range(int(cells.min()) + lane, int(cells.max()) + lane + 1)
        span = range(column + int(columns.min()), column + int(columns.max()) + 1)
        found.append(("the metadata of A", bands_of(cells + lane), lanes, span))
    if form.scale_vector:
        for what, rows, parts, (_, column) in (
            ("the scale factors of A", shape.rows, 1, call.scale_a),
            ("the scale factors of B", shape.n, len(shape.parts), call.scale_b),
        ):
            columns = scale_cells(rows, shape.scales, 0, parts=parts)[1]
            found.append((what, bands_of(all_lanes), all_lanes, range(column, column + int(columns.max()) + 1)))
    return found


def _require_cells(machine: Machine, call: Call, spans: list[tuple[str, list[int], range, range]]) -> None:
    """Raise MemoryFault where a matrix in tensor memory starts on a wrong lane or is not allocated."""
    shape = call.shape
    lane, column = call.d
    places = [("an accumulator", lane)]
    if shape.form.a_in_tensor_memory:
        places.append(("A", call.a_place[0]))
    if shape.form.sparse:
        places.append(("the metadata of A", call.metadata[0]))
    for what, start in places:
        if start not in shape.lane_starts or start != lane:
            legal = " or ".join(map(str, shape.lane_starts)) if start not in shape.lane_starts else f"{lane}, as D does"
            raise MemoryFault(
                tcgen05_checks.TMEM_OUT_OF_BOUNDS,
                f"{what} begins on lane {start}",
                rule=f"With M {shape.m} it must begin on lane {legal} (9.7.16.10.5)",
            )
    if shape.form.scale_vector and (call.scale_a[0] or call.scale_b[0]):
        raise MemoryFault(
            tcgen05_checks.TMEM_OUT_OF_BOUNDS,
            f"scale factors begin on lane {call.scale_a[0] or call.scale_b[0]}",
            rule="They must begin on lane 0",
        )
    first, last = (int(edge([part.lanes for part in shape.parts])) for edge in (np.min, np.max))
    for slot in call.slots:
        lanes = range(first + lane, last + lane + 1)
        machine.tensor.require(slot, lanes, range(column, column + shape.columns), "tcgen05.mma")
        for what, _, lanes, columns in spans:
            machine.tensor.require(slot, lanes, columns, f"tcgen05.mma, for {what},")


def _operands(call: Call) -> list[MatrixOperand]:
    """A and B of an MMA, those that are in shared memory, as the descriptors name them."""
    shape, (a, b) = call.shape, call.descriptors
    idesc, found = shape.idesc, list[MatrixOperand]()
    rows_of_b = shape.n // len(call.slots) + call.column_shift
    for side, value, major, rows, k_bytes, type in (
        ("A", a, idesc.a_major, shape.rows, shape.k_bytes_a, idesc.a_type),
        ("B", b, idesc.b_major, rows_of_b, shape.k_bytes_b, idesc.b_type),
    ):
        if value is not None:
            bits = shape.element_bits(type)
            descriptor = matrix_descriptor(value)
            found.append(matrix_operand(side, "tcgen05", descriptor, major, rows, k_bytes, bits, type))  # type: ignore[arg-type]
    return found


def _written_bands(call: Call, index: int) -> list[int]:
    """The bands of the lanes of D in one CTA that an MMA writes: without those that disable-output-lane leaves out."""
    lanes = np.concatenate([part.lanes for part in call.shape.parts]) + call.d[0]
    return bands_of(lanes if call.lanes_off is None else lanes[~call.lanes_off[LANES * index + lanes]])


def _emit_accesses(
    machine: Machine, work: AsyncWork, call: Call, spans: list[tuple[str, list[int], range, range]]
) -> None:
    """Emit what an MMA will read and write."""
    events, shape = machine.events, call.shape
    named = _operands(call) if events.observes("operand_read") else []
    columns_of_d = range(call.d[1], call.d[1] + shape.columns)
    columns_of_a = range(call.a_place[1], call.a_place[1] + shape.columns_of_a)
    for index, slot in enumerate(call.slots):
        for parts, type in ((call.a, shape.idesc.a_type), (call.b, shape.idesc.b_type)):
            if parts:
                part = parts[index]
                events.work_reads_shared(work, [work.warp], slot, part.touched, shape.data_bytes(type), part.swizzle)
        for operand in named:
            events.operand_read(work, slot, operand, (*call.slots, call.d), accumulates=call.accumulate)
        for what, bands, _, columns in spans:
            events.tensor_operand_read(work, slot, bands, columns, what)
        bands = _written_bands(call, index)
        events.tensor_written(work, slot, bands, columns_of_d, accumulates=call.accumulate)
        events.accumulator_written(work, slot, bands, columns_of_d, shape.d_type, call.d, shape.cells)
        if shape.form.ashift:
            events.tensor_written(work, slot, bands_of(range(LANES)), columns_of_a, accumulates=True)

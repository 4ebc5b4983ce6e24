"""Maps of tensor memory: accumulators, A, registers of tcgen05.ld and st, tcgen05.cp, metadata, scale factors."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.descriptors.tensor_address import TensorAddress
from ptxgen.layouts.scale_factors import BLOCK_SCALES, blocked_offset, placed_scales
from ptxgen.layouts.tmem import (
    COLUMNS,
    COPY_SHAPES,
    LANES,
    MAX_REPEAT,
    LoadShape,
    accumulator_cells,
    accumulator_layout,
    copy_lanes,
    load_cells,
    metadata_cells,
    operand_lanes,
    operand_place,
    packed_cells,
)
from ptxgen.pictures.kinds import Number, limit
from ptxgen.pictures.points.model import Map, Needs, Numbers, last, points
from ptxgen.pictures.tensor import Shape, columns_taken

Base = Annotated[Number, "the address in tensor memory: a column, or lane << 16 | column"]


def _cells(base: int, lane: Numbers, column: Numbers, **within: Numbers) -> dict[str, Numbers]:
    """Lanes, columns and addresses of what begins at an address; `within` a cell. DescriptorError beyond the memory."""
    if not 0 <= base < 1 << 32:
        raise DescriptorError(f"base must be an address of 32 bits, not {base}")
    first = TensorAddress.decode(base)
    lane, column = lane + first.lane, column + first.column
    for name, held, size in (("lanes", lane, LANES), ("columns", column, COLUMNS)):
        if base and (last_one := int(held.max())) >= size:  # without a base, scales of a whole matrix may be asked for
            raise DescriptorError(f"{name} {held.min()} to {last_one} from base {base:#x}: there are {size}")
    return {"lane": lane, "column": column, **within, "address": lane << 16 | column}


def _relative(base: int, whose: str) -> tuple[str, ...]:
    """What lanes, columns and addresses count from, where no base is given."""
    note = f"lane, column and address (lane << 16 | column) are relative to the address{whose}; base= adds it"
    return () if base else (note,)


@points("accumulator", "row", "n", "lane", "column", "address", "cta", sized=("m", "n"))
def accumulator(
    needs: Needs = (),
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    n: Annotated[Number, "N of the instruction"] = 128,
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    ws: Annotated[bool, "of tcgen05.mma.ws"] = False,
    sparse: Annotated[bool, "sparse A"] = False,
    base: Base = 0,
) -> Map:
    """Where element (row, n) of D lies: CTA of the pair, lane, column."""
    limit("n", n, 8, 256)
    limit("cta_group", cta_group, 1, 2)
    lane, column = accumulator_cells(m, n, cta_group=cta_group, ws=ws, sparse=sparse)
    cta = np.arange(cta_group)[:, None, None]
    row = np.arange(lane.shape[0])[None, :, None] + cta * lane.shape[0]
    columns = {"row": row, "n": np.arange(n), "cta": cta}
    letter = accumulator_layout(m, cta_group=cta_group, ws=ws, sparse=sparse)
    return Map(
        f"D of M {m}, N {n}, layout {letter}",
        ("row", "n"),
        {**columns, **_cells(base, lane[None], column[None])},
        notes=(*_relative(base, " of D"), columns_taken(int(column.max()) + 1)),
    )


@points("ld", "thread", "register", "lane", "column", "address", grows=("column",))
def load(
    needs: Needs = (),
    shape: Annotated[Shape, "the shape of tcgen05.ld or st"] = "32x32b",
    num: Annotated[Number, "repetitions: .xN; 0: as many as the column needs"] = 0,
    pack: Annotated[bool, ".pack::16b or .unpack::16b"] = False,
    half: Annotated[Number, "16x32bx2: columns to its second half; 0: next to the first"] = 0,
    base: Base = 0,
) -> Map:
    """Which thread and register of tcgen05.ld or st has a cell (lane, column)."""
    found: LoadShape = shape
    limit("num", num, 0, 128)
    wanted = last(needs, 1) - base % (1 << 16)
    grows = num == 0
    cells = packed_cells if pack else load_cells

    def repeated(count: int) -> tuple[Numbers, Numbers]:
        return cells(found, count, (half or count * (2 if pack else 1)) if shape == "16x32bx2" else half)

    while not num or (grows and num < MAX_REPEAT[shape] and repeated(num)[1].max() < wanted):
        num = 2 * num or 1
    lane, column = repeated(num)
    if not pack:
        lane, column = lane[..., None], column[..., None]
    columns = {
        "thread": np.arange(32)[:, None, None],
        "register": np.arange(lane.shape[1])[None, :, None],
        "bit": np.arange(lane.shape[2]) * (16 if pack else 0),
        **_cells(base, lane, column),
    }
    return Map(
        f"tcgen05.ld and st .{shape}.x{num}{' with packing' if pack else ''}",
        ("lane", "column"),
        columns,
        16 if pack else 32,
        (*_relative(base, ""), "threads are those of the warp"),
    )


@points("a", "row", "k", "lane", "column", "address", "copy")
def a_operand(
    needs: Needs = (),
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    bits: Annotated[Literal["16", "8", "32", "4"], "bits that an element fills (8 for 6 bits too)"] = "16",
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    ws: Annotated[bool, "of tcgen05.mma.ws"] = False,
    sparse: Annotated[bool, "sparse A: the elements that are stored"] = False,
    base: Base = 0,
) -> Map:
    """Where element (row, k) of A lies in tensor memory: lane, column, bits; once for each part of N."""
    limit("cta_group", cta_group, 1, 2)
    size = int(bits)
    lanes = operand_lanes(m, cta_group=cta_group, ws=ws, sparse=sparse)
    places = np.array([operand_place(k, size) for k in range(256 // size)])
    columns = {
        "row": np.arange(lanes.shape[1])[None, :, None],
        "k": np.arange(len(places)),
        "copy": np.arange(len(lanes))[:, None, None],
        **_cells(base, lanes[:, :, None], places[:, 0], bit=places[:, 1]),
    }
    return Map(f"A in tensor memory, M {m}, {bits} bits", ("row", "k"), columns, size, _relative(base, " of A"))


@points("metadata", "row", "chunk", "lane", "column", "address", "copy")
def metadata(
    needs: Needs = (),
    kind: Annotated[Literal["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"], "the .kind"] = "f16",
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    selector: Annotated[Number, "the sparsity selector"] = 0,
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    base: Base = 0,
) -> Map:
    """Where the 4 bits of metadata of a row's chunk of K lie in tensor memory."""
    limit("cta_group", cta_group, 1, 2)
    lane, column, bit = metadata_cells(kind, m, selector=selector, cta_group=cta_group)
    columns = {
        "row": np.arange(lane.shape[1])[None, :, None],
        "chunk": np.arange(lane.shape[2]),
        "copy": np.arange(len(lane))[:, None, None],
        **_cells(base, lane, column, bit=bit),
    }
    title = f"metadata of kind::{kind}, M {m}, selector {selector}"
    return Map(title, ("row", "chunk"), columns, 4, _relative(base, " of the metadata"))


@points("cp", "row", "byte", "lane", "column", "address", "copy")
def copy(
    needs: Needs = (),
    shape: Annotated[Literal["32x128b", "64x128b", "128x128b", "128x256b", "4x256b"], "of tcgen05.cp"] = "32x128b",
    multicast: Annotated[
        Literal["auto", "none", "warpx4", "warpx2::02_13", "warpx2::01_23"], "auto: what the shape needs"
    ] = "auto",
    base: Base = 0,
) -> Map:
    """Where tcgen05.cp puts a byte of a row of its source: lane, column, bits; once for each copy."""
    needed = {"32x128b": "warpx4", "64x128b": "warpx2::02_13"}.get(shape)
    chosen = needed if multicast == "auto" else None if multicast == "none" else multicast
    lanes = copy_lanes(shape, chosen)
    byte = np.arange(COPY_SHAPES[shape][1] // 8)
    columns = {
        "row": np.arange(lanes.shape[1])[None, :, None],
        "byte": byte,
        "copy": np.arange(len(lanes))[:, None, None],
        **_cells(base, lanes[:, :, None], byte // 4, bit=byte % 4 * 8),
    }
    title = f"tcgen05.cp.{shape}{'.' + chosen if chosen else ''}"
    return Map(title, ("row", "byte"), columns, 8, _relative(base, ""))


def _inside(asked: range, size: int) -> bool:
    return 0 <= asked.start < asked.stop <= size


#: Elements of K that share a scale, and scales of a row in one dense MMA: by format, and by the .kind that takes it.
FORMATS = {
    "nvfp4": (16, 4), "mxfp4": (32, 2), "mxfp8": (32, 1), "mxfp6": (32, 1),
    "mxf4nvf4": (16, 4), "mxf4": (32, 2), "mxf8f6f4": (32, 1),
}  # fmt: skip
Format = Literal["nvfp4", "mxfp4", "mxfp8", "mxfp6", "mxf4nvf4", "mxf4", "mxf8f6f4"]


@points(
    "scales", "row", "scale", "lane", "column", "address", "global_offset", "shared_offset", sized=("rows", "along")
)  # not grown: which rows and scales along K an offset belongs to depends on how many there are
def scales(
    needs: Needs = (),
    type: Annotated[Format, "the format, or the .kind: elements of a scale, scales of one MMA"] = "nvfp4",
    rows: Annotated[Number, "rows of A or columns of B of a CTA; 0: 128, or as many as at needs"] = 0,
    of: Annotated[Literal["", "a", "b"], "whose scales, of a pair of CTAs"] = "",
    m: Annotated[Number, "M of the pair: 128 or 256"] = 256,
    cta_group: Annotated[Number, "2: rows are those of the pair, with the CTA that holds each"] = 1,
    parts: Annotated[Number, "2: SFB of a pair of CTAs at M 128"] = 1,
    along: Annotated[Number, "scales along K of the matrix in global memory; 0: as many as at needs"] = 0,
    stage: Annotated[Number, "scales along K of a tile in shared memory; 0: as along"] = 0,
    base: Base = 0,
) -> Map:
    """Where scale (row, scale along K) lies: its byte in global, shared and tensor memory."""
    limit("cta_group", cta_group, 1, 2)
    pair = cta_group == 2
    if pair and not of:
        raise DescriptorError("of must be a or b with cta_group=2: A is split by rows, SFB is in both CTAs in full")
    if pair and (m not in (128, 256) or (of, m) == ("a", 128)):
        known = (
            "M must be 256 for SFA of a pair (M 128 leaves each CTA 64 rows)" if of == "a" else "M must be 128 or 256"
        )
        raise DescriptorError(f"{known}, not {m}")
    parts = 2 if pair and of == "b" and m == 128 else parts
    if pair and of == "a" and not rows:
        rows = m
    rows = rows or max(128, -(-(last(needs, 0) + 1) // 128) * 128)
    along = along or max(BLOCK_SCALES, -(-(last(needs, 1) + 1) // BLOCK_SCALES) * BLOCK_SCALES)
    stage = stage or along
    limit("rows", rows, 8, 65536)
    limit("along", along, 1, 4096)
    limit("stage", stage, 1, along)
    limit("parts", parts, 1, 2)
    if rows % 8:
        raise DescriptorError(f"rows must be a multiple of 8, not {rows}")
    block, per_mma = FORMATS[type]
    row, scale = np.arange(rows)[:, None], np.arange(along)[None, :]
    if len(needs) == 2 and _inside(needs[0], rows) and _inside(needs[1], along):  # only those: a matrix may be large
        row, scale = np.array(needs[0])[:, None], np.array(needs[1])[None, :]
    inside = scale % stage
    # A pair splits A by rows, 128 to each CTA; every CTA reads the scales of B from its own tensor memory.
    own, held = (row % 128, 128) if pair and of == "a" else (row, rows)
    lane, column, byte = placed_scales(own, inside, held, parts)
    columns = {
        "row": row[None],
        "scale": scale[None],
        "global_offset": blocked_offset(row, scale, along)[None],
        "shared_offset": blocked_offset(own, inside, stage)[None],
        **({"cta": row[None] // 128} if pair and of == "a" else {}),
        **_cells(base, lane, column, byte=byte),
        "first_k": scale[None] * block,
    }
    held_by = () if not pair else ("both CTAs hold the scales of all of N (fact sfb-both-ctas)",) * (of == "b")
    whose = f" of {of.upper()} in a pair, M {m}" if pair else ""
    blocks = -(-rows // 128) * -(-along // BLOCK_SCALES)
    return Map(
        f"scale factors of {type}{whose}: {rows} rows, {along} along K, {blocks * 512:,} bytes",
        ("row", "scale"),
        columns,
        notes=(
            "offset in a block of 128 rows and 4 scales: (row % 32) * 16 + (row % 128 / 32) * 4 + scale % 4; blocks of "
            "512 bytes follow each other along K first",
            f"a scale is for {block} elements of K, an MMA takes {per_mma}",
            *_relative(base, " of the scales"),
            *held_by,
        ),
    )

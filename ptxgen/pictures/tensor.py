"""Pictures of tensor memory: accumulators, A, registers of tcgen05.ld and st, tcgen05.cp, metadata, scale factors."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts.scale_factors import blocked_offset, scale_cells
from ptxgen.layouts.tmem import (
    COPY_SHAPES,
    LANES,
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
from ptxgen.pictures.kinds import Number, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture

_BAND = 16  # lanes that every layout of tcgen05.mma keeps together
_MOST = 4096  # cells that a person can look at


@kind("accumulator")
def accumulator(
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    n: Annotated[Number, "N of the instruction"] = 128,
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    ws: Annotated[bool, "of tcgen05.mma.ws"] = False,
    sparse: Annotated[bool, "sparse A"] = False,
) -> Picture:
    """The accumulator of tcgen05.mma in tensor memory, by bands of 16 lanes."""
    limit("n", n, 8, 256)
    limit("cta_group", cta_group, 1, 2)
    name = accumulator_layout(m, cta_group=cta_group, ws=ws, sparse=sparse)
    panels, data = [], []
    lane, column = accumulator_cells(m, n, cta_group=cta_group, ws=ws, sparse=sparse)  # the same cells in both CTAs
    for rank in range(cta_group):
        first = rank * m // cta_group
        title = f"CTA {rank} of the pair (rank {'even' if rank == 0 else 'odd'})" if cta_group == 2 else "Tensor memory"
        panels.append(_blocks(title, lane, column, first))
        data.append({"row": first, "lane": lane.tolist(), "column": column.tolist()})
    rows = m // cta_group
    return Picture(
        f"Accumulator M {m}, N {n}{', pair of CTAs' if cta_group == 2 else ''}{', .ws' if ws else ''}"
        f"{', sparse' if sparse else ''}: layout {name}",
        f"lanes and columns relative to the address of D; {columns_taken(int(column.max()) + 1)}; "
        "a warp reaches 32 lanes",
        tuple(panels),
        (Legend("rows of D", _bands(cta_group * rows // _BAND)),),
        ("a 16-bit accumulator fills the low half of each 32-bit cell",),
        {"axes": ["row", "column of D"], "ctas": data},
    )


def columns_taken(columns: int) -> str:
    """How many columns something takes, and what tcgen05.alloc takes for it alone."""
    return f"{columns} columns (tcgen05.alloc {max(32, 1 << (columns - 1).bit_length())})"


def _bands(count: int) -> tuple[tuple[int, str], ...]:
    return tuple((i, f"{i * _BAND}-{i * _BAND + _BAND - 1}") for i in range(count))


def _blocks(title: str, lane: NDArray[np.int64], column: NDArray[np.int64], first: int) -> Panel:
    """A panel of bands of lanes and at most four spans of columns, with the rows and columns of D that lie there."""
    width = int(column.max()) + 1
    span = max(width // 4, 1)
    row_at = np.full((LANES, width), -1)
    n_at = np.full((LANES, width), -1)
    rows, columns = np.indices(lane.shape)
    row_at[lane, column], n_at[lane, column] = rows + first, columns
    cells = []
    for band in range(LANES // _BAND):
        line: list[Cell | None] = []
        for start in range(0, width, span):
            part = np.s_[band * _BAND : (band + 1) * _BAND, start : start + span]
            held, across = row_at[part], n_at[part]
            if held[0, 0] < 0:
                line.append(None)
                continue
            words = f"m {held.min()}-{held.max()}\nn {across.min()}-{across.max()}"
            line.append(Cell(words, int(held.min()) // _BAND % 16))
        cells.append(tuple(line))
    labels = tuple(f"{b * _BAND}-{b * _BAND + _BAND - 1} w{b // 2}" for b in range(LANES // _BAND))
    spans = tuple(f"{start}-{min(start + span, width) - 1}" for start in range(0, width, span))
    return Panel(title, Axis("lanes, warp", labels), Axis("columns", spans), tuple(cells))


Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]


@kind("ld")
def load(
    shape: Annotated[Shape, "the shape of tcgen05.ld or st"] = "32x32b",
    num: Annotated[Number, "repetitions: .xN"] = 4,
    pack: Annotated[bool, ".pack::16b or .unpack::16b"] = False,
    half: Annotated[Number, "16x32bx2: columns to its second half; 0: next to the first"] = 0,
    color: Annotated[Literal["thread", "register"], "what colors show"] = "thread",
) -> Picture:
    """Which thread and register each cell of tensor memory goes to with tcgen05.ld, or comes from with tcgen05.st."""
    found: LoadShape = shape
    limit("num", num, 1, 128)
    limit("half", half, 0, 512)
    offset = (half or num * (2 if pack else 1)) if shape == "16x32bx2" else half
    lane, column = (packed_cells if pack else load_cells)(found, num, offset)
    if not pack:
        lane, column = lane[..., None], column[..., None]
    lanes, columns = int(lane.max()) + 1, int(column.max()) + 1
    limit("cells of the picture", lanes * columns, 1, _MOST)
    grid: list[list[Cell | None]] = [[None] * columns for _ in range(lanes)]
    for t, r, part in np.ndindex(lane.shape):
        half_word = f".{'lo' if part == 0 else 'hi'}" if pack else ""
        group = t // 4 if color == "thread" else r
        grid[lane[t, r, part]][column[t, r, part]] = Cell(f"t{t} r{r}{half_word}", int(group) % 16)
    panel = Panel(
        "Tensor memory of one warp",
        Axis("lane", tuple(map(str, range(lanes)))),
        Axis("column", tuple(map(str, range(columns)))),
        tuple(map(tuple, grid)),
    )
    registers = lane.shape[1]
    legend = (
        tuple((g, f"t{4 * g}-{4 * g + 3}") for g in range(8))
        if color == "thread"
        else tuple((r % 16, f"r{r}") for r in range(min(registers, 16)))
    )
    return Picture(
        f"tcgen05.ld and tcgen05.st .{shape}.x{num}{' with packing' if pack else ''}",
        f"{registers} registers a thread; lanes from the warp's 32 (or the upper 16 of them), columns from the address",
        (panel,),
        (Legend(f"{color}s", legend),),
        data={"axes": ["thread", "register", "half"], "lane": lane.tolist(), "column": column.tolist()},
    )


@kind("a")
def a_operand(
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    bits: Annotated[Literal["16", "8", "32", "4"], "bits that an element fills (8 for 6 bits too)"] = "16",
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    ws: Annotated[bool, "of tcgen05.mma.ws"] = False,
    sparse: Annotated[bool, "sparse A: the elements that are stored"] = False,
) -> Picture:
    """A of one tcgen05.mma in tensor memory: 8 columns, repeated for each part of N that the lanes hold."""
    limit("cta_group", cta_group, 1, 2)
    lanes = operand_lanes(m, cta_group=cta_group, ws=ws, sparse=sparse)
    size = int(bits)
    places = [operand_place(k, size) for k in range(256 // size)]
    cells: list[list[Cell | None]] = [[None] * 8 for _ in range(LANES // _BAND)]
    for copy, row in np.ndindex(lanes.shape):
        lane = int(lanes[copy, row])
        if row % _BAND:
            continue
        for column in range(8):
            ks = [k for k, place in enumerate(places) if place[0] == column]
            words = (
                f"m {row}-{row + _BAND - 1}\nk {ks[0]}-{ks[-1]}" if len(ks) > 1 else f"m {row}-{row + 15}\nk {ks[0]}"
            )
            cells[lane // _BAND][column] = Cell(words, row // _BAND % 16)
    labels = tuple(f"{b * _BAND}-{b * _BAND + _BAND - 1} w{b // 2}" for b in range(LANES // _BAND))
    panel = Panel(
        "Tensor memory of a CTA",
        Axis("lanes, warp", labels),
        Axis("column", tuple("01234567")),
        tuple(map(tuple, cells)),
    )
    return Picture(
        f"A in tensor memory: M {m}, elements of {bits} bits, layout "
        f"{accumulator_layout(m, cta_group=cta_group, ws=ws, sparse=sparse)}",
        f"{256 // size} elements of K an instruction; {len(lanes)} cop{'ies' if len(lanes) > 1 else 'y'} of its rows",
        (panel,),
        (Legend("rows of A", _bands(lanes.shape[1] // _BAND)),),
        data={"axes": ["copy", "row"], "lane": lanes.tolist(), "place": places},
    )


@kind("metadata")
def metadata(
    kind: Annotated[Literal["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"], "the .kind"] = "f16",
    m: Annotated[Number, "M of the instruction, of the pair with cta_group 2"] = 128,
    selector: Annotated[Number, "the sparsity selector"] = 0,
    cta_group: Annotated[Number, "1, or 2 for a pair of CTAs"] = 1,
    lanes: Annotated[Number, "how many lanes to show"] = 32,
) -> Picture:
    """The metadata of a sparse A in tensor memory: 4 bits for each chunk of K, lane by lane."""
    limit("lanes", lanes, 1, LANES)
    limit("cta_group", cta_group, 1, 2)
    lane, column, bit = (each[0] for each in metadata_cells(kind, m, selector=selector, cta_group=cta_group))
    columns = sorted({int(each) for each in column.ravel()})
    cells: list[list[Cell | None]] = [[None] * (8 * len(columns)) for _ in range(lanes)]
    for row, chunk in np.ndindex(lane.shape):
        if lane[row, chunk] < lanes:
            across = 8 * columns.index(int(column[row, chunk])) + int(bit[row, chunk]) // 4
            cells[lane[row, chunk]][across] = Cell(f"m{row} c{chunk}", row // 8 % 16)
    names = tuple(f"{c}:{4 * i}" for c in columns for i in range(8))
    panel = Panel(
        "Tensor memory",
        Axis("lane", tuple(map(str, range(lanes)))),
        Axis("column:first bit", names),
        tuple(map(tuple, cells)),
    )
    shown = sorted({cell.group for row in cells for cell in row if cell})
    return Picture(
        f"Metadata of a sparse A: kind::{kind}, M {m}, selector {selector}",
        f"{lane.shape[1]} chunks of K a row, 4 bits each",
        (panel,),
        (Legend("rows of A", tuple((g, f"{8 * g}-{8 * g + 7}") for g in shown)),),
        data={"axes": ["row", "chunk"], "lane": lane.tolist(), "column": column.tolist(), "bit": bit.tolist()},
    )


@kind("cp")
def copy(
    shape: Annotated[Literal["32x128b", "64x128b", "128x128b", "128x256b", "4x256b"], "of tcgen05.cp"] = "32x128b",
    multicast: Annotated[
        Literal["auto", "none", "warpx4", "warpx2::02_13", "warpx2::01_23"], "auto: what the shape needs"
    ] = "auto",
) -> Picture:
    """Where tcgen05.cp puts the rows that it reads from shared memory."""
    needed = {"32x128b": "warpx4", "64x128b": "warpx2::02_13"}.get(shape)
    chosen = needed if multicast == "auto" else None if multicast == "none" else multicast
    lanes = copy_lanes(shape, chosen)
    rows, bits = COPY_SHAPES[shape]
    step = 32 if rows >= 32 else 1
    columns = bits // 32
    at = {int(lanes[c, r]): int(r) for c, r in np.ndindex(lanes.shape)}
    starts = range(0, LANES, 32)
    cells = []
    for start in starts:
        row = at.get(start)
        words = "" if row is None else (f"row {row}" if step == 1 else f"rows {row}-{row + step - 1}")
        cells.append(
            tuple(
                None if row is None else Cell(f"{words}\nbytes {4 * c}-{4 * c + 3}", row // step % 16)
                for c in range(columns)
            )
        )
    labels = tuple(f"{s}" if step == 1 else f"{s}-{s + 31}" for s in starts)
    panel = Panel("Tensor memory", Axis("lanes", labels), Axis("column", tuple(map(str, range(columns)))), tuple(cells))
    return Picture(
        f"tcgen05.cp.{shape}{'.' + chosen if chosen else ''}",
        f"{rows} rows of {bits // 8} bytes from shared memory, {len(lanes)} time{'s' if len(lanes) > 1 else ''}; row r "
        "of a descriptor is at (r / 8) · SBO + (r % 8) · its swizzle row",
        (panel,),
        (
            Legend(
                "rows",
                tuple((r // step % 16, f"{r}-{r + step - 1}" if step > 1 else str(r)) for r in range(0, rows, step)),
            ),
        ),
        data={"axes": ["copy", "row"], "lane": lanes.tolist()},
    )


@kind("scales")
def scales(
    rows: Annotated[Number, "M of a CTA (scales of A) or N (of B)"] = 128,
    scales: Annotated[Literal["4", "2", "1", "3", "6"], "scales a row in one instruction"] = "4",
    id: Annotated[Number, "SFA_ID or SFB_ID"] = 0,
    parts: Annotated[Number, "2: SFB of a pair of CTAs at M 128"] = 1,
) -> Picture:
    """Scale factors: a block of 128×4 in memory, and the bytes of tensor memory that one instruction reads."""
    limit("rows", rows, 8, 256)
    limit("id", id, 0, 3)
    limit("parts", parts, 1, 2)
    per_row = int(scales)
    if rows % 8:
        raise DescriptorError(f"rows must be a multiple of 8, not {rows}")
    lane, column, byte = scale_cells(rows, per_row, id, parts=parts)
    panels = [_block_panel(min(rows, 128))]
    width = int(column.max()) + 1
    whole = per_row == 4  # then a scale's word is one field
    step = 1 if whole else 4
    for part in range(parts):
        cells: list[list[Cell | None]] = [[None] * (step * width) for _ in range(32)]
        for row, scale in np.ndindex(lane.shape[1:]):
            where = int(lane[0, row, scale])
            if where // (128 // parts) == part:
                at = step * int(column[0, row, scale]) + (0 if whole else int(byte[0, row, scale]))
                cells[where % 32][at] = Cell(f"r{row} k0-3" if whole else f"r{row} k{id + scale}", row // 32 % 16)
        windows = "0, 1, 2 and 3" if parts == 1 else ("0 and 1", "2 and 3")[part]
        names = tuple(f"{c}" if whole else f"{c}.{b}" for c in range(width) for b in range(step))
        panels.append(
            Panel(
                f"Tensor memory, lane windows {windows}",
                Axis("lane % 32", tuple(map(str, range(32)))),
                Axis("column" if whole else "column.byte", names),
                tuple(map(tuple, cells)),
            )
        )
    return Picture(
        f"Scale factors: {rows} rows, {per_row} a row, id {id}",
        "r: row of A or column of B; k: scale along K. tcgen05.cp.32x128b.warpx4 takes a block to all four windows",
        tuple(panels),
        (Legend("rows", tuple((g, f"{32 * g}-{32 * g + 31}") for g in range(-(-rows // 32)))),),
        data={
            "axes": ["copy", "row", "scale"],
            "lane": lane.tolist(),
            "column": column.tolist(),
            "byte": byte.tolist(),
        },
    )


def _block_panel(rows: int) -> Panel:
    cells: list[list[Cell | None]] = [[None] * 4 for _ in range(32)]
    for row in range(rows):
        offset = blocked_offset(row, 0, 4)
        cells[offset // 16][offset % 16 // 4] = Cell(f"r{row} k0-3", row // 32 % 16)
    labels = tuple(f"{16 * line:#x}" for line in range(32))
    return Panel(
        "Memory: a block of 512 bytes",
        Axis("offset", labels),
        Axis("bytes", ("0-3", "4-7", "8-11", "12-15")),
        tuple(map(tuple, cells)),
    )

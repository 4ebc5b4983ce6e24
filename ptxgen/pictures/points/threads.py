"""Maps of threads: fragments, sparse metadata and scales of mma.sync in registers, row addresses of ldmatrix."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from ptxgen.layouts.fragments import WARP, MatrixShape
from ptxgen.pictures.kinds import Number, When, limit
from ptxgen.pictures.points.model import Map, Needs, bank, last, points
from ptxgen.pictures.row_addresses import Instruction, Order, row_addresses
from ptxgen.pictures.threads import K_OF, METADATA, MOVED, ORDERED, SCALED, Bits, Layout, Of, Shape, held


@points("fragment", "thread", "register", "row", "column", grows=("row", "column"))
def fragment(
    needs: Needs = (),
    of: Annotated[Of, "the instruction and its operand"] = "wgmma-d",
    bits: Annotated[Bits, "of an element"] = "auto",
    m: Annotated[Number, "rows", When("of", ("mma-a", "mma-d"))] = 16,
    n: Annotated[Number, "columns of D; 0: as many as at needs", When("of", ("wgmma-d",))] = 0,
    k: Annotated[Number, "K; 0: four registers of A, 64 bytes of a sparse A; D: 4 with m8n8k4 of .f16", K_OF] = 0,
    layout: Annotated[Layout, ".row or .col of A and B of m8n8k4 with .f16", ORDERED] = "auto",
    shape: Annotated[Shape, "of ldmatrix and stmatrix", MOVED] = "m8n8",
    num: Annotated[Number, "matrices; 0: as many as at needs", MOVED] = 0,
    trans: Annotated[bool, ".trans", MOVED] = False,
    selector: Annotated[Number, "the sparsity selector", METADATA] = 0,
    scales: Annotated[Literal["1", "2", "4"], "scales a row: .scale_vec", SCALED] = "1",
    byte_id: Annotated[Number, "of the scales", SCALED] = 0,
    thread_id: Annotated[Number, "of the scales", SCALED] = 0,
) -> Map:
    """Which thread and register holds element (row, column), in which bits."""
    n = n or min(max(16, -(-(last(needs, 1) + 1) // 8) * 8), 256)
    rows_of_one = 16 if shape == "m16n16" else 8
    num = num or next((each for each in (1, 2, 4) if rows_of_one * each > last(needs, 0)), 4)
    limit("num", num, 1, 4)
    found = held(of, bits, m, n, k, layout, shape, num, trans, selector, scales, byte_id, thread_id)
    columns = {"row": found.row, "column": found.column, "thread": found.thread}
    if found.threads > WARP:
        columns |= {"warp": found.thread // WARP, "lane": found.thread % WARP}
    meaning = (f"row is {found.axes[0]}, column is {found.axes[1]}",) if found.axes != ("m", "n") else ()
    columns |= {"register": found.register, "bit": found.bit}
    return Map(found.title, ("row", "column"), columns, found.bits, meaning + found.notes)


@points("row-addresses", "thread", "address", "tile_row", "tile_byte")
def rows(
    needs: Needs = (),
    of: Annotated[Instruction, "the instruction"] = "ldmatrix",
    shape: Annotated[MatrixShape, "its shape"] = "m8n8",
    num: Annotated[Number, "its matrices: .xN"] = 4,
    order: Annotated[Order, "the next matrix of the tile: below (mma-a), or beside (mma-b)"] = "mma-a",
    pitch: Annotated[Number, "bytes from one row of the tile to the next"] = 128,
    swizzle: Annotated[str, "of the tile: 128B, ... or Swizzle<B,M,S> of bytes"] = "none",
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
) -> Map:
    """Which thread supplies the address of a row of a matrix, and the address in a tile."""
    found = row_addresses(of, shape, num, order, pitch, swizzle, start)
    matrix, row = (np.asarray(each, np.int64) for each in np.indices(found["thread"].shape))
    count = found["thread"].size
    note = "all threads supply one" if count == WARP else f"addresses of threads from {count} are ignored"
    return Map(
        f"row addresses of {of}.{shape}.x{num}",
        ("matrix", "row"),
        {"matrix": matrix, "row": row, **found, "bank": bank(found["address"])},
        notes=(f"{note}; a row has 16 bytes: fragment of={of} says who holds them",),
    )

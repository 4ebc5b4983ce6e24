"""Pictures of the row addresses of ldmatrix and stmatrix: which thread supplies which row's address, and its bank."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts.banks import BANK_BYTES, BANKS
from ptxgen.layouts.fragments import MatrixShape, row_threads
from ptxgen.pictures.kinds import Number, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture
from ptxgen.pictures.shared import CHUNK, check_start
from ptxgen.pictures.software import software_swizzle

Numbers = NDArray[np.int64]
Instruction = Literal["ldmatrix", "stmatrix"]
Order = Literal["mma-a", "mma-b"]


def row_addresses(
    of: Instruction, shape: MatrixShape, num: int, order: Order, pitch: int, swizzle: str, start: int
) -> dict[str, Numbers]:
    """Arrays [matrices, rows]: thread, tile_row, tile_byte, address. Raises DescriptorError and ValueError.

    tile_row and tile_byte are the place of the row in a tile of `pitch` bytes a row, whose matrices follow `order`.
    """
    limit("pitch", pitch, 2 * CHUNK, 65536)
    check_start(start)
    if pitch % CHUNK:
        raise DescriptorError(f"pitch must be a multiple of {CHUNK}, since rows are aligned to it, not {pitch}")
    thread = row_threads(of, shape, num)
    rows = thread.shape[1]
    matrix, row = (np.asarray(each, np.int64) for each in np.indices(thread.shape))
    below, beside = (matrix % 2, matrix // 2) if order == "mma-a" else (matrix // 2, matrix % 2)
    tile_row, tile_byte = rows * below + row, CHUNK * beside
    address = software_swizzle(swizzle).apply(start + pitch * tile_row + tile_byte)
    return {"thread": thread, "tile_row": tile_row, "tile_byte": tile_byte, "address": address}


@kind("row-addresses")
def rows(
    of: Annotated[Instruction, "the instruction"] = "ldmatrix",
    shape: Annotated[MatrixShape, "its shape"] = "m8n8",
    num: Annotated[Number, "its matrices: .xN"] = 4,
    order: Annotated[
        Order, "matrices 0 and 1 of the tile: below each other (as A of mma.m16n8k16), or beside (as B, 16 columns)"
    ] = "mma-a",
    pitch: Annotated[Number, "bytes from one row of the tile to the next"] = 128,
    swizzle: Annotated[str, "of the tile: 128B, ... or Swizzle<B,M,S> of bytes"] = "none",
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
) -> Picture:
    """The thread that supplies the address of each row of ldmatrix or stmatrix, and the banks of the row."""
    found = row_addresses(of, shape, num, order, pitch, swizzle, start)
    address = found["address"]
    matrices, count = address.shape
    cells = tuple(
        tuple(
            Cell(
                f"t{found['thread'][m, r]} {address[m, r]:#x}",
                int(address[m, r] // CHUNK % (BANKS * BANK_BYTES // CHUNK)),
                detail=f"matrix {m}, row {r}: row {found['tile_row'][m, r]} of the tile, from byte "
                f"{found['tile_byte'][m, r]}",
            )
            for r in range(count)
        )
        for m in range(matrices)
    )
    wavefronts = _wavefronts(address)
    panel = Panel(
        "The thread that supplies each row's address, and the address",
        Axis("matrix", tuple(map(str, range(matrices)))),
        Axis("row", tuple(map(str, range(count)))),
        cells,
    )
    groups = BANKS * BANK_BYTES // CHUNK
    legend = tuple((g, f"banks {4 * g}-{4 * g + 3}") for g in range(groups))
    further = (
        "all threads supply one" if address.size == 32 else f"addresses of threads from {address.size} are ignored"
    )
    return Picture(
        f"Row addresses of {of}.{shape}.x{num}",
        f"t: thread; rows of 16 bytes; a tile of pitch {pitch}, swizzle {swizzle}; {further}",
        (panel,),
        (Legend("banks", legend),),
        (f"{wavefronts} wavefronts; {address.size // 8} without bank conflicts",),
        {"axes": ["matrix", "row"], **{name: each.tolist() for name, each in found.items()}},
    )


def _wavefronts(address: Numbers) -> int:
    """Wavefronts of an access: 8 rows at a time, as many as rows of other lines of 128 bytes meet in a bank."""
    total = 0
    for eight in address.reshape(-1, 8):
        total += int(np.bincount(np.unique(eight) // CHUNK % (BANKS * BANK_BYTES // CHUNK)).max())
    return total

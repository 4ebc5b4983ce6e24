"""Maps of shared memory: swizzles, operands, descriptors, and what TMA writes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from ptxgen.descriptors.smem import SmemDescriptor, WgmmaDescriptor
from ptxgen.descriptors.tensormap import TYPES, Im2colMap, TensorMap, TiledMap, Transfer, transfer
from ptxgen.descriptors.tile import OperandTile
from ptxgen.dtypes import DTYPES
from ptxgen.layouts.operands import operand_addresses
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.pictures.kinds import Number, limit
from ptxgen.pictures.points.model import Map, Needs, Numbers, bank, last, points
from ptxgen.pictures.shared import CHUNK, CopyWord, Swizzle, Type, box_of, box_title, check_start, map_bytes

BoxSwizzle = Literal["128B", "64B", "32B", "none", "128B_atom_32B", "128B_atom_64B"]


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


@points("swizzle", "row", "byte", "address", grows=("row",))
def swizzle(
    needs: Needs = (),
    mode: Annotated[BoxSwizzle, "the mode"] = "128B",
    rows: Annotated[Number, "rows, each as wide as the mode's row; 0: as many as at needs"] = 0,
    start: Annotated[Number, "shared-memory address of the first row"] = 0,
) -> Map:
    """Where a byte of a row goes, and in which bank it is then."""
    found = SWIZZLES[mode]
    check_start(start)
    rows = rows or _up(last(needs, 0) + 1, 8)
    limit("rows", rows, 1, 8192)
    row, byte = np.arange(rows)[:, None], np.arange(max(found.row_bytes, CHUNK))[None, :]
    address = found.apply(start + row * byte.size + byte)
    return Map(
        f"swizzle {mode}",
        ("row", "byte"),
        {"row": row, "byte": byte, "address": address, "bank": bank(address)},
    )


@points("operand", "row", "address", grows=("row",))
def operand(
    needs: Needs = (),
    major: Annotated[Literal["k", "mn"], "which dimension is contiguous"] = "k",
    swizzle: Annotated[Swizzle, "the descriptor's swizzle mode"] = "128B",
    type: Annotated[Type, "type of the elements"] = "f16",
    rows: Annotated[Number, "M or N; 0: as many as at needs"] = 0,
    k: Annotated[Number, "elements of K; 0: as many as at needs"] = 0,
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
) -> Map:
    """Where element (row, k) of a tile of A or B lies."""
    bits = DTYPES[type].bits
    mode = SWIZZLES[swizzle]
    across = max(mode.row_bytes, CHUNK) * 8 // bits * (1 if mode.width else 4)
    along = 8 if swizzle == "128B_atom_32B" and major == "mn" else 16
    steps = (along, across) if major == "k" else (across, along)
    rows, k = rows or _up(last(needs, 0) + 1, steps[0]), k or _up(last(needs, 1) + 1, steps[1])
    tile = OperandTile(element_bits=bits, major=major, swizzle=swizzle, rows=rows, k=k)
    limit("bytes of the tile", tile.bytes, 1, 1 << 18)
    check_start(start)
    descriptor = tile.smem_descriptor(start)
    return _elements(
        f"{major.upper()}-major {type}, swizzle {swizzle}, {rows} rows × {k} of K",
        tile.addresses(start),
        bits,
        (f"LBO {descriptor.leading_byte_offset}, SBO {descriptor.stride_byte_offset} bytes",),
    )


@points("descriptor", "row", "address", sized=("rows", "k"))
def descriptor(
    needs: Needs = (),
    value: Annotated[Number, "the descriptor"] = 0x4000404000010000,
    format: Annotated[Literal["auto", "smem", "wgmma"], "auto: by bits 46-48"] = "auto",
    major: Annotated[Literal["k", "mn"], "which dimension is contiguous"] = "k",
    type: Annotated[Type, "type of the elements"] = "f16",
    rows: Annotated[Number, "M or N; 0: as many as at needs"] = 0,
    k: Annotated[Number, "elements of K; 0: one instruction (32 bytes)"] = 0,
) -> Map:
    """Where the element (row, k) lies that an instruction reads through a descriptor."""
    bits = DTYPES[type].bits
    smem = format == "smem" or (format == "auto" and value >> 46 & 7)
    known = (SmemDescriptor if smem else WgmmaDescriptor).decode(value, major=major)
    k = k or 256 // bits
    rows = rows or max(16, _up(last(needs, 0) + 1, 8))
    limit("rows", rows, 1, 256)
    limit("k", k, 1, 512)
    address = operand_addresses(known, major, rows, k * bits // max(bits, 8), max(bits, 8))
    address = np.repeat(address, max(bits, 8) // bits, axis=1)
    return _elements(f"descriptor {value:#018x}, {major.upper()}-major {type}, {rows} rows × {k} of K", address, bits)


def _elements(title: str, address: Numbers, bits: int, notes: tuple[str, ...] = ()) -> Map:
    """A map of elements (row, k) of these addresses; two elements of 4 bits share one."""
    row, k = np.arange(address.shape[0])[:, None], np.arange(address.shape[1])[None, :]
    columns = {"row": row, "k": k, "address": address}
    if bits < 8:
        columns["bit"] = k * bits % 8
    return Map(title, ("row", "k"), columns | {"bank": bank(address)}, bits, notes)


@points("tma", "address", sized=("box",))
def tma(
    needs: Needs = (),
    box: Annotated[str, "elements, innermost first, such as 64x8"] = "64x8",
    type: Annotated[Type, "type of the elements"] = "f16",
    swizzle: Annotated[BoxSwizzle, "the tensormap's swizzle"] = "128B",
    strides: Annotated[str, "element strides of dimensions 1 and up, such as 2 or 2x1"] = "1",
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
) -> Map:
    """Where element (c0, c1, ...) of a box lies that TMA has written, innermost first."""
    bits = DTYPES[type].bits
    sizes, steps, moves = box_of(box, bits, swizzle, strides)
    return _copied(box_title(sizes, steps, type, swizzle), moves, (sizes[0], *moves.extents), bits, start, steps)


@points("tensormap", "address")
def tensormap(
    needs: Needs = (),
    map: Annotated[str, "the 128 bytes: 256 hex digits, or a file"] = "",
    mode: Annotated[CopyWord, "of the instruction; auto: .tile or .im2col"] = "auto",
    halo: Annotated[Number, "wHalo of im2col::w and im2col::w::128"] = 0,
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
) -> Map:
    """Where an element of the box (or of the column of pixels) lies that a load through this map writes."""
    found = TensorMap.decode(map_bytes(map))
    moves = transfer(found, None if mode == "auto" else mode, halo)
    bits = TYPES[found.dtype].global_bits
    what = "pixels" if isinstance(found, Im2colMap) else "box"
    sizes = (moves.moved * 8 // bits, *moves.extents)
    title = f"{what} of this tensormap, {found.dtype}, swizzle {found.swizzle}"
    boxed = isinstance(found, TiledMap) and found.interleave == "none" and mode in ("auto", "tile")
    return _copied(title, moves, sizes, bits, start, found.element_strides if boxed else (1,) * 5)


def _copied(
    title: str, moves: Transfer, sizes: tuple[int, ...], bits: int, start: int, steps: tuple[int, ...] = (1,) * 5
) -> Map:
    """The elements of a copy; `sizes` counts the positions that it takes in each dimension, `steps` apart."""
    limit("bytes of the box", moves.rows * moves.row_bytes, 1, 1 << 18)
    check_start(start)
    element = np.arange(sizes[0])
    address = moves.offsets(start)[:, element * bits // 8]
    columns: dict[str, Numbers] = {"c0": element[None, :]}
    row = np.arange(moves.rows)[:, None]
    for place, size in enumerate(sizes[1:], 1):
        columns[f"c{place}"] = row % size * steps[place]
        row = row // size
    names = tuple(columns)
    columns["address"] = address
    if bits % 8:
        columns["bit"] = element[None, :] * bits % 8
    note = f"c0 is the innermost coordinate within the box; expect_tx {moves.bytes} bytes"
    return Map(title, names, columns | {"bank": bank(address)}, bits, (note,))

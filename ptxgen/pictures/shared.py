"""Pictures of shared memory: swizzles, operands of wgmma and tcgen05.mma, boxes that TMA writes, descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.descriptors.smem import SmemDescriptor, WgmmaDescriptor
from ptxgen.descriptors.tensormap import TYPES, Im2colMap, TensorMap, TiledMap, Transfer, transfer
from ptxgen.descriptors.tensormap.transfer import FLIP
from ptxgen.descriptors.tile import OperandTile
from ptxgen.dtypes import DTYPES
from ptxgen.files import read_file
from ptxgen.layouts import banks
from ptxgen.layouts.operands import operand_addresses
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.layouts.tma import row_pitch
from ptxgen.pictures.kinds import Number, When, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture
from ptxgen.pictures.palette import NO_GROUP
from ptxgen.pictures.spelling import notation

CHUNK = 16
_LINE = banks.LINE_BYTES

Swizzle = Literal["128B", "64B", "32B", "none", "128B_atom_32B"]
Type = Literal["f16", "bf16", "e4m3", "e5m2", "e2m1", "s8", "u8", "tf32", "f32", "b8", "b16", "b32"]
Color = Literal["auto", "core", "bank", "row", "chunk", "thread"]
#: The threads that touch a chunk, in the order of the first.
Touched = dict[tuple[int, int], list[int]]
AccessName = Literal["", "matrix", "column", "row"]
#: The accesses whose bytes can be chosen, and all of them.
READS, ANY = When("access", ("column", "row")), When("access", ("matrix", "column", "row"))
CopyWord = Literal["auto", "tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128"]


@dataclass(frozen=True)
class Chunks:
    """Chunks of `size` bytes of a matrix in lines: address [lines, chunks], and how a chunk is called."""

    address: NDArray[np.int64]
    name: Callable[[int, int], str]
    detail: Callable[[int, int], str]
    line_name: str
    chunk_name: str
    line_labels: tuple[str, ...]
    chunk_labels: tuple[str, ...]
    size: int = CHUNK


@kind("swizzle")
def swizzle(
    mode: Annotated[Literal["128B", "64B", "32B", "none", "128B_atom_32B", "128B_atom_64B"], "the mode"] = "128B",
    rows: Annotated[Number, "rows of the matrix, each as wide as the mode's row"] = 8,
    start: Annotated[Number, "shared-memory address of the first row"] = 0,
    access: Annotated[AccessName, "count bank conflicts of: matrix (8 rows × 16 bytes), column, row"] = "",
    bytes: Annotated[Number, "bytes that a thread of the access reads", READS] = 4,
    at: Annotated[Number, "byte of the row (access matrix, column) or row (access row)", ANY] = 0,
) -> Picture:
    """Where each 16-byte chunk of a row goes, and in which banks it lies then."""
    found = SWIZZLES[mode]
    limit("rows", rows, 1, 256)
    check_start(start)
    row_bytes = max(found.row_bytes, CHUNK)
    line = start + np.arange(rows)[:, None] * row_bytes + np.arange(row_bytes // CHUNK)[None, :] * CHUNK
    chunks = Chunks(
        address=found.apply(line),
        name=lambda r, c: f"r{r} c{c}",
        detail=lambda r, c: f"row {r}, chunk {c} (bytes {16 * c}-{16 * c + 15})",
        line_name="row",
        chunk_name="16-byte chunk",
        line_labels=tuple(f"r{r}" for r in range(rows)),
        chunk_labels=tuple(f"c{c}" for c in range(row_bytes // CHUNK)),
    )
    rule = (
        f"address bits {found.target_bit}-{found.target_bit + found.width - 1} ^= bits 7-{6 + found.width}"
        if found.width > 1
        else f"address bit {found.target_bit} ^= bit 7"
    )
    subtitle = (
        f"{rule}; repeats every {found.period} bytes; {found.atom_bytes} bytes stay together"
        if found.width
        else "addresses stay as they are"
    )
    return picture_of(
        f"Swizzle {mode}",
        subtitle,
        chunks,
        color="chunk",
        access=access,
        width=bytes,
        at=at,
        notes=tuple(notation(np.arange(rows * row_bytes).reshape(rows, row_bytes), 8, mode)),
        data={"address": chunks.address.tolist(), "axes": ["row", "chunk"]},
    )


@kind("operand")
def operand(
    major: Annotated[Literal["k", "mn"], "which dimension is contiguous"] = "k",
    swizzle: Annotated[Swizzle, "the descriptor's swizzle mode"] = "128B",
    type: Annotated[Type, "type of the elements"] = "f16",
    rows: Annotated[Number, "M or N; 0: two groups of rows, or one swizzle row"] = 0,
    k: Annotated[Number, "elements of K; 0: one swizzle row, or two groups"] = 0,
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
    color: Annotated[Color, "what colors show; auto: core matrices"] = "auto",
    access: Annotated[AccessName, "count bank conflicts of: matrix (8 lines × 16 bytes), column, row"] = "",
    bytes: Annotated[Number, "bytes that a thread of the access reads", READS] = 4,
    at: Annotated[Number, "byte of the line (access matrix, column) or line (access row)", ANY] = 0,
) -> Picture:
    """A tile of A or B as wgmma and tcgen05.mma read it: canonical layout, core matrices, addresses, descriptor."""
    bits = DTYPES[type].bits
    across = max(SWIZZLES[swizzle].row_bytes, CHUNK) * 8 // bits
    if SWIZZLES[swizzle].width == 0:
        across *= 4
    along = 8 if swizzle == "128B_atom_32B" and major == "mn" else 16
    rows = rows or (along if major == "k" else across)
    k = k or (across if major == "k" else along)
    tile = OperandTile(element_bits=bits, major=major, swizzle=swizzle, rows=rows, k=k)
    limit("bytes of the tile", tile.bytes, 1, 65536)
    check_start(start)
    address = tile.addresses(start)
    chunks = _operand_chunks(address, major, bits)
    descriptor = tile.smem_descriptor(start)
    unswizzled = SWIZZLES[swizzle].apply(tile.addresses(0))
    notes = [
        f"tcgen05 descriptor {descriptor.encode():#018x}: LBO {tile.leading_byte_offset}, SBO {tile.stride_byte_offset}"
        + ("" if swizzle == "128B_atom_32B" else f"; wgmma {tile.wgmma_descriptor(start).encode():#018x}"),
        _steps(tile),
        *notation(unswizzled, bits, swizzle),
    ]
    return picture_of(
        f"{major.upper()}-major {type}, swizzle {swizzle}",
        f"{rows} rows (M or N) × {k} of K, {tile.bytes} bytes",
        chunks,
        color="core" if color == "auto" else color,
        access=access,
        width=bytes,
        at=at,
        notes=tuple(notes),
        data={"address": address.tolist(), "axes": ["row", "k"]},
        core_lines=_group(tile),
    )


@kind("descriptor")
def descriptor(
    value: Annotated[Number, "the descriptor"] = 0x4000404000010000,
    format: Annotated[Literal["auto", "smem", "wgmma"], "auto: by bits 46-48"] = "auto",
    major: Annotated[Literal["k", "mn"], "which dimension is contiguous"] = "k",
    type: Annotated[Type, "type of the elements"] = "f16",
    rows: Annotated[Number, "M or N"] = 16,
    k: Annotated[Number, "elements of K; 0: one instruction (32 bytes)"] = 0,
    color: Annotated[Color, "what colors show; auto: core matrices"] = "auto",
) -> Picture:
    """What one instruction reads through a shared-memory descriptor."""
    bits = DTYPES[type].bits
    smem = format == "smem" or (format == "auto" and value >> 46 & 7)
    known = (SmemDescriptor if smem else WgmmaDescriptor).decode(value, major=major)
    k = k or 256 // bits
    limit("rows", rows, 1, 256)
    limit("k", k, 1, 512)
    address = operand_addresses(known, major, rows, k * bits // max(bits, 8), max(bits, 8))
    address = np.repeat(address, max(bits, 8) // bits, axis=1)
    chunks = _operand_chunks(address, major, bits)
    return picture_of(
        f"{'tcgen05' if smem else 'wgmma'} descriptor {value:#018x}",
        f"{major.upper()}-major {type}, swizzle {known.swizzle}: {rows} rows × {k} of K; start "
        f"{known.start_address:#x}, LBO {known.leading_byte_offset}, SBO {known.stride_byte_offset}",
        chunks,
        color="core" if color == "auto" else color,
        access="",
        width=4,
        at=0,
        notes=tuple(f"warning: {text}" for text in known.warnings()),
        data={"address": address.tolist(), "axes": ["row", "k"]},
    )


@kind("tma")
def tma(
    box: Annotated[str, "elements, innermost first, such as 64x8"] = "64x8",
    type: Annotated[Type, "type of the elements"] = "f16",
    swizzle: Annotated[
        Literal["128B", "64B", "32B", "none", "128B_atom_32B", "128B_atom_64B"], "the tensormap's swizzle"
    ] = "128B",
    strides: Annotated[str, "element strides of dimensions 1 and up, such as 2 or 2x1"] = "1",
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
    color: Annotated[Color, "what colors show; auto: rows of the box"] = "auto",
    access: Annotated[AccessName, "count bank conflicts of: matrix (8 rows × 16 bytes), column, row"] = "",
    bytes: Annotated[Number, "bytes that a thread of the access reads", READS] = 4,
    at: Annotated[Number, "byte of the row (access matrix, column) or row (access row)", ANY] = 0,
) -> Picture:
    """A tile as cp.async.bulk.tensor writes it to shared memory."""
    bits = DTYPES[type].bits
    sizes, steps, moves = box_of(box, bits, swizzle, strides)
    title = box_title(sizes, steps, type, swizzle)
    notes: list[str] = []
    if bits >= 8:  # modes innermost first, as coordinates are
        plain = SWIZZLES[swizzle].apply(moves.offsets(0))[:, :: bits // 8]
        notes = notation(plain.reshape(moves.extents[::-1] + sizes[:1]).T, bits, swizzle)
    return _rows(title, moves, bits, start, color=color, access=access, width=bytes, at=at, notes=tuple(notes))


def sizes_of(name: str, word: str, most: int) -> tuple[int, ...]:
    """The numbers of a word such as 64x8, each from 1 to `most`, one to five of them. Raises DescriptorError."""
    sizes = tuple(int(each) if each.isdecimal() else 0 for each in word.lower().replace("×", "x").split("x"))
    if not 1 <= len(sizes) <= 5 or any(not 1 <= each <= most for each in sizes):
        raise DescriptorError(f"{name} must be 1 to 5 sizes from 1 to {most} such as 64x8, not {word[:40]!r}")
    return sizes


def box_title(sizes: Sequence[int], steps: Sequence[int], type: str, swizzle: str) -> str:
    """What a box is called."""
    strided = f", element strides {_by(steps)}" if any(step > 1 for step in steps) else ""
    return f"TMA box {_by(sizes)} of {type}, swizzle {swizzle}{strided}"


def box_of(box: str, bits: int, swizzle: str, strides: str) -> tuple[tuple[int, ...], tuple[int, ...], Transfer]:
    """Extents and element strides of a box, innermost first, and its copy. Raises DescriptorError and ValueError.

    Of a strided dimension the copy takes the positions rounded up; along a row nothing is skipped (measured).
    """
    sizes = sizes_of("box", box, 256)
    given = sizes_of("strides", strides, 8)
    given = given * (len(sizes) - 1) if len(given) == 1 else given
    if len(given) != len(sizes) - 1:
        raise DescriptorError(
            f"strides must be {len(sizes) - 1} numbers for a box of {_by(sizes)}, not {strides[:40]!r}"
        )
    steps = (1, *given)
    if sizes[0] * bits % 8:
        raise DescriptorError(f"box must have whole bytes in a row, not {sizes[0]} elements of {bits} bits")
    inner = sizes[0] * bits // 8
    row_pitch((inner,), 1, swizzle)  # what a row must be
    extents = tuple(-(-size // step) for size, step in zip(sizes[1:], given, strict=True))
    return sizes, steps, Transfer(extents, inner, inner, swizzle)


@kind("tensormap")
def tensormap(
    map: Annotated[str, "the 128 bytes: 256 hex digits, or a file"] = "",
    mode: Annotated[CopyWord, "of the instruction; auto: .tile or .im2col"] = "auto",
    halo: Annotated[Number, "wHalo of im2col::w and im2col::w::128"] = 0,
    start: Annotated[Number, "shared-memory address of the tile"] = 0,
    color: Annotated[Color, "what colors show; auto: rows of the box"] = "auto",
    access: Annotated[AccessName, "count bank conflicts of: matrix (8 rows × 16 bytes), column, row"] = "",
    bytes: Annotated[Number, "bytes that a thread of the access reads", READS] = 4,
    at: Annotated[Number, "byte of the row (access matrix, column) or row (access row)", ANY] = 0,
) -> Picture:
    """What a load through this tensormap writes to shared memory: its box, or its column of pixels."""
    found = TensorMap.decode(map_bytes(map))
    moves = transfer(found, None if mode == "auto" else mode, halo)
    notes = tuple(f"warning: {text}" for text in found.warnings())
    if moves.packed:
        row = f"slices of {moves.moved} bytes of channels"
    elif moves.padded:
        row = f"rows of {found.row_elements} elements, each 16 of {moves.moved * CHUNK // moves.row_bytes} bytes"
    else:
        row = f"rows of {found.row_elements} elements"
    if isinstance(found, TiledMap):
        strided = any(each > 1 for each in found.element_strides)
        strides = f" in steps of {_by(found.element_strides)}" if strided else ""
        what = "four rows" if mode == "tile::gather4" else f"box {_by(found.box)}{strides}"
        what += f": {_by(moves.extents) or 1} {row}"
    else:
        assert isinstance(found, Im2colMap)
        what = f"{moves.rows} pixels, {row}"
    title = f"Tensormap, {found.mode}: {what} of {found.dtype}, swizzle {found.swizzle}"
    bits = TYPES[found.dtype].global_bits
    return _rows(title, moves, bits, start, color=color, access=access, width=bytes, at=at, notes=notes)


def _by(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes))


def map_bytes(word: str) -> bytes:
    """128 bytes from hex digits or a file."""
    digits = re.sub(r"[\s_]|^0x", "", word)
    if re.fullmatch("[0-9a-fA-F]{256}", digits):
        return bytes.fromhex(digits)
    try:
        return read_file(word)
    except (OSError, ValueError):
        raise DescriptorError(f"map must be 256 hex digits or a file of 128 bytes, not {word[:40]!r}") from None


def _rows(
    title: str,
    moves: Transfer,
    bits: int,
    start: int,
    *,
    color: str,
    access: str,
    width: int,
    at: int,
    notes: tuple[str, ...] = (),
) -> Picture:
    """The picture of a copy's rows: elements of `bits` in memory."""
    limit("bytes of the box", moves.rows * moves.row_bytes, 1, 32768)
    check_start(start)
    offsets = moves.offsets(start)
    kept = moves.moved * CHUNK // moves.row_bytes  # bytes of each 16 that are moved
    per_chunk = kept * 8 // bits

    def outer(row: int) -> str:
        found = []
        for size in moves.extents:
            found.append(str(row % size))
            row //= size
        return ".".join(reversed(found)) or "0"

    chunks = Chunks(
        address=offsets[:, ::kept] // CHUNK * CHUNK,
        name=lambda r, c: f"r{outer(r)} c{c * per_chunk}",
        detail=lambda r, c: f"row {outer(r)} of the box, elements {c * per_chunk}-{(c + 1) * per_chunk - 1}",
        line_name="row",
        chunk_name="first element of 16 bytes",
        line_labels=tuple(f"r{outer(r)}" for r in range(len(offsets))),
        chunk_labels=tuple(f"c{c * per_chunk}" for c in range(moves.row_bytes // CHUNK)),
    )
    if moves.padded:
        notes = (f"the last {CHUNK - kept} of each 16 bytes stay as they are, and are not counted", *notes)
    if moves.swizzle.endswith(FLIP):
        notes = ("the halves of 16 bytes are exchanged where address bit 7 is set", *notes)
    return picture_of(
        title,
        f"{moves.moved} bytes a row, innermost first; {moves.bytes} bytes transferred to {start:#x} (expect_tx)",
        chunks,
        color="row" if color == "auto" else color,
        access=access,
        width=width,
        at=at,
        notes=notes,
        data={"address": offsets.tolist(), "axes": ["row", "byte"], "bytes": moves.bytes},
    )


def _operand_chunks(address: NDArray[np.int64], major: str, bits: int) -> Chunks:
    """The 16-byte chunks of a tile: along K in each row, or along MN for each k."""
    per_chunk = CHUNK * 8 // bits
    lines = address if major == "k" else address.T
    inner, line = ("k", "m") if major == "k" else ("m", "k")
    return Chunks(
        address=lines[:, ::per_chunk],
        name=lambda r, c: f"{line}{r} {inner}{c * per_chunk}",
        detail=lambda r, c: f"{line} {r}, {inner} {c * per_chunk}-{(c + 1) * per_chunk - 1}",
        line_name=line,
        chunk_name=f"{inner} (16-byte chunks)",
        line_labels=tuple(f"{line}{r}" for r in range(len(lines))),
        chunk_labels=tuple(f"{inner}{c * per_chunk}" for c in range(-(-lines.shape[1] // per_chunk))),
    )


def picture_of(
    title: str,
    subtitle: str,
    chunks: Chunks,
    *,
    color: str,
    access: str,
    width: int,
    at: int,
    notes: tuple[str, ...],
    data: dict[str, Any],
    core_lines: int = 8,
) -> Picture:
    touched, found, words = _access(chunks, access, width, at)
    if color == "thread" and not touched:
        raise DescriptorError("color thread needs an access: access=matrix, column or row")
    group = _grouping(chunks, color, core_lines, touched)
    cells = {
        (r, c): Cell(
            f"{chunks.address[r, c]:#x}",
            group(r, c),
            (r, c) in touched and color != "thread",
            f"{chunks.detail(r, c)} at {chunks.address[r, c]:#x}, "
            f"{_bank_range(int(chunks.address[r, c]), chunks.size)}",
        )
        for r, c in np.ndindex(chunks.address.shape)
    }
    matrix = Panel(
        "The matrix: where each chunk lies",
        Axis(chunks.line_name, chunks.line_labels),
        Axis(chunks.chunk_name, chunks.chunk_labels),
        tuple(tuple(cells[r, c] for c in range(chunks.address.shape[1])) for r in range(chunks.address.shape[0])),
    )
    memory = _memory(chunks, cells, found)
    hidden = len(cells) - sum(cell is not None for row in memory.cells for cell in row)
    if hidden:
        notes = (f"warning: {hidden} of {len(cells)} chunks lie where another one does", *notes)
    if words:
        data = {**data, "access": words[0]}
    return Picture(
        title, subtitle, (matrix, memory), (_legend(chunks, color, core_lines, touched),), words + notes, data
    )


def _memory(chunks: Chunks, cells: dict[tuple[int, int], Cell], found: banks.Access | None) -> Panel:
    """Shared memory, a line of 128 bytes a row, of the lines in which something lies."""
    placed = {
        int(chunks.address[where]): Cell(chunks.name(*where), cell.group, cell.marked, cell.detail)
        for where, cell in cells.items()
    }
    lines = sorted({address // _LINE for address in placed})
    each, across = chunks.size // banks.BANK_BYTES, _LINE // chunks.size
    footer = ()
    if found is not None:
        loads = [max(found.load[each * c : each * c + each]) for c in range(across)]
        footer = tuple(f"{load}" if load else "-" for load in loads)
    return Panel(
        "Shared memory: what lies in each line of 128 bytes",
        Axis("addr", tuple(f"{line * _LINE:#x}" for line in lines)),
        Axis("banks", tuple(f"{each * c}-{each * c + each - 1}" if each > 1 else f"{c}" for c in range(across))),
        tuple(tuple(placed.get(line * _LINE + c * chunks.size) for c in range(across)) for line in lines),
        "words" if footer else "",
        footer,
    )


def _grouping(chunks: Chunks, color: str, core_lines: int, touched: Touched) -> Callable[[int, int], int]:
    across = chunks.address.shape[1]
    order = {where: index for index, where in enumerate(touched)}
    return {
        "core": lambda r, c: (r // core_lines * across + c) % 16,
        "bank": lambda r, c: int(chunks.address[r, c]) // CHUNK % 8,
        "row": lambda r, c: r % 8,
        "chunk": lambda r, c: c % 16,
        "thread": lambda r, c: order[r, c] % 16 if (r, c) in order else NO_GROUP,
    }[color]


def _legend(chunks: Chunks, color: str, core_lines: int, touched: Touched) -> Legend:
    lines, across = chunks.address.shape
    if color == "bank":
        return Legend("banks", tuple((g, f"{4 * g}-{4 * g + 3}") for g in range(8)))
    if color == "thread":
        words = [f"t{each[0]}" if len(each) == 1 else f"t{each[0]}-{each[-1]}" for each in touched.values()]
        return Legend("threads", tuple((index % 16, each) for index, each in enumerate(words)))
    if color == "row":
        return Legend(f"{chunks.line_name} modulo 8", tuple((g, str(g)) for g in range(min(8, lines))))
    if color == "chunk":
        named = chunks.chunk_labels[:16]
        return Legend("chunk of the row", tuple(enumerate(named)))
    core = f"core matrix ({core_lines} lines × 16 bytes)"
    if -(-lines // core_lines) * across > 16:
        return Legend(f"each {core} has its own color, 16 in turn", ())
    firsts = (
        (r * across + c, f"{chunks.line_labels[r * core_lines]} {chunks.chunk_labels[c]}")
        for r in range(-(-lines // core_lines))
        for c in range(across)
    )
    return Legend(f"{core} from", tuple(firsts))


def _access(chunks: Chunks, name: str, width: int, at: int) -> tuple[Touched, banks.Access | None, tuple[str, ...]]:
    """The chunks that an access touches, its cycles, and both in words."""
    if not name:
        return {}, None, ()
    lines, across = chunks.address.shape
    if name == "matrix":
        width, threads = CHUNK, [(r, at) for r in range(min(8, lines))]
        words = f"{len(threads)} rows of 16 bytes from byte {at} (ldmatrix)"
    elif name == "column":
        threads = [(r, at) for r in range(min(32, lines))]
        words = f"{len(threads)} threads read {width} bytes each at byte {at} of their own row"
    else:
        limit("at", at, 0, lines - 1)
        if width not in (1, 2, 4, 8, 16):
            raise DescriptorError(f"width must be 1, 2, 4, 8 or 16 bytes, not {width}")
        threads = [(at, i * width) for i in range(min(32, across * chunks.size // width))]
        words = f"{len(threads)} threads read {width} bytes each along row {at}"
    if width not in (1, 2, 4, 8, 16):
        raise DescriptorError(f"width must be 1, 2, 4, 8 or 16 bytes, not {width}")
    if name != "row":
        limit("at", at, 0, across * chunks.size - width)
        if at % width:
            raise DescriptorError(f"at must be a multiple of the {width} bytes that a thread reads, not {at}")
    touched: Touched = {}
    for thread, (r, byte) in enumerate(threads):
        touched.setdefault((r, byte // chunks.size), []).append(thread)
    found = banks.access(
        [int(chunks.address[r, byte // chunks.size]) + byte % chunks.size for r, byte in threads], width
    )
    cycles = f"{found.wavefronts} wavefront{'s' if found.wavefronts > 1 else ''}"
    if found.conflicts:
        verdict = f"conflict: {words}: {cycles} where {found.ideal} would do, {found.ways} words in the worst bank"
    else:
        verdict = f"no conflict: {words}: {cycles}"
    return touched, found, (verdict,)


def _bank_range(address: int, size: int) -> str:
    first = banks.bank(address)
    last = first + size // banks.BANK_BYTES - 1
    return f"banks {first}-{last}" if last > first else f"bank {first}"


def _group(tile: OperandTile) -> int:
    return 4 if tile.swizzle == "128B_atom_32B" and tile.major == "mn" else 8


def _steps(tile: OperandTile) -> str:
    """How the start address moves along K, an instruction at a time."""
    step = 256 // tile.element_bits
    starts: Sequence[int] = range(0, tile.k, step)
    if len(starts) < 2:
        return f"an instruction takes {step} of K"
    moves = ", ".join(f"+{tile.advance(each):#x}" for each in list(starts)[1:6])
    more = ", …" if len(starts) > 6 else ""
    return f"an instruction takes {step} of K; the next ones start at {moves}{more} bytes"


def check_start(start: int) -> None:
    limit("start", start, 0, (1 << 18) - 1)
    if start % CHUNK:
        raise DescriptorError(f"start must be a multiple of 16, not {start:#x}")

"""Pictures of rows that software lays out: a pitch, a swizzle of its own, and the bank conflicts of an access."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts import cute
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.pictures.kinds import Number, kind, limit
from ptxgen.pictures.model import Picture
from ptxgen.pictures.shared import ANY, CHUNK, READS, AccessName, Chunks, picture_of


def software_swizzle(word: str) -> cute.CuteSwizzle:
    """The swizzle of byte addresses that a word names: a mode, or Swizzle<B,M,S>. Raises DescriptorError."""
    if word in SWIZZLES:
        return cute.of_mode(word)
    try:
        found = cute.parse(f"{word}o1")
    except ValueError as error:
        raise DescriptorError(
            f"swizzle must be a mode or Swizzle<B,M,S> of bytes, not {word[:40]!r}: {error}"
        ) from None
    if found.swizzle is None:
        raise DescriptorError(f"swizzle must be a mode or Swizzle<B,M,S> of bytes, not {word[:40]!r}")
    return found.swizzle


def addresses(bytes: int, pitch: int, rows: int, start: int, swizzle: str) -> NDArray[np.int64]:
    """The address of each byte of each row, array [rows, bytes]. Raises DescriptorError."""
    limit("bytes", bytes, 4, 4096)
    limit("rows", rows, 1, 256)
    limit("pitch", pitch, bytes, 65536)
    limit("start", start, 0, (1 << 18) - 1)
    for name, value in (("bytes", bytes), ("pitch", pitch), ("start", start)):
        if value % 4:
            raise DescriptorError(f"{name} must be a multiple of 4, not {value}")
    line = start + np.arange(rows, dtype=np.int64)[:, None] * pitch + np.arange(bytes, dtype=np.int64)[None, :]
    return software_swizzle(swizzle).apply(line)


@kind("pitch")
def pitch(
    bytes: Annotated[Number, "bytes of a row"] = 128,
    pitch: Annotated[Number, "bytes from one row to the next; 0: those of a row"] = 0,
    swizzle: Annotated[str, "XOR of the byte address: 128B, ... or Swizzle<B,M,S>"] = "none",
    rows: Annotated[Number, "rows; 0: 8, or 32 for the access of a column"] = 0,
    start: Annotated[Number, "shared-memory address of the first row"] = 0,
    access: Annotated[AccessName, "count bank conflicts of: matrix (8 rows × 16 bytes), column, row"] = "",
    width: Annotated[Number, "bytes that a thread of the access reads", READS] = 4,
    at: Annotated[Number, "byte of the row (access matrix, column) or row (access row)", ANY] = 0,
) -> Picture:
    """Rows that software lays out, padded or with a swizzle of its own, and in which banks they lie."""
    rows = rows or (32 if access == "column" else 8)
    step = pitch or bytes
    address = addresses(bytes, step, rows, start, swizzle)
    xor = software_swizzle(swizzle)
    whole = not (bytes % CHUNK or step % CHUNK or start % CHUNK) and (xor.base >= 4 or not xor.bits)
    unit = CHUNK if whole else 4
    if xor.bits and xor.base < 2:
        raise DescriptorError(f"{xor} of bytes tears words of 4 bytes apart: M must be 2 or more")
    chunks = Chunks(
        address=address[:, ::unit],
        name=lambda r, c: f"r{r} b{unit * c}",
        detail=lambda r, c: f"row {r}, bytes {unit * c}-{unit * c + unit - 1}",
        line_name="row",
        chunk_name=f"first byte of {unit}",
        line_labels=tuple(f"r{r}" for r in range(rows)),
        chunk_labels=tuple(f"b{unit * c}" for c in range(bytes // unit)),
        size=unit,
    )
    note = f"{xor} of byte addresses" if xor.bits else "addresses stay as they are"
    return picture_of(
        f"Rows of {bytes} bytes, pitch {step}" + (f", {swizzle}" if xor.bits else ""),
        f"{rows} rows; {note}; {step - bytes} bytes of padding a row",
        chunks,
        color="row",
        access=access,
        width=width,
        at=at,
        notes=(),
        data={"address": address[:, ::unit].tolist(), "axes": ["row", f"{unit} bytes"]},
    )

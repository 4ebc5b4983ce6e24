"""Maps of what software and CuTe lay out, and of the pixels of an im2col copy."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ptxgen.pictures import convolution, notation, software
from ptxgen.pictures.kinds import Number
from ptxgen.pictures.points.model import Map, Needs, bank, last, points


@points("pitch", "row", "byte", "address", grows=("row",))
def pitch(
    needs: Needs = (),
    bytes: Annotated[Number, "bytes of a row"] = 128,
    pitch: Annotated[Number, "bytes from one row to the next; 0: those of a row"] = 0,
    swizzle: Annotated[str, "XOR of the byte address: 128B, ... or Swizzle<B,M,S>"] = "none",
    rows: Annotated[Number, "rows; 0: as many as at needs"] = 0,
    start: Annotated[Number, "shared-memory address of the first row"] = 0,
) -> Map:
    """Where a byte of a row lies that software has laid out, and in which bank."""
    rows = rows or min(max(8, last(needs, 0) + 1), 256)
    address = software.addresses(bytes, pitch or bytes, rows, start, swizzle)
    columns = {"row": np.arange(rows)[:, None], "byte": np.arange(bytes)[None, :], "address": address}
    return Map(f"rows of {bytes} bytes, pitch {pitch or bytes}", ("row", "byte"), columns | {"bank": bank(address)})


@points("cute", "offset")
def cute(
    needs: Needs = (),
    layout: Annotated[str, "shape:stride, Swizzle<B,M,S> o shape:stride, or a Swizzle<B,M,S> alone"] = "(8,32):(32,1)",
) -> Map:
    """The offset of a coordinate of a layout in CuTe's notation."""
    found = notation.read(layout)
    offsets = found.offsets()
    columns = {f"i{axis}": np.asarray(each, np.int64) for axis, each in enumerate(np.indices(offsets.shape))}
    return Map(f"CuTe layout {found}", tuple(columns), columns | {"offset": offsets}, notes=notation.modes(found))


@points("im2col", "pixel", "image", "w", "h", "d", sized=("size", "pixels"))
def im2col(
    needs: Needs = (),
    size: Annotated[str, "of an image: width, height, depth, such as 5x4"] = "5x4",
    lower: Annotated[str, "lower corner of the pixel box"] = "0",
    upper: Annotated[str, "upper corner"] = "0",
    offset: Annotated[str, "offsets of the instruction: the position in the filter"] = "0",
    stride: Annotated[str, "traversal strides"] = "1",
    start: Annotated[str, "coordinates of the first pixel; empty: the lower corner"] = "",
    pixels: Annotated[Number, "pixels of a column; 0: as many as at needs"] = 0,
) -> Map:
    """Which position of the image a pixel of a column is, and whether it is filled."""
    pixels = pixels or min(max(16, last(needs, 0) + 1), 1024)
    found = convolution.column(size, lower, upper, offset, stride, start, pixels)
    names = ("w", "h", "d")[: len(found.sizes)]
    columns = {"pixel": np.arange(pixels)}
    columns |= {name: found.loaded[:, axis] for axis, name in enumerate(names)}
    columns["image"] = found.loaded[:, -1]
    columns |= {f"base_{name}": found.base[:, axis] for axis, name in enumerate(names)}
    return Map(
        f"im2col of images {size}, corners {lower} and {upper}",
        ("pixel",),
        columns | {"filled": (~found.inside).astype(np.int64)},
        notes=("filled 1: the position is outside the image",),
    )

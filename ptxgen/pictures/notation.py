"""Pictures of layouts in CuTe's notation."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts import banks
from ptxgen.layouts.cute import CuteLayout, of_mode, parse
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.pictures.kinds import Number, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture

_MOST = 8192


def read(layout: str) -> CuteLayout:
    """The layout of a text. Raises DescriptorError."""
    try:
        return parse(layout)
    except ValueError as error:
        raise DescriptorError(f"layout must be CuTe's notation such as (8,64):(64,1): {error}") from None


@kind("cute")
def cute(
    layout: Annotated[str, "shape:stride, Swizzle<B,M,S> o shape:stride, or a Swizzle<B,M,S> alone"] = "(8,32):(32,1)",
    bits: Annotated[Number, "bits of an element, for the banks that colors show"] = 16,
) -> Picture:
    """A layout in CuTe's notation: the offset of each coordinate, and the swizzle mode that it is."""
    found = read(layout)
    limit("modes of the layout", len(found.shape), 1, 2)
    limit("bits", bits, 1, 128)
    offsets = found.offsets()
    grid = offsets.reshape(-1, 1) if offsets.ndim == 1 else offsets
    limit("fields of the picture", grid.size, 1, _MOST)
    cells = tuple(
        tuple(Cell(f"{offset}", int(offset) * bits // 8 // 16 % 8) for offset in row.tolist()) for row in grid
    )
    panel = Panel(
        "The offset of each coordinate",
        Axis("mode 0", tuple(map(str, range(grid.shape[0])))),
        Axis("mode 1", tuple(map(str, range(grid.shape[1])))),
        cells,
    )
    span = int(offsets.max()) + 1
    return Picture(
        f"CuTe layout {found}",
        f"{offsets.size} coordinates, offsets 0 to {span - 1}"
        + ("" if len(np.unique(offsets)) == offsets.size else "; several coordinates share an offset"),
        (panel,),
        (Legend("banks", tuple((g, f"{4 * g}-{4 * g + 3}") for g in range(banks.BANKS // 4))),),
        modes(found),
        {"axes": ["mode 0", "mode 1"][: offsets.ndim], "offset": offsets.tolist()},
    )


def modes(found: CuteLayout) -> tuple[str, ...]:
    """Which swizzle modes of TMA and descriptors a layout's swizzle is, by the size of its elements."""
    if found.swizzle is None:
        return ()
    names = []
    for name in SWIZZLES:
        for bits in (8, 16, 32, 64):
            if SWIZZLES[name].width and of_mode(name).base + 4 >= bits.bit_length():
                same = of_mode(name).scaled(bits) == found.swizzle
                names += [f"{name} of elements of {bits} bits" if bits > 8 else f"{name} of bytes"] if same else []
    known = ", ".join(names)
    return (f"{found.swizzle} is {known}" if known else f"{found.swizzle} is no mode of TMA or of a descriptor",)

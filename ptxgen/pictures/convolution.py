"""Pictures of im2col copies: where the base of the filter walks between the corners, and which pixels are loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts.tma import pixel_positions
from ptxgen.pictures.kinds import Number, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture

_BOX, _PAD, _LOADED, _FILL = 1, 2, 3, 6
_AXES = ("w", "h", "d")
_MOST_PANELS = 4


@dataclass(frozen=True)
class Column:
    """A column of pixels: base positions [pixels, dimensions + 1], the image last, and what is added to them."""

    sizes: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    base: NDArray[np.int64]
    offset: tuple[int, ...]

    @property
    def loaded(self) -> NDArray[np.int64]:
        """The positions that are loaded."""
        return self.base + np.array([*self.offset, 0])

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether each pixel is in its image; others are filled."""
        spatial = self.loaded[:, :-1]
        return np.logical_and.reduce((spatial >= 0) & (spatial < np.array(self.sizes)), axis=1)


def column(size: str, lower: str, upper: str, offset: str, stride: str, start: str, pixels: int) -> Column:
    """The column of words such as 5x4 and -1x-1, width first. Raises DescriptorError."""
    sizes = _numbers("size", size, 0, 1, 1 << 16)
    count = len(sizes)
    low, high = (
        _numbers(name, word, count, -(1 << 15), 1 << 15) for name, word in (("lower", lower), ("upper", upper))
    )
    last = tuple(each - 1 + corner for each, corner in zip(sizes, high, strict=True))
    if any(a > b for a, b in zip(low, last, strict=True)):
        raise DescriptorError(f"lower {lower} and upper {upper} leave no pixel of {size}")
    steps = _numbers("stride", stride, count, 1, 8)
    offsets = _numbers("offset", offset, count, 0, 1 << 16)
    begin = _numbers("start", start, count, -(1 << 15), 1 << 16) if start else low
    if any(not a <= each <= b for a, each, b in zip(low, begin, last, strict=True)):
        raise DescriptorError(f"start must be in the box from {_by(low)} to {_by(last)}, not {start}")
    limit("pixels", pixels, 1, 1024)
    base = pixel_positions(sizes, low, high, (*steps, 1), (*begin, 0), pixels)
    return Column(sizes, low, last, base, offsets)


def _numbers(name: str, word: str, count: int, least: int, most: int) -> tuple[int, ...]:
    """The numbers of a word such as -1x-1; one number serves for every dimension."""
    if not re.fullmatch(r"-?\d{1,6}(x-?\d{1,6}){0,2}", word):
        raise DescriptorError(f"{name} must be 1 to 3 numbers such as 5x4, width first, not {word[:40]!r}")
    found = tuple(map(int, word.split("x")))
    found = found * count if len(found) == 1 and count else found
    if (count and len(found) != count) or any(not least <= each <= most for each in found):
        raise DescriptorError(f"{name} must be {count or '1 to 3'} numbers from {least} to {most}, not {word}")
    return found


def _by(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


@kind("im2col")
def im2col(
    size: Annotated[str, "of an image: width, height, depth, such as 5x4"] = "5x4",
    lower: Annotated[str, "lower corner of the pixel box, such as -1x-1: minus the padding"] = "0",
    upper: Annotated[str, "upper corner: padding minus (filter - 1) times dilation"] = "0",
    offset: Annotated[str, "offsets of the instruction: the position in the filter"] = "0",
    stride: Annotated[str, "traversal strides (element strides)"] = "1",
    start: Annotated[str, "coordinates of the first pixel; empty: the lower corner"] = "",
    pixels: Annotated[Number, "pixels of a column"] = 16,
) -> Picture:
    """An im2col copy: the box between the corners, the base of each pixel, and the pixel that is loaded."""
    found = column(size, lower, upper, offset, stride, start, pixels)
    walk = _panels("Where the base walks", found, found.base, None)
    loads = _panels("What is loaded", found, found.loaded, found.inside)
    filled = int((~found.inside).sum())
    return Picture(
        f"im2col, image {size}, corners {_by(found.first)} to {_by(found.last)}",
        f"lower corner {lower}, upper corner {upper} (of the last pixel); offsets {offset}, strides {stride}: "
        f"{pixels} pixels",
        (*walk, *loads),
        (Legend("fields", ((_BOX, "in the box"), (_PAD, "not in the box"), (_LOADED, "a pixel"), (_FILL, "filled"))),),
        (f"{filled} of {pixels} pixels lie outside the image and are filled",) if filled else (),
        {
            "axes": ["pixel", "dimension"],
            "base": found.base.tolist(),
            "loaded": found.loaded.tolist(),
            "inside": found.inside.tolist(),
        },
    )


def _panels(title: str, found: Column, positions: NDArray[np.int64], inside: NDArray[np.bool_] | None) -> list[Panel]:
    """A panel for each depth and image that is touched: width across, height down."""
    flat = np.pad(positions[:, :-1], ((0, 0), (0, 4 - positions.shape[1])))
    slices = np.stack([flat[:, 2], positions[:, -1]], axis=1)
    whole = [*zip(found.first, found.last, strict=True)] + [(0, 0)] * (2 - min(2, len(found.sizes)))
    low = [min(0, whole[axis][0], int(flat[:, axis].min())) for axis in (0, 1)]
    sizes = (*found.sizes, 1)
    high = [max(sizes[axis] - 1, whole[axis][1], int(flat[:, axis].max())) for axis in (0, 1)]
    limit("fields of the picture", (high[0] - low[0] + 1) * (high[1] - low[1] + 1), 1, 4096)
    panels = []
    for depth, image in dict.fromkeys(map(tuple, slices.tolist())):
        if len(panels) == _MOST_PANELS:
            break
        cells: list[list[Cell | None]] = [
            [_ground(found, (w, h, depth), inside is None) for w in range(low[0], high[0] + 1)]
            for h in range(low[1], high[1] + 1)
        ]
        for pixel in np.flatnonzero((slices == (depth, image)).all(axis=1)).tolist():
            w, h = flat[pixel, :2].tolist()
            group = _LOADED if inside is None or inside[pixel] else _FILL
            cells[h - low[1]][w - low[0]] = Cell(f"p{pixel}", group)
        where = f", image {image}" if image else ""
        where += f", d {depth}" if len(found.sizes) > 2 else ""
        panels.append(
            Panel(
                title + where,
                Axis("h", tuple(str(h) for h in range(low[1], high[1] + 1))),
                Axis("w", tuple(str(w) for w in range(low[0], high[0] + 1))),
                tuple(map(tuple, cells)),
            )
        )
    return panels


def _ground(found: Column, position: tuple[int, int, int], box: bool) -> Cell | None:
    """What a field shows that is no pixel: whether it is in the box (of the base) or in the image."""
    spatial = position[: len(found.sizes)]
    if box:
        inside = all(a <= each <= b for a, each, b in zip(found.first, spatial, found.last, strict=True))
    else:
        inside = all(0 <= each < size for each, size in zip(spatial, found.sizes, strict=True))
    return Cell("·", _BOX if inside else _PAD)

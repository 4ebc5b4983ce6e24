"""The two kinds of tensormaps: tiled ones, which describe boxes, and im2col ones, which describe columns of pixels."""

from __future__ import annotations

from typing import Any, ClassVar

from ptxgen.descriptors.errors import as_int, refuse
from ptxgen.descriptors.fields import array, field
from ptxgen.descriptors.tensormap.tables import TYPES
from ptxgen.descriptors.tensormap.transfer import CopyMode
from ptxgen.descriptors.tensormap.value import DRIVER, METADATA, WORD_BITS, TensorMap, whole, word
from ptxgen.layouts.tma import steps

#: Rows of a gather4; pixels of an im2col::w::128 copy, and its groups that each have a halo.
_GATHERED = 4
_WIDE, _WIDE_GROUPS = 128, 4


def _box_bytes() -> Any:
    return field(
        *whole(16),
        default=None,
        derive=lambda m: min(m.derived_box_bytes, (1 << 32) - 1),
        unit="bytes",
        doc="driver's note",
        evidence=METADATA,
    )


def _smem_alignment() -> Any:
    return field(
        *whole(18),
        default=None,
        derive=lambda m: m.derived_smem_alignment,
        unit="bytes",
        doc="driver's note",
        evidence=METADATA,
    )


class TiledMap(TensorMap, bits=1024, word_bits=WORD_BITS):
    """A map of boxes: `box` in elements, innermost first."""

    mode: str = field(*word(2, 0, 0), default="tiled", values={"tiled": 0}, evidence=DRIVER)
    box: tuple[int, ...] = array(
        [[word(13, 24, 31)], *([word(14, 8 * j, 8 * j + 7)] for j in range(4))],
        length="rank",
        label=lambda j: f"box dimension {j}",
        bias=1,
        rule="an integer from 1 to 256 elements",
        unit="elements",
        evidence=DRIVER,
    )
    box_bytes: int = _box_bytes()
    smem_alignment: int = _smem_alignment()

    _row_name: ClassVar[str] = "the innermost box row"
    _row_field: ClassVar[str] = "box dimension 0"
    _box_note: ClassVar[str] = " (each dimension divided by its element stride)"

    @property
    def row_elements(self) -> int:
        """Elements of a box row."""
        return self.box[0]

    @property
    def derived_box_bytes(self) -> int:
        """Bytes of the box as the driver counts them: each size over its element stride, rounded down."""
        size = TYPES[self.dtype].bits
        for extent, stride in zip(self.box, self.element_strides, strict=True):
            size *= extent if stride == 1 else extent // stride
        return size // 8

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that the documents forbid or the driver would write otherwise."""
        remarks = super().warnings()
        if any(b % s for b, s in zip(self.box, self.element_strides, strict=True)):
            remarks += (
                "box not divisible by the element stride: the driver's note rounds down, a copy takes the positions "
                "rounded up",
            )
        return remarks

    def positions(self, mode: CopyMode, halo: int) -> tuple[int, ...]:
        """Rows that a copy takes, by dimension without the one along a row, innermost first."""
        if mode == "tile::gather4":
            if self.rank != 2 or self.box[1] != 1:
                refuse("box", "one row of a matrix with mode tile::gather4", self.box)
            return (_GATHERED,)
        taken = [len(steps(0, extent, stride)) for extent, stride in zip(self.box, self.element_strides, strict=True)]
        if self.interleave == "none":
            return tuple(taken[1:])
        # A slice of the channels is a row; the box takes one, whatever it says of them (measured).
        taken[self.rank - 2] = 1
        return tuple(taken)

    def _title(self) -> str:
        return f"TensorMap {self.mode}, {self.dtype}, box {' x '.join(map(str, self.box))} (innermost first)"


#: Spans of the corners' numbers, by how many there are: 16, 8 or 5 bits each; the upper corner's in the upper half.
_CORNERS = {1: 16, 2: 8, 3: 5}


def _corner(half: int, name: str) -> Any:
    return array(
        {
            count: [[word(14, 16 * half + bits * j, 16 * half + bits * j + bits - 1)] for j in range(count)]
            for count, bits in _CORNERS.items()
        },
        length="rank",
        length_bias=-2,
        label=lambda j: f"{name} corner in {_AXES[j]}",
        signed=True,
        unit="pixels",
        evidence=DRIVER,
    )


_AXES = ("width", "height", "depth")


class Im2colMap(TensorMap, bits=1024, word_bits=WORD_BITS):
    """A map of columns: `pixels_per_column` pixels of `channels_per_pixel` elements.

    The pixels that a filter's origin may be at run from `pixel_box_lower` to the size - 1 + `pixel_box_upper`, in
    width, height and depth.
    """

    mode: str = field(*word(2, 0, 0), default="im2col", values={"im2col": 1}, evidence=DRIVER)
    pixel_box_lower: tuple[int, ...] = _corner(0, "lower")
    pixel_box_upper: tuple[int, ...] = _corner(1, "upper")
    channels_per_pixel: int = field(
        *word(13, 24, 31), bias=1, rule="an integer from 1 to 256 elements", unit="elements", evidence=DRIVER
    )
    pixels_per_column: int = field(
        *whole(15), bias=1, maximum=1024, rule="an integer from 1 to 1024 pixels", unit="pixels", evidence=DRIVER
    )
    box_bytes: int = _box_bytes()
    smem_alignment: int = _smem_alignment()

    def __post_init__(self) -> None:
        if as_int(self.rank) in (1, 2):
            refuse("rank", "3, 4 or 5 for im2col", self.rank)
        super().__post_init__()

    _row_name: ClassVar[str] = "the channels of a pixel"
    _row_field: ClassVar[str] = "channels_per_pixel"
    _box_note: ClassVar[str] = " (channels times pixels)"

    @property
    def row_elements(self) -> int:
        """Channels of a pixel."""
        return self.channels_per_pixel

    @property
    def derived_box_bytes(self) -> int:
        """Bytes of a column."""
        return self.channels_per_pixel * self.pixels_per_column * TYPES[self.dtype].bits // 8

    @property
    def spatial_dims(self) -> tuple[int, ...]:
        """The sizes that the corners count from: with interleave the driver takes the first dimensions for them."""
        first = 1 if self.interleave == "none" else 0
        return self.dims[first : first + self.rank - 2]

    def _check(self) -> None:
        super()._check()
        for axis, size in enumerate(self.spatial_dims):
            lower, upper = self.pixel_box_lower[axis], self.pixel_box_upper[axis]
            if size + upper - lower < 1:
                refuse(
                    f"the pixel box in {_AXES[axis]}",
                    f"at least one pixel, from {lower} to {size} - 1 + {upper}",
                    size + upper - lower,
                )

    def positions(self, mode: CopyMode, halo: int) -> tuple[int, ...]:
        """Pixels that a copy takes, those of a halo included."""
        if mode == "im2col::w::128":
            return (_WIDE + _WIDE_GROUPS * halo,)
        return (self.pixels_per_column + halo,)

    def _title(self) -> str:
        pixels = f"{self.pixels_per_column} pixels of {self.channels_per_pixel} channels"
        return f"TensorMap {self.mode}, {self.dtype}, {pixels}"

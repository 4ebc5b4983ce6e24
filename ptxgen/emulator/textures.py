"""Texture and surface objects of the emulator, and which texels a fetch reads.

The bits of a GPU's object are not public, so a handle is the address of a record of ours in global memory:
`Texture.encode` makes it, and `ptxgen exec` one for each object of a program. Numbers of formats and modes are those of
the CUDA Driver API (CUarray_format, CUaddress_mode, CUfilter_mode). Fetches address and filter as the CUDA C++
Programming Guide says ("Texture Fetching"); how fractions and sums of linear filters are rounded is inferred.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Format = Literal["u8", "u16", "u32", "s8", "s16", "s32", "f16", "f32"]
AddressMode = Literal["wrap", "clamp", "mirror", "border"]

_FORMATS: dict[Format, int] = {"u8": 1, "u16": 2, "u32": 3, "s8": 8, "s16": 9, "s32": 10, "f16": 16, "f32": 32}
_ADDRESS_MODES: tuple[AddressMode, ...] = ("wrap", "clamp", "mirror", "border")
_DTYPES: dict[Format, type[np.generic]] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "s8": np.int8, "s16": np.int16, "s32": np.int32,
    "f16": np.float16, "f32": np.float32,
}  # fmt: skip
_FORMAT_OF: dict[int, Format] = {number: name for name, number in _FORMATS.items()}

#: Mark, address, width, height, depth, layers, pitch, slice, format, channels, three address modes, filter, flags and
#: border (struct Record of driver/native/arrays.c).
_RECORD = struct.Struct("<QQ4I2Q2I3I2I4f4x")
RECORD_BYTES = _RECORD.size
_MARK = 0x3152555458455450  # "PTEXTUR1"
#: CU_TRSF_READ_AS_INTEGER and CU_TRSF_NORMALIZED_COORDINATES.
_READ_AS_INTEGER, _NORMALIZED_COORDINATES = 1, 2
#: Faces of a cube map: +x, -x, +y, -y, +z, -z.
FACES = 6
#: Fractions of a linear filter have 8 bits (Programming Guide, "Linear Filtering").
_FRACTIONS = 256


@dataclass(frozen=True)
class Texture:
    """A texture or surface object: texels at `address` of global memory, and how fetches read them.

    `height`, `depth` and `layers` are 0 where there is no such dimension; `pitch` is the bytes from a row to the next,
    `slice` from a layer or a plane to the next (0: rows, or planes, without a gap). A texel has `channels` (1, 2 or 4)
    values of `format`. `border` is what the mode of this name fetches outside. With `normalized` coordinates go from 0
    to 1; only these wrap and mirror, others are clamped. `as_float`: integers of 8 and 16 bits are fetched as floats
    from 0 (-1) to 1. Raises ValueError for what no object can be.
    """

    address: int
    format: Format
    width: int
    height: int = 0
    depth: int = 0
    layers: int = 0
    channels: int = 1
    pitch: int = 0
    slice: int = 0
    address_modes: tuple[AddressMode, AddressMode, AddressMode] = ("clamp", "clamp", "clamp")
    filter: Literal["point", "linear"] = "point"
    normalized: bool = False
    as_float: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise ValueError(f"the format of a texture must be {', '.join(_FORMATS)}, not {self.format}")
        if self.channels not in (1, 2, 4):
            raise ValueError(f"a texel has 1, 2 or 4 channels, not {self.channels}")
        if self.width < 1:
            raise ValueError(f"the width of a texture must be at least 1, not {self.width}")
        if self.filter == "linear" and not self.is_float:
            raise ValueError(f"linear filtering takes floats: format f16 or f32, or as_float; not {self.format}")

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(_DTYPES[self.format])

    @property
    def is_float(self) -> bool:
        """Whether fetches return floats."""
        return self.format in ("f16", "f32") or (self.as_float and self.dtype.itemsize < 4)

    @property
    def texel_bytes(self) -> int:
        return self.channels * self.dtype.itemsize

    @property
    def row_pitch(self) -> int:
        return self.pitch or self.width * self.texel_bytes

    @property
    def plane_pitch(self) -> int:
        return self.slice or self.row_pitch * max(self.height, 1)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Width, height and depth; 1 where there is none."""
        return self.width, max(self.height, 1), max(self.depth, 1)

    def encode(self) -> bytes:
        """The record that a handle points to."""
        flags = _READ_AS_INTEGER * (not self.as_float) | _NORMALIZED_COORDINATES * self.normalized
        return _RECORD.pack(
            _MARK, self.address, self.width, self.height, self.depth, self.layers, self.pitch, self.slice,
            _FORMATS[self.format], self.channels, *map(_ADDRESS_MODES.index, self.address_modes),
            self.filter == "linear", flags, *self.border,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> Texture:
        """The object of a record. Raises ValueError for bytes that are none."""
        mark, address, *sizes, pitch, plane, format, channels, mode_x, mode_y, mode_z, linear, flags = _RECORD.unpack(
            data
        )[:-4]
        if mark != _MARK or format not in _FORMAT_OF or max(mode_x, mode_y, mode_z) >= len(_ADDRESS_MODES):
            raise ValueError("no texture or surface object is there")
        width, height, depth, layers = sizes
        modes = _ADDRESS_MODES[mode_x], _ADDRESS_MODES[mode_y], _ADDRESS_MODES[mode_z]
        border = _RECORD.unpack(data)[-4:]
        return cls(
            address, _FORMAT_OF[format], width, height, depth, layers, channels, pitch, plane, modes,
            "linear" if linear else "point", bool(flags & _NORMALIZED_COORDINATES), not flags & _READ_AS_INTEGER,
            (border[0], border[1], border[2], border[3]),
        )  # fmt: skip

    def addresses(self, texels: tuple[NDArray[np.int64], ...], layer: NDArray[np.int64]) -> NDArray[np.int64]:
        """The addresses of texels (x, y, z) in layers."""
        x, y, z = texels
        return self.address + (z + layer) * self.plane_pitch + y * self.row_pitch + x * self.texel_bytes

    def values(self, read: list[NDArray[np.generic]]) -> list[NDArray[np.generic]]:
        """The four components of texels, as fp32 or 32-bit integers: those that are no channels are 0, the last 1."""
        if self.is_float:
            made: list[NDArray[np.generic]] = [self._floats(each) for each in read]
            absent = np.float32
        else:
            absent = np.int32 if self.format.startswith("s") else np.uint32
            made = [each.astype(absent) for each in read]
        return made + [np.full(read[0].shape, index == 3, absent) for index in range(len(made), 4)]

    def _floats(self, read: NDArray[np.generic]) -> NDArray[np.float32]:
        if self.format in ("f16", "f32"):
            return read.astype(np.float32)
        bits = 8 * self.dtype.itemsize - self.format.startswith("s")
        largest = np.float32(2**bits - 1)
        return np.maximum(read.astype(np.float32) / largest, np.float32(-1))


@dataclass(frozen=True)
class Corner:
    """One texel of a fetch for each lane: where it is, whether there is one, and its weight (linear filters)."""

    texels: tuple[NDArray[np.int64], ...]
    inside: NDArray[np.bool_]
    weight: NDArray[np.float32]


def corners(
    texture: Texture, coordinates: list[NDArray[np.generic]], offsets: list[NDArray[np.int64]], *, linear: bool
) -> list[Corner]:
    """The texels that a fetch at coordinates reads: one, or with a linear filter 2 in each dimension, x fastest.

    Integer coordinates number texels, and filter nothing. `offsets` are added to the numbers of the texels.
    """
    linear = linear and np.issubdtype(coordinates[0].dtype, np.floating)
    axes = [
        _along(texture, axis, coordinate, offset, linear=linear)
        for axis, (coordinate, offset) in enumerate(zip(coordinates, offsets, strict=True))
    ]
    shape = coordinates[0].shape
    found = [Corner((), np.ones(shape, np.bool_), np.ones(shape, np.float32))]
    for choices in reversed(axes):
        found = [
            Corner((texel, *corner.texels), corner.inside & inside, corner.weight * weight)
            for corner in found
            for texel, inside, weight in choices
        ]
    zero = np.zeros(shape, np.int64)
    return [Corner((*each.texels, *[zero] * (3 - len(axes))), each.inside, each.weight) for each in found]


def on_cube(
    direction: list[NDArray[np.generic]],
) -> tuple[NDArray[np.int64], list[NDArray[np.generic]]]:
    """The face of a cube that a direction (x, y, z) hits, and its normalized coordinates there ("Cubemap Textures")."""
    x, y, z = (each.astype(np.float32) for each in direction)
    sizes = np.abs([x, y, z])
    axis = sizes.argmax(axis=0)
    major = np.choose(axis, (x, y, z))
    negative = np.signbit(major)
    s = np.choose(axis, (np.where(negative, z, -z), x, np.where(negative, -x, x)))
    t = np.choose(axis, (-y, np.where(negative, -z, z), -y))
    with np.errstate(divide="ignore", invalid="ignore"):
        along = [(each / np.abs(major) + np.float32(1)) / np.float32(2) for each in (s, t)]
    return 2 * axis.astype(np.int64) + negative, [*along]


def _along(
    texture: Texture, axis: int, coordinate: NDArray[np.generic], offset: NDArray[np.int64], *, linear: bool
) -> list[tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float32]]]:
    """Of one dimension: the numbers of the texels, which of them exist, and their weights."""
    size, mode = texture.sizes[axis], texture.address_modes[axis]
    one = np.ones(coordinate.shape, np.float32)
    if not np.issubdtype(coordinate.dtype, np.floating):
        mode = mode if mode == "border" else "clamp"
        return [(*_place(coordinate.astype(np.int64) + offset, size, mode), one)]
    at = coordinate.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        if texture.normalized:
            if mode == "wrap":
                at = at - np.floor(at)
            at = at * np.float32(size)
        elif mode in ("wrap", "mirror"):
            mode = "clamp"
        # Beyond these bounds all is outside alike; NaN goes to the first texel.
        at = np.nan_to_num(np.clip(at, -(2.0**30), 2.0**30))
        if not linear:
            return [(*_place(np.floor(at).astype(np.int64) + offset, size, mode), one)]
        at = at - np.float32(0.5)
        first = np.floor(at)
        fraction = np.rint((at - first) * _FRACTIONS).astype(np.float32) / np.float32(_FRACTIONS)
        number = first.astype(np.int64) + offset
    return [
        (*_place(number, size, mode), np.float32(1) - fraction),
        (*_place(number + 1, size, mode), fraction),
    ]


def _place(number: NDArray[np.int64], size: int, mode: AddressMode) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The texel that a number outside 0 to size - 1 stands for, and whether there is one."""
    everywhere = np.ones(number.shape, np.bool_)
    if mode == "wrap":
        return number % size, everywhere
    if mode == "mirror":
        turned = number % (2 * size)
        return np.where(turned < size, turned, 2 * size - 1 - turned), everywhere
    clamped = np.clip(number, 0, size - 1)
    return clamped, everywhere if mode == "clamp" else clamped == number

"""`TensorMap`: the 128-byte CUtensorMap, encoded and decoded without a driver.

The rules are those of the driver's calls (CUDA driver API, Tensor Map Object Management). No manual gives the bits:
they were measured by varying one argument at a time on an H200 (driver 580.159.04) and with tensormap.replace; the
codes that only Blackwell has were read off the machine code that ptxas makes of tensormap.replace. What both kinds of
maps share is here, the rest in `formats`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.errors import DescriptorError, as_int, choices, refuse, require
from ptxgen.descriptors.evidence import inferred, measured
from ptxgen.descriptors.fields import array, field
from ptxgen.descriptors.reading import Reading
from ptxgen.descriptors.tensormap.tables import (
    HOPPER_SWIZZLES,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLE_ALIGNMENTS,
    SWIZZLE_CODES,
    SWIZZLE_ROWS,
    TYPE_CODES,
    TYPES,
    WIDE_MODES,
    name_of,
)
from ptxgen.descriptors.tensormap.transfer import CopyMode, transfer
from ptxgen.limits import shared_per_sm

if TYPE_CHECKING:
    from ptxgen.descriptors.tensormap.formats import Im2colMap, TiledMap

DRIVER = measured("H200, driver 580.159.04: cuTensorMapEncodeTiled and Im2col, one argument varied at a time")
_DRIVER_AND_SASS = measured(f"{DRIVER.source}; codes new in Blackwell inferred from the SASS of tensormap.replace")
METADATA = measured(f"{DRIVER.source}; instructions never write these words, so hardware is inferred to ignore them")
_LARGE = inferred(
    "ptxas 13.5 tests this bit for tensormap.query.alloc_class_large; drivers up to 13.1 set it on Blackwell whatever "
    "the size, and CUTLASS (copy_traits_sm90_tma.hpp) and Triton clear it below 128 KiB; 0 in all maps of the H200"
)
WORD_BITS = 32
#: The largest box: the H200's driver takes 233472 bytes, not 235520; the SM's shared memory (inferred).
MAX_BOX_BYTES = shared_per_sm("sm_90a")
_PADDED_SWIZZLES: dict[str, tuple[str, ...]] = {
    "16u4_align16b": ("none", "128B", "128B_atom_32B"),
    "16u6_align16b": ("none", "128B", "128B_atom_32B", "128B_atom_64B"),
}
#: Floating-point element types of tensormaps, with their NumPy and ml_dtypes names.
FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "tf32": "float32", "f64": "float64"}
#: Values in a row of a padded type's box (96 or 64 bytes of global memory).
PADDED_ROW = 128


def word(index: int, low: int, high: int) -> tuple[int, int]:
    """The span of some bits of a 32-bit word."""
    return index * WORD_BITS + low, index * WORD_BITS + high


def whole(index: int) -> tuple[int, int]:
    """The span of a 32-bit word."""
    return word(index, 0, WORD_BITS - 1)


class TensorMap(BitStruct, bits=1024, word_bits=WORD_BITS):
    """A CUtensorMap. Make one with `TensorMap.tiled`, `.im2col` or `.im2col_wide`, or `TensorMap.decode` 128 bytes.

    `dims` and `element_strides` are in elements, innermost first; `strides` in bytes, of dimensions 1 and up.
    `box_bytes` and `smem_alignment` are the driver's notes about the box, derived unless given.
    """

    #: The two kinds of maps by their `mode`, in the order of its code.
    formats: ClassVar[dict[str, Any]] = {}
    if TYPE_CHECKING:  # declared by each kind, after its box
        mode: str = field(0, 0, default="")
        box_bytes: int = field(0, 0, default=None)
        smem_alignment: int = field(0, 0, default=None)

    rank: int = field(*word(2, 4, 6), bias=1, maximum=5, evidence=DRIVER)
    dtype: str = field(*word(2, 7, 10), also=(word(2, 16, 16),), values=TYPE_CODES, evidence=_DRIVER_AND_SASS)
    address: int = field(
        0,
        63,
        align=16,
        maximum=(1 << 57) - 16,
        rule="a multiple of 16 (32 with 32-byte interleave) from 0 to below 2^57",
        doc="global address",
        evidence=DRIVER,
    )
    dims: tuple[int, ...] = array(
        [[whole(8 + j)] for j in range(5)],
        length="rank",
        label=lambda j: f"dimension {j}",
        bias=1,
        rule="an integer from 1 to 2^32 elements",
        unit="elements",
        evidence=DRIVER,
    )
    strides: tuple[int, ...] = array(
        [[whole(3 + j), word(7, 4 * j, 4 * j + 3)] for j in range(4)],
        length="rank",
        length_bias=-1,
        label=lambda j: f"stride of dimension {j + 1}",
        scale=16,
        rule="a multiple of 16 bytes (32 with 32-byte interleave) from 0 to below 2^40",
        unit="bytes",
        evidence=DRIVER,
    )
    element_strides: tuple[int, ...] = array(
        [[word(13, 3 * j, 3 * j + 2)] for j in range(5)],
        length="rank",
        label=lambda j: f"element stride of dimension {j}",
        bias=1,
        rule="an integer from 1 to 8",
        evidence=DRIVER,
    )
    interleave: str = field(*word(2, 11, 12), default="none", values=INTERLEAVES, evidence=DRIVER)
    swizzle: str = field(
        *word(2, 13, 14),
        also=(word(2, 19, 20), word(2, 22, 22)),
        default="none",
        values=SWIZZLE_CODES,
        evidence=_DRIVER_AND_SASS,
    )
    oob_fill: str = field(*word(2, 15, 15), default="none", values=OOB_FILLS, evidence=DRIVER)
    l2_promotion: str = field(*word(2, 17, 18), default="none", values=L2_PROMOTIONS, evidence=DRIVER)
    alloc_class_large: bool = field(*word(2, 21, 21), default=False, flag=True, evidence=_LARGE)

    def __init_subclass__(cls, *, bits: int, word_bits: int = 0) -> None:
        super().__init_subclass__(bits=bits, word_bits=word_bits)
        if "mode" in cls.bit_fields:
            (name,) = cls.bit_fields["mode"].values or {}
            TensorMap.formats[name] = cls

    # Making maps.

    @classmethod
    def tiled(
        cls,
        dtype: str | int,
        array_or_address: Any,
        dims: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        *,
        element_strides: Sequence[int] | None = None,
        interleave: str | int = "none",
        swizzle: str | int = "none",
        l2_promotion: str | int = "none",
        oob_fill: str | int = "none",
        target: str | None = None,
    ) -> TiledMap:
        """Return the map that cuTensorMapEncodeTiled makes of the same arguments (its order, without rank).

            >>> from ptxgen.descriptors import TensorMap
            >>> made = TensorMap.tiled("bf16", 0x7F0000000000, (512, 512), (1024,), (64, 128), swizzle="128B")
            >>> len(made.encode()), TensorMap.decode(made.encode()) == made
            (128, True)

        `dims`, `box`, `element_strides`: elements, innermost first; `strides`: bytes, dimensions 1 and up.
        Enums and `dtype` take the driver's number or the short name, in any case. `array_or_address` is a
        global address or an object with `.address`. With `target` (such as "sm_90a") what only later
        generations have is refused, without it anything goes that some generation accepts.

        Rank 1 has no strides. The driver requires a pointer to them all the same, which it does not read: like the
        driver's binding, which makes a null pointer of an empty list, this refuses empty `strides` with a bare
        address, and takes one number, whatever it is. With an array, no strides are needed.

        Raises DescriptorError naming the broken rule and the values.
        """
        shape = _numbers("dims", dims)
        given = _numbers("strides", strides)
        if len(shape) == 1:
            _require_pointer(given, array_or_address)
            given = given[1:]
        values = cls._common(
            shape, dtype, array_or_address, given, element_strides, interleave, swizzle, l2_promotion, oob_fill
        )
        values["box"] = _numbers("box", box)
        return _finished("tiled", values, target)

    @classmethod
    def im2col(
        cls,
        dtype: str | int,
        array_or_address: Any,
        dims: Sequence[int],
        strides: Sequence[int],
        pixel_box_lower: Sequence[int],
        pixel_box_upper: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: Sequence[int] | None = None,
        interleave: str | int = "none",
        swizzle: str | int = "none",
        l2_promotion: str | int = "none",
        oob_fill: str | int = "none",
        target: str | None = None,
    ) -> Im2colMap:
        """Return the map that cuTensorMapEncodeIm2col makes of the same arguments (its order, without rank).

        A tensor of rank 3 to 5: channels, width, height, depth, images, the innermost first. The corners have one
        number for each of width, height and depth, in this order: how far the lower one is from the first pixel, the
        upper one from the last. The other arguments and the errors are those of `tiled`.
        """
        shape = _numbers("dims", dims)
        values = cls._common(
            shape,
            dtype,
            array_or_address,
            _numbers("strides", strides),
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
        )
        values["pixel_box_lower"] = _numbers("pixel_box_lower", pixel_box_lower)
        values["pixel_box_upper"] = _numbers("pixel_box_upper", pixel_box_upper)
        values["channels_per_pixel"], values["pixels_per_column"] = channels_per_pixel, pixels_per_column
        return _finished("im2col", values, target)

    @classmethod
    def im2col_wide(
        cls,
        dtype: str | int,
        array_or_address: Any,
        dims: Sequence[int],
        strides: Sequence[int],
        pixel_box_lower: int,
        pixel_box_upper: int,
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        wide_mode: str | int,
        element_strides: Sequence[int] | None = None,
        interleave: str | int = "none",
        swizzle: str | int = "none",
        l2_promotion: str | int = "none",
        oob_fill: str | int = "none",
        target: str | None = None,
    ) -> Im2colMap:
        """Return the map that cuTensorMapEncodeIm2colWide makes of the same arguments (its order, without rank).

        As `im2col`, with corners of the width alone. The bytes are those of an im2col map whose other corners are 0
        (measured, H200, driver 580: it has the call, but no instruction for these maps): `wide_mode`, "w" or "w128",
        is nowhere in them, the instruction chooses.
        """
        name_of("wide_mode", wide_mode, WIDE_MODES)
        shape = _numbers("dims", dims)
        spatial = len(shape) - 2
        if name_of("interleave", interleave, INTERLEAVES) != "none":
            refuse("interleave", "none for the wide modes (PTX ISA 5.5.6)", interleave)
        return cls.im2col(
            dtype,
            array_or_address,
            shape,
            strides,
            (pixel_box_lower, *[0] * (spatial - 1)),
            (pixel_box_upper, *[0] * (spatial - 1)),
            channels_per_pixel,
            pixels_per_column,
            element_strides=element_strides,
            interleave=interleave,
            swizzle=swizzle,
            l2_promotion=l2_promotion,
            oob_fill=oob_fill,
            target=target,
        )

    @staticmethod
    def _common(
        shape: tuple[Any, ...],
        dtype: object,
        array_or_address: Any,
        strides: tuple[Any, ...],
        element_strides: object,
        interleave: object,
        swizzle: object,
        l2_promotion: object,
        oob_fill: object,
    ) -> dict[str, Any]:
        rank = len(shape)
        if not 1 <= rank <= 5:
            refuse("dims", "a sequence of 1 to 5 integers (the rank)", rank)
        name = name_of("dtype", dtype, TYPES)
        _require_array(name, array_or_address, shape, strides)
        return {
            "rank": rank,
            "dtype": name,
            "address": getattr(array_or_address, "address", array_or_address),
            "dims": shape,
            "strides": strides,
            "element_strides": (1,) * rank if element_strides is None else _numbers("element_strides", element_strides),
            "interleave": name_of("interleave", interleave, INTERLEAVES),
            "swizzle": name_of("swizzle", swizzle, SWIZZLE_CODES),
            "l2_promotion": name_of("l2_promotion", l2_promotion, L2_PROMOTIONS),
            "oob_fill": name_of("oob_fill", oob_fill, OOB_FILLS),
        }

    # What the fields mean.

    @property
    def row_elements(self) -> int:
        """Elements of the innermost dimension that a copy takes: of the box, or channels of a pixel."""
        raise NotImplementedError

    @property
    def derived_box_bytes(self) -> int:
        """Bytes of a copy as the driver counts them."""
        raise NotImplementedError

    @property
    def element_bits(self) -> int:
        """Bits of one element in shared memory (8 for the packed types padded to 16 bytes)."""
        return TYPES[self.dtype].bits

    @property
    def inner_bytes(self) -> int:
        """Bytes of one row in shared memory."""
        return self.row_elements * TYPES[self.dtype].bits // 8

    @property
    def derived_smem_alignment(self) -> int:
        """Shared-memory alignment that the driver notes, bytes: the swizzle's pattern boundary."""
        return SWIZZLE_ALIGNMENTS[self.swizzle]

    # Rules.

    def _check(self) -> None:
        kind = TYPES[self.dtype]
        if self.interleave != "none" and self.rank < 3:
            refuse("rank", f"3 to 5 with interleave {self.interleave}", self.rank)
        if self.interleave == "32B" or kind.padded:
            self._check_alignment("with 32-byte interleave" if self.interleave == "32B" else f"for {self.dtype}")
        if kind.packed_bits:
            self._check_packed()
        self._check_box()
        if self.oob_fill != "none" and not kind.floating:
            refuse("oob_fill", f'"none" for {self.dtype}, no float type', self.oob_fill)

    def _check_alignment(self, why: str) -> None:
        require(self.address % 32 == 0, "address", f"a multiple of 32 {why}", self.address)
        for j, stride in enumerate(self.strides):
            require(stride % 32 == 0, f"stride of dimension {j + 1}", f"a multiple of 32 bytes {why}", stride)

    def _check_box(self) -> None:
        bits = self.row_elements * TYPES[self.dtype].bits
        if bits & 127:
            raise DescriptorError(
                f"{self._row_name} must be a multiple of 16 bytes, not {bits / 8:g} "
                f"({self.row_elements} elements of {self.element_bits} bits)"
            )
        if self.interleave == "none" and self.swizzle != "none":
            widest = SWIZZLE_ROWS[self.swizzle]
            if bits > 8 * widest:
                refuse(self._row_name, f"at most {widest} bytes with swizzle {self.swizzle}", self.inner_bytes)
        elif self.swizzle == "96B":
            refuse("interleave", "none with swizzle 96B", self.interleave)
        if self.derived_box_bytes > MAX_BOX_BYTES:
            refuse("the box", f"at most {MAX_BOX_BYTES} bytes{self._box_note}", self.derived_box_bytes)

    _row_name: ClassVar[str] = "the innermost row"
    _row_field: ClassVar[str] = ""
    _box_note: ClassVar[str] = ""

    def _check_packed(self) -> None:
        padded = TYPES[self.dtype].padded
        step = PADDED_ROW if padded else 2
        require(self.dims[0] % step == 0, "dimension 0", f"a multiple of {step} for {self.dtype}", self.dims[0])
        if padded:
            row = self.row_elements
            require(row == PADDED_ROW, self._row_field, f"{PADDED_ROW} for {self.dtype}", row)
            legal = _PADDED_SWIZZLES[self.dtype]
            require(self.swizzle in legal, "swizzle", f"{choices(legal)} for {self.dtype}", self.swizzle)
        if self.dtype == "16u6_align16b":
            require(self.interleave == "none", "interleave", f"none for {self.dtype}", self.interleave)

    def require_target(self, target: object) -> None:
        """Raise DescriptorError where the map has what only later generations than `target` have."""
        found = re.fullmatch(r"sm_(\d+)[af]?", target) if isinstance(target, str) else None
        if found is None or int(found[1]) < 90:
            refuse("target", "sm_90 or later (tensormaps are new there)", target)
        if int(found[1]) >= 100:
            return
        require(
            not TYPES[self.dtype].packed_bits, "dtype", f"no packed type for {target} (sm_100 or later)", self.dtype
        )
        require(self.swizzle in HOPPER_SWIZZLES, "swizzle", f"{choices(HOPPER_SWIZZLES)} for {target}", self.swizzle)

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that the documents forbid or the driver would write otherwise."""
        remarks = []
        if self.interleave == "32B" and self.swizzle != "32B":
            remarks.append(
                "the driver's documents require swizzle 32B with interleave 32B; "
                f"the H200's driver accepts {self.swizzle} too"
            )
        if self.box_bytes != self.derived_box_bytes:
            remarks.append(f"the box has {self.derived_box_bytes} bytes, the driver's note says {self.box_bytes}")
        if self.smem_alignment != self.derived_smem_alignment:
            remarks.append(
                f"the swizzle aligns to {self.derived_smem_alignment} bytes, "
                f"the driver's note says {self.smem_alignment}"
            )
        if TYPES[self.dtype].packed_bits or self.swizzle not in HOPPER_SWIZZLES:
            remarks.append(f"Blackwell only: {inferred('documents and SASS; no driver has checked these bytes')}")
        if self.alloc_class_large:
            remarks.append("bit 21 of word 2 is set, as drivers do on Blackwell; below 128 KiB it must be cleared")
        return tuple(remarks)

    @property
    def transfer_bytes(self) -> int:
        """Bytes that a copy through the map moves: what expect_tx must announce, fill outside the tensor included.

        Of the plainest mode, .tile or .im2col; `transfer` has the others.
        """
        return transfer(self).bytes

    def positions(self, mode: CopyMode, halo: int) -> tuple[int, ...]:
        """Rows that a copy takes, by dimension without the one along a row, innermost first; of pixels one number."""
        raise NotImplementedError

    def notes(self) -> tuple[str, ...]:
        """Return what a copy through the map moves."""
        return (f"a copy moves {self.transfer_bytes} bytes: announce them with expect_tx",)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; the driver's notes are derived anew unless given."""
        return super().replace(**{"box_bytes": None, "smem_alignment": None, **changes})

    # Bytes.

    def encode(self) -> bytes:
        """Return the 128 bytes of the CUtensorMap."""
        return self._encode().to_bytes(128, "little")

    @classmethod
    def decode(cls, data: bytes) -> TiledMap | Im2colMap:
        """Return the map that 128 bytes hold, made by the driver or by tensormap.replace.

        DescriptorError lists reserved bits that are set, illegal codes, and broken rules of the encoder.
        """
        if not isinstance(data, bytes | bytearray | memoryview) or memoryview(data).nbytes != 128:
            given = data if not isinstance(data, bytes | bytearray | memoryview) else f"{memoryview(data).nbytes} bytes"
            refuse("a tensormap", "128 bytes", given)
        encoded = int.from_bytes(bytes(data), "little")
        return _kind(encoded)._decode(encoded)

    @classmethod
    def read(cls, encoded: int | bytes, **facts: Any) -> Reading:
        """Return what every bit means, legal or not, in a map of the kind that its lowest mode bit names."""
        if cls is not TensorMap:
            return super().read(encoded, **facts)
        bits = int.from_bytes(encoded, "little") if isinstance(encoded, bytes) else encoded
        return _kind(as_int(bits) or 0).read(bits, **facts)

    @classmethod
    def _name(cls) -> str:
        return "TensorMap"

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        new = values["swizzle"] not in HOPPER_SWIZZLES or TYPES[values["dtype"]].packed_bits
        shown = {"128B_atom_32B_flip_8B": ("tma-flip-8b",), "96B": ("tma-swizzle-96b",)}.get(values["swizzle"], ())
        large = ("tensormap-bit-85",) if values["alloc_class_large"] else ()
        return ("tensormap-bits", *(("tensormap-blackwell-bits",) if new else ()), *large, *shown)


_MODE = word(2, 0, 0)[0]


def _kind(encoded: int) -> type[TiledMap] | type[Im2colMap]:
    return tuple(TensorMap.formats.values())[encoded >> _MODE & 1]


def _finished(mode: str, values: dict[str, Any], target: str | None) -> Any:
    made = TensorMap.formats[mode].of(values)
    if target is not None:
        made.require_target(target)
    return made


def _numbers(what: str, values: object) -> tuple[Any, ...]:
    if type(values) is list or type(values) is tuple:
        return tuple(values)
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        refuse(what, "a sequence of integers", values)
    return tuple(values)  # type: ignore[arg-type]


def _require_array(dtype: str, array: Any, dims: tuple[Any, ...], strides: tuple[Any, ...]) -> None:
    """That an array holds what the map describes: floats of the same type (integers are raw bits), and no fewer bytes.

    Raises DescriptorError, with both sides.
    """
    given, size = getattr(array, "dtype", None), getattr(array, "nbytes", None)
    kind = TYPES[dtype]
    if given is not None and kind.floating:
        held, wanted = str(given), FLOATS[kind.element.name]
        if "float" in held and held.removeprefix("torch.") != wanted:
            raise DescriptorError(
                f"a map of {dtype} takes an array of {wanted}, or unsigned integers with its bits, not one of {held} "
                f"with shape {tuple(array.shape)}"
            )
    extents = [*map(as_int, dims)], [*map(as_int, strides)]
    if not isinstance(size, int) or any(each is None or each < 0 for each in [*extents[0], *extents[1]]):
        return  # the fields say what is wrong with them
    inner, *outer = (each or 0 for each in extents[0])
    if 0 in (inner, *outer):
        return
    last = sum((extent - 1) * (stride or 0) for extent, stride in zip(outer, extents[1], strict=False))
    needed = last + -(-inner * kind.global_bits // 8)
    if needed > size:
        raise DescriptorError(
            f"the map reaches {needed} bytes (dims {dims}, strides {strides} of {dtype}), but the array of shape "
            f"{tuple(array.shape)} and type {given} has {size}"
        )


def _require_pointer(strides: tuple[Any, ...], array_or_address: object) -> None:
    """The strides of a tensor of rank 1: none, or what the driver needs a pointer to. Raises DescriptorError."""
    if len(strides) > 1:
        refuse("strides", "empty, or one number that is not read, with rank 1", list(strides))
    if not strides and not hasattr(array_or_address, "address"):
        wanted = "a list of one number, such as [0], with rank 1 (the driver refuses a null pointer, and reads none)"
        refuse("strides", wanted, [])

"""Shared-memory matrix descriptors: `SmemDescriptor` of tcgen05 and `WgmmaDescriptor` of wgmma, 64 bits each.

PTX ISA 9.7.16.4.1 (table 40) and 9.7.15.5.1.2.2; CUTLASS include/cute/arch/mma_sm100_desc.hpp and
mma_sm90_desc.hpp name the same bits. Where an operand's elements lie is in `ptxgen.layouts.operands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.errors import DescriptorError
from ptxgen.descriptors.evidence import documented, measured
from ptxgen.descriptors.fields import constant, context, field
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.limits import shared_per_sm

_TABLE_40 = documented("PTX ISA 9.7.16.4.1, table 40")
_WGMMA = documented("PTX ISA 9.7.15.5.1.2.2")
_XOR = measured("H200 with wgmma: chunk ^= (address >> 7) - base_offset; tcgen05 by analogy")

ADDRESS_MASK = 0x3FFFF
"""The address bits that a descriptor keeps: a shared::cluster address loses its CTA rank."""


_UNIT = 16
#: Bytes between swizzled blocks of MN that are more likely an offset in bytes in a field of units.
_FAR = 64 << 10
"""Bytes of a unit of addresses and offsets."""

_SHARED = shared_per_sm("sm_90a")
"""Bytes of the largest shared memory, which ends below what 14 bits of units reach."""
_START_RULE = f"a multiple of {_UNIT} from 0 to {_SHARED - _UNIT} bytes (shared memory has {_SHARED // 1024} KiB)"

_STRIDES: dict[tuple[str, bool], tuple[str, str]] = {
    ("k", False): ("between 16-byte chunks of K", "between groups of 8 rows"),
    ("k", True): ("ignored", "between groups of 8 rows"),
    ("mn", False): ("between groups of 8 K", "between 16-byte chunks of MN"),
    ("mn", True): ("between row-wide blocks of MN", "between groups of 8 K"),
}
"""What LBO and SBO step over, by major-ness and whether there is a swizzle (PTX ISA 9.7.16.3)."""


def _beyond_shared(start_address: int) -> list[str]:
    """The remark on a start address that the format can hold and shared memory has not."""
    return [f"start_address must be {_START_RULE}, not {start_address}"] if start_address >= _SHARED else []


class _Matrix:
    """What both formats say about their values. `major` is "k", "mn", or empty where it is not known."""

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    base_offset: int
    swizzle: str
    major: str

    def _remarks(self) -> list[str]:
        mode = SWIZZLES[self.swizzle]
        remarks = _beyond_shared(self.start_address)
        if mode.width and self.leading_byte_offset > 16 and self.major != "mn":
            but = "" if self.major else " (it counts for MN-major ones)"
            remarks.append(f"LBO is ignored for swizzled K-major layouts{but}")
        phase = self.start_address % mode.alignment
        if mode.width and phase and phase % 128 == 0 and self.base_offset == 0:
            remarks.append(
                f"the start address lies {phase} bytes past a {mode.alignment}-byte pattern boundary: "
                "base_offset 0 reads data swizzled by absolute address, as TMA writes it"
            )
        if self.base_offset and not mode.width:
            remarks.append("base_offset has no effect without swizzle")
        remarks += self.offsets_in_bytes()
        group = (4 if self.swizzle == "128B_atom_32B" and self.major == "mn" else 8) * mode.row_bytes
        if 0 < self.stride_byte_offset < group:
            remarks.append(f"SBO {self.stride_byte_offset} steps over less than {group} bytes: neighbors overlap")
        if mode.width and self.major == "mn" and not self.leading_byte_offset:
            remarks.append(f"LBO 0 reads the same {mode.row_bytes} bytes of MN again where the operand is wider")
        return remarks

    def offsets_in_bytes(self) -> list[str]:
        """Return what to say of offsets of a compact tile that are written in bytes instead of units of 16 bytes.

        A compact tile has one atom (8 lines of the swizzle's row, 128 bytes without swizzle) between its groups of
        lines; without a swizzle one of the two offsets is that. Swizzled blocks of MN as far apart as `_FAR` hardly fit
        into shared memory.
        """
        mode = SWIZZLES[self.swizzle]
        group = (4 if self.swizzle == "128B_atom_32B" and self.major == "mn" else 8) * mode.row_bytes
        lbo, sbo = self.leading_byte_offset, self.stride_byte_offset
        far = mode.width and self.major == "mn" and lbo >= _FAR and lbo % (_UNIT * group) == 0
        if mode.width and (far or (sbo and sbo % (_UNIT * group) == 0)):
            found = [("LBO", lbo)] * far + [("SBO", sbo)] * (sbo > 0 and sbo % (_UNIT * group) == 0)
        elif not mode.width and min(lbo, sbo) >= _UNIT * group and not (lbo | sbo) % (_UNIT * group):
            found = [("LBO", lbo), ("SBO", sbo)]
        else:
            return []
        return [
            f"{name} is {value} bytes: if {value // _UNIT} bytes were meant, the field must be "
            f"{value // _UNIT // _UNIT}, in units of 16 bytes, not {value // _UNIT}"
            for name, value in found
        ]

    @classmethod
    def _reserved_hint(cls, bits: int) -> str:
        """An address or offset in bytes that passes the 14 bits of its field."""
        found = [
            (name, raw)
            for name, low in (("the start address", 0), ("LBO", 16))
            for raw in (bits >> low & 0xFFFF,)
            if raw >> 14 and raw % _UNIT == 0
        ]
        words = " and ".join(f"{name} {raw:#x}" for name, raw in found)
        return f": fields take units of 16 bytes; was {words} written in bytes?" if found else ""

    def _hints(self) -> tuple[str, ...]:
        mode, hints = SWIZZLES[self.swizzle], list[str]()
        if mode.width and self.leading_byte_offset == 16 and self.major != "mn":
            hints.append("LBO is ignored for swizzled K-major layouts; 1 unit (16 bytes) is what CUTLASS writes there")
        other = {8 * SWIZZLES[each].row_bytes: each for each in ("32B", "64B", "128B")}.get(self.stride_byte_offset)
        if mode.width and other and SWIZZLES[other].row_bytes > mode.row_bytes:
            hints.append(
                f"SBO is {8 * mode.row_bytes} bytes in a compact {self.swizzle} tile; {self.stride_byte_offset} is "
                f"that of {other}: was the swizzle meant to be {other}?"
            )
        return tuple(hints)


def _stride_words(name: str, values: Mapping[str, Any]) -> str | None:
    """The words beside LBO and SBO; None for other fields, and where the swizzle is illegal."""
    which = {"leading_byte_offset": 0, "stride_byte_offset": 1}.get(name)
    if which is None or values["swizzle"] not in SWIZZLES:
        return None
    swizzled = SWIZZLES[values["swizzle"]].width > 0
    majors = (values["major"],) if values["major"] else ("k", "mn")
    words = dict.fromkeys(_STRIDES[major, swizzled][which] for major in majors)
    short = ("LBO", "SBO")[which]
    if len(words) == 1:
        return f"{short}: {next(iter(words))}"
    return f"{short}: " + ", ".join(f"{major.upper()}-major {_STRIDES[major, swizzled][which]}" for major in majors)


def _facts_about(values: Mapping[str, Any]) -> list[str]:
    names = []
    if SWIZZLES[values["swizzle"]].width:
        if values["major"] != "mn":
            names.append("lbo-swizzled-k-major")
        names += ["swizzle-absolute-address", "tma-and-mma-swizzle-agree"]
        if values["base_offset"]:
            names.append("base-offset")
    if values["major"] == "mn":
        names.append("stride-roles")
    return names


class SmemDescriptor(_Matrix, BitStruct, bits=64):
    """The matrix descriptor of tcgen05.mma and tcgen05.cp; offsets and addresses in bytes, multiples of 16.

        >>> from ptxgen.descriptors import SmemDescriptor
        >>> made = SmemDescriptor(start_address=0x400, stride_byte_offset=1024, swizzle="128B")
        >>> hex(made.encode()), SmemDescriptor.decode(made.encode()) == made
        ('0x4000404000000040', True)

    A shared::cluster address is given masked with 0x3FFFF. `use` ("mma", "cp", "scales") and `major` ("k", "mn") are
    not encoded: where they are given, words and warnings are more exact. Raises DescriptorError for values that do not
    fit.
    """

    use: str = context(default="", values=("", "mma", "cp", "scales"), doc="who reads it; empty: not known")
    major: str = context(default="", values=("", "k", "mn"), doc="empty: not known")

    start_address: int = field(0, 13, scale=16, unit="bytes", rule=_START_RULE, evidence=_TABLE_40)
    leading_byte_offset: int = field(16, 29, default=0, scale=16, unit="bytes", doc="LBO", evidence=_TABLE_40)
    stride_byte_offset: int = field(32, 45, default=0, scale=16, unit="bytes", doc="SBO", evidence=_TABLE_40)
    version = constant(46, 48, 0b001, "fixed")
    base_offset: int = field(49, 51, default=0, doc="pattern lines of 128 bytes", evidence=_XOR)
    lbo_mode: str = field(
        52,
        52,
        default="relative",
        values={"relative": 0, "absolute": 1},
        doc="absolute: sm_103a",
        evidence=_TABLE_40,
    )
    swizzle: str = field(
        61,
        63,
        default="none",
        values={"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6},
        evidence=_TABLE_40,
    )

    @classmethod
    def scale_factors(cls, start_address: int) -> Self:
        """The descriptor with which tcgen05.cp.32x128b.warpx4 reads 512 bytes of scale factors (128 rows, 4 each)."""
        return cls(start_address=start_address, stride_byte_offset=128, use="scales")

    def _check(self) -> None:
        absolute = self.lbo_mode == "absolute"
        if absolute and (self.swizzle != "128B" or self.base_offset or self.major == "mn"):
            raise DescriptorError(
                'lbo_mode must be "relative" unless swizzle is "128B", base_offset is 0 and the operand K-major, '
                f"not absolute with {self.swizzle!r}, {self.base_offset} and major {self.major or 'not given'!r} "
                "(PTX ISA 9.7.16.3.1.2)"
            )
        if self.use in ("cp", "scales") and self.major == "mn":
            raise DescriptorError('major must be "k" for tcgen05.cp, which reads rows, not "mn"')

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that hardware ignores or that no source has verified."""
        if self.use == "scales":
            return tuple(self._scale_remarks())
        remarks = self._remarks()
        if self.swizzle == "128B_atom_32B" and self.major != "mn":
            remarks.append("128B_atom_32B is verified for 32-bit MN-major operands only; K-major is unverified")
        if self.lbo_mode == "absolute":
            remarks.append("the absolute LBO mode exists on sm_103a only; LBO then is a shared-memory address")
        return tuple(remarks)

    def _scale_remarks(self) -> list[str]:
        remarks = _beyond_shared(self.start_address)
        if self.leading_byte_offset:
            remarks.append("LBO is ignored for scale factors: a row of them is one 16-byte unit")
        if self.swizzle != "none":
            remarks.append(f"every known kernel stores scale factors without swizzle, not with {self.swizzle}")
        elif self.stride_byte_offset != 128:
            remarks.append(
                f"SBO is 128 (8 rows of 16 bytes) where scale factors are packed, not {self.stride_byte_offset}"
            )
        return remarks

    def notes(self) -> tuple[str, ...]:
        """Return remarks that ask for no change."""
        return () if self.use == "scales" else self._hints()

    @classmethod
    def _remark(cls, name: str, values: Mapping[str, Any]) -> str:
        if name == "leading_byte_offset" and values["lbo_mode"] == "absolute":
            return "LBO: the address of what lies beyond 128 bytes of K"
        if name == "leading_byte_offset" and values["use"] == "scales":
            return "LBO: ignored for scale factors"
        if name == "leading_byte_offset" and values["use"] == "cp" and values["swizzle"] == "none":
            return "LBO: between the two 16-byte units of a row of the 256-bit shapes"
        known = {**values, "major": "k"} if values["use"] in ("cp", "scales") else values
        return _stride_words(name, known) or cls.bit_fields[name].doc

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        if values["use"] == "scales":
            return ("lbo-scale-factors", "scale-block", "scale-copy-warpx4", "sfb-both-ctas")
        names = _facts_about(values)
        if values["use"] == "cp":
            names.append("copy-rows")
        if values["swizzle"] == "128B_atom_32B" and values["major"] != "mn":
            names.append("k-major-32b-atom")
        if values["lbo_mode"] == "absolute":
            names.append("lbo-absolute")
        return tuple(names)

    @classmethod
    def _code_hint(cls, name: str, raw: int) -> str:
        return "; a tensormap's code of 128B is 3, a descriptor's is 2" if (name, raw) == ("swizzle", 3) else ""

    def encode(self) -> int:
        """Return the 64-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, use: str = "", major: str = "") -> Self:
        """Return the value of a 64-bit descriptor; DescriptorError lists reserved bits and illegal codes."""
        return cls._decode(encoded, use=use, major=major)


class WgmmaDescriptor(_Matrix, BitStruct, bits=64):
    """The matrix descriptor of wgmma.mma_async (sm_90a); offsets and addresses in bytes, multiples of 16.

        >>> from ptxgen.descriptors import WgmmaDescriptor
        >>> hex(WgmmaDescriptor(start_address=0x400, stride_byte_offset=1024, swizzle="128B").encode())
        '0x4000004000000040'

    A shared::cluster address is given masked with 0x3FFFF. `major` ("k", "mn") is not encoded: where it is given, words
    and warnings are more exact. Raises DescriptorError for values that do not fit.
    """

    major: str = context(default="", values=("", "k", "mn"), doc="empty: not known")

    start_address: int = field(0, 13, scale=16, unit="bytes", rule=_START_RULE, evidence=_WGMMA)
    leading_byte_offset: int = field(16, 29, default=0, scale=16, unit="bytes", doc="LBO", evidence=_WGMMA)
    stride_byte_offset: int = field(32, 45, default=0, scale=16, unit="bytes", doc="SBO", evidence=_WGMMA)
    base_offset: int = field(
        49,
        51,
        default=0,
        doc="pattern lines of 128 bytes",
        evidence=measured("H200: chunk ^= (address >> 7) - base_offset"),
    )
    swizzle: str = field(62, 63, default="none", values={"none": 0, "128B": 1, "64B": 2, "32B": 3}, evidence=_WGMMA)

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that hardware ignores or that sources disagree about."""
        remarks = self._remarks()
        if self.base_offset and self.swizzle == "32B":
            remarks.append("CUTLASS has base_offset for the swizzles 64B and 128B only; with 32B it is unverified")
        return tuple(remarks)

    def notes(self) -> tuple[str, ...]:
        """Return remarks that ask for no change."""
        return self._hints()

    @classmethod
    def _remark(cls, name: str, values: Mapping[str, Any]) -> str:
        return _stride_words(name, values) or cls.bit_fields[name].doc

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_facts_about(values))

    def encode(self) -> int:
        """Return the 64-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int, major: str = "") -> Self:
        """Return the value of a 64-bit descriptor; DescriptorError lists reserved bits and illegal codes."""
        return cls._decode(encoded, major=major)

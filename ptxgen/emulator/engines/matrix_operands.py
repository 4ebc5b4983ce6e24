"""Operands of MMAs in shared memory: which 16-byte granule holds which chunk of which row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors import SmemDescriptor, WgmmaDescriptor
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.layouts.operands import Major, operand_addresses
from ptxgen.layouts.swizzle import SWIZZLES

#: Bytes of a line, by which the pattern of a swizzle and the base offset of a descriptor count.
_LINE = 128
#: Rows of K-major operands, or K of MN-major ones, between which SBO steps (LBO without swizzle, MN-major).
_GROUP, _ATOM_32_GROUP = 8, 4


@dataclass(frozen=True, eq=False)
class MatrixOperand:
    """A or B of an MMA as its descriptors name it: `rows` of M or N by `k_bytes` of K, elements of `type`.

    `instruction` is the opcode family (`tcgen05` or `wgmma`), which decides where the major is encoded.
    """

    side: str
    instruction: str
    descriptor: SmemDescriptor | WgmmaDescriptor
    major: Major
    rows: int
    k_bytes: int
    bits: int
    type: str

    @property
    def value(self) -> int:
        """The 64 bits of the matrix descriptor."""
        return self.descriptor.encode()

    @property
    def swizzle(self) -> str:
        return self.descriptor.swizzle

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Granules: [rows, chunks of K] of a K-major operand, [K, chunks of M or N] of an MN-major one.

        Raises ValueError where the layout is none.
        """
        if self.major == "k":
            addresses = operand_addresses(self.descriptor, "k", self.rows, self.k_bytes, 8)[:, ::GRANULE]
        else:
            size = max(self.bits // 8, 1)
            addresses = operand_addresses(self.descriptor, "mn", self.rows, self.k_bytes // size, self.bits)
            addresses = addresses[:: GRANULE // size].T
        return np.ascontiguousarray(addresses // GRANULE)

    @cached_property
    def touched(self) -> NDArray[np.int64]:
        """Every granule once."""
        return np.unique(self.places)

    @property
    def segment(self) -> int:
        """Chunks that follow each other in one row of the swizzle."""
        return SWIZZLES[self.swizzle].row_bytes // GRANULE

    @property
    def group(self) -> int:
        """Lines that follow each other at the pitch of the swizzle's rows."""
        return _ATOM_32_GROUP if self.swizzle == "128B_atom_32B" and self.major == "mn" else _GROUP

    @property
    def line_stride(self) -> tuple[str, int]:
        """The field that steps between groups of lines, and its bytes."""
        lbo = self.major == "mn" and self.swizzle == "none"
        descriptor = self.descriptor
        return ("LBO", descriptor.leading_byte_offset) if lbo else ("SBO", descriptor.stride_byte_offset)

    @property
    def chunk_stride(self) -> tuple[str, int]:
        """The field that steps between segments of chunks, and its bytes."""
        sbo = self.major == "mn" and self.swizzle == "none"
        descriptor = self.descriptor
        return ("SBO", descriptor.stride_byte_offset) if sbo else ("LBO", descriptor.leading_byte_offset)

    @property
    def pattern_line(self) -> int:
        """The line of 128 bytes of the swizzle's pattern in which the operand begins: 0 where its rows are aligned."""
        mode, start = SWIZZLES[self.swizzle], self.descriptor.start_address
        return start % mode.period // _LINE if start % mode.period >= max(mode.row_bytes, _LINE) else 0

    @cached_property
    def one_to_one(self) -> bool:
        """True if every granule holds one chunk of the operand."""
        return len(self.touched) == self.places.size

    @cached_property
    def repeated(self) -> NDArray[np.int64]:
        """Granules that hold two chunks of the operand although no stride is 0; none of windows that slide evenly."""
        once = self.places
        if not self.line_stride[1]:
            once = once[: self.group]
        if not self.chunk_stride[1]:
            once = once[:, : self.segment]
        granules, count = np.unique(once, return_counts=True)
        found = granules[count > 1]
        if len(found) and self.swizzle == "none" and _even(once):
            return found[:0]
        return found

    @cached_property
    def repeating_field(self) -> str:
        """Which of SBO and LBO lets chunks overlap."""
        lines = self.places[:, : self.segment]
        return self.line_stride[0] if len(np.unique(lines)) < lines.size else self.chunk_stride[0]

    def roles(self, granules: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(row, K) of the chunks that lie in these granules, counted in lines and chunks; each granule holds one."""
        line, chunk = (each.ravel()[self._order] for each in np.indices(self.places.shape))
        at = np.searchsorted(self.touched, granules)
        return (line[at], chunk[at]) if self.major == "k" else (chunk[at], line[at])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return self.places.ravel().argsort()

    def with_major(self, major: Major) -> MatrixOperand:
        """The operand that the other major would have named."""
        return replace(self, major=major)


def _even(places: NDArray[np.int64]) -> bool:
    """Whether all steps between lines are one number, and all between chunks: overlapping windows of a signal."""
    return all(len(np.unique(np.diff(places, axis=axis))) <= 1 for axis in (0, 1))


@lru_cache(maxsize=4096)
def matrix_operand(
    side: str,
    instruction: str,
    descriptor: SmemDescriptor | WgmmaDescriptor,
    major: Major,
    rows: int,
    k_bytes: int,
    bits: int,
    type: str,
) -> MatrixOperand:
    """The operand, one object for equal arguments."""
    return MatrixOperand(side, instruction, descriptor, major, rows, k_bytes, bits, type)

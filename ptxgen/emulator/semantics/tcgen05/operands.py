"""Matrices in shared memory, by descriptor: which 16-byte granules they take, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.descriptors import DescriptorError, SmemDescriptor
from ptxgen.emulator.checks.registry import descriptors, memory
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.shared_memory import RESERVED_BYTES
from ptxgen.emulator.state.machine import Machine
from ptxgen.layouts.operands import Major, operand_addresses
from ptxgen.layouts.swizzle import SWIZZLES

#: Bits 46-48 of a descriptor, and what they are by the manual (table 40).
_VERSION_BITS, _VERSION = 0b111 << 46, 0b001 << 46
#: Bytes of K of the operands of K 96, 4 bits each.
K96_BYTES = 48


@dataclass(frozen=True, slots=True, eq=False)
class SharedMatrix:
    """A matrix in shared memory: its 16-byte `granules` (lines, chunks), lines of K-major rows or of MN-major K.

    `touched` has every granule once.
    """

    granules: NDArray[np.int64]
    touched: NDArray[np.int64]
    major: Major
    swizzle: str

    def lines(self, machine: Machine, slot: int) -> NDArray[np.uint8]:
        """The bytes of every line."""
        return machine.shared.data[slot].view(np.complex128)[self.granules].view(np.uint8)


@lru_cache(maxsize=4096)
def matrix_descriptor(value: int) -> SmemDescriptor:
    """The descriptor of 64 bits. Raises MemoryFault, with the rule, where they are not a legal one.

    Version 0 is accepted: fact descriptor-version.
    """
    try:
        return SmemDescriptor.decode(value if value & _VERSION_BITS else value | _VERSION)
    except DescriptorError as error:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR, f"shared-memory descriptor {value:#018x}", rule=str(error)
        ) from error


def advise_version(machine: Machine, value: int, statement: syntax.Instruction) -> None:
    """Report a descriptor whose version is 0 (fact descriptor-version)."""
    if not value & _VERSION_BITS:
        machine.findings.report(
            descriptors.DESCRIPTOR_VERSION,
            statement,
            summary="bits 46-48 of the shared-memory descriptor are 0",
            rule="PTX requires 0b001 there (table 40). Triton before 3.6 wrote 0 too, and its kernels ran",
        )


def require_k96(machine: Machine, what: str) -> None:
    """Raise MemoryFault where the module's target lacks what K 96 needs (PTX ISA 9.4, 9.7.18.2.1.1)."""
    _require(machine, what, str(machine.target) in ("sm_103a", "sm_107a"), "Only sm_103a and sm_107a have it")


def require_wide_k(machine: Machine, what: str) -> None:
    """Raise MemoryFault where the module's target lacks the K of sm_107 (PTX ISA 9.4, 9.7.18.2.1.1)."""
    _require(machine, what, machine.target.number == 107, "Only sm_107 has it")


def _require(machine: Machine, what: str, has: bool, rule: str) -> None:
    if not has:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR, f"{what} on {machine.target}", rule=f"{rule} (9.7.16.2.1.1)", fix=""
        )


def _require_room(value: int, descriptor: SmemDescriptor, major: Major, k_bytes: int) -> None:
    """48 bytes of K do not begin everywhere in a row of 128 bytes (9.7.16.3.1.2)."""
    width, begin = SWIZZLES[descriptor.swizzle].row_bytes, descriptor.start_address
    if k_bytes != K96_BYTES or major != "k" or descriptor.lbo_mode != "relative" or descriptor.swizzle == "none":
        return
    if begin % width + k_bytes > width:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR,
            f"shared-memory descriptor {value:#018x}",
            rule=f"{k_bytes} bytes of K from byte {begin % width} of a row pass its end at {width} (9.7.16.3.1.2)",
            fix="use the absolute LBO mode with 128B swizzle",
        )


@lru_cache(maxsize=4096)
def shared_matrix(value: int, major: Major, rows: int, k_bytes: int, element_bits: int, size: int) -> SharedMatrix:
    """A matrix of `rows` by `k_bytes` of K (MN-major: by as many elements of K as that holds).

    `size` is where the CTA's shared memory ends. Raises MemoryFault for what cannot be or is not inside.
    """
    descriptor = matrix_descriptor(value)
    _require_room(value, descriptor, major, k_bytes)
    try:
        if major == "k":
            addresses = operand_addresses(descriptor, "k", rows, k_bytes, 8)[:, ::GRANULE]
        else:
            size_of = element_bits // 8
            if rows * size_of % GRANULE:
                raise ValueError(f"{rows} MN-major elements of {element_bits} bits are no multiple of 16 bytes")
            every = operand_addresses(descriptor, "mn", rows, k_bytes // size_of, element_bits)
            addresses = every[:: GRANULE // size_of].T
    except ValueError as error:
        raise MemoryFault(
            descriptors.ILLEGAL_DESCRIPTOR, f"shared-memory descriptor {value:#018x}", rule=str(error)
        ) from error
    if addresses.min() < RESERVED_BYTES or addresses.max() + GRANULE > size:
        hints = descriptor.replace(major=major).offsets_in_bytes()
        raise MemoryFault(
            memory.OUT_OF_BOUNDS,
            f"shared-memory descriptor {value:#018x} covers {int(addresses.min()):#x} to "
            f"{int(addresses.max()) + GRANULE - 1:#x}",
            rule="; ".join([f"The CTA has {RESERVED_BYTES:#x} to {size - 1:#x}", *hints]),
            fix="correct the start address and strides of the descriptor",
        )
    granules = np.ascontiguousarray(addresses // GRANULE)
    return SharedMatrix(granules, np.unique(granules), major, descriptor.swizzle)

"""Limits of the hardware that several parts of ptxgen need, by target."""

from __future__ import annotations

import re

_KIB = 1024
#: Shared memory of an SM in bytes, by compute capability (CUDA programming guide, compute capabilities).
_SHARED_PER_SM = {
    **dict.fromkeys((70, 72), 96 * _KIB),
    75: 64 * _KIB,
    **dict.fromkeys((80, 87), 164 * _KIB),
    **dict.fromkeys((86, 89, 120, 121), 100 * _KIB),
}
#: That of the datacenter parts since Hopper, and of targets that the guide does not list.
_LARGEST = 228 * _KIB
#: Shared memory that the system reserves for each CTA, in bytes.
SHARED_RESERVED = 1 * _KIB
#: Streaming multiprocessors of an H200, and of a B200.
_MULTIPROCESSORS = {"sm_90a": 132, "sm_100a": 148}
#: Limits of an SM: CTAs, warps, registers (CUDA programming guide, compute capabilities) and columns of tensor memory.
#: A warp gets a multiple of `_REGISTER_UNIT` registers in one of `_PARTITIONS` parts.
_CTAS_PER_SM, _WARPS_PER_SM, _REGISTERS_PER_SM = 32, 64, 65536
_REGISTER_UNIT, _PARTITIONS = 256, 4
_TMEM_COLUMNS = 512

#: Global memory of an emulated GPU where nothing else is said, in bytes: what a workstation can give.
EMULATED_MEMORY = 8 << 30


def shared_per_sm(target: str) -> int:
    """Bytes of shared memory of an SM, the system's part of each CTA included."""
    found = re.fullmatch(r"sm_(\d+)[af]?", target)
    return _SHARED_PER_SM.get(int(found[1]), _LARGEST) if found else _LARGEST


def shared_per_cta(target: str) -> int:
    """The most bytes of shared memory that a kernel can use in a CTA."""
    return shared_per_sm(target) - SHARED_RESERVED


def multiprocessors(target: str) -> int:
    """Streaming multiprocessors of the GPU of a target that the emulator stands for."""
    return _MULTIPROCESSORS.get(target, 132)


def ctas_per_sm(target: str, *, threads: int, registers: int, shared_bytes: int, tmem_columns: int = 0) -> int:
    """How many CTAs an SM of Hopper or Blackwell holds at a time: what each has of threads, registers a thread, shared
    memory and tensor memory decides.
    """
    warps = -(-threads // 32)
    of_warp = -(-max(registers, 1) * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    of_partition = _REGISTERS_PER_SM // _PARTITIONS // of_warp
    limits = [
        _CTAS_PER_SM,
        _WARPS_PER_SM // warps,
        of_partition * _PARTITIONS // warps,
        shared_per_sm(target) // (shared_bytes + SHARED_RESERVED),
    ]
    if tmem_columns:
        limits.append(_TMEM_COLUMNS // tmem_columns)
    return min(limits)

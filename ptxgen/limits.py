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
#: What the system reserves of it for each CTA, in bytes.
SHARED_RESERVED = 1 * _KIB


def shared_per_sm(target: str) -> int:
    """Bytes of shared memory of an SM, the system's part of each CTA included."""
    found = re.fullmatch(r"sm_(\d+)[af]?", target)
    return _SHARED_PER_SM.get(int(found[1]), _LARGEST) if found else _LARGEST


def shared_per_cta(target: str) -> int:
    """The most bytes of shared memory that a kernel can use in a CTA."""
    return shared_per_sm(target) - SHARED_RESERVED

"""The 64-bit cache policies that createpolicy.fractional makes and .L2::cache_hint takes.

The manual calls a policy opaque; its bits are those that ptxas computes for createpolicy and that an H200 returned.
CUTLASS passes such constants (TMA::CacheHintSm90, include/cute/arch/copy_sm90_desc.hpp).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.evidence import measured
from ptxgen.descriptors.fields import constant, field

_BITS = measured("H200 and the SASS of createpolicy.fractional for sm_90a and sm_100a, ptxas 13.5")
_CUTLASS = {
    0x1000000000000000: "EVICT_NORMAL",
    0x12F0000000000000: "EVICT_FIRST",
    0x14F0000000000000: "EVICT_LAST",
}


class CachePolicy(BitStruct, bits=64):
    """A fractional L2 cache policy: `sixteenths` of the accesses get the `primary` priority, the others `secondary`.

        >>> from ptxgen.descriptors import CachePolicy
        >>> hex(CachePolicy(primary="evict_first").encode())
        '0x12f0000000000000'

    Policies of createpolicy.range have other bits. Raises DescriptorError for values that do not fit.
    """

    sixteenths: int = field(52, 55, default=16, bias=1, doc="of the accesses get the primary priority", evidence=_BITS)
    secondary: str = field(
        56, 56, default="evict_unchanged", values={"evict_unchanged": 0, "evict_first": 1}, doc="the others",
        evidence=_BITS,
    )  # fmt: skip
    primary: str = field(
        57, 58, values={"evict_unchanged": 0, "evict_first": 1, "evict_last": 2, "evict_normal": 3}, evidence=_BITS
    )
    form = constant(59, 63, 0b00010, "fractional")

    def notes(self) -> tuple[str, ...]:
        """Return the instruction that makes the policy, and what CUTLASS calls it."""
        other = "" if self.secondary == "evict_unchanged" else f".L2::{self.secondary}"
        made = f"createpolicy.fractional.L2::{self.primary}{other}.b64 %rd1, {self.sixteenths / 16};"
        name = _CUTLASS.get(self.encode())
        return (made, *([f"CUTLASS calls it TMA::CacheHintSm90::{name}"] if name else []))

    def encode(self) -> int:
        """Return the 64-bit policy."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int) -> Self:
        """Return the value of a 64-bit policy; DescriptorError says what is not fractional about it."""
        return cls._decode(encoded)

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("cache-policy-bits",)

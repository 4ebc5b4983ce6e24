"""An operand outside shared memory: offsets that were written in bytes are named."""

from __future__ import annotations

import pytest

from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import wgmma
from ptxgen.emulator.semantics.tcgen05.operands import shared_matrix

ADDRESS, SIZE = 0x40, 0xC434
HINT = "SBO is 16384 bytes: if 1024 bytes were meant, the field must be 64, in units of 16 bytes, not 1024"


@pytest.mark.parametrize(("sbo", "hint"), [(1024, HINT), (1000, "")])
def test_an_sbo_in_bytes(sbo: int, hint: str) -> None:
    with pytest.raises(MemoryFault) as tcgen05:
        shared_matrix(1 << 46 | 2 << 61 | sbo << 32 | ADDRESS, "k", 128, 32, 16, SIZE)
    with pytest.raises(MemoryFault) as hopper:
        wgmma._chunks(1 << 62 | sbo << 32 | ADDRESS, "k", 64, 16, 16, SIZE)  # type: ignore[reportPrivateUsage]
    for raised in (tcgen05, hopper):
        assert raised.value.rule == "; ".join(filter(None, ["The CTA has 0x400 to 0xc433", hint]))

"""Registers of a program: which array of the machine holds each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: Words of a register by its bits; predicates are bool, .b128 two words.
UNSIGNED: dict[int, Any] = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.uint64}


@dataclass(frozen=True, slots=True)
class Register:
    """A register: its index in `Machine.registers`, and its bits (1 for a predicate)."""

    index: int
    bits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(UNSIGNED[self.bits])

    @property
    def bytes(self) -> int:
        return self.bits // 8 or 1

    @property
    def is_predicate(self) -> bool:
        return self.bits == 1


#: The carry of extended arithmetic, which no program names.
CARRY = Register(0, 1)
#: Registers of every machine that no program declares: the carry, and two of the stack of calls.
RESERVED = 3

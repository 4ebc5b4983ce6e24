"""Control codes: what the instruction word says to the warp scheduler, in bits 105 to 125 (sm_80 to sm_121).

Where each field lies was inferred from encodings by others (CuAssembler, maxas for the order of the fields) and holds
for every cubin that the tests disassemble: decoding and encoding give the word back.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Barrier number that stands for none.
NO_BARRIER = 7
_SHIFT = 105
#: Field, first bit from bit 105 on, bits.
_FIELDS = (("stall", 0, 4), ("no_yield", 4, 1), ("write", 5, 3), ("read", 8, 3), ("wait", 11, 6), ("reuse", 17, 4))
MASK = ((1 << 21) - 1) << _SHIFT


@dataclass(frozen=True, slots=True)
class Control:
    """The control code of one instruction.

    `stall`: cycles before the warp may issue again (0 to 15). `no_yield`: set where the scheduler shall prefer this
    warp. `write` and `read`: the scoreboard (0 to 5) that the instruction releases once its results are written, or its
    operands are read; 7 is none. `wait`: a mask of the scoreboards that it waits for. `reuse`: a mask of the operands
    that stay in the reuse cache.
    """

    stall: int
    no_yield: bool
    write: int
    read: int
    wait: int
    reuse: int

    @classmethod
    def decode(cls, word: int) -> Control:
        """The control code in a 128-bit instruction word."""
        code = word >> _SHIFT
        return cls(code & 15, bool(code >> 4 & 1), code >> 5 & 7, code >> 8 & 7, code >> 11 & 63, code >> 17 & 15)

    def encode(self, word: int = 0) -> int:
        """An instruction word with this control code in place of its own. Raises ValueError for values out of range."""
        code = 0
        for name, first, bits in _FIELDS:
            value = int(getattr(self, name))
            if not 0 <= value < 1 << bits:
                raise ValueError(f"control field {name} must be in 0..{(1 << bits) - 1}, not {value}")
            code |= value << first
        return word & ~MASK | code << _SHIFT

    @property
    def waits(self) -> tuple[int, ...]:
        """The scoreboards that the instruction waits for."""
        return tuple(number for number in range(6) if self.wait >> number & 1)

    def __str__(self) -> str:
        """As assemblers of others spell it: `B--2---:R-:W0:-:S04` (waits, read, write, yield, stall)."""
        waits = "".join(str(number) if self.wait >> number & 1 else "-" for number in range(6))
        read, write = ("-" if number == NO_BARRIER else str(number) for number in (self.read, self.write))
        return f"B{waits}:R{read}:W{write}:{'-' if self.no_yield else 'Y'}:S{self.stall:02d}"

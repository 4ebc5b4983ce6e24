"""Registers of the threads of each warp, which setmaxnreg moves between warps and a pool. PTX ISA 9.7.19.5."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.instr.miscellaneous import setmaxnreg
from ptxgen.instr.model.recognize import candidates

#: Registers of a multiprocessor (CUDA programming guide, all of sm_90 and later), and the most that a thread may have.
_REGISTERS, _MOST = 65536, 256
_GRANULE = 8
#: Parts of a multiprocessor, among which the warps of its CTAs are spread evenly, each with a quarter of the registers.
_PARTITIONS = 4
#: Registers that ptxas requires for a wgmma beside those of D and A.
_BESIDE_OPERANDS = 26


def initial_count(entry: syntax.Function) -> int | None:
    """Registers that a thread begins with, as ptxas (13.0, 13.5) chooses them; None where it ignores setmaxnreg.

    The directives bound them, and no more are taken than the largest setmaxnreg.inc requests.
    """
    values = {each.name: [int(argument) for argument in each.arguments] for each in entry.directives if _is_bound(each)}
    if "maxnreg" in values:
        bound = values["maxnreg"][0]
    elif (extents := values.get("reqntid") or values.get("maxntid")) is not None:
        warps = -(-int(np.prod(extents)) // 32)
        if "minnctapersm" not in values and _share(2 * warps) >= _least(entry):
            return None
        bound = min(_share(warps * values.get("minnctapersm", [1])[0]), _MOST)
    else:
        return None
    return min(bound, max(_raised(entry), default=bound))


def _share(warps: int) -> int:
    """The most registers that a thread of so many warps of a multiprocessor may have."""
    return _REGISTERS // (-(-warps // _PARTITIONS) * _PARTITIONS * 32) // _GRANULE * _GRANULE


def _least(entry: syntax.Function) -> int:
    """Registers without which no wgmma of an entry can be: its D and A, and some; 0 where there is none.

    Where this lets no two CTAs be on a multiprocessor, ptxas takes one of them for granted, as with .minnctapersm 1
    (measured with 13.5 for D of 4 to 128 registers, in .f32, .s32 and .f16, and for A in registers).
    """
    needed = [
        sum(len(operand.elements) for operand in each.operands[:2] if isinstance(operand, syntax.Vector))
        for each in syntax.walk([entry])
        if isinstance(each, syntax.Instruction) and _is_wgmma(each.opcode)
    ]
    return max(needed) + _BESIDE_OPERANDS if needed else 0


def _raised(entry: syntax.Function) -> list[int]:
    """The counts of the setmaxnreg.inc of an entry."""
    return [
        int(count.evaluate())
        for each in syntax.walk([entry])
        if isinstance(each, syntax.Instruction) and _raises(each.opcode)
        for count in each.operands
        if isinstance(count, syntax.Immediate)
    ]


@cache
def _is_wgmma(opcode: str) -> bool:
    return any(each.traits.multiplies and each.form.issued_by == "warpgroup" for each in candidates(opcode))


@cache
def _raises(opcode: str) -> bool:
    return any(isinstance(each, setmaxnreg) and each.action == "inc" for each in candidates(opcode))


def _is_bound(directive: syntax.Directive) -> bool:
    return directive.name in ("maxnreg", "reqntid", "maxntid", "minnctapersm")


class RegisterPool:
    """`count[warp]` registers for each thread of a warp; `pool[slot]` more for the threads of one, that no warp has."""

    def __init__(self, initial: int, slots: int, warps_per_cta: int) -> None:
        self._initial, self._warps = initial, warps_per_cta
        self.count = np.full(slots * warps_per_cta, initial, np.int64)
        self.pool = np.zeros(slots, np.int64)
        #: The registers that waiting warps request.
        self._requested: dict[int, int] = {}

    def begin(self, slots: NDArray[np.int64], warps: NDArray[np.int64]) -> None:
        """New CTAs in these slots: each of their warps has its registers of the launch."""
        self.count[warps] = self._initial
        self.pool[slots] = 0

    def change(self, warp: int, wanted: int) -> bool:
        """Set the register count of a warp; False if the pool has too few now."""
        slot, more = warp // self._warps, wanted - int(self.count[warp])
        if more > self.pool[slot]:
            self._requested[warp] = wanted
            return False
        self._requested.pop(warp, None)
        self.pool[slot] -= more
        self.count[warp] = wanted
        return True

    def describe(self, warp: int) -> str:
        """The registers that a warp waits for, and which warps hold them: for a deadlock report."""
        requested, held = self._requested[warp], int(self.count[warp])
        return (
            f"{requested} registers for each thread of the warp, {requested - held} more than the {held} that it has; "
            f"the CTA's pool has {self.pool[warp // self._warps]} more for the threads of one warp, "
            f"and {self._held(warp)}"
        )

    def _held(self, warp: int) -> str:
        """The registers of the warps of a warp's CTA: `warps 0, 1 hold 40, warps 2, 3 hold 128`."""
        first = warp - warp % self._warps
        by_count: dict[int, list[int]] = {}
        for warp_id, count in enumerate(self.count[first : first + self._warps].tolist()):
            by_count.setdefault(count, []).append(warp_id)
        return ", ".join(
            f"warps {', '.join(map(str, warps))} hold {count}" if len(warps) > 1 else f"warp {warps[0]} holds {count}"
            for count, warps in by_count.items()
        )

    def excess(self, warp: int, ended: NDArray[np.bool_]) -> str:
        """By how much the registers that the warps of a CTA hold and request exceed their initial ones.

        Empty if they do not, or if one that has not `ended` has yet to reach its setmaxnreg.
        """
        first, total = warp - warp % self._warps, self._initial * self._warps
        here = range(first, first + self._warps)
        if any(self.count[each] == self._initial and each not in self._requested and not ended[each] for each in here):
            return ""
        wanted = sum(self._requested.get(each, int(self.count[each])) for each in here)
        if wanted <= total:
            return ""
        return (
            f"The CTA's {self._warps} warps begin with {self._initial} registers a thread, {total} for a thread of "
            f"each; what they hold and request is {wanted}, {wanted - total} too many: setmaxnreg.dec must give back "
            "more, or setmaxnreg.inc request less"
        )

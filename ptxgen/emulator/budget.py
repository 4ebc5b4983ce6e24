"""Registers of the threads of each warp, which setmaxnreg moves between warps and a pool. PTX ISA 9.7.19.5."""

from __future__ import annotations

import numpy as np

from ptxgen import syntax

#: Registers of a multiprocessor (CUDA programming guide, all of sm_90 and later), and the most that a thread may have.
_REGISTERS, _MOST = 65536, 256
_GRANULE = 8


def initial_count(entry: syntax.Function) -> int | None:
    """Registers that a thread begins with, as ptxas (13.5) chooses them; None where it ignores setmaxnreg.

    The directives bound them, and no more are taken than the largest setmaxnreg.inc asks for.
    """
    values = {each.name: [int(argument) for argument in each.arguments] for each in entry.directives if _is_bound(each)}
    if "maxnreg" in values:
        bound = values["maxnreg"][0]
    elif "minnctapersm" in values and (extents := values.get("reqntid") or values.get("maxntid")) is not None:
        threads = int(np.prod(extents)) * values["minnctapersm"][0]
        whole = -(-threads // 32) * 32
        bound = min(_REGISTERS // whole // _GRANULE * _GRANULE, _MOST)
    else:
        return None
    return min(bound, max(_raised(entry), default=bound))


def _raised(entry: syntax.Function) -> list[int]:
    """What the setmaxnreg.inc of an entry ask for."""
    return [
        int(count.evaluate())
        for each in syntax.walk([entry])
        if isinstance(each, syntax.Instruction) and each.opcode.startswith("setmaxnreg.inc")
        for count in each.operands
        if isinstance(count, syntax.Immediate)
    ]


def _is_bound(directive: syntax.Directive) -> bool:
    return directive.name in ("maxnreg", "reqntid", "maxntid", "minnctapersm")


class Registers:
    """`count[row]` registers for each thread of a warp; `pool[slot]` more for the threads of one, that no warp has."""

    def __init__(self, initial: int, slots: int, warps_per_cta: int) -> None:
        self._initial, self._warps = initial, warps_per_cta
        self.count = np.full(slots * warps_per_cta, initial, np.int64)
        self.pool = np.zeros(slots, np.int64)

    def begin(self, slot: int) -> None:
        """A new CTA: each warp has what it is launched with."""
        self.count[slot * self._warps : (slot + 1) * self._warps] = self._initial
        self.pool[slot] = 0

    def change(self, row: int, wanted: int) -> bool:
        """Give a warp this many; False if the pool has too few now."""
        slot, more = row // self._warps, wanted - int(self.count[row])
        if more > self.pool[slot]:
            return False
        self.pool[slot] -= more
        self.count[row] = wanted
        return True

    def describe(self, slot: int) -> str:
        """For a deadlock report."""
        held = self.count[slot * self._warps : (slot + 1) * self._warps].tolist()
        return f"registers; the CTA's pool has {self.pool[slot]} for a warp, its warps hold {', '.join(map(str, held))}"

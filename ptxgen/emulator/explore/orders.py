"""What distinguishes two orders of a launch: who came when to each object by which threads synchronize."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Lanes, MachineView, Observer, ProgramView
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Statement

#: Atomics whose result depends on their order even if all are done: sums of floating-point numbers.
_FLOAT_SUM = re.compile(r"^(atom|red|multimem)\b.*\.add\b.*\.(f16|f16x2|bf16|bf16x2|f32|f64)\b")

#: Who accesses: the linear %ctaid and the warp in the CTA.
Actor = tuple[int, int]


class OrderOfAccesses(Observer):
    """Records, for each mbarrier and each word of strong accesses, the order of those who access it.

    Two runs with the same `digest` differ in nothing that threads can observe of each other by synchronization.
    """

    def __init__(self) -> None:
        self._objects: dict[object, list[tuple[object, ...]]] = {}
        self._machine: MachineView | None = None
        #: Heap offsets that floating-point sums update, and their sizes.
        self._sums: list[tuple[NDArray[np.int64], int]] = []
        #: True if an integer atomic returns a value that the kernel uses.
        self.counts = False
        #: The stores of each warp in its order: the line, the first address, and a digest of offsets and values.
        self.stores: dict[Actor, list[tuple[int, int, int]]] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._machine = machine

    @property
    def digest(self) -> bytes:
        """Of the orders at all objects."""
        made = hashlib.blake2b(digest_size=16)
        for key, accesses in sorted(self._objects.items(), key=lambda item: repr(item[0])):
            made.update(repr((key, accesses)).encode())
        return made.digest()

    def summed(self, size: int) -> NDArray[np.bool_]:
        """Which bytes of the heap floating-point sums have updated."""
        found = np.zeros(size, np.bool_)
        for offsets, width in self._sums:
            for byte in range(width):
                found[np.minimum(offsets + byte, size - 1)] = True
        return found

    def _actor(self, warp: int) -> Actor:
        assert self._machine is not None
        return self._cta(int(self._machine.cta_slot[warp])), warp % self._machine.warps_per_cta

    def _cta(self, slot: int) -> int:
        assert self._machine is not None
        return int(self._machine.cta_number[slot])

    def _note(self, key: object, *access: object) -> None:
        self._objects.setdefault(key, []).append(access)

    # mbarriers.

    def mbarrier_updated(
        self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement, *, expects: bool, arrives: bool,
        scope: str | None,
    ) -> None:  # fmt: skip
        self._note((self._cta(slot), mbarrier.address), *self._actor(warp), statement.line)

    def mbarrier_waited(
        self, warp: int, lanes: Lanes, mbarrier: MBarrier, statement: Statement, *, relaxed: bool, cluster: bool,
        result: int,
    ) -> None:  # fmt: skip
        self._note(("wait", *self._actor(warp), mbarrier.address), mbarrier.phase, statement.line)

    def signal_arrives(self, mbarrier: MBarrier, signal: Signal) -> None:
        self._note(("signal", mbarrier.address), signal.statement.line, mbarrier.phase)

    # Memory.

    def memory_loads(self, access: MemoryAccess) -> None:
        if access.order is not None:
            self._strong(access, "load")

    def memory_stores(self, access: MemoryAccess, values: Any) -> None:
        if access.order is not None:
            self._strong(access, "store")
        if access.space != "global":
            return
        active = access.active
        for position, warp in enumerate(access.warps.tolist()):
            lanes = active[position]
            if any_set(lanes):
                offsets = np.broadcast_to(access.places.offsets, active.shape)[position][lanes]
                stored = [np.broadcast_to(each, active.shape)[position][lanes].tobytes() for each in values]
                digest = hash((offsets.tobytes(), *stored))
                self.stores.setdefault(self._actor(warp), []).append((access.statement.line, int(offsets[0]), digest))

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        self._strong(access, "update")
        if _FLOAT_SUM.match(access.statement.opcode):
            if access.space == "global":
                offsets = np.broadcast_to(access.places.offsets, access.active.shape)[access.active]
                self._sums.append((offsets, access.size))
        elif returns:
            self.counts = True

    def _strong(self, access: MemoryAccess, how: str) -> None:
        active, offsets = access.active, access.places.offsets
        for position, warp in enumerate(access.warps.tolist()):
            lanes = active[position]
            if any_set(lanes):
                first = int(np.broadcast_to(offsets, active.shape)[position][int(lanes.argmax())])
                self._note((access.space, first), how, *self._actor(warp), access.statement.line)

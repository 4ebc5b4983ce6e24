"""st.async and red.async: asynchronous stores to shared memory that complete on an mbarrier of the destination's CTA.

PTX ISA 9.7.9.12, 9.7.13.7. They belong to the generic proxy. A wait for the mbarrier also acquires what happened
before the store in its thread, though PTX orders the store alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry.clusters import ASYNC_STORE_CTA
from ptxgen.emulator.checks.registry.memory import NOT_SHARED
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import Part, locate
from ptxgen.emulator.memory.located import Bytes
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.signals import Signal

#: Does it for some lanes, which (warps, 32) of the part marks.
Work = Callable[[NDArray[np.bool_]], None]


def later(
    part: Part,
    barriers: NDArray[np.int64],
    space: str | None,
    size: int,
    statement: syntax.Instruction,
    what: str,
    work: Callable[[Bytes], Work],
) -> None:
    """Queue `work` on `size` bytes a lane, warp by warp and mbarrier by mbarrier. Raises MemoryFault.

    `what` is "st.async", a weak store, or "red.async", which races with nothing.
    """
    g, machine = part.group, part.group.machine
    if not part.space.startswith("shared"):
        raise MemoryFault(NOT_SHARED, f"{what} accesses .{part.space} memory")
    places = locate(g, part.space, part.addresses, size, what)
    slots, inside = places.slots, places.inside
    assert slots is not None
    assert inside is not None
    owners, do = np.broadcast_to(slots, inside.shape), work(places)
    for position, warp in enumerate(map(int, g.indices)):
        active = g.active[position]
        for barrier in np.unique(barriers[position][active]):
            lanes = active & (barriers[position] == barrier)
            slot, offset = machine.clusters.locate(warp, int(barrier), space)
            if any_set(owners[position][lanes] != slot):
                raise MemoryFault(
                    ASYNC_STORE_CTA,
                    f"{what} to shared memory of another CTA than the mbarrier at {int(barrier):#x}",
                )
            chosen = np.zeros_like(g.active)
            chosen[position] = lanes
            issued = machine.issue(what, statement, slot, warp, lanes)
            _queue(machine, issued, offset, inside[position][lanes], size, lambda c=chosen: do(c))


def _queue(
    machine: Machine, issued: AsyncWork, mbarrier: int, offsets: NDArray[np.int64], size: int, do: Callable[[], None]
) -> None:
    """Queue stores to these offsets that complete on an mbarrier of the destination's CTA."""
    issued.bytes = len(offsets) * size
    signal, slot = Signal(issued.statement, issued.bytes), issued.slot
    machine.events.async_store_issued(issued, offsets, size, signal)
    machine.promise(slot, mbarrier, issued.warp, signal)

    def complete() -> None:
        do()
        machine.complete_on(slot, mbarrier, signal)

    machine.submit(int(machine.cta_slot[issued.warp]), issued.statement, complete, works=[issued])

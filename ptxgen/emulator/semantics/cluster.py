"""Clusters: addresses of peers and the cluster's barrier. PTX ISA 9.7.9.23, 9.7.9.24, 9.7.13.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.clusters import OFFSET_MASK, RANK_SHIFT
from ptxgen.emulator.group import Group
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import SHARED_WINDOW, WINDOW_BYTES
from ptxgen.emulator.registers import Binder
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.instr import cluster

if TYPE_CHECKING:
    from ptxgen.emulator.scheduler import Scheduler

_Run = Callable[[Group], None]


def _window(g: Group, addresses: NDArray[np.int64], space: str | None) -> NDArray[np.int64]:
    """Where the shared window begins among these addresses. Raises MemoryFault for others."""
    base = 0 if space is not None else SHARED_WINDOW
    inside = (addresses >= base) & (addresses < base + WINDOW_BYTES)
    if not (inside | ~g.active).all():
        at = int(addresses[g.active & ~inside][0])
        raise MemoryFault("not-shared", f"the address {at:#x} is not in shared memory")
    return np.asarray(base, np.int64)


@meaning(cluster.mapa)
def map_address(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, rank, d = binder.source(op.a, op.type), binder.source(op.cta, "u32"), binder.destination(op.d, op.type)
    word = np.uint32 if op.type == "u32" else np.uint64

    def run(g: Group) -> None:
        addresses, ranks = g.full(a(g)).astype(np.int64), g.full(rank(g)).astype(np.int64)
        base, size = _window(g, addresses, op.space), g.machine.clusters.size
        if ((ranks >= size) & g.active).any():
            wrong = int(ranks[(ranks >= size) & g.active][0])
            raise MemoryFault("cluster-rank", f"mapa names rank {wrong} in a cluster of {size} CTAs")
        d(g, (base | ranks << RANK_SHIFT | (addresses & OFFSET_MASK)).astype(word))

    return run


@meaning(cluster.getctarank)
def rank_of_address(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, "u32")

    def run(g: Group) -> None:
        addresses = g.full(a(g)).astype(np.int64)
        base = _window(g, addresses, op.space)
        d(g, ((addresses - base) >> RANK_SHIFT).astype(np.uint32))

    return run


@meaning(cluster.arrive, kind="gate")
def arrive(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    """Always passes; a gate since the scheduler counts the arrivals."""

    def run(g: Group, scheduler: Scheduler) -> tuple[None, None]:
        if op.aligned:
            require_whole_warps(g, statement)
        scheduler.arrive_at_cluster(g, statement, relaxed=op.sem == "relaxed")
        return None, None

    return run


@meaning(cluster.wait, kind="gate")
def wait(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        if op.aligned:
            require_whole_warps(g, statement)
        passing = scheduler.pass_cluster(g, statement)
        clusters = g.machine.clusters
        return lambda row: ("cluster", clusters.of(int(clusters.row_slot[row]))), None if passing.all() else passing

    return run

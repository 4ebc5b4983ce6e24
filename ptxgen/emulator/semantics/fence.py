"""Fences. They change no values, since accesses execute in order: they only emit events. PTX ISA 9.7.13."""

from __future__ import annotations

from typing import get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import fence


def _orders(
    acquires: bool, releases: bool, proxy: bool = False, scope: str = "sys", *, sequences: bool = False
) -> Plain:
    """A fence of threads; `proxy`: stores to shared memory become visible to the async proxy; `sequences`: .sc."""

    def run(g: Group) -> None:
        g.machine.events.fence(
            g.indices, g.active, acquires=acquires, releases=releases, sequences=sequences, proxy=proxy, scope=scope
        )

    return run


@semantics(fence.fence, fence.membar)
def order(op: fence.fence | fence.membar, binder: Binder, statement: syntax.Instruction) -> Plain:
    """No semantics means acq_rel; membar is the older fence.sc."""
    sem, scope = ("sc", op.level) if isinstance(op, fence.membar) else (op.sem, op.scope)
    return _orders(acquires=sem != "release", releases=sem != "acquire", scope=scope, sequences=sem == "sc")


@semantics(fence.fence_acquire_shared)
def acquire_shared(op: fence.fence_acquire_shared, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Taken as a fence for all memory: that a wider one is missing is not reported."""
    return _orders(acquires=True, releases=False)


@semantics(fence.fence_release_shared, fence.fence_release_reads)
def release_shared(
    op: fence.fence_release_shared | fence.fence_release_reads, binder: Binder, statement: syntax.Instruction
) -> Plain:
    return _orders(acquires=False, releases=True)


@semantics(fence.fence_proxy_async_acquire)
def acquire_for_copies(op: fence.fence_proxy_async_acquire, binder: Binder, statement: syntax.Instruction) -> Plain:
    return _orders(acquires=True, releases=False, proxy=True)


_ReleaseForCopies = fence.fence_proxy_async_release | fence.fence_proxy_async_release_reads


@semantics(*get_args(_ReleaseForCopies))
def release_for_copies(op: _ReleaseForCopies, binder: Binder, statement: syntax.Instruction) -> Plain:
    return _orders(acquires=False, releases=True, proxy=True)


@semantics(fence.fence_proxy_alias, fence.fence_proxy_alias_ordered)
def order_aliases(
    op: fence.fence_proxy_alias | fence.fence_proxy_alias_ordered, binder: Binder, statement: syntax.Instruction
) -> Plain:
    """There are no aliases in the emulator's memory."""
    return lambda g: None


@semantics(fence.membar_proxy)
def older_proxy_fence(op: fence.membar_proxy, binder: Binder, statement: syntax.Instruction) -> Plain:
    """membar.proxy.async is fence.proxy.async."""
    return _publish(shared=True, heap=True) if op.kind == "async" else lambda g: None


@semantics(fence.fence_mbarrier_init, fence.fence_proxy_async)
def publish_barriers(
    op: fence.fence_mbarrier_init | fence.fence_proxy_async, binder: Binder, statement: syntax.Instruction
) -> Plain:
    if isinstance(op, fence.fence_mbarrier_init):
        return _publish(shared=False, heap=False)
    return _publish(shared=op.space != "global", heap=op.space in (None, "global"))


def _publish(*, shared: bool, heap: bool) -> Plain:
    """The mbarriers that these warps initialized become visible to asynchronous copies, except by a fence for global
    memory alone.

    fence.proxy.async also makes visible the stores to shared memory, or to global memory (`heap`), that are ordered
    before it.
    """
    shows_inits = shared or not heap

    def run(g: Group) -> None:
        machine = g.machine
        for warp in g.indices.tolist() if shows_inits and machine.unfenced else ():
            inits = machine.unfenced.pop(warp, [])
            for made in inits:
                made.fenced = True
            if inits:
                machine.events.mbarrier_init_fence(warp, inits)
        if shared or heap:
            machine.events.proxy_fence(g.indices, g.active, shared=shared, heap=heap)

    return run


@semantics(fence.fence_proxy_tensormap_release)
def release_tensormaps(op: fence.fence_proxy_tensormap_release, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The maps that have been changed may be acquired from now on."""

    def run(g: Group) -> None:
        g.machine.events.tensormap_release()

    return run


@semantics(fence.fence_proxy_tensormap_acquire)
def acquire_tensormap(op: fence.fence_proxy_tensormap_acquire, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Later copies see the map at an address as it was released."""
    address = binder.address(op.addr)

    def run(g: Group) -> None:
        places = g.full(address(g))
        for position, warp in enumerate(g.indices.tolist()):
            for place in np.unique(places[position][g.active[position]]).tolist():
                g.machine.events.tensormap_acquire(warp, place)

    return run

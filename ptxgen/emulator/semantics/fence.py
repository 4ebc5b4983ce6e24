"""Fences. The generic proxy is ordered by the emulator's own order of execution; what is kept here is which
mbarriers and stores the async proxy may see. PTX ISA 9.7.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.checks.order.partial_release import bits
from ptxgen.emulator.checks.order.strong_accesses import level
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.state.group import Group
from ptxgen.instr import fence

_Run = Callable[[Group], None]


def _orders(
    acquires: bool, releases: bool, proxy: bool = False, scope: str = "sys", *, sequences: bool = False
) -> _Run:
    """What relaxed waits have seen counts from an acquiring fence on, what relaxed arrivals tell is what came before a
    releasing one; `proxy` also shows the async proxy the stores to shared memory that the warp knows. The scope counts
    for accesses to global memory.
    """
    width = level(scope)

    def run(g: Group) -> None:
        happens_before, strong = g.machine.happens_before, g.machine.strong_accesses
        if happens_before is None or strong is None:
            return
        for row, lanes in zip(g.indices.tolist(), bits(g.active).tolist(), strict=True):
            known = g.machine.unfenced_waits.pop(row, None) if acquires else None
            if known is not None:
                happens_before.acquire(row, known)
            if acquires:
                strong.acquire_fence(row, width)
            if sequences:
                strong.sequence_fence(row, width)
            if proxy:
                happens_before.proxy_fence(row, lanes, heap=False)
            if releases:
                happens_before.release_fence(row, lanes)
                strong.release_fence(row, width)

    return run


@semantics(fence.fence, fence.membar)
def order(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """No semantics means acq_rel; membar is the older fence.sc."""
    sem = getattr(op, "sem", None)
    scope = op.level if isinstance(op, fence.membar) else op.scope
    sequences = isinstance(op, fence.membar) or sem == "sc"
    return _orders(acquires=sem != "release", releases=sem != "acquire", scope=scope, sequences=sequences)


@semantics(fence.fence_acquire_shared)
def acquire_shared(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """The restriction to shared memory is not kept: a missing wider fence is not reported."""
    return _orders(acquires=True, releases=False)


@semantics(fence.fence_release_shared, fence.fence_release_reads)
def release_shared(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    return _orders(acquires=False, releases=True)


@semantics(fence.fence_proxy_async_acquire)
def acquire_for_copies(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    return _orders(acquires=True, releases=False, proxy=True)


@semantics(fence.fence_proxy_async_release, fence.fence_proxy_async_release_reads)
def release_for_copies(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    return _orders(acquires=False, releases=True, proxy=True)


@semantics(fence.fence_proxy_alias, fence.fence_proxy_alias_ordered)
def order_aliases(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """There are no aliases in the emulator's memory."""
    return lambda g: None


@semantics(fence.membar_proxy)
def older_proxy_fence(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """membar.proxy.async is fence.proxy.async."""
    return _publish(shared=True, heap=True) if op.kind == "async" else lambda g: None


@semantics(fence.fence_mbarrier_init, fence.fence_proxy_async)
def publish_barriers(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    stores = isinstance(op, fence.fence_proxy_async)
    return _publish(shared=stores and op.space != "global", heap=stores and op.space in (None, "global"))


def _publish(*, shared: bool, heap: bool) -> _Run:
    """Objects that these warps made may be completed on by asynchronous copies from now on, except if the fence is for
    global memory alone.

    fence.proxy.async also shows them the stores to shared or global memory that these warps know.
    """
    shows_inits = shared or not heap

    def run(g: Group) -> None:
        for row, lanes in zip(g.indices.tolist(), bits(g.active).tolist(), strict=True):
            inits = g.machine.unfenced.pop(row, []) if shows_inits else []
            for made in inits:
                made.fenced = True
            if inits and g.machine.happens_before is not None:
                g.machine.happens_before.release_inits(row, [made.number for made in inits])
            if (shared or heap) and g.machine.happens_before is not None:
                g.machine.happens_before.proxy_fence(row, lanes, shared=shared, heap=heap)

    return run


@semantics(fence.fence_proxy_tensormap_release)
def release_tensormaps(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """The maps that have been changed may be acquired from now on."""

    def run(g: Group) -> None:
        if g.machine.tensormaps is not None:
            g.machine.tensormaps.release()

    return run


@semantics(fence.fence_proxy_tensormap_acquire)
def acquire_tensormap(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """Later copies see the map at an address as it was released."""
    address = binder.address(op.addr)

    def run(g: Group) -> None:
        if g.machine.tensormaps is not None:
            for place in np.unique(g.full(address(g))[g.active]):
                g.machine.tensormaps.acquire(int(place))

    return run

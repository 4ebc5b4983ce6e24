"""Whether the tensormap proxy sees what the generic proxy wrote into tensormaps. PTX ISA 8.6 and 9.7.13.4.

A map that a kernel changes must be released to the tensormap proxy (tensormap.cp_fenceproxy, or
fence.proxy.tensormap::generic.release) and then acquired by fence.proxy.tensormap::generic.acquire with its address
before a copy uses it, by the warp of the copy or by one with which that has synchronized since. Changes are those of
the tensormap instructions, and whatever else makes the bytes differ between two uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement


@dataclass(slots=True)
class _State:
    """One map: its last change, whether that is released, which warps have acquired it since and in which of their
    intervals, and the bytes last used.
    """

    changed: Statement | None = None
    released: bool = True
    #: True if a fence has acquired the map since its last use.
    acquired: bool = False
    acquirers: dict[int, int] = field(default_factory=dict)
    used: bytes | None = None


class Tensormaps(Observer):
    """The maps in global memory that a launch changes or uses, by address."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self.findings = happens_before, findings
        self._maps: dict[int, _State] = {}

    def tensormap_changes(self, warp: int, address: int, statement: Statement) -> None:
        self.written(address, statement, released=False)

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Statement) -> None:
        self.written(address, statement, released=True)

    def written(self, address: int, statement: Statement, *, released: bool) -> None:
        """An instruction changes a map; `released` if it fences too."""
        state = self._maps.setdefault(address, _State())
        state.changed, state.released, state.acquired = statement, released, False
        state.acquirers.clear()

    def tensormap_release(self) -> None:
        for state in self._maps.values():
            state.released = True

    def tensormap_acquire(self, warp: int, address: int) -> None:
        state = self._maps.setdefault(address, _State())
        state.acquired = True
        if state.released:
            state.acquirers[self._happens_before.actor(warp)] = self._happens_before.clock(warp)

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        state = self._maps.setdefault(address, _State())
        missing = self._missing(warp, state, data)
        if missing:
            self._report(statement, address, state.changed, missing)
        state.used, state.acquired = data, False

    def _missing(self, warp: int, state: _State, data: bytes) -> str:
        """The fence that a warp's use of a map lacks, in words; empty if none."""
        fence, since = "fence.proxy.tensormap::generic", "has executed since"
        if state.changed is None:
            differs = state.used is not None and state.used != data and not state.acquired
            return f"No {fence}.acquire {since}" if differs else ""
        if not state.released:
            return f"No {fence}.release {since}"
        if not state.acquirers:
            return f"No {fence}.acquire of its address {since}"
        mine, observed = self._happens_before.actor(warp), self._happens_before.has_observed_actor
        if any(actor == mine or observed(warp, actor, clock) for actor, clock in state.acquirers.items()):
            return ""
        return f"Only warps that have not synchronized with this one have executed {fence}.acquire of its address since"

    def _report(self, statement: Statement, address: int, changed: Statement | None, missing: str) -> None:
        user = self.findings.access("reader", statement, space="global", address=address)
        parties = (user,)
        if changed is not None:
            parties += (self.findings.access("writer", changed, space="global", address=address),)
        since = f"line {changed.line} changed" if changed is not None else "has changed since its last use"
        what = f"which {since}" if changed is None else f"which {since} last"
        self.findings.report(
            races.MISSING_TENSORMAP_FENCE,
            statement,
            summary=f"{user} uses the tensormap {user.place}, {what}",
            rule=f"{missing}; the copy may read the old map",
            accesses=parties,
        )

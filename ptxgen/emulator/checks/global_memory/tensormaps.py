"""Whether the tensormap proxy sees what the generic proxy wrote into tensormaps. PTX ISA 8.6 and 9.7.13.4.

A map that a kernel changes must be released to the tensormap proxy (tensormap.cp_fenceproxy, or
fence.proxy.tensormap::generic.release) and then acquired by fence.proxy.tensormap::generic.acquire with its address
before a copy uses it. Only what no order of execution can excuse is reported: no thread has executed such a fence since
the change. Changes are those of the tensormap instructions, and whatever else makes the bytes differ between two uses.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement


@dataclass(slots=True)
class _State:
    """One map: its last change that is not acquired yet, whether that is released, and the bytes last used."""

    changed: Statement | None = None
    released: bool = True
    acquired: bool = False
    used: bytes | None = None


class Tensormaps(Observer):
    """The maps in global memory that a launch changes or uses, by address."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._maps: dict[int, _State] = {}

    def tensormap_changes(self, warp: int, lane: int, slot: int | None, address: int, statement: Statement) -> None:
        if slot is None:
            self.written(address, statement, released=False)

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Statement) -> None:
        self.written(address, statement, released=True)

    def written(self, address: int, statement: Statement, *, released: bool) -> None:
        """An instruction changes a map; `released` if it fences too."""
        state = self._maps.setdefault(address, _State())
        state.changed, state.released, state.acquired = statement, released, False

    def tensormap_release(self) -> None:
        for state in self._maps.values():
            state.released = True

    def tensormap_acquire(self, address: int) -> None:
        state = self._maps.setdefault(address, _State())
        state.acquired = True
        if state.released:
            state.changed = None

    def tensormap_used(self, warp: int, address: int, data: bytes, statement: Statement) -> None:
        state = self._maps.setdefault(address, _State())
        if state.changed is not None:
            fence = "generic.acquire of its address" if state.released else "generic.release"
            self._report(statement, address, state.changed, fence)
        elif state.used is not None and state.used != data and not state.acquired:
            self._report(statement, address, None, "generic.acquire")
        state.used, state.acquired = data, False

    def _report(self, statement: Statement, address: int, changed: Statement | None, fence: str) -> None:
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
            rule=f"No fence.proxy.tensormap::{fence} has executed since; the copy may read the old map",
            accesses=parties,
        )

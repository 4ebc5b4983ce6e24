"""Synchronization by mbarriers between CTAs of a cluster, whose scope .cta does not include the other thread.

An arrival releases, and a wait acquires, for threads of its scope alone (PTX ISA 8.5, 8.7), by default .cta. Where CTAs
synchronize so, copies and the tensor core follow all the same: CUTLASS and Triton leave the scope out there. Accesses
by threads do not: with .cluster ptxas puts a MEMBAR before the arrival and a CCTL.IVALL after the wait, with .cta
neither (ptxas 13.5, sm_90a and sm_100a). So the clocks that each warp has acquired by scopes that are wide enough are
kept. What one warp releases to another of its CTA by an mbarrier counts as acquired so: a race may be missed, none is
invented.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Severity
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import races
from ptxgen.syntax import Statement

#: Clocks that an mbarrier's arrivals publish to waits of scope .cta (row 0) and .cluster (row 1): (2, warps).
Scopes = NDArray[np.int64]
#: For which waits an arrival counts: of both scopes, of .cluster, of none.
Reach = Literal["cta", "cluster", "none"]
#: Which of the two has too narrow a scope.
Narrow = Literal["arrival", "wait"]
#: Semantics of arrivals and waits, and the side of a relaxed one where its fence must stand.
_RELEASES = {"arrival": "release", "wait": "acquire"}
_BESIDE = {"arrival": "before", "wait": "after"}
_ROWS = {"cta": slice(0, 2), "cluster": slice(1, 2), "none": slice(0, 0)}


def widen(scopes: Scopes, clocks: NDArray[np.int64], reach: Reach) -> None:
    """Add an arrival that gives these clocks."""
    warps = scopes[_ROWS[reach]]
    np.maximum(warps, clocks, out=warps)


class ClusterScope:
    """For each warp the clocks of its cluster's warps that it has acquired by wide scopes, and those that it would have
    if all its waits were of scope .cluster. Nothing is kept before the first synchronization of too narrow a scope.
    """

    def __init__(self, clocks: NDArray[np.int64]) -> None:
        self._clocks = clocks
        self._wide: NDArray[np.int64] | None = None

    @property
    def any_narrow(self) -> bool:
        """True once a synchronization had too narrow a scope."""
        return self._wide is not None

    def acquired(self, warp: int, clocks: NDArray[np.int64], scopes: Scopes | None) -> None:
        """A warp is about to acquire these clocks; `scopes`: those by wide scopes, of an mbarrier: (2, warps)."""
        if self._wide is None:
            if scopes is None:
                return
            self._wide = np.stack([self._clocks, self._clocks])
        np.maximum(
            self._wide[:, warp], clocks if scopes is None else np.minimum(scopes, clocks), out=self._wide[:, warp]
        )

    def together(self, warps: NDArray[np.int64], clocks: NDArray[np.int64] | None = None) -> None:
        """Warps (.., those of a CTA) acquire the clocks of all of the CTA, and these besides."""
        if self._wide is not None:
            shared = self._wide[:, warps].max(axis=-2, keepdims=True)
            self._wide[:, warps] = shared if clocks is None else np.maximum(shared, clocks)

    def forget(self, warps: NDArray[np.int64]) -> None:
        """Warps of other CTAs begin."""
        if self._wide is not None:
            self._wide[:, warps] = 0

    def wide(self, warp: int, warps: int) -> NDArray[np.int64] | None:
        """The clocks that `warp` has observed by wide scopes, and those with all its waits of scope .cluster:
        (2, warps of the cluster); those of its own CTA, of so many warps, it has in any case. None: all are wide.
        """
        if self._wide is None:
            return None
        clocks, wide = self._clocks[warp], np.minimum(self._wide[:, warp], self._clocks[warp])
        own = warp % len(clocks) // warps * warps
        wide[:, own : own + warps] = clocks[own : own + warps]
        return wide


def report_narrow(
    findings: Findings,
    found: Access,
    other: Access,
    narrow: Narrow,
    statement: Statement,
    severity: Severity,
    interval: tuple[int, int],
) -> None:
    """Report an access of a warp, in an `interval` of its, that only an mbarrier of too narrow a scope orders after
    another's.
    """
    does, did = (("reads", "reads") if each.role == "reader" else ("overwrites", "writes") for each in (found, other))
    findings.report(
        races.NARROW_SCOPE,
        statement,
        summary=f"{found} {does[0]} {found.place}, which {other} {did[1]}",
        rule=f"Only an mbarrier orders them, and its {narrow} (if it is relaxed, the fence {_BESIDE[narrow]} it) has "
        "scope .cta, which does not include the other thread",
        fix=f"use .{_RELEASES[narrow]}.cluster on the {narrow}, or fence.acq_rel.cluster {_BESIDE[narrow]} a relaxed "
        "one",
        accesses=(found, other),
        severity=severity,
        cause=frozenset([causes.narrow(*interval)]),
    )

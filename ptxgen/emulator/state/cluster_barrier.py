"""Findings of the barrier of a cluster. PTX ISA 9.7.13.3."""

from __future__ import annotations

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import barriers
from ptxgen.syntax import Statement


def report_unwaited_arrival(findings: Findings, warp: int, statement: Statement) -> None:
    """A thread arrives at its cluster's barrier twice, and nothing orders the second arrival after the phase."""
    arrival = findings.access("arriver", statement, warp)
    findings.report(
        barriers.CLUSTER_BARRIER_ORDER,
        statement,
        summary=f"{arrival} arrives at the cluster barrier again before its last phase completes",
        rule="No barrier.cluster.wait separates the two arrivals",
        accesses=(arrival,),
        cause=frozenset([causes.CLUSTER_BARRIER]),
    )

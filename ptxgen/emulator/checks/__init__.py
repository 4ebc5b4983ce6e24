"""Checks on a running kernel: findings, and the happens-before relation behind the race reports."""

from ptxgen.emulator.checks.efficiency import Efficiency
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_accesses import GlobalAccesses
from ptxgen.emulator.checks.global_copies import GlobalCopies
from ptxgen.emulator.checks.global_events import GlobalEvents
from ptxgen.emulator.checks.grid_races import GridRaces
from ptxgen.emulator.checks.happens_before import Ordering
from ptxgen.emulator.checks.knowledge import AsyncOperation, Knowledge
from ptxgen.emulator.checks.strong_accesses import StrongAccesses
from ptxgen.emulator.checks.tensormaps import Tensormaps

__all__ = [
    "AsyncOperation",
    "Efficiency",
    "Findings",
    "GlobalAccesses",
    "GlobalCopies",
    "GlobalEvents",
    "GridRaces",
    "Knowledge",
    "Ordering",
    "StrongAccesses",
    "Tensormaps",
]

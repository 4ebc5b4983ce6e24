"""Loops of a kernel that load K blocks or multiply them, and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.sass import Listing
from ptxgen.sass.classes import MMA_GROUPS, mmas
from ptxgen.sass.flow import Flow
from ptxgen.sass.loops import LoopSummary, loop_summary
from ptxgen.sass.summary import summarize

#: The class of instructions by which a loop is known, the role of its warp, and how many of them a K block takes.
ROLES = (("UTMALDG", "load", 2), ("UTCMMA", "MMA", 4))


@dataclass(frozen=True)
class Row:
    """A loop over K blocks, with the figures of one K block; loops that poll a barrier lie in it and count once.

    `stall`: the sum of the stall counts, in cycles. `waits`: instructions that wait for a scoreboard. `r2ur`: moves to
    uniform registers. `invalidates`: CCTL.IVALL, which an acquire beyond the CTA takes. `local` (accesses to local
    memory) and `registers` are those of the whole kernel.
    """

    kernel: str
    role: str
    instructions: float
    stall: float
    waits: float
    r2ur: float
    invalidates: float
    local: int
    registers: int | None

    def line(self) -> str:
        """As a row of a table."""
        values = (
            self.instructions, self.stall, self.waits, self.r2ur, self.invalidates, self.local, self.registers or 0
        )  # fmt: skip
        return f"| {self.kernel} | {self.role} | " + " | ".join(f"{value:.3g}" for value in values) + " |"


HEAD = """\
| kernel | warp | instructions | stall | waits | R2UR | CCTL.IVALL | local accesses | registers |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


def _count(figures: LoopSummary, name: str) -> int:
    return mmas(figures.classes, name) if name in MMA_GROUPS else figures.classes.get(name, 0)


def rows(kernel: str, listing: Listing) -> Iterator[Row]:
    """The deepest loops with loads or MMAs."""
    function = listing.kernel()
    flow = Flow(function)
    summary = summarize(function, listing, flow)
    found = [(loop, loop_summary(flow, loop)) for loop in flow.loops]
    for name, role, count in ROLES:
        with_it = [(loop, figures) for loop, figures in found if _count(figures, name)]
        deepest = max((loop.depth for loop, _ in with_it), default=0)
        for loop, figures in with_it:
            if loop.depth < deepest:
                continue
            blocks = _count(figures, name) / count
            yield Row(
                kernel,
                role,
                instructions=figures.instructions / blocks,
                stall=figures.stall / blocks,
                waits=figures.scoreboard_waits / blocks,
                r2ur=figures.classes.get("R2UR", 0) / blocks,
                invalidates=sum(each.mnemonic == "CCTL.IVALL" for each in flow.instructions(loop)) / blocks,
                local=summary.local_loads + summary.local_stores,
                registers=summary.registers,
            )

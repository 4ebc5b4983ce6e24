"""The error of an access that hardware would refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Finding
from ptxgen.emulator.checks.causes import Cause
from ptxgen.emulator.checks.registry import Check
from ptxgen.syntax import Statement


class MemoryFault(Exception):
    """Ends a launch: an access outside memory, misaligned, or to memory of the wrong kind, an illegal operand.

    `check` is its declaration, `summary` what happened, `rule` and `fix` as in `Findings.report`. `place` is
    the first lane at fault among those that access memory together: the position of its warp, and its lane.
    """

    def __init__(
        self,
        check: Check,
        summary: str,
        place: tuple[int, int] | None = None,
        *,
        rule: str | None = None,
        fix: str | None = None,
        accesses: tuple[Access, ...] = (),
        cause: Cause = None,
    ) -> None:
        self.check, self.summary, self.rule, self.fix, self.accesses = check, summary, rule, fix, accesses
        self.place, self.cause = place, cause
        #: Where it belongs, when that is not the instruction that runs now.
        self.statement: Statement | None = None
        super().__init__(summary)

    def __str__(self) -> str:
        return self.summary

    def finding(self, statement: Statement | None) -> Finding:
        """The finding with which the launch ends, at its own statement or at the one that was running."""
        at = self.statement or statement
        return self.check.finding(
            at, summary=self.summary, rule=self.rule, fix=self.fix, accesses=self._accesses(at), severity="error"
        )

    def _accesses(self, statement: Statement | None) -> tuple[Access, ...]:
        """The accesses, with the line and instruction that stopped where they have none."""
        if statement is None:
            return self.accesses
        line, text = statement.line, statement.text.strip()
        return tuple(
            replace(each, line=line, instruction=text) if each.line is None else each for each in self.accesses
        )


def first(bad: NDArray[np.bool_]) -> tuple[int, int]:
    """The position and lane of the first access that is bad: (warps, 32)."""
    position, lane = np.argwhere(bad)[0].tolist()
    return position, lane

"""Survivors that are as right as the kernel they come from, each with the reason.

What survives and is not in the table is a gap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.mutants.mutations import Mutant


@dataclass(frozen=True)
class Equivalent:
    """Mutants of a kind, of subjects and instructions that match, and why they change nothing."""

    reason: str
    kind: str
    instruction: str
    subject: str = ".*"
    #: Lines of the subject, where not all that match are meant.
    lines: tuple[int, ...] = ()

    def fits(self, subject: str, mutant: Mutant) -> bool:
        """Whether a mutant is one of these."""
        return (
            re.fullmatch(self.subject, subject) is not None
            and re.fullmatch(self.kind, mutant.kind) is not None
            and re.search(self.instruction, mutant.instruction) is not None
            and (not self.lines or mutant.line in self.lines)
        )


_GATHER = "t36_100_tma_gather4_scatter4"

TABLE: tuple[Equivalent, ...] = (
    Equivalent(
        "Without interleave the element stride of the innermost dimension is ignored (CUDA driver API, "
        "cuTensorMapEncodeTiled).",
        "another element_stride", r"element_stride\.\S+ \[[^]]*\], 0x0,",
    ),
    Equivalent(
        "gather4 and scatter4 name each row: a stride between rows has no meaning.",
        "another element_stride", r"element_stride\.\S+ \[[^]]*\], 0x1,", _GATHER,
    ),
)  # fmt: skip


def reason(subject: str, mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty if nobody has said so."""
    return next((each.reason for each in TABLE if each.fits(subject, mutant)), "")

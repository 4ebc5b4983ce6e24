"""Survivors that are as right as the kernel they come from, each with the reason; and known limits of the checks.

What survives and is in neither table is a gap that nobody has looked at.
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


_TRITON_MAPS = "t36_.*(tma_reduce_add|tma_gather4_scatter4|TN_mnmajor|devdesc)"
_REDUCE, _GATHER, _SWIZZLED = "t36_100_tma_reduce_add", "t36_100_tma_gather4_scatter4", "blackwell/swizzled"

TABLE: tuple[Equivalent, ...] = (
    Equivalent(
        "No bulk copy of the thread is under way: these groups, which Triton makes after a tensormap, are empty.",
        "dropped|one group less", r"@%p1 cp\.async\.bulk\.(commit_group|wait_group)", _TRITON_MAPS,
    ),
    Equivalent(
        "Another bar.sync of all threads stands next to it, with no access to memory between the two.",
        "dropped", "bar.sync", _REDUCE, (112, 116),
    ),
    Equivalent(
        "Another bar.sync of all threads stands next to it, with no access to memory between the two.",
        "dropped", "bar.sync", _GATHER, (114, 118),
    ),
    Equivalent(
        "Warp 0 alone does what stands between it and the next bar.sync, which comes before the others' waits.",
        "dropped", "bar.sync", _REDUCE, (168, 188, 192),
    ),
    Equivalent(
        "Warp 0 alone does what stands between it and the next bar.sync, which comes before the others' waits.",
        "dropped", "bar.sync", _GATHER, (170, 230, 234),
    ),
    Equivalent(
        "No asynchronous tcgen05 operation comes before it: the fences around this barrier have nothing to order.",
        "dropped", r"tcgen05\.fence", _SWIZZLED, (58, 60),
    ),
    Equivalent(
        "All tcgen05.ld of the threads are over through tcgen05.wait::ld before the barrier in front of the dealloc.",
        "dropped", r"tcgen05\.fence", _SWIZZLED, (296, 298),
    ),
)  # fmt: skip

#: Gaps whose cause is known: what the checks do not see.
LIMITS: tuple[Equivalent, ...] = (
    Equivalent(
        "The checks take a warp as one actor: what its lanes must synchronise among themselves is not seen.",
        "dropped", r"bar\.warp\.sync",
    ),
    Equivalent(
        "Each warp stores what its own elected lane copies, and the checks take the lanes of a warp as one actor.",
        "dropped", "bar.sync", _GATHER, (281,),
    ),
)  # fmt: skip


def reason(subject: str, mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty if nobody has said so."""
    return next((each.reason for each in TABLE if each.fits(subject, mutant)), "")


def limit(subject: str, mutant: Mutant) -> str:
    """Why the checks do not see what is wrong with a mutant; empty where that is not known."""
    return next((each.reason for each in LIMITS if each.fits(subject, mutant)), "")

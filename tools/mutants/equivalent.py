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


_ALONE = "The grid runs alone: no grid comes before it or after it that it could overlap with (9.7.13.13)."
_GATHER = "t36_100_tma_gather4_scatter4"

TABLE: tuple[Equivalent, ...] = (
    Equivalent(_ALONE, "dropped", r"griddepcontrol\."),
    Equivalent(
        "No other CTA of the multiprocessor waits for columns of tensor memory: a launch in which one does would end "
        "in a deadlock, or later.",
        "dropped", r"tcgen05\.relinquish_alloc_permit",
    ),
    Equivalent(
        "Nothing else comes to lie where the mbarrier is; a store there would be told (mbarrier-overwritten).",
        "dropped", r"mbarrier\.inval",
    ),
    Equivalent(
        "The CTA's pool of registers has room for it: else a setmaxnreg.inc would wait for ever.",
        "8 registers more", r"setmaxnreg",
    ),
    Equivalent(
        "Since the fence before, nothing but products of the same shape has accessed the registers (9.7.15.7.1); "
        "otherwise missing-wgmma-fence tells.",
        "dropped", r"wgmma\.fence",
    ),
    Equivalent(
        "The launch has one CTA, whose threads are all in the scope .cta.",
        "of a narrower scope", "membar", "spinlock_table",
    ),
    Equivalent(
        "The fence before the ticket covers all that is read after this barrier of the grid: between them thread 0 "
        "stores nothing but by atomics.",
        "dropped|of a narrower scope", "membar", "legacy", (194,),
    ),
    Equivalent(
        "Nothing that comes after the latch reads what another warp has written before it: the box is read before.",
        "dropped|relaxed", "atom|ld|bar.warp", "libcu_sync", (570, 571, 667, 671),
    ),
    Equivalent(
        "The bar.sync behind the loop has put every use of the pipeline's mbarriers before their end.",
        "dropped|relaxed", "fence.sc|atom", "libcu_pipeline", (445, 446),
    ),
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

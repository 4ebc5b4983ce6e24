"""Equivalent mutants among the survivors, each with the reason.

A survivor that is not in the table is a gap.
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


_ALONE = "No other grid runs before or after this one, so there is none to overlap with (9.7.13.13)."
_GATHER = "t36_100_tma_gather4_scatter4"

TABLE: tuple[Equivalent, ...] = (
    Equivalent(_ALONE, "dropped", r"griddepcontrol\."),
    Equivalent(
        "No other CTA of the SM waits to allocate TMEM; where one does, the launch deadlocks or takes longer.",
        "dropped", r"tcgen05\.relinquish_alloc_permit",
    ),
    Equivalent(
        "Nothing reuses the memory of the mbarrier; a store there would be reported (mbarrier-overwritten).",
        "dropped", r"mbarrier\.inval",
    ),
    Equivalent(
        "The CTA's register pool has room for it; otherwise a setmaxnreg.inc would block forever.",
        "8 registers more", r"setmaxnreg",
    ),
    Equivalent(
        "Since the previous fence only wgmma.mma_async of the same shape has accessed the registers "
        "(9.7.15.7.1); anything else is reported (missing-wgmma-fence).",
        "dropped", r"wgmma\.fence",
    ),
    Equivalent(
        "The launch has one CTA, whose threads are all in the scope .cta.",
        "of a narrower scope", "membar", "spinlock_table",
    ),
    Equivalent(
        "The fence before the ticket covers all that is read after this grid barrier: between them thread 0 "
        "stores by atomics only.",
        "dropped|of a narrower scope", "membar", "legacy", (194,),
    ),
    Equivalent(
        "Nothing after the latch reads what another warp has written before it: the tile is read earlier.",
        "dropped|relaxed", "atom|ld|bar.warp", "libcu_sync", (570, 571, 667, 671),
    ),
    Equivalent(
        "The bar.sync after the loop orders every use of the pipeline's mbarriers before their invalidation.",
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


#: Fields that the manual says are not read; mutants of them that give the same bits are equivalent for this reason.
UNUSED: tuple[Equivalent, ...] = (
    Equivalent(
        "The leading offset of swizzled K-major matrices is not read (PTX ISA 9.7.16.3.1.1), and all of these are.",
        r"[AB]'s leading offset", r"tcgen05\.mma|wgmma", r"modular-k[3-9].*|tilus-v\d|hopper-\d.*|mxfp8-.*|nvfp4",
    ),
    Equivalent(
        "Without swizzle there is no pattern that the base offset could shift (PTX ISA 9.7.16.4.1).",
        r"[AB]'s base offset", r"tcgen05\.mma", r"modular-k2.*",
    ),
)  # fmt: skip


def reason(subject: str, mutant: Mutant, table: tuple[Equivalent, ...] = TABLE) -> str:
    """Why a mutant is equivalent; empty if the table has no reason."""
    return next((each.reason for each in table if each.fits(subject, mutant)), "")

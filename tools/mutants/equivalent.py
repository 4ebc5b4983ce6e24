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

_ADJACENT = "Another bar.sync of all threads stands next to it, with no access to memory between the two."
_WARP_0 = "Triton puts a bar.sync around each step: warp 0 alone acts between this one and its neighbours."

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
    Equivalent(
        "No bulk copy of the thread is under way: these groups, which Triton makes after a tensormap, are empty.",
        "dropped|one group less", r"@%p1 cp\.async\.bulk\.(commit_group|wait_group)", _TRITON_MAPS,
    ),
    Equivalent(
        _ADJACENT,
        "dropped", "bar.sync", _REDUCE, (112, 116),
    ),
    Equivalent(
        _ADJACENT,
        "dropped", "bar.sync", _GATHER, (114, 118),
    ),
    Equivalent(
        _WARP_0,
        "dropped", "bar.sync", _REDUCE, (168, 188, 192),
    ),
    Equivalent(
        _WARP_0,
        "dropped", "bar.sync", _GATHER, (170, 230, 234),
    ),
    Equivalent(_WARP_0, "dropped", "bar.sync", "t36_100_gemm_f16_hostdesc_edges", (127, 215)),
    Equivalent(_WARP_0, "dropped", "bar.sync", "t36_100_gemm_f16_TN_mnmajor", (345, 636)),
    Equivalent(_WARP_0, "dropped", "bar.sync", "t36_100_mxfp8_tma_tccp", (152, 161, 517)),
    Equivalent(_WARP_0, "dropped", "bar.sync", "t36_90_gemm_f16_TN_mnmajor", (117, 124, 236, 298, 560, 668)),
    Equivalent(_ADJACENT, "dropped", "bar.sync", "t36_100_gemm_f16_hostdesc_edges", (991,)),
    Equivalent(_ADJACENT, "dropped", "bar.sync", "t36_100_gemm_f16_TN_mnmajor", (707,)),
    Equivalent(
        "The threads only wait for mbarriers on both sides of it.", "dropped", "bar.sync",
        "t36_100_gemm_f16_TN_mnmajor", (551,),
    ),
    Equivalent(
        "Thread 0 initialises an mbarrier next, and other barriers come before the first product.", "dropped",
        "bar.sync", "t36_100_gemm_f16_hostdesc_edges", (83,),
    ),
    Equivalent(
        "The waits that follow need the mbarrier's init alone, which an earlier bar.sync orders.",
        "dropped", "bar.sync", _GATHER, (248,),
    ),
    Equivalent(
        "The phase before the first counts as ended: the first waits of the ring pass at once, whatever they wait for.",
        "wait dropped|another stage", "mbarrier.try_wait", "cute_90_gemm_f16", (61, 94, 128),
    ),
    Equivalent(
        "No stage of the ring is filled twice with this K, so nobody waits for the mbarrier that says it is free.",
        "count . 1", "mbarrier.init", "cute_90_gemm_f16", (43, 44, 46),
    ),
    Equivalent(
        "Nothing is written before this barrier, which only makes sure that the other CTA is there.",
        "relaxed", "barrier.cluster.arrive", "g39_100_gemm_f16_2cta_mma", (53,),
    ),
    Equivalent(
        "Each warp has waited for the mbarrier itself, and its products read only what the copies wrote.",
        "dropped", "bar.sync", "g39_90_gemm_f16_cluster2_multicastB", (292,),
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
LIMITS: tuple[Equivalent, ...] = ()


def reason(subject: str, mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty if nobody has said so."""
    return next((each.reason for each in TABLE if each.fits(subject, mutant)), "")


def limit(subject: str, mutant: Mutant) -> str:
    """Why the checks do not see what is wrong with a mutant; empty where that is not known."""
    return next((each.reason for each in LIMITS if each.fits(subject, mutant)), "")

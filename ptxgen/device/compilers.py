"""Advice that compilers cause by the code that they always emit: summaries count it in one line.

Each entry was seen in kernels that run on the hardware, and can be changed by nobody but the compiler's authors. An
error is never among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Compiler:
    """A compiler: how its PTX is recognized, and by code why its kernels get an advice."""

    name: str
    marks: re.Pattern[str]
    accepts: Mapping[str, str]


#: Triton keeps its shared memory in one variable; CuTe DSL and Mosaic GPU name kernels and variables so.
COMPILERS = (
    Compiler(
        "Triton",
        re.compile(r"\.extern \.shared [^;]*\bglobal_smem\["),
        {
            "missing-tcgen05-fence": "waits for an mbarrier or bar.sync without a tcgen05.fence (3.6 to 3.9)",
            "missing-tcgen05-wait": "uses registers of tcgen05.ld before tcgen05.wait::ld",
            "shared-race": "lets warps that hold the same store it, and lanes load together before bar.warp.sync",
            "global-race": "lets all warps load and one store in place, where a layout repeats elements",
            "mbarrier-inval-race": "invalidates mbarriers after the last wait (Gluon 3.9)",
            "mbarrier-init-proxy": "initializes mbarriers without fence.mbarrier_init",
            "wgmma-register-in-flight": "moves accumulators before wgmma.wait_group",
            "many-issuers": "issues from each lane of a warp",
            "descriptor-version": "leaves the version of descriptors 0 (3.5)",
        },
    ),
    Compiler(
        "CuTe DSL",
        re.compile(r"\.entry \w*kernel_cutlass_"),
        {
            "missing-tcgen05-wait": "lets the registers of tcgen05.ld order it (4.8)",
            "missing-tcgen05-fence": "leaves out tcgen05.fence in places",
            "mbarrier-init-race": "publishes mbarriers by barrier.cluster.arrive.relaxed",
            "mbarrier-init-proxy": "publishes mbarriers by barrier.cluster.arrive.relaxed",
            "missing-fence": "orders the peers of a cluster by barrier.cluster.arrive.relaxed",
            "pair-not-started": "allocates tensor memory before its barrier of the cluster",
            "tmem-freed-in-use": "frees a pair's tensor memory after a barrier of its CTA",
        },
    ),
    Compiler(
        "Mosaic GPU",
        re.compile(r"\.shared [^;]*\b__dynamic_shmem__\d+"),
        {
            "missing-tcgen05-fence": "leaves out tcgen05.fence in places",
            "mbarrier-init-proxy": "initializes mbarriers without fence.mbarrier_init",
            "shared-race": "lets warps that hold the same store it",
        },
    ),
)


def compiler_of(text: str) -> Compiler | None:
    """The compiler that wrote a module; None if it is not one of these."""
    return next((each for each in COMPILERS if each.marks.search(text)), None)

"""Fifth-generation tensor cores and tensor memory (TMEM). PTX ISA 9.7.16.

`allocation` of TMEM, `movement` into and out of it, the MMAs of `matrix`, `matrix_scaled` (block scales) and
`matrix_ws` (weight stationary), and their `ordering`. MMAs with A in TMEM end in `_ts`, those with a sparse A have
`_sp`. ptxas requires one .cta_group throughout a kernel.
"""

from ptxgen.instr.tcgen05.allocation import alloc, dealloc, relinquish_alloc_permit
from ptxgen.instr.tcgen05.matrix import mma, mma_lut, mma_lut_ts, mma_sp, mma_sp_ts, mma_ts
from ptxgen.instr.tcgen05.matrix_scaled import (
    mma_scaled,
    mma_scaled_lut,
    mma_scaled_lut_ts,
    mma_scaled_ts,
    mma_sp_scaled,
    mma_sp_scaled_ts,
)
from ptxgen.instr.tcgen05.matrix_ws import mma_ws, mma_ws_sp, mma_ws_sp_ts, mma_ws_ts
from ptxgen.instr.tcgen05.movement import (
    cp,
    ld,
    ld_halves,
    ld_red,
    ld_red_halves,
    ld_red_spcompress,
    ld_spcompress,
    shift,
    st,
    st_halves,
    wait,
)
from ptxgen.instr.tcgen05.ordering import commit, commit_multicast, fence

__all__ = [
    "alloc",
    "commit",
    "commit_multicast",
    "cp",
    "dealloc",
    "fence",
    "ld",
    "ld_halves",
    "ld_red",
    "ld_red_halves",
    "ld_red_spcompress",
    "ld_spcompress",
    "mma",
    "mma_lut",
    "mma_lut_ts",
    "mma_scaled",
    "mma_scaled_lut",
    "mma_scaled_lut_ts",
    "mma_scaled_ts",
    "mma_sp",
    "mma_sp_scaled",
    "mma_sp_scaled_ts",
    "mma_sp_ts",
    "mma_ts",
    "mma_ws",
    "mma_ws_sp",
    "mma_ws_sp_ts",
    "mma_ws_ts",
    "relinquish_alloc_permit",
    "shift",
    "st",
    "st_halves",
    "wait",
]

"""Who has seen tcgen05's declarations on Blackwell silicon, and published it: the column of `ptxgen coverage`."""

from __future__ import annotations

from typing import Literal

Witness = Literal["ours", "others", "none"]

_TIRX = "mlc-ai/TIRx-harness 4f92290"
_SF = "sf-tensor/tcgen05 8fce64d"
_SASS = "cicuvc/nvidia-sass-document"
_ALL = f"every kernel of {_SF}, {_SASS} and {_TIRX}"
#: Sources by declaration; "recorded": words are published, "held": tests on a B200 hold it, no words.
OTHERS = {
    "tcgen05.alloc": _ALL,
    "tcgen05.dealloc": _ALL,
    "tcgen05.relinquish_alloc_permit": _ALL,
    "tcgen05.commit": _ALL,
    "tcgen05.fence": _ALL,
    "tcgen05.wait": _ALL,
    "tcgen05.ld": f"recorded: {_SASS} 031228c, ldtm.md: cells of every shape; held: {_TIRX}",
    "tcgen05.ld_halves": f"recorded: {_SASS} 031228c, ldtm.md; held: {_TIRX}",
    "tcgen05.ld_red": "held: jool-space/PTX.jl 172d0b3, on a B300: min, max, max.abs",
    "tcgen05.st": f"recorded: {_SASS} 031228c, ldtm.md: cells of every shape; held: {_TIRX}",
    "tcgen05.st_halves": f"recorded: {_SASS} 031228c, ldtm.md; held: {_TIRX}",
    "tcgen05.cp": f"recorded: {_SASS} 3e4430d, utccp.md: 128x256b without swizzle",
    "tcgen05.shift": f"recorded: {_SASS} 0ddf110, utcshift.md: lane 0, cta_group::1",
    "tcgen05.mma": f"recorded: {_SF}; {_SASS} 01c97e0, utchmma.md: lane masks at M 128",
    "tcgen05.mma_ts": "held: mlc-ai/TIRx-harness 8123af3, tcgen05_fp8_ts.py: 8 bits",
    "tcgen05.mma_sp": f"held: {_SF}, hardware_validation",
    "tcgen05.mma_scaled": f"recorded: {_SF}",
    "tcgen05.mma_sp_scaled": f"recorded: {_SF}",
    "tcgen05.mma_ws": f"held: {_SF}, tcgen05_shape_probe.cu",
    "tcgen05.mma_ws_sp": f"held: {_SF}, tcgen05_shape_probe.cu",
}


def witness(key: str, answered: bool) -> Witness | None:
    """Who has seen a declaration; None for those that are not tcgen05's. `answered`: a recording of ours has it."""
    if not key.startswith("tcgen05."):
        return None
    return "ours" if answered else "others" if key in OTHERS else "none"

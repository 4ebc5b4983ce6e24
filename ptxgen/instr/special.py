"""Special registers: name, type and the widths at which they are read. PTX ISA 10.

%tid and its like are vectors with .x .y .z .w. Four of them and %gridid were narrower in early PTX, and are still read
so (measured, ptxas 13.5).
"""

from __future__ import annotations

import re

from ptxgen.instr.operands import Symbol
from ptxgen.instr.types import TYPES

_VECTORS = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
_U32 = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "cluster_ctarank", "cluster_nctarank", "lanemask_eq",
    "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock", "clock_hi", "globaltimer_lo",
    "globaltimer_hi", "dynamic_smem_size", "total_smem_size", "aggr_smem_size", "reserved_smem_offset_begin",
    "reserved_smem_offset_end", "reserved_smem_offset_cap", "reserved_smem_offset_0", "reserved_smem_offset_1",
)  # fmt: skip
_U64 = ("gridid", "clock64", "globaltimer", "current_graph_exec")
_WIDTHS = {
    **dict.fromkeys(("tid", "ntid", "ctaid", "nctaid"), (16, 32)),
    "gridid": (16, 32, 64),
}


def _table() -> dict[str, Symbol]:
    table: dict[str, Symbol] = {}

    def add(name: str, type: str, base: str, vector: int | None = None) -> None:
        kind = TYPES[type]
        table[name] = Symbol(name, "special", kind, vector=vector, widths=_WIDTHS.get(base, (kind.bits,)))

    for name in _VECTORS:
        add(f"%{name}", "u32", name, vector=4)
        for part in "xyzwrgba":
            add(f"%{name}.{part}", "u32", name)
    for name in _U32:
        add(f"%{name}", "u32", name)
    for name in _U64:
        add(f"%{name}", "u64", name)
    add("%is_explicit_cluster", "pred", "is_explicit_cluster")
    return table


SPECIAL_REGISTERS = _table()
_NUMBERED = re.compile(r"%(?:pm[0-7]|envreg(?:[12]?[0-9]|3[01]))$")
_NUMBERED_64 = re.compile(r"%pm[0-7]_64$")


def special_register(name: str) -> Symbol | None:
    """The symbol of a special register, None if there is none of this name."""
    symbol = SPECIAL_REGISTERS.get(name)
    if symbol is None and _NUMBERED.match(name):
        return Symbol(name, "special", TYPES["u32"], widths=(32,))
    if symbol is None and _NUMBERED_64.match(name):
        return Symbol(name, "special", TYPES["u64"], widths=(64,))
    return symbol

"""Special registers: type, the widths at which they are read, and since when and where they exist. PTX ISA 10.

%tid and its like are vectors with .x .y .z .w. Four of them and %gridid were narrower in early PTX, and are still read
so (measured, ptxas 13.5, as are the registers that PTX 9.4 and 9.5 added).
"""

from __future__ import annotations

from ptxgen.instr.model.symbols import Symbol
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.model.types import TYPES

_HOPPER = Availability("7.8", "sm_90+")
_LANES = "lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt"
_RESERVED = " ".join(f"reserved_smem_offset_{part}" for part in ("begin", "end", "cap", 0, 1))
#: The entry directive that a register requires.
DIRECTIVES = {"%perctamemoryoffset": "minperctamemory", "%perctamemorysize": "minperctamemory"}

#: Type, availability, names, and widths besides that of the type; `.v4` are vectors.
_GROUPS: tuple[tuple[str, Availability, str, tuple[int, ...]], ...] = (
    ("v4.u32", Availability("1.0", ALL), "tid ntid ctaid nctaid", (16,)),
    ("v4.u32", _HOPPER, "clusterid nclusterid cluster_ctaid cluster_nctaid", ()),
    ("u32", _HOPPER, "cluster_ctarank cluster_nctarank", ()),
    ("pred", _HOPPER, "is_explicit_cluster", ()),
    ("u32", Availability("1.0", ALL), "clock", ()),
    ("u32", Availability("1.3", ALL), "laneid warpid smid pm0 pm1 pm2 pm3", ()),
    ("u32", Availability("2.0", "sm_20+"), f"nwarpid nsmid {_LANES}", ()),
    ("u32", Availability("1.0", ALL), " ".join(f"envreg{number}" for number in range(32)), ()),
    ("u32", Availability("3.0", "sm_20+"), "pm4 pm5 pm6 pm7", ()),
    ("u32", Availability("3.1", "sm_30+"), "globaltimer_lo globaltimer_hi", ()),
    ("u32", Availability("4.1", "sm_20+"), "dynamic_smem_size total_smem_size", ()),
    ("u32", Availability("5.0", "sm_20+"), "clock_hi", ()),
    ("u32", Availability("7.6", "sm_80+"), _RESERVED, ()),
    ("u32", Availability("8.1", "sm_90+"), "aggr_smem_size", ()),
    ("u32", Availability("9.4", "sm_80+"), "perctamemorysize", ()),
    ("u32", Availability("9.5", "sm_100+"), "locality_domain_id locality_domain_supplemental_sm", ()),
    ("u64", Availability("1.0", ALL), "gridid", (16, 32)),
    ("u64", Availability("2.0", "sm_20+"), "clock64", ()),
    ("u64", Availability("3.1", "sm_30+"), "globaltimer", ()),
    ("u64", Availability("4.0", "sm_50+"), " ".join(f"pm{number}_64" for number in range(8)), ()),
    ("u64", Availability("8.0", "sm_50+"), "current_graph_exec", ()),
    ("u64", Availability("9.4", "sm_80+"), "perctamemoryoffset", ()),
)


def _table() -> dict[str, Symbol]:
    table: dict[str, Symbol] = {}
    for type, availability, names, widths in _GROUPS:
        vector, _, scalar = type.rpartition(".")
        kind = TYPES[scalar]
        for name in names.split():
            parts = [f"%{name}.{part}" for part in "xyzwrgba"] if vector else [f"%{name}"]
            for each in parts:
                table[each] = Symbol(each, "special", kind, widths=(kind.bits, *widths), availability=availability)
            if vector:
                table[f"%{name}"] = Symbol(
                    f"%{name}", "special", kind, vector=4, widths=(kind.bits, *widths), availability=availability
                )
    return table


SPECIAL_REGISTERS = _table()


def special_register(name: str) -> Symbol | None:
    """The symbol of a special register, None if there is none of this name."""
    return SPECIAL_REGISTERS.get(name)

"""The instruction model: every PTX instruction declared once, one module per family.

`form` holds how a declaration is written, `operands` how its operands are, with the rules in `specification` and
`compound`; `symbols`, `types`, `special` and `scope` what names stand for, `targets` where forms exist; `recognise` and
`check` read PTX text. The other modules are the families; `FAMILIES` names them.
"""

from __future__ import annotations

import functools
import importlib

#: The modules that declare instructions.
FAMILIES = (
    "barrier",
    "bulk",
    "cluster",
    "cache",
    "control",
    "conversion",
    "extended",
    "fence",
    "floating",
    "half",
    "integer",
    "logic",
    "matrix",
    "mbarrier",
    "memory",
    "miscellaneous",
    "mixed",
    "mma",
    "move",
    "predicate",
    "sparse",
    "surface",
    "tcgen05",
    "texture",
    "tensormap",
    "tma",
    "video",
    "warp",
    "wgmma",
    "wmma",
)

#: Modifiers of syntax lines that no family declares yet, by the opcode that they follow; `L2::` stands for all that
#: begin so. ptxgen does not judge an instruction with one of them. The table ends when the families are whole.
UNDECLARED: dict[str, str] = {
    "cp.async": "ca cg commit_group wait_all wait_group",
    "cp.async.bulk": "",
    "prefetch": "L1 L2 L2:: global local",
    "st": "async bulk",
}


def undeclared(opcode: str) -> bool:
    """Whether an opcode text has a modifier of a syntax line that is not declared yet."""
    tokens = opcode.split(".")
    for length in range(len(tokens), 0, -1):
        known = UNDECLARED.get(".".join(tokens[:length]))
        if known is not None:
            open_ones = known.split()
            return any(
                token == each or (each.endswith("::") and token.startswith(each))
                for token in tokens[length:]
                for each in open_ones
            )
    return False


@functools.cache
def load_all() -> None:
    """Import every family, which fills `form.REGISTRY`."""
    for family in FAMILIES:
        importlib.import_module(f"ptxgen.instr.{family}")

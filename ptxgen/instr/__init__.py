"""The instruction model: every PTX instruction declared once, one module per family.

`form` holds how a declaration is written, `operands` how its operands are, with the rules in `specification` and
`compound`; `symbols`, `types`, `special` and `scope` what names stand for, `targets` where forms exist; `recognize` and
`check` read PTX text. The other modules are the families; `FAMILIES` names them.
"""

from __future__ import annotations

import functools
import importlib

#: The modules that declare instructions.
FAMILIES = (
    "address",
    "async_copy",
    "atomic",
    "barrier",
    "bulk",
    "cache",
    "cluster",
    "control",
    "conversion",
    "extended",
    "fabric",
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
    "multimem",
    "predicate",
    "sparse",
    "stack",
    "surface",
    "tcgen05",
    "tensormap",
    "texture",
    "tma",
    "video",
    "warp",
    "wgmma",
    "wmma",
)


@functools.cache
def load_all() -> None:
    """Import every family, which fills `form.REGISTRY`."""
    for family in FAMILIES:
        importlib.import_module(f"ptxgen.instr.{family}")

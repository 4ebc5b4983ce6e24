"""The instruction model: every PTX instruction declared once, one module per family.

`form` holds how a declaration is written, `operands` and `types` what operands are, `targets` where forms exist,
`recognise` and `check` read PTX text. The other modules are the families; `FAMILIES` names them.
"""

from __future__ import annotations

import importlib
from functools import cache

#: The modules that declare instructions.
FAMILIES = (
    "barrier", "control", "conversion", "fence", "floating", "integer", "logic", "mbarrier", "memory", "move",
    "predicate", "tcgen05", "tma", "warp",
)  # fmt: skip


@cache
def load_all() -> None:
    """Import every family, which fills `form.REGISTRY`."""
    for family in FAMILIES:
        importlib.import_module(f"ptxgen.instr.{family}")

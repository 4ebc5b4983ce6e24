"""The instruction model: every PTX instruction declared once, one module per family.

`form` holds how a declaration is written, `operands` how its operands are, with the rules in `specification` and
`compound`; `symbols`, `types`, `special` and `scope` what names stand for, `targets` where forms exist; `recognize` and
`check` read PTX text, `find` searches. The other modules are the families; `FAMILIES` names them.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

#: The modules that declare instructions.
FAMILIES = (
    "address",
    "alternate",
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
    """Import every family, which fills `form.REGISTRY`: its forms in one order, whichever module came first."""
    for family in FAMILIES:
        importlib.import_module(f"ptxgen.instr.{family}")
    order = {f"ptxgen.instr.{family}": number for number, family in enumerate(FAMILIES)}
    for forms in importlib.import_module("ptxgen.instr.model.form").REGISTRY.values():
        forms.sort(key=lambda form: order.get(".".join(form.__module__.split(".")[:3]), len(order)))


if TYPE_CHECKING:
    from ptxgen.instr.model.find import find as find
else:

    def __getattr__(name: str) -> object:
        if name == "find":
            return importlib.import_module("ptxgen.instr.model.find").find
        if name in FAMILIES:
            return importlib.import_module(f"ptxgen.instr.{name}")
        near = ""
        if not name.startswith("__"):
            near = importlib.import_module("ptxgen.instr.model.find").suggestion(name)
        raise AttributeError(f"module 'ptxgen.instr' has no attribute {name!r}{near}")

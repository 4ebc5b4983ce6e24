"""SASS as data: read a listing, summarize it, compare two.

`load` takes PTX, a cubin, an ELF file with several kernels, or a fatbin, and gives a `Listing`; `summarize` counts what
kernel authors compare (registers, spills, instruction classes, stalls of loops); `compare` aligns two listings block by
block and says what differs. The modules: `container` (files), `parse` (nvdisasm's text), `listing` and `control` (the
data), `flow` (blocks, loops, reaching definitions), `classes` and `summary`, `align` and `diff`, `show` (text).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxgen.sass.container import ContainerError, load
    from ptxgen.sass.control import Control
    from ptxgen.sass.diff import Comparison, compare
    from ptxgen.sass.listing import Function, Instruction, Listing
    from ptxgen.sass.summary import Summary, summarize

__all__ = [
    "Comparison",
    "ContainerError",
    "Control",
    "Function",
    "Instruction",
    "Listing",
    "Summary",
    "compare",
    "load",
    "summarize",
]

#: Where each name lives: a comparison from the cache imports none of them.
_HOMES = {
    "Comparison": "diff",
    "ContainerError": "container",
    "Control": "control",
    "Function": "listing",
    "Instruction": "listing",
    "Listing": "listing",
    "Summary": "summary",
    "compare": "diff",
    "load": "container",
    "summarize": "summary",
}

if not TYPE_CHECKING:  # so that a misspelt name is still an error to a type checker

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'ptxgen.sass' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"ptxgen.sass.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

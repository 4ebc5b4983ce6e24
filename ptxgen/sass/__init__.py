"""SASS as data: read a listing, summarize it, compare two.

`load` takes PTX, a cubin, an ELF file with several kernels, or a fatbin, and gives a `Listing`; `summarize` counts what
kernel authors compare (registers, spills, instruction classes, stalls of loops); `compare` aligns two listings block by
block and says what differs. The modules: `container` (files), `parse` (nvdisasm's text), `listing` and `control` (the
data), `flow` (blocks, loops, reaching definitions), `classes` and `summary`, `align` and `diff`, `show` (text).
"""

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

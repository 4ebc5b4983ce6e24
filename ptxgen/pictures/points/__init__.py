"""Point queries: where one element of a layout lies, and which element lies at a place.

`locate("ld", ["16x256b"], at=(9, 4))` gives the thread, register and bits of a cell; `thread=7, register=2` asks the
other way round. The modules `shared`, `tensor`, `threads` and `memory` hold a map for each kind of layout, from the
functions of `ptxgen.layouts` that the pictures and the emulator use.
"""

from __future__ import annotations

from ptxgen.pictures.points import memory, shared, tensor, threads  # noqa: F401  (they register their maps)
from ptxgen.pictures.points.model import MAPS, Answer, Map, answer, layout_map, locate

__all__ = ["MAPS", "Answer", "Map", "answer", "layout_map", "locate"]

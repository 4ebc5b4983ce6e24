"""What the synchronizing lines of a kernel cost in machine code, as far as ptxas's schedule says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ptxgen.sass.flow import Flow
from ptxgen.sass.listing import Listing


@dataclass
class Cost:
    """The SASS of a PTX line: its opcodes, the sum of their stall counts in cycles, and the deepest loop around them.

    The stall counts are the least time that one warp takes to issue them; what a barrier or fence waits for comes on
    top, and no listing says it.
    """

    cycles: int = 0
    depth: int = 0
    opcodes: list[str] = field(default_factory=list)


def costs(listing: Listing) -> Mapping[int, Cost]:
    """The cost of each line of the PTX that a listing was assembled from, with `-lineinfo`."""
    found: dict[int, Cost] = {}
    for function in listing.functions:
        flow = Flow(function)
        for block in flow.blocks:
            depth = sum(block.number in loop.blocks for loop in flow.loops)
            for each in function.instructions[block.start : block.end]:
                if each.ptx_line is None:
                    continue
                cost = found.setdefault(each.ptx_line, Cost())
                cost.cycles += max(each.control.stall, 1)
                cost.depth = max(cost.depth, depth)
                cost.opcodes.append(each.mnemonic)
    return found

"""What kernel authors compare of a kernel: registers, spills, instruction classes, stalls of its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from ptxgen.sass.classes import counts
from ptxgen.sass.flow import Flow
from ptxgen.sass.listing import FILES, Function, Listing
from ptxgen.sass.loops import LoopSummary, main_loop, nesting, summaries

#: Warnings of ptxas that change what a kernel costs: serialized wgmma, waits that ptxas adds, setmaxnreg ignored.
_WARNINGS = re.compile(r"C75\d\d|setmaxnreg|serializ|wgmma", re.I)
_OF_FUNCTION = re.compile(r"function '([^']+)'")
_TOOL = re.compile(r"^ptxas (?:info|warning)\s*:\s*")


@dataclass(frozen=True)
class Summary:
    """A function in figures.

    `live` is the most registers live at a time, by file, `live_at` where that is; both are empty where that is unknown.
    `warnings`: what ptxas said that matters for speed; None where it was not asked, as of a cubin.
    """

    name: str
    instructions: int
    code_bytes: int
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int | None
    local_loads: int
    local_stores: int
    classes: Mapping[str, int]
    loops: tuple[LoopSummary, ...]
    live: Mapping[str, int]
    live_at: Mapping[str, int]
    live_ptx_line: int | None
    warnings: tuple[str, ...] | None = None
    #: The loops in each loop, by their positions in `loops`.
    nested: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def main_loop(self) -> LoopSummary | None:
        """The loop with most of the work, spins and elections left out (`ptxgen.sass.loops.main_loop`)."""
        return main_loop(self.loops, self.nested)

    def to_json(self) -> dict[str, object]:
        """All of it as JSON values."""
        made = {**asdict(self), "main_loop": asdict(self.main_loop) if self.main_loop else None}
        del made["nested"]
        return made


def summarize(function: Function, listing: Listing | None = None, flow: Flow | None = None) -> Summary:
    """The figures of a function; with its listing also the warnings of ptxas. `flow` is its graph where it is known."""
    flow = flow or Flow(function)
    real = [each for each in function.instructions if each.opcode != "NOP"]
    classes = counts(function.instructions)
    known = listing is None or listing.has_life_ranges
    peaks = {
        file: max(real if known else (), key=lambda each, n=n: each.registers.live[n], default=None)
        for n, file in enumerate(FILES)
    }
    peak = peaks["GPR"]
    return Summary(
        name=function.name,
        instructions=len(real),
        code_bytes=function.code_bytes,
        registers=function.registers,
        stack_bytes=function.stack_bytes,
        shared_bytes=function.shared_bytes,
        local_loads=sum(each.opcode == "LDL" for each in real),
        local_stores=sum(each.opcode == "STL" for each in real),
        classes=dict(classes.most_common()),
        loops=summaries(flow),
        nested=nesting(flow),
        live={file: each.registers.live[n] for n, (file, each) in enumerate(peaks.items()) if each is not None},
        live_at={file: each.address for file, each in peaks.items() if each is not None},
        live_ptx_line=peak.ptx_line if peak is not None else None,
        warnings=tuple(warnings(listing.log, function.name)) if listing is not None and listing.log else None,
    )


def warnings(log: str, function: str) -> Iterator[str]:
    """What ptxas said of a function, or of no function in particular, that matters for speed."""
    for line in log.splitlines():
        named = _OF_FUNCTION.search(line)
        if ("warning" in line.lower() or _WARNINGS.search(line)) and (named is None or named[1] == function):
            yield _TOOL.sub("", line.strip())

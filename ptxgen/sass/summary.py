"""What kernel authors compare of a kernel: registers, spills, instruction classes, stalls of its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from ptxgen.sass.classes import counts
from ptxgen.sass.flow import Flow, Loop
from ptxgen.sass.listing import FILES, Function, Instruction, Listing

#: Warnings of ptxas that change what a kernel costs: serialized wgmma, waits that ptxas adds, setmaxnreg ignored.
_WARNINGS = re.compile(r"C75\d\d|setmaxnreg|serializ|wgmma", re.I)
_OF_FUNCTION = re.compile(r"function '([^']+)'")
_TOOL = re.compile(r"^ptxas (?:info|warning)\s*:\s*")


@dataclass(frozen=True)
class LoopSummary:
    """A loop: where it begins, its instructions and classes, and the sum of the stalls of one pass.

    `issue_slots` counts the instructions that issue, NOP included; `stall` adds up their stall counts in cycles: the
    least time of a pass for one warp, scoreboard waits left out. `ptx_lines` are the first and last line of the PTX.
    """

    address: int
    depth: int
    innermost: bool
    instructions: int
    issue_slots: int
    stall: int
    scoreboard_waits: int
    classes: Mapping[str, int]
    ptx_lines: tuple[int, int] | None


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

    @property
    def main_loop(self) -> LoopSummary | None:
        """The deepest loop that issues MMAs, of those the one with the most; else the innermost loop with most code."""
        products = [loop for loop in self.loops if _mmas(loop.classes)]
        if products:
            return max(products, key=lambda loop: (loop.depth, _mmas(loop.classes)))
        inner = [loop for loop in self.loops if loop.innermost]
        return max(inner, key=lambda loop: loop.instructions, default=None)

    def to_json(self) -> dict[str, object]:
        """All of it as JSON values."""
        return {**asdict(self), "main_loop": asdict(self.main_loop) if self.main_loop else None}


def _mmas(classes: Mapping[str, int]) -> int:
    return sum(classes.get(name, 0) for name in ("UTCMMA", "HGMMA", "MMA"))


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
        loops=tuple(loop_summary(flow, loop) for loop in flow.loops),
        live={file: each.registers.live[n] for n, (file, each) in enumerate(peaks.items()) if each is not None},
        live_at={file: each.address for file, each in peaks.items() if each is not None},
        live_ptx_line=peak.ptx_line if peak is not None else None,
        warnings=tuple(warnings(listing.log, function.name)) if listing is not None and listing.log else None,
    )


def loop_summary(flow: Flow, loop: Loop) -> LoopSummary:
    """The figures of a loop, inner loops included."""
    body = flow.instructions(loop)
    lines = [each.ptx_line for each in body if each.ptx_line is not None]
    return LoopSummary(
        address=flow.function.instructions[flow.blocks[loop.header].start].address,
        depth=loop.depth,
        innermost=loop.innermost,
        instructions=sum(each.opcode != "NOP" for each in body),
        issue_slots=len(body),
        stall=sum(_stall(each) for each in body),
        scoreboard_waits=sum(bool(each.control.wait) for each in body),
        classes=dict(counts(body).most_common()),
        ptx_lines=(min(lines), max(lines)) if lines else None,
    )


def _stall(each: Instruction) -> int:
    return max(each.control.stall, 1)


def warnings(log: str, function: str) -> Iterator[str]:
    """What ptxas said of a function, or of no function in particular, that matters for speed."""
    for line in log.splitlines():
        named = _OF_FUNCTION.search(line)
        if ("warning" in line.lower() or _WARNINGS.search(line)) and (named is None or named[1] == function):
            yield _TOOL.sub("", line.strip())

"""A function as JSON values: its summary, and every instruction with block and loop depth."""

from __future__ import annotations

from dataclasses import asdict

from ptxgen.sass.flow import Flow
from ptxgen.sass.listing import FILES, Function, Instruction, Listing
from ptxgen.sass.loops import chosen
from ptxgen.sass.summary import summarize


def to_json(
    listing: Listing, function: Function, loop: str | None = None, summary_only: bool = False
) -> dict[str, object]:
    """The summary; with the listing blocks and instructions, those of one `loop` alone where it is named.

    Raises NoLoopError.
    """
    summary = summarize(function, listing)
    made: dict[str, object] = {**summary.to_json(), "target": listing.target}
    if summary_only:
        return made
    flow = Flow(function)
    wanted = {block.number for block in flow.blocks}
    if loop is not None:
        wanted = set(chosen(flow, loop).blocks)
    made["blocks"] = [
        {
            "number": block.number,
            "following": list(block.following),
            "depth": sum(block.number in each.blocks for each in flow.loops),
            "instructions": [_instruction(each, listing) for each in function.instructions[block.start : block.end]],
        }
        for block in flow.blocks
        if block.number in wanted
    ]
    return made


def _instruction(each: Instruction, listing: Listing) -> dict[str, object]:
    control = asdict(each.control)
    return {
        "address": each.address,
        "predicate": each.predicate,
        "opcode": each.opcode,
        "modifiers": list(each.modifiers),
        "operands": list(each.operands),
        "encoding": f"{each.word:032x}",
        "control": {**control, "waits": list(each.control.waits)},
        "live": dict(zip(FILES, each.registers.live, strict=True)) if listing.has_life_ranges else {},
        "ptx_line": each.ptx_line,
        "source": each.source,
    }

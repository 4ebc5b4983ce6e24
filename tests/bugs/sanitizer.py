"""What a GPU, alone and under compute-sanitizer, showed of the bugs: recorded by `python -m tools.sanitizer`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict

#: The record that docs/bugs.md reads.
RECORD = Path(__file__).with_name("sanitizer.json")
#: The words of docs/bugs.md for how a process ended.
_ENDS = {"killed": "hang", "died": "fault", "refused": "refused by ptxas"}
#: The verdicts on a GPU alone that show a bug.
SHOWN = ("wrong result", "hang", "fault")
TOOLS = ("racecheck", "synccheck", "memcheck", "initcheck")


class Outcome(TypedDict, total=False):
    """How one process of tools/sanitizer/sweep.py ended, and what its tool reported."""

    end: str
    errors: int | None
    warnings: int
    hashes: Sequence[str]


class Verdict(TypedDict):
    """What the GPU shows of one bug.

    `gpu` is "wrong result", "hang", "fault", "nothing", "not comparable" where the right twin's results vary, or empty
    where nothing was shown and the launch could not have shown it.
    "wrong result" means that `data`, or what the threads last loaded, differs from what the right twin leaves.
    `bug` and `twin` name the tools that report the bug and its right twin (errors; "racecheck (warning)" for a
    warning); `missing` are tools whose process was not run or ended without a summary.
    """

    gpu: str
    bug: Sequence[str]
    twin: Sequence[str]
    missing: Sequence[str]


class Record(TypedDict):
    """All verdicts, and with which versions and when they were made."""

    made: Mapping[str, str]
    verdicts: Mapping[str, Verdict]


@cache
def recorded() -> Record:
    """The record of the repository."""
    return json.loads(RECORD.read_text())


def verdicts(results: Mapping[str, Mapping[str, Outcome]], name: str) -> Verdict:
    """The verdict on a bug from the outcomes of its processes and of its twin's."""
    bug, twin = results[f"{name}.bug"], results[f"{name}.twin"]
    ran = [tool for tool in TOOLS if _summary(bug, tool) and _summary(twin, tool)]
    return Verdict(
        gpu=_alone(bug.get("gpu"), twin.get("gpu")),
        bug=[word for tool in TOOLS if (word := _word(bug, tool))],
        twin=[word for tool in TOOLS if (word := _word(twin, tool))],
        missing=[tool for tool in TOOLS if tool not in ran],
    )


def _summary(outcomes: Mapping[str, Outcome], tool: str) -> bool:
    return tool in outcomes and outcomes[tool].get("errors") is not None


def _word(outcomes: Mapping[str, Outcome], tool: str) -> str:
    outcome = outcomes.get(tool, Outcome())
    if outcome.get("errors"):
        return tool
    return f"{tool} (warning)" if outcome.get("warnings") else ""


def _alone(bug: Outcome | None, twin: Outcome | None) -> str:
    if bug is None or twin is None or twin.get("end") != "ok":
        return "not run" if bug is None or twin is None else f"twin: {twin.get('end')}"
    end = bug.get("end", "died")
    if end != "ok":
        return _ENDS.get(end, end)
    right, seen = set(twin.get("hashes", ())), set(bug.get("hashes", ()))
    if len(right) > 1:
        return "not comparable"
    return "nothing" if seen == right else "wrong result"

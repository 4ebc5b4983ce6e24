"""Defaults of options from `[tool.ptxgen]`; what does not go with the words of the command line is left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

Defaults = dict[str, object]

#: Options of `run` that choose an order themselves, and those that inspect a single run.
_OWN_ORDER = frozenset({"--schedule", "--schedules", "--explore"})
_SINGLE = frozenset({"--lines", "--trace", "--at", "--why", "--html"})


def defaults(words: Sequence[str]) -> dict[str, Defaults]:
    """The defaults of the command that these words call, as typer takes them. Raises ProjectError."""
    if not words or words[0] not in _COMMANDS or {"--help", "-h"} & set(words):
        return {}
    from ptxgen.project import find_project

    found = find_project()
    if found is None:
        return {}
    given = {word.partition("=")[0] for word in words}
    on_gpu = "--device=gpu" in words or ("--device", "gpu") in pairwise(words)
    values: Defaults = {
        "target": found.target,
        "accept": str(found.accept) if found.accept is not None and not on_gpu else None,
        "fail_on": found.fail_on,
        "schedule": found.schedule if not given & _OWN_ORDER and not on_gpu else None,
        "schedules": found.schedules if not given & (_OWN_ORDER | _SINGLE) and not on_gpu else None,
    }
    if words[0] == "sass":
        # A shipped kernel has a target of its own; thresholds are for comparisons.
        values["target"] = found.target if any(Path(word).suffix == ".ptx" for word in words) else None
        values["fail_on"] = found.sass_fail_on if words[1:2] in (["diff"], ["gate"]) else None
    if words[0] in _COMPILING and (not any(word.endswith(".cu") for word in words) or "--machine" in given):
        values["target"] = None  # of PTX and shipped kernels, and of a machine, the target is known
    wanted = _COMMANDS[words[0]]
    return {words[0]: {name: value for name, value in values.items() if name in wanted and value is not None}}


#: Commands whose --target is what nvcc compiles FILE.cu for.
_COMPILING = frozenset({"run", "audit", "time"})
#: By command, the options that have defaults there.
_COMMANDS = {
    "run": ("target", "accept", "fail_on", "schedule", "schedules"),
    "audit": ("target", "accept"),
    "time": ("target",),
    "exec": ("target", "accept", "fail_on", "schedule"),
    "check": ("target", "accept", "fail_on"),
    "assemble": ("target",),
    "sass": ("target", "fail_on"),
    "sweep": ("schedule",),
}

"""`ptxgen run FILE.py` and `ptxgen run FILE.ptx`: an author's own kernel, and an edited one of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen.cli.errors import OK, WRONG, InputError

if TYPE_CHECKING:
    from ptxgen.device import Device

#: The last line of a kernel's PTX.
_SIGNATURE = re.compile(r"^// ptxgen: (\S+)((?: \S+=\S*)*)$", re.MULTILINE)


def named_in(path: str, text: str) -> tuple[str, list[str]]:
    """The kernel and settings that a PTX file says it is of. Raises InputError."""
    found = _SIGNATURE.search(text)
    if found is None:
        raise InputError(
            f"{path} does not say which kernel it is of, as the last line of 'ptxgen build' does; name it: ptxgen run "
            f"KERNEL --ptx {path}"
        )
    return found[1], found[2].split()


def run_job(
    path: str, seed: int, trials: Iterable[tuple[Any, int]], make: Callable[[str, Any, int], Device], as_json: bool
) -> int:
    """Run the job of a Python file under schedules, up to the first that fails, and report. Raises JobError."""
    import json

    from ptxgen.job import load_job
    from ptxgen.toolchain import assemble

    job = load_job(Path(path), seed)
    cubin = assemble(job.ptx, job.target)
    tried, result, schedule = 0, None, ""
    for schedule, number in trials:
        tried += 1
        result = job.run(make(job.target, schedule, number))
        if not result.ok:
            break
    assert result is not None
    if as_json:
        made = {
            "job": path, "ok": result.ok, "status": result.status, "target": job.target, "schedule": schedule,
            "schedules_tried": tried, "wrong": result.wrong, "instructions": result.launch.instructions,
            "findings": [each.to_json() for each in result.launch.findings],
            "ptxas": {"registers": cubin.registers, "spill_stores": cubin.spill_stores},
        }  # fmt: skip
        print(json.dumps(made, indent=2))
    else:
        print(result.summary())
        print(
            f"ptxas: {cubin.registers} registers; outputs compared with a tolerance of {job.tolerance:g} ({job.reason})"
        )
        print("✓ correct" if result.ok else f"✗ {result.status}")
    return OK if result.ok else WRONG

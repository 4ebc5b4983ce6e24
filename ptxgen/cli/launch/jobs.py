"""`ptxgen run FILE.py` and `ptxgen run FILE.ptx`: an author's own kernel, and an edited one of ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ptxgen.cli.errors import OK, WRONG, InputError
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.devices import Schedule

if TYPE_CHECKING:
    from ptxgen.cli.launch.inspect import Inspection
    from ptxgen.device import Accept
    from ptxgen.job import JobResult

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
    path: str,
    seed: int,
    schedule: Schedule,
    device: str,
    advice: float | None,
    accept: tuple[Accept, ...],
    schedules: int | None,
    jobs: int | None,
    dask: str | None,
    as_json: bool,
    inspection: Inspection,
) -> int:
    """Run the job of a Python file once, or under schedules up to the first that fails, and report. Raises JobError."""
    import json

    from ptxgen.cli.launch.schedules import JobTrial, search, trials
    from ptxgen.cli.toolchain.ptx import assembled
    from ptxgen.job import load_job

    job = load_job(Path(path), seed)
    cubin = assembled(job.ptx, job.target)
    found = None
    if schedules:
        planned = [
            JobTrial(schedule=now, seed=each, advice=advice, accept=accept, path=path, inputs=seed)
            for now, each in trials(schedules, seed)
        ]
        found = search(planned, jobs, dask)
        schedule, result = found.tried[-1].schedule, cast("JobResult", found.last)
    else:
        made = devices.open_device(device, path, job.target, schedule, seed, advice=advice, accept=accept)
        inspection.observe(made, {})
        result = job.run(made)
    if as_json:
        said = {
            "job": path, "ok": result.ok, "status": result.status, "target": job.target, "schedule": schedule,
            "schedules_tried": len(found.tried) if found else 1, "schedules": found.json() if found else None,
            "wrong": result.wrong, "instructions": result.launch.instructions,
            "findings": [each.to_json() for each in result.launch.findings],
            "ptxas": {"registers": cubin.registers, "spill_stores": cubin.spill_stores} if cubin else None,
        }  # fmt: skip
        print(json.dumps(said, indent=2))
    else:
        print(result.summary())
        made_of_it = f"{cubin.registers} registers" if cubin else "not installed"
        print(f"ptxas: {made_of_it}; outputs compared with a tolerance of {job.tolerance:g} ({job.reason})")
        if found:
            print(f"schedules: {found.summary}")
        print("✓ correct" if result.ok else f"✗ {result.status}")
        inspection.show()
    return OK if result.ok else WRONG

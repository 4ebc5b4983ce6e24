"""`ptxgen run FILE.py` and `ptxgen run FILE.ptx`: an author's own kernel, and an edited one of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ptxgen.cli.common.formats import Output
from ptxgen.cli.errors import OK, WRONG, IllegalPtxError, InputError, nearest
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.devices import Schedule
from ptxgen.cli.launch.plain import PlainResult, Unplanned
from ptxgen.cli.launch.values import ArrayValue, describe, parse_values, require_savable, save
from ptxgen.job import Job, JobResult, load_job

if TYPE_CHECKING:
    from ptxgen.cli.launch.inspect import Inspection
    from ptxgen.cli.launch.schedules import Search
    from ptxgen.device import Accept, Device
    from ptxgen.device.report import FailOn
    from ptxgen.toolchain import Cubin

#: The last line of a kernel's PTX.
_SIGNATURE = re.compile(r"^// ptxgen: (\S+)((?: \S+=\S*)*)$", re.MULTILINE)


def named_in(text: str) -> tuple[str, list[str]] | None:
    """The kernel and settings that PTX text says it is of, as 'ptxgen build' writes them."""
    found = _SIGNATURE.search(text)
    return None if found is None else (found[1], found[2].split())


@dataclass(frozen=True)
class Options:
    """How `ptxgen run` runs a file. `outputs` are the files to write, by the name of an array."""

    seed: int
    schedule: Schedule
    device: str
    advice: float | None
    accept: tuple[Accept, ...]
    schedules: int | None
    jobs: int | None
    dask: str | None
    written: Output
    outputs: Mapping[str, str]
    timeout: float | None
    verbose: bool = False
    #: Seconds of an exploration; None: one launch.
    explore: float | None = None
    #: What makes the exit code 1 beside wrong results.
    fail_on: FailOn = "error"


class Runnable(Protocol):
    """What a file gives to run: it may go to another process."""

    @property
    def path(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def ptx(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that `--out` may name."""
        ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of all arrays, by name."""
        ...

    def parameter(self, given: str) -> str:
        """The array that the number of a parameter stands for, or the name itself."""
        ...

    @property
    def roles(self) -> Mapping[int, str]:
        """The roles of warps, by number, where they are known."""
        ...

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What to print of the plan, where there is one: label and words."""
        ...

    def details(self) -> dict[str, Any]:
        """The plan, as JSON takes it."""
        ...

    def run(self, device: Device) -> JobResult | PlainResult: ...


@dataclass(frozen=True)
class JobRun(Unplanned):
    """The job of a Python file, with other inputs where `given` has the words of `--arg`."""

    path: str
    seed: int
    given: tuple[str, ...]
    job: Job

    @classmethod
    def load(cls, path: str, seed: int, given: tuple[str, ...] = ()) -> JobRun:
        """Run the file. Raises JobError, InputError."""
        job = load_job(Path(path), seed)
        changed = {}
        for name, value in parse_values(list(given), seed).items():
            if name not in job.inputs or not isinstance(value, ArrayValue):
                near = nearest(name, job.inputs) or f"; its inputs are {', '.join(job.inputs) or 'none'}"
                raise InputError(f"--arg {name}: the job of {path} has no input array of this name{near}")
            changed[name] = value.values
        return cls(path, seed, given, replace(job, inputs={**job.inputs, **changed}))

    def __reduce__(self) -> tuple[Callable[..., JobRun], tuple[str, int, tuple[str, ...]]]:
        """Another process loads the file anew: a job may hold functions, which do not go there."""
        return JobRun.load, (self.path, self.seed, self.given)

    @property
    def target(self) -> str:
        return self.job.target

    @property
    def ptx(self) -> str:
        return self.job.ptx

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.job.outputs)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        inputs = {name: each.shape for name, each in self.job.inputs.items()}
        return {**inputs, **{name: shape for name, (shape, _) in self.job.outputs.items()}}

    def parameter(self, given: str) -> str:
        """The name itself: a job's arrays are no parameters."""
        return given

    def run(self, device: Device) -> JobResult:
        return self.job.run(device)


def run_file(given: Runnable, options: Options, inspection: Inspection) -> int:
    """Run once, or under schedules up to the first that fails, write the outputs and report.

    Raises JobError, InputError, KernelArgumentError, LaunchError.
    """
    from ptxgen.cli.launch.findings import file_results
    from ptxgen.cli.launch.schedules import FileRun, schedules_to_try, search

    options = replace(options, outputs=_named(given, options.outputs))
    for path in options.outputs.values():
        require_savable(path)
    inspection.require_elements(given.shapes)
    inspection.require_line(given.ptx, given.path)
    cubin = _assembled(given)
    found, schedule = None, options.schedule
    if options.schedules:
        planned = [
            FileRun(
                schedule=now,
                seed=each,
                advice=options.advice,
                accept=options.accept,
                timeout=options.timeout,
                file=given,
            )
            for now, each in schedules_to_try(options.schedules, options.seed)
        ]
        found = search(planned, options.jobs, options.dask)
        schedule, result = found.tried[-1].schedule, cast("JobResult | PlainResult", found.last)
    else:
        made = devices.open_device(
            options.device, given.path, given.target, schedule, options.seed, advice=options.advice,
            accept=options.accept, timeout=options.timeout, explore=options.explore, jobs=options.jobs,
        )  # fmt: skip
        inspection.observe(made, given.roles)
        result = given.run(made)
    for name, path in options.outputs.items():
        if name in result.outputs:
            save(path, result.outputs[name])

    inspection.write_page(
        result.launch,
        title=f"{given.path} on {result.launch.device}",
        ok=result.ok,
        verdict=result.verdict if result.ok else result.status,
        report=result.summary(),
        text=given.ptx,
        errors=result.wrong,
    )

    def show() -> None:
        _print(given, result, found, cubin, options)
        inspection.show(result.arrays)

    options.written.write(
        text=show,
        data=lambda: {
            **_json(given, result, schedule, found, cubin, options.outputs),
            **inspection.as_json(result.arrays),
        },
        report=lambda: file_results(result, given.path, schedule, found.unused_accepts if found else None),
    )
    from ptxgen.cli.launch.schedules import fails

    return WRONG if fails(result, options.fail_on) else OK


def _named(given: Runnable, outputs: Mapping[str, str]) -> dict[str, str]:
    """The files of `--out` by the name of an array, also those that are given for the number of a parameter.

    Raises InputError.
    """
    found: dict[str, str] = {}
    words: dict[str, str] = {}
    for name, path in outputs.items():
        array = given.parameter(name)
        if array not in given.names:
            what = "there is no array of this name" if array == name else f"the parameter {array} is no array"
            near = nearest(name, given.names) or f"; there are {', '.join(given.names) or 'none'}"
            raise InputError(f"--out {name}: {what}{near}")
        if array in found:
            raise InputError(f"--out {words[array]}= and --out {name}= are for the same array")
        words[array] = name
        found[array] = f"{array}.npy" if path == f"{name}.npy" else path
    return found


def _assembled(given: Runnable) -> Cubin | None:
    """What ptxas makes of the PTX. Raises IllegalPtxError, in our own words, or else AssemblerError."""
    from ptxgen.cli.common.source import excerpt
    from ptxgen.cli.toolchain.ptx import assembled
    from ptxgen.instr.model.check import check
    from ptxgen.toolchain import AssemblerError

    try:
        return assembled(given.ptx, given.target)
    except AssemblerError as error:
        said = [each for each in check(given.ptx, given.target) if each.severity == "error"]
        if not said:
            raise
        first, *others = said
        place = f"{given.path}:" if given.path.endswith(".ptx") else f"{given.path}: line "
        shown = excerpt(given.ptx, [first.line], caret=first.column, end=first.end_column)
        more = [f"and {len(others)} more errors ('ptxgen check' lists all of a file)"] if others else []
        raise IllegalPtxError(f"{place}{first.line}: {first.message} [{first.code}]", [*shown, *more]) from error


def _json(
    given: Runnable,
    result: JobResult | PlainResult,
    schedule: str,
    found: Search | None,
    cubin: Cubin | None,
    files: Mapping[str, str],
) -> dict[str, Any]:
    arrays = {
        name: {"dtype": str(values.dtype), "shape": list(values.shape), "file": files.get(name)}
        for name, values in result.outputs.items()
    }
    return {
        **given.details(),
        "job": given.path,
        "ok": result.ok,
        "status": result.status,
        "target": given.target,
        "schedule": schedule,
        "schedules_tried": len(found.tried) if found else 1,
        "schedules": found.json() if found else None,
        "explored": result.launch.explored or None,
        "checked": result.launch.checked,
        "gaps": result.launch.gaps,
        "wrong": result.wrong,
        "outputs": arrays,
        "instructions": result.launch.instructions,
        "findings": [each.to_json() for each in result.launch.findings],
        "ptxas": {"registers": cubin.registers, "spill_stores": cubin.spill_stores} if cubin else None,
    }


def _print(
    given: Runnable,
    result: JobResult | PlainResult,
    found: Search | None,
    cubin: Cubin | None,
    options: Options,
) -> None:
    from ptxgen.cli.launch.report import correct

    files = options.outputs
    for label, words in given.facts:
        print(f"{label:<12} {words}")
    print(result.summary(consequences=options.verbose))
    print(f"ptxas: {f'{cubin.registers} registers' if cubin else 'not installed'}; {result.compared}")
    if found:
        print(f"schedules: {found.summary}")
    for name, values in result.outputs.items():
        if name in files or isinstance(result, PlainResult):
            unchanged = isinstance(result, PlainResult) and name not in result.changed
            where = f"; written to {files[name]}" if name in files else ""
            print(f"{describe(name, values)}{', unchanged' if unchanged else ''}{where}")
    for name in files:
        if name not in result.outputs:
            print(f"{name}: not written: the launch did not complete")
    print(correct(result.verdict, result.launch).plain if result.ok else f"✗ {result.status}")
